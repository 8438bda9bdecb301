"""Recorded: any objective, with more about its run written into result.json and files beside it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from sparsebert.training.objective import Objective, Wrapper

# Writes files beside those of the objective, before result.json says that all is there; gives fields of result.json.
Files = Callable[[Path], Mapping[str, Any]]


class Recorded(Wrapper):
    """Adds fields at the end, and leaves out those of the inner objective that mean something else to the reader."""

    def __init__(
        self, inner: Objective, fields: Mapping[str, Any], *, without: Collection[str] = (), files: Files | None = None
    ) -> None:
        super().__init__(inner)
        self.fields, self.without, self.files = dict(fields), without, files

    def finish(self, folder: Path) -> dict[str, Any]:
        own = {name: value for name, value in self.inner.finish(folder).items() if name not in self.without}
        added = {} if self.files is None else self.files(folder)
        return {**own, **added, **self.fields}
