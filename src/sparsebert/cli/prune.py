"""`sparsebert prune`: a two-stage pattern from an importance run."""

from pathlib import Path
from typing import Annotated

import typer


def prune(
    run: Annotated[Path, typer.Argument(help="A finished importance run.")],
    sparsity: Annotated[float, typer.Option(help="Share of the entries of every head to remove.")],
    out: Annotated[Path, typer.Option(help="Save the pattern to this .safetensors file.")],
    random: Annotated[bool, typer.Option("--random", help="Remove at random instead: the baseline.")] = False,
    seed: Annotated[int, typer.Option(help="Of --random.")] = 0,
) -> None:
    """Remove the least important entries of every head: learn first, prune afterwards.

    Example:

    sparsebert prune importance --sparsity 0.9 --out pruned.safetensors
    """
    from sparsebert import patterns
    from sparsebert.training.importance import load_importance

    values = load_importance(run)
    heads, length, _ = values.shape
    if random:
        pruned = patterns.random(length, heads, sparsity=sparsity, seed=seed)
    else:
        pruned = patterns.prune(values, sparsity)
    pruned.save(out)
    how = "at random" if random else "by importance"
    typer.echo(f"{out}: {heads} heads, length {length}, pruned {how} to {pruned.sparsity:.3%} sparse")
