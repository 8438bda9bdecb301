"""Where in a JSON text a value stands: looked up only when there is an error to report, since it is slow."""

import json
from json import decoder, scanner
from typing import Any


class _Recorder(json.JSONDecoder):
    """A decoder in plain Python that remembers at which character each object began."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[int, int] = {}
        self.parse_object = self._object
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(self, state: tuple[str, int], *arguments: Any) -> Any:
        found, end = decoder.JSONObject(state, *arguments)  # type: ignore[attr-defined]
        self.starts[id(found)] = state[1] - 1
        return found, end


def place_of(text: str, path: tuple[str | int, ...]) -> tuple[int, int]:
    """Line and column, from 1, of the innermost object on the way to a value."""
    recorder = _Recorder()
    value = recorder.decode(text)
    start = recorder.starts.get(id(value), 0)
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            break
        start = recorder.starts.get(id(value), start)
    line = text.count("\n", 0, start) + 1
    return line, start - text.rfind("\n", 0, start)
