"""`sparsebert theory`: the universality theorem audited, measured, and seen on patterns."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError
from sparsebert.progress import duration, for_this_terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from sparsebert.theory.audit import AuditedLemma
    from sparsebert.theory.reach import Reach


class Show(StrEnum):
    """What to look at."""

    AUDIT = "audit"
    APPROXIMATION = "approximation"
    CONTROL = "control"


def theory(
    tokens: Annotated[int, typer.Option(help="Tokens n of an input, at least 3.")] = 3,
    width: Annotated[int, typer.Option(help="Entries d of a token.")] = 1,
    resolution: Annotated[int, typer.Option(help="1/delta; every resolution up to this one is checked.")] = 4,
    show: Annotated[
        Show,
        typer.Option(
            help="audit: every claim of the proof, checked. approximation: errors against delta and temperature "
            "(three tokens, about a minute). control: the construction on a pattern of two separate blocks."
        ),
    ] = Show.AUDIT,
    pattern: Annotated[
        str | None,
        typer.Option(help="Instead: who reaches whom in how many layers, for a saved pattern or a builder's name."),
    ] = None,
    length: Annotated[int | None, typer.Option(help="With --pattern: positions; 128 unless a file says.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random inputs, where there are too many to check all.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the result as JSON, and figures, to this folder.")] = None,
) -> None:
    """Check the proof that attention without the diagonal is universal, claim by claim.

    Each claim holds, fails (with the smallest counter-example, in multiples of delta) or was not checked.

    Examples:

    sparsebert theory --tokens 3 --width 1 --resolution 4

    sparsebert theory --tokens 4 --resolution 6 --out audit  # finds the first collision for even n

    sparsebert theory --show approximation --out errors

    sparsebert theory --pattern star --length 128
    """
    options.require_folder(out)
    if pattern is None and length is not None:
        raise ConfigError("--length was given without --pattern; the proof has --tokens, so leave it out")
    if pattern is not None:
        view = _reach(pattern, length)
    elif show is Show.AUDIT:
        view = _audit(tokens, width, resolution, seed)
    elif show is Show.APPROXIMATION:
        view = _approximation()
    else:
        view = _control(tokens, width, resolution)
    view.present(json, out)


@dataclass(frozen=True)
class _View:
    """What was found: as JSON, as tables and sentences, as figures by file name."""

    name: str
    result: Any
    shown: "list[Table | str]"
    figures: "Callable[[], dict[str, Figure]]" = dict

    def present(self, json: bool, out: Path | None) -> None:
        from rich.console import Console

        from sparsebert.files import canonical_json, write_json
        from sparsebert.patterns.figures import save_figure

        if out is not None:
            write_json(out / f"{self.name}.json", self.result)
            for name, figure in self.figures().items():
                save_figure(figure, out / name)
        if json:
            typer.echo(canonical_json(self.result))
            return
        # Off a terminal the width is unknown; a table that is cut would lose the counter-examples.
        console = Console() if Console().is_terminal else Console(width=190)
        for part in self.shown:
            console.print(part)


@contextmanager
def _shown(title: str) -> Iterator[Callable[[float], object]]:
    """Told the share that is done, it shows that."""
    watcher, started = for_this_terminal(title, "percent"), time.perf_counter()

    def told(share: float) -> None:
        spent = time.perf_counter() - started
        watcher.step(int(100 * share), f"{duration(spent)} so far", spent / max(share, 1e-9) * (1 - share))

    watcher.start(0, 100)
    try:
        yield told
    finally:
        watcher.stop()


def _table(title: str, *columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    return Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


# The audit


def _audit(tokens: int, width: int, resolution: int, seed: int) -> _View:
    from sparsebert.theory.audit import audit
    from sparsebert.theory.grid import Grid

    with _shown(f"audit, n = {tokens}, d = {width}") as told:
        findings = audit(tokens, width, resolution, seed=seed, told=told)
    grid = Grid(tokens, width, resolution)

    def figures() -> "dict[str, Figure]":
        from sparsebert.theory.figures import audit_figure, shifts_figure

        spread = [token * (grid.num_levels - 1) // (grid.tokens - 1) for token in range(grid.tokens)]
        return {"audit.svg": audit_figure(findings), "shifts.svg": shifts_figure(grid, spread)}

    return _View("audit", [finding.as_json() for finding in findings], [_audit_table(findings)], figures)


_STYLE = {"holds": "green", "fails": "red", "not checked": "yellow"}


def _audit_table(findings: "list[AuditedLemma]") -> "Table":
    from rich.markup import escape

    bounds = findings[0].bounds
    title = f"n = {bounds.tokens}, d = {bounds.width}; counter-examples in multiples of delta"
    table = _table(title, "claim", "where", "verdict", "checked", "false", "smallest counter-example, or reach")
    for finding in findings:
        example = finding.counter_example
        note = _words(example) if example else finding.bounds.note
        style = _STYLE[finding.verdict]
        verdict = f"[{style}]{finding.verdict}[/{style}]"
        counts = (f"{finding.checked:,}", f"{finding.violations:,}")
        table.add_row(escape(finding.claim), escape(finding.where), verdict, *counts, escape(note))
    return table


def _words(example: dict[str, Any]) -> str:
    parts = [f"1/delta = {example['resolution']}"] if "resolution" in example else []
    parts += [" / ".join(str(tokens) for tokens in example["inputs"])] if "inputs" in example else []
    parts += [f"{key} {value}" for key, value in example.items() if key not in ("resolution", "inputs")]
    return ", ".join(parts)


# The other views


def _approximation() -> _View:
    import torch

    from sparsebert.theory.figures import approximation_figure
    from sparsebert.theory.study import approximation_study

    torch.set_num_threads(1)  # thousands of tiny layers: more threads only wait for each other
    with _shown("approximation") as told:
        study = approximation_study(told)
    delta = _table("d_p(f, g), hardmax", "f", "d", "rows", "p", "1/delta", "error", "bound", "slope", "last slope")
    for part in study["delta"]:
        delta.add_row(
            part["target"],
            str(part["width"]),
            "marked" if part["marked"] else "unmarked",
            f"{part['p']:g}",
            " ".join(str(resolution) for resolution in part["resolutions"]),
            " ".join(f"{error:.3f}" for error in part["errors"]),
            " ".join(f"{bound:.3f}" for bound in part["bounds"]),
            f"{part['slope']:.3f}",
            f"{part['last_slope']:.3f}",
        )
    sharp = study["sharpness"]
    scale = _table("d_p(f, g), softmax and ReLUs", "ramp", *(f"{scale:g}" for scale in sharp["scales"]), "hardmax")
    for ramp, errors in sharp["errors"].items():
        scale.add_row(ramp, *(f"{error:.3f}" for error in errors), f"{sharp['hardmax']:.3f}")
    return _View("approximation", study, [delta, scale], lambda: {"approximation.svg": approximation_figure(study)})


def _control(tokens: int, width: int, resolution: int) -> _View:
    from rich.markup import escape

    from sparsebert.theory.control import control
    from sparsebert.theory.exact import blocks, every_other
    from sparsebert.theory.grid import Grid

    grid = Grid(tokens, width, resolution, marked=True)
    patterns = {"all but the diagonal": every_other(tokens), "two blocks": blocks(tokens, -(-tokens // 2))}
    result = {name: control(grid, keys) for name, keys in patterns.items()}
    as_json = {name: {claim: asdict(outcome) for claim, outcome in part.items()} for name, part in result.items()}
    table = _table(f"n = {tokens}, marked rows", "pattern", "claim", "verdict", "checked", "false", "first failure")
    for name, part in result.items():
        for claim, outcome in part.items():
            verdict = "[red]fails[/red]" if outcome.violations else "[green]holds[/green]"
            example = escape(_words(outcome.counter_example or {}))
            table.add_row(name, claim, verdict, f"{outcome.checked:,}", f"{outcome.violations:,}", example)
    return _View("control", as_json, [table])


def _reach(name: str, length: int | None) -> _View:
    from sparsebert.patterns import find
    from sparsebert.theory.reach import reach

    pattern = find(name, length)
    found = reach(pattern if length is None else pattern.at(length))
    heading = f"{name}: length {found.length}, heads {found.heads}, sparsity {found.sparsity:.3%}"
    table = _table("", "layers", "share of pairs connected")
    pairs = max(1, found.length * (found.length - 1))
    for layer, count in enumerate(found.heard_after[:12], start=1):
        table.add_row(str(layer), f"{count / pairs:.2%}")
    return _View("reach", {"pattern": name, **asdict(found)}, [heading, table, _verdict(found)])


def _verdict(found: "Reach") -> str:
    if found.layers is None and found.own_layers > 1:
        return f"{found.unreachable:,} pairs are not connected within its {found.own_layers} layers."
    if found.layers is None:
        return (
            f"{found.unreachable:,} pairs are never connected, at any depth: such a model is no universal approximator."
        )
    path = f"{'a' if found.neighbours_linked else 'no'} path of neighbours runs through all tokens"
    return f"every token has heard every other after {found.layers} layers (mean {found.mean_layers:.2f}); {path}."
