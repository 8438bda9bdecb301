"""`sparsebert importance`: which kinds of entries does attention need?"""

from pathlib import Path
from typing import Annotated

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError


def importance(
    context: typer.Context,
    model: options.Model[str],
    corpus: options.Corpus[Path],
    steps: options.Steps[int],
    out: options.RunFolder[Path],
    length: options.Length[int] = 128,
    batch_size: options.BatchSize[int] = 32,
    method: Annotated[
        str, typer.Option(help="gate: learn a soft P beside the weights. attention: average trained attention maps.")
    ] = "gate",
    beside: Annotated[
        Path | None, typer.Option(help="A finished importance run of the other method, to draw both side by side.")
    ] = None,
    head_start: Annotated[
        float | None,
        typer.Option(
            help="gate: share of the steps in which only the weights learn; 0 for a trained model.", show_default="0.5"
        ),
    ] = None,
    seed: options.Seed = 0,
    set_: Annotated[
        list[str] | None,
        options.other_settings("Any other setting: rate=0.02, learning_rate=1e-4, anchor=token ..."),
    ] = None,
) -> None:
    """Learn how much every entry of the attention matrix matters, and sum it up by category.

    Ends with a table (mean over heads, 95 % bootstrap interval over heads, rank), one sentence about the diagonal,
    and, in the run folder, importance.png and report.html, a page to look at every entry of every head. The same
    command on the same folder resumes.

    Examples:

    sparsebert importance --model minilm --corpus corpus --steps 300 --out importance

    sparsebert importance --model minilm --corpus corpus --steps 300 --method attention --beside importance --out maps
    """
    from sparsebert.runs import ImportanceRun

    if method not in ("gate", "attention"):
        raise ConfigError(f"--method is {method!r}; expected gate or attention")
    known, flags = ImportanceRun.known(), options.options_of(importance, num_steps="--steps", kind="--method")
    given = options.settings_given(context, known) | {"kind": "soft" if method == "gate" else "attention"}
    if method == "gate":
        given.setdefault("head_start", 0.5)
    run = ImportanceRun.read(given | options.read_settings(set_, known, flags))
    if beside is not None:
        _check_beside(beside, method)
    if options.make(run, out, "importance") is not None:
        _report(out, beside, seed)


def _report(out: Path, beside: Path | None, seed: int) -> None:
    from sparsebert.importance.categories import tabulate
    from sparsebert.importance.saved import load_importance
    from sparsebert.report.run_pages.writing import write_importance_page

    table = tabulate(load_importance(out), seed)
    typer.echo(f"{table.as_text()}\n\n{table.verdict()}")
    if beside is not None:
        _draw_both(out, beside, seed)
    typer.echo(options.page_line(write_importance_page(out, beside, seed)))


def _check_beside(beside: Path, method: str) -> None:
    """Before the work: what is to be drawn beside it must be there, and of the other method."""
    from sparsebert.importance.saved import ATTENTION, load_importance

    load_importance(beside)
    if (beside / ATTENTION).is_file() == (method == "attention"):
        raise ConfigError(f"{beside} used the method {method} too; --beside needs a run of the other one")


def _draw_both(out: Path, beside: Path, seed: int) -> None:
    from sparsebert.importance.categories import tabulate
    from sparsebert.importance.figures import contrast_figure
    from sparsebert.importance.saved import ATTENTION, load_importance
    from sparsebert.patterns.figures import save_figure

    learned, trained = (beside, out) if (out / ATTENTION).is_file() else (out, beside)
    both = [(values, tabulate(values, seed)) for values in map(load_importance, (learned, trained))]
    save_figure(contrast_figure(*both), out / "contrast.png")
    typer.echo(f"both methods side by side: {out / 'contrast.png'}")
