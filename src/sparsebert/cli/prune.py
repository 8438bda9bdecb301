"""`sparsebert prune`: a two-stage pattern from an importance run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError


def prune(
    run: Annotated[Path, typer.Argument(help="A finished importance run.")],
    sparsity: Annotated[float, typer.Option(help="Share of the entries of every head to remove.")],
    out: options.PatternFile[Path],
    random: Annotated[bool, typer.Option("--random", help="Remove at random instead: the baseline.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of --random.", show_default="0")] = None,
) -> None:
    """Remove the least important entries of every head: learn first, prune afterwards.

    Example:

    sparsebert prune importance --sparsity 0.9 --out pruned.safetensors
    """
    from sparsebert.runs import PruneRun

    if seed is not None and not random:
        raise ConfigError("--seed was given without --random; pruning by importance draws nothing, so leave it out")
    options.require_file(out)
    method: Literal["p", "random"] = "random" if random else "p"
    pruned = PruneRun(sparsity=sparsity, method=method, importance=run, seed=seed or 0).pattern()
    pruned.save(out)
    how = "at random" if random else "by importance"
    typer.echo(f"{out}: {pruned.heads} heads, length {pruned.length}, pruned {how} to {pruned.sparsity:.3%} sparse")
