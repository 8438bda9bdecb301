"""`sparsebert demo`: the whole idea in a few minutes, on built-in text and weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsebert.cli import options

if TYPE_CHECKING:
    from sparsebert.importance.categories import CategoryTable
    from sparsebert.runs import RunSettings
    from sparsebert.training import Result


def demo(
    out: Annotated[Path, typer.Option(help="Where everything is written; an unfinished demo in it goes on.")],
    seed: options.SeedOfSamples = 0,
    model: Annotated[str, typer.Option(help="minilm, a model folder, or scratch:tiny.")] = "minilm",
    length: options.Length[int] = 64,
    batch_size: Annotated[int, typer.Option(help="Rows a step.")] = 16,
    importance_steps: Annotated[int, typer.Option(help="Steps of the importance analysis.")] = 260,
    search_steps: Annotated[int, typer.Option(help="Steps of the search.")] = 100,
    sparsity: Annotated[float, typer.Option(help="Target of the search.")] = 0.85,
) -> None:
    """Learn who needs to attend to whom, on this machine, in about five minutes.

    Takes a small BERT and the documentation that comes with Python. First learns how much every entry of the
    attention matrix matters, and says whether the diagonal matters least; then learns a sparse pattern, one set of
    distances a head. Writes report.md, figures, patterns and two run folders.

    Example:

    sparsebert demo --out demo
    """
    from sparsebert.files import write_atomic
    from sparsebert.gates import Structured
    from sparsebert.importance.categories import tabulate
    from sparsebert.importance.saved import load_importance
    from sparsebert.runs import ImportanceRun, SearchRun
    from sparsebert.text import prepare_corpus
    from sparsebert.training.starting_points import shape_of

    options.require_folder(out)
    shape_of(model)  # refuses a model that is not there
    options.say_what_happens()
    # One process on one machine: nothing is gained by cutting its batches. A checkpoint holds 400 MB, so not too often.
    fit = {"micro_batches": 1, "checkpoint_every": 50, "keep_checkpoints": 1}
    common: dict[str, Any] = {"corpus": out / "corpus", "length": length, "batch_size": batch_size, "seed": seed}
    common |= {"num_held_out": 6, "fit": fit}
    # Both runs are described before the first begins: the second must not fail after minutes of the first.
    learning = ImportanceRun(model=model, steps=importance_steps, **common)
    start = str(out / "importance" / "model")
    searching = SearchRun(model=start, steps=search_steps, sparsity=sparsity, objective="mlm", **common)
    Structured(length, 1, sparsity=sparsity)  # refuses a sparsity that its border leaves no room for
    typer.echo("1/3 text: the documentation that comes with Python, as tokens")
    prepare_corpus(["builtin:python-docs"], out / "corpus", model="minilm" if model.startswith("scratch:") else model)
    typer.echo(f"2/3 importance: a soft gate on every entry, {importance_steps} steps")
    _run(learning, out / "importance")
    table = tabulate(load_importance(out / "importance"), seed)
    typer.echo(f"\n{table.as_text()}\n\n{table.verdict()}\n")
    typer.echo(f"3/3 search: one set of distances a head, to {sparsity:.0%} sparsity, {search_steps} steps")
    found = _run(searching, out / "search")
    typer.echo(f"\n{_found_in_words(dict(found.fields))}")
    write_atomic(out / "report.md", _report(table, out, dict(found.fields)).encode())
    typer.echo(f"report: {out / 'report.md'}, pattern: {out / 'search' / 'pattern.safetensors'}")


def _run(run: "RunSettings", out: Path) -> "Result":
    from sparsebert.progress import for_this_terminal

    return run.make(out, for_this_terminal(out.name))


def _found_in_words(fields: dict[str, Any]) -> str:
    return (
        f"The search kept {1 - fields['sparsity']:.1%} of the entries: {fields['heads_with_diagonal']:.0%} of heads "
        f"keep the diagonal, {fields['heads_with_neighbours']:.0%} keep their neighbours; held-out MLM loss under the "
        f"pattern is {fields['metrics']['mlm_loss']:.3f}."
    )


def _report(table: "CategoryTable", out: Path, found: dict[str, Any]) -> str:
    from sparsebert.files import read_json
    from sparsebert.patterns import Pattern

    before = read_json(out / "importance" / "result.json")["metrics"]["mlm_loss"]
    pattern = Pattern.load(out / "search" / "pattern.safetensors")
    kept = [_distances(pattern, head) for head in range(pattern.heads)]
    heads = "\n".join(f"| {head} | {', '.join(map(str, one)) or 'border only'} |" for head, one in enumerate(kept))
    return f"""# What this machine learned

## Which entries matter

P in [0, 1] for every entry, learned beside the weights; mean over heads, 95 % bootstrap interval over heads.

{table.as_markdown()}

{table.verdict()}

![importance](importance/importance.png)

## A learned pattern

{_found_in_words(found)} Under the soft gate of the first part it was {before:.3f}.

![pattern](search/pattern.png)
![sparsity](search/sparsity.png)

Distances kept by each head, inside the border, which every head keeps:

| head | distances |
|---|---|
{heads}

## What to do with it

```python
from sparsebert import Pattern, load_model
pattern = Pattern.load("search/pattern.safetensors")
model = load_model("search/model", "masked_lm")        # runs, and saves, under the pattern
longer = pattern.at(512)                               # the same distances at another length
```
"""


def _distances(pattern: Any, head: int) -> list[int]:
    """Distances of the entries off the border."""
    import numpy as np

    entries, n = pattern.entries(head), pattern.length
    rows, columns = entries // n, entries % n
    inside = (np.minimum(rows, columns) > 0) & (np.maximum(rows, columns) < n - 1)
    distances: list[int] = np.unique(np.abs(rows - columns)[inside]).tolist()
    return distances
