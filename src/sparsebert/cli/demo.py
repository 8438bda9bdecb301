"""`sparsebert demo`: the whole idea in a few minutes, on built-in text and weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsebert.cli import options

if TYPE_CHECKING:
    from sparsebert.runs import ImportanceRun, RunSettings, SearchRun

_LONG = 4096  # tokens of the text that is timed


def demo(
    out: Annotated[Path, typer.Option(help="Where everything is written; an unfinished demo in it goes on.")],
    seed: options.SeedOfSamples = 0,
    model: Annotated[str, typer.Option(help="minilm, a model folder, or scratch:tiny.")] = "minilm",
    length: Annotated[int, typer.Option(help="Tokens in a row of the importance analysis.")] = 64,
    batch_size: Annotated[int, typer.Option(help="Rows a step.")] = 16,
    importance_steps: Annotated[int, typer.Option(help="Steps of the importance analysis.")] = 260,
    search_length: Annotated[int, typer.Option(help="Tokens in a row of the search.")] = 128,
    search_steps: Annotated[int, typer.Option(help="Steps of the search.")] = 200,
    sparsity: Annotated[float, typer.Option(help="Target of the search.")] = 0.85,
) -> None:
    """Learn who needs to attend to whom, and run only that, on this machine, in three to six minutes.

    Takes a small BERT and the documentation that comes with Python. First learns how much every entry of the
    attention matrix matters, and says whether the diagonal matters least. Then the model teaches itself a sparse
    pattern: one set of distances a head and layer, its weights as they are (a model from scratch has none, so there it
    is the one that the first part trained). Ends with what that costs and what a long text gains, as a table and as a
    page, report.html; beside it lie two run folders.

    Example:

    sparsebert demo --out demo
    """
    from sparsebert.importance.categories import tabulate
    from sparsebert.importance.saved import load_importance
    from sparsebert.patterns import Pattern
    from sparsebert.report.run_pages.demo import DemoResult, write_demo_page
    from sparsebert.runs.timing import time_forward
    from sparsebert.text import prepare_corpus

    options.require_folder(out)
    options.say_what_happens()
    common = {"batch_size": batch_size, "seed": seed, "corpus": out / "corpus", "num_held_out": 6}
    learning, searching = _runs(
        model,
        out,
        {"length": length, "steps": importance_steps, **common},
        {"length": search_length, "steps": search_steps, "sparsity": sparsity, **common},
    )
    typer.echo("1/4 text: the documentation that comes with Python, as tokens")
    prepare_corpus(["builtin:python-docs"], out / "corpus", model="minilm" if model.startswith("scratch:") else model)
    typer.echo(f"2/4 importance: a soft gate on every entry, {importance_steps} steps")
    _make(learning, out / "importance")
    table = tabulate(load_importance(out / "importance"), seed)
    typer.echo(f"\n{table.as_text()}\n\n{table.verdict()}\n")
    typer.echo(f"3/4 search: one set of distances a head and layer, to {sparsity:.0%} sparsity, {search_steps} steps")
    _make(searching, out / "search")
    typer.echo(f"4/4 time: one text of {_LONG:,} tokens, dense and sparse by turns")
    result = DemoResult(
        out / "search", time_forward(searching.model, Pattern.load(out / "search" / "pattern.safetensors"), _LONG)
    )
    typer.echo(f"\n{result.as_text()}\n\n{result.note}\n")
    typer.echo(options.page_line(write_demo_page(out, result, seed)))


def _runs(
    model: str, out: Path, learned: dict[str, Any], searched: dict[str, Any]
) -> tuple["ImportanceRun", "SearchRun"]:
    """Both are described before the first begins: the second must not fail after minutes of the first."""
    from sparsebert.runs import ImportanceRun, SearchRun
    from sparsebert.training.starting_points import check_batch, shape_of

    shape = shape_of(model)  # refuses a model that is not there
    # One process on one machine: nothing is gained by cutting its batches. A checkpoint holds 400 MB, so not too often.
    fit = {"micro_batches": 1, "checkpoint_every": 50, "keep_checkpoints": 1}
    learning = ImportanceRun(model=model, fit=fit, **learned)
    taught = str(out / "importance" / "model") if model.startswith("scratch:") else model
    searching = SearchRun(model=taught, fit=fit, objective="distill", **searched)
    for run in (learning, searching):
        check_batch(shape, run.fit_config(), run.batch_size, run.length)
    return learning, searching


def _make(run: "RunSettings", out: Path) -> None:
    from sparsebert.progress import for_this_terminal

    run.make(out, for_this_terminal(out.name))
