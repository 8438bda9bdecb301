"""Commands as the docs show them, and whether they could be run: programs, options, files."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from sparsebert.cli import app
from tests.docs.pages import PROJECT

PROGRAMS = ("sparsebert", "python", "torchrun", "pytest", "make", "pip", "ray", "printf", "taskset", "zstdcat")
_CLI = typer.main.get_command(app)
_SETS_THE_ENVIRONMENT = re.compile(r"[A-Z_]+=")
_STANDS_FOR_A_VALUE = re.compile(r"[A-Z]+|\$\d")


def help_texts() -> list[str]:
    """What each command says of itself, examples among it, a paragraph a line."""
    return [re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "") for command in _CLI.commands.values()]


def commands(code: str) -> Iterator[list[str]]:
    """The words of every command of a block; lines that begin with no program of ours are not commands."""
    for line in code.replace("\\\n", " ").splitlines():
        for part in _parts(line):
            words = list(dropwhile(_SETS_THE_ENVIRONMENT.match, part))
            if words and words[0] in PROGRAMS:
                yield words


def _parts(line: str) -> Iterator[list[str]]:
    """What stands between `|`, `&&` and `;`, up to a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    part: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("|&;"):
                yield part
                part = []
            else:
                part.append(word)
    except ValueError:  # an apostrophe of prose or of a formula: no command
        return
    yield part


def problem(words: Sequence[str], *, whole: bool = True) -> str | None:
    """What is wrong with a command; `whole` ones must also give every argument that is asked for."""
    program, rest = words[0], list(words[1:])
    if program == "taskset":
        return problem(rest[2:], whole=whole)
    if program in ("python", "torchrun"):
        return _problem_of_python(rest, whole)
    if program == "sparsebert":
        return _problem_of_ours(rest, whole)
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        return next((f"there is no make {word}" for word in rest if "=" not in word and word not in targets), None)
    if program == "pytest":
        return next((f"{word} does not exist" for word in rest if "/" in word and not _in_project(word)), None)
    return None  # another project's program


def _problem_of_python(words: list[str], whole: bool) -> str | None:
    if "-m" in words:
        module, rest = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
        if module == "sparsebert":
            return _problem_of_ours(rest, whole)
        if module.split(".")[0] not in ("tests", "scorecard"):
            return problem([module, *rest])
        script = module.replace(".", "/")
    else:
        script, rest = words[0].removesuffix(".py"), words[1:]
    files = [path for path in (PROJECT / f"{script}.py", PROJECT / script / "__main__.py") if path.is_file()]
    if not files:
        return f"there is no {script}.py"
    source = files[0].read_text(encoding="utf-8")
    options = (word for word in rest if word.startswith("--"))
    # Some scripts name an option without its dashes and add them in a loop.
    missing = (option for option in options if f'"{option}"' not in source and f'"{option[2:]}"' not in source)
    return next((f"{script} has no {option}" for option in missing), None)


def _problem_of_ours(words: list[str], whole: bool) -> str | None:
    command, rest = _CLI, list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest[0])
        if found is None:
            return f"there is no command {rest[0]}"
        command, rest = found, rest[1:]
    known = {"--help", "--debug", *(option for parameter in command.params for option in parameter.opts)}
    unknown = [word for word in rest if word.startswith("--") and word.split("=")[0] not in known]
    if unknown or not whole:
        return f"{command.name} has no {unknown[0]}" if unknown else None
    # Any number is a text and a path too.
    given = ["1" if _STANDS_FOR_A_VALUE.fullmatch(word) else word for word in rest]
    try:
        command.make_context(command.name, given)
    except TyperException as error:
        return str(error)
    return None


def _in_project(path: str) -> bool:
    return Path(PROJECT / path.split("::")[0]).exists()
