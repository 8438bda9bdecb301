"""What several commands share: reading `--set key=value` and finding a pattern by file or name."""

import json
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsebert.errors import ConfigError

if TYPE_CHECKING:
    from sparsebert.patterns import Pattern


def settings_from(pairs: list[str] | None, options: Collection[str] = ()) -> dict[str, Any]:
    """["stride=8", "reading=text"] as {"stride": 8, "reading": "text"}; values are JSON where they can be.

    options: what the command has options for; one of two values would lose in silence, so `--set` may not name them.
    """
    settings = {}
    for pair in pairs or []:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigError(f"--set was given {pair!r}; expected key=value, such as --set checkpoint_every=50")
        key = key.strip()
        if key in options:
            raise ConfigError(f"--set was given {pair!r}; {key} has an option of its own, see --help")
        settings[key] = _value(text)
    return settings


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def task_setting_names() -> tuple[set[str], set[str]]:
    """What `--set` may name for a run on a task: settings of the run, and of the training loop."""
    from sparsebert.tasks.config import FinetuneConfig
    from sparsebert.training import fit_fields

    own = {field.name for field in fields(FinetuneConfig)} - {"task", "data", "model"}
    return own, fit_fields() - own


def task_settings(
    pairs: list[str] | None, options: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What `--set` does name: of the run, of the training loop, and whatever is left."""
    own, loop = task_setting_names()
    settings = settings_from(pairs, options)
    of_run = {name: value for name, value in settings.items() if name in own}
    of_loop = {name: value for name, value in settings.items() if name in loop}
    return of_run, of_loop, {name: value for name, value in settings.items() if name not in own | loop}


def find_pattern(name: str, length: int, heads: int = 1, **arguments: Any) -> "Pattern":
    """A saved file (brought to the length by its rule where it is another), or a builder's name."""
    from sparsebert.patterns import Pattern, named

    if not Path(name).is_file():
        return named(name, length, heads, **arguments)
    pattern = Pattern.load(name)
    return pattern if pattern.length == length else pattern.at(length)
