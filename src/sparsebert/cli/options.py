"""What several commands share: options, the one reader of `--set key=value`, and what is checked before work begins."""

import inspect
import json
import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from typer import Context, Option
from typer.models import ArgumentInfo, OptionInfo

from sparsebert.errors import ConfigError, FileError
from sparsebert.settings import Declared, refuse_unknown

# Options of several commands. The type that a command fills in says whether one may be left out; where its help also
# says what happens then, the command takes the words alone.
Kind = TypeVar("Kind")
MODEL = "minilm, a model folder, a hub id, or scratch:tiny|mini|base."
STEPS = "Optimiser steps."
LENGTH = "Tokens in a row."
BATCH_SIZE = "Rows a step, over all ranks."
PREPARED = "A folder made by sparsebert prepare."
Model = Annotated[Kind, Option(help=MODEL)]
Steps = Annotated[Kind, Option(help=STEPS)]
Length = Annotated[Kind, Option(help=LENGTH)]
BatchSize = Annotated[Kind, Option(help=BATCH_SIZE)]
Corpus = Annotated[Kind, Option(help=PREPARED)]
RunFolder = Annotated[Kind, Option(help="The run folder; an unfinished run in it is resumed.")]
Precision = Annotated[str, Option(help="fp32, bf16 where the processor has it, or int8.")]
PatternFile = Annotated[Kind, Option(help="Save the pattern to this .safetensors file.")]
Seed = Annotated[int, Option(help="Of new weights, batches and dropout.")]
SeedOfSamples = Annotated[int, Option(help="Of new weights, batches, dropout and samples.")]


def other_settings(help: str) -> Any:
    """The option for all settings that have none of their own."""
    return Option("--set", help=help)


def read_settings(
    pairs: list[str] | None, known: Mapping[str, Declared], options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """["stride=8", "reading=text"] as {"stride": 8, "reading": "text"}, each of the type it is declared with.

    options: settings that an option sets, and which; of two values one would lose in silence, so `--set` may not name
    them.
    """
    options = options or {}
    free = {name: one for name, one in known.items() if name not in options}
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        name, separator, text = pair.partition("=")
        name = name.strip()
        if not separator or not name:
            raise ConfigError(f"--set was given {pair!r}; expected key=value, such as --set checkpoint_every=50")
        if name in options:
            raise ConfigError(f"--set was given {pair!r}; {name} has an option of its own, {options[name]}")
        refuse_unknown(name, free)
        if name in settings:
            raise ConfigError(f"--set was given {name} twice; leave one out")
        settings[name] = free[name].read(text)
    return settings


def settings_given(context: Context, known: Mapping[str, Declared]) -> dict[str, Any]:
    """The options of this call that are settings of a run, by name; those that were left out are left out."""
    return {name: value for name, value in context.params.items() if name in known and value is not None}


def options_of(command: Callable[..., Any], **others: str) -> dict[str, str]:
    """Parameters of a command with the options that set them; others: settings that an option sets by another name."""
    flags = dict(others)
    for name, parameter in inspect.signature(command).parameters.items():
        for one in get_args(parameter.annotation):
            if isinstance(one, OptionInfo):
                flags[name] = (one.param_decls or [f"--{name.replace('_', '-')}"])[0]
            elif isinstance(one, ArgumentInfo):
                flags[name] = name.upper()
    return flags


def command_line(command: str, run: Any, options: Mapping[str, str]) -> str:
    """The command that makes a task's run again: what is always said, and what differs from a plain run."""
    from sparsebert.tasks.config import FinetuneConfig

    plain = FinetuneConfig(run.task, run.data, run.model).resolved()
    task = run.task if command == "finetune" else f"--task {run.task}"
    words = [f"sparsebert {command} {task} --data {run.data} --model {run.model}"]
    for one in fields(run):
        value = getattr(run, one.name)
        default = getattr(plain, one.name, None if one.default is MISSING else one.default)
        if one.name in run.PARTS:
            words += [_option(name, inner, options) for name, inner in value.items()]
        elif value not in (default, None) and one.name not in ("task", "data", "model", "command"):
            words.append(_option(one.name, value, options))
    return " ".join(words) + " --out RUN"


def _option(name: str, value: Any, options: Mapping[str, str]) -> str:
    """A setting as it is typed: by an option of its own, if there is one. A pattern is its file."""
    text = value if isinstance(value, str) else json.dumps(value, default=lambda _: "pattern.safetensors").strip('"')
    flag, shown = options.get(name), shlex.quote(text)
    return f"--set {name}={shown}" if flag is None else flag if value is True else f"{flag} {shown}"


def chosen_under_pattern(
    command: Callable[..., Any], run: Any, context: Context, pattern: str | None, pairs: list[str] | None
) -> dict[str, Any]:
    """The settings that were given, by name; with --pattern a builder's name, also those of the builder."""
    from sparsebert.runs.under_pattern import PATTERN

    is_built = pattern is not None and not Path(pattern).is_file()
    for pair in pairs or []:
        if pair.startswith(PATTERN) and not is_built:
            raise ConfigError(f"--set was given {pair!r}, but --pattern names no builder that it could apply to")
    known = run.known()
    of_builder = builder_arguments(str(pattern), PATTERN) if is_built else {}
    flags = options_of(command, num_steps="--steps")
    return settings_given(context, known) | read_settings(pairs, known | of_builder, flags)


def comparison_table(run: Path) -> str:
    """What a finished run kept of the dense model, as a table."""
    from sparsebert.files import read_json
    from sparsebert.training.comparison import ModelComparison

    return str(ModelComparison.from_json(read_json(run / "comparison.json")))


def page_line(page: Path) -> str:
    """Where a page was written, as an address that terminals and browsers open."""
    return f"page: {page.resolve().as_uri()}"


def say_what_happens() -> None:
    """What the library has to say (positions were extended, a head is new) goes to the terminal, of one rank."""
    from sparsebert.training.launch import is_main

    logging.basicConfig(level=logging.INFO if is_main() else logging.ERROR, format="%(message)s")


def make(run: Any, out: Path, title: str) -> Mapping[str, Any] | None:
    """Make a run, or go on with it; what came of it, told by one rank: the others have nothing to say."""
    from sparsebert.progress import for_this_terminal
    from sparsebert.training import is_main

    require_folder(out)
    say_what_happens()
    result = run.make(out, for_this_terminal(title) if is_main() else None)
    return result.fields if is_main() else None


def require_folder(path: Path | None, option: str = "--out") -> None:
    """Refuse what cannot become a folder, before there is anything to put into it."""
    if path is None:
        return
    blocked = next((one for one in (path, *path.parents) if one.exists() and not one.is_dir()), None)
    if blocked is not None:
        raise FileError(f"{blocked} is a file; {option} {path} must be a folder, so choose another name")


def require_file(path: Path | None, option: str = "--out") -> None:
    """Refuse a file to write whose name a folder has, before there is anything to put into it."""
    if path is None:
        return
    if path.is_dir():
        raise FileError(f"{path} is a folder; {option} names a file to write, such as {path / 'out'}{path.suffix}")
    blocked = next((one for one in path.parents if one.exists() and not one.is_dir()), None)
    if blocked is not None:
        raise FileError(f"{blocked} is a file, so {option} {path} cannot be written; choose another name")


def builder_arguments(name: str, prefix: str = "") -> dict[str, Declared]:
    """What the builder of a pattern takes; nothing where the pattern is a file."""
    from sparsebert.patterns.rules import arguments_of

    found = {} if Path(name).is_file() else arguments_of(name)
    return {
        f"{prefix}{argument}": Declared(f"{prefix}{argument}", one.kind, one.unit) for argument, one in found.items()
    }
