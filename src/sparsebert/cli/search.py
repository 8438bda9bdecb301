"""`sparsebert search`: learn a sparse pattern beside the weights."""

from pathlib import Path
from typing import Annotated, Any

import typer


def search(
    model: Annotated[str, typer.Option(help="minilm, a model folder, a hub id, or scratch:tiny|mini|base.")],
    corpus: Annotated[Path, typer.Option(help="A folder made by sparsebert prepare.")],
    steps: Annotated[int, typer.Option(help="Optimiser steps.")],
    out: Annotated[Path, typer.Option(help="The run folder; an unfinished run in it is resumed.")],
    kind: Annotated[
        str, typer.Option(help="structured: lines |i - j| a head, usable at any length. unstructured: single entries.")
    ] = "structured",
    sparsity: Annotated[float | None, typer.Option(help="Target, reached by dual ascent on the penalty.")] = None,
    penalty: Annotated[float | None, typer.Option(help="Lambda of the paper instead of a target.")] = None,
    length: Annotated[int, typer.Option(help="Tokens in a row; beyond 256 only sampled lines are computed.")] = 128,
    batch_size: Annotated[int, typer.Option(help="Rows a step, over all ranks.")] = 32,
    preset: Annotated[str, typer.Option(help="default, paper, or official (the released code).")] = "default",
    levels: Annotated[int, typer.Option(help="2: the gate learns on batches of its own (first-order DARTS).")] = 1,
    diagonal: Annotated[str, typer.Option(help="learned, keep or drop, when the gate is frozen.")] = "learned",
    seed: Annotated[int, typer.Option(help="Of new weights, batches, dropout and samples.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting: rate=0.05, anchor=token, checkpoint_every=50 ..."),
    ] = None,
) -> None:
    """Learn which entries to keep (the paper's Algorithm 1), and freeze them into a pattern.

    Ends with pattern.safetensors, the model under it, a grid of all heads (pattern.png) and the path of the sparsity
    (sparsity.png). The same command on the same folder resumes.

    Examples:

    sparsebert search --model minilm --corpus corpus --sparsity 0.93 --steps 240 --out found

    torchrun --nproc-per-node 2 -m sparsebert search --model minilm --corpus corpus --kind unstructured
    --penalty 1e-3 --steps 600 --out found
    """
    from sparsebert.cli.options import settings_from
    from sparsebert.errors import ConfigError
    from sparsebert.training.gate_runs import resolve, run_gate
    from sparsebert.training.launch import is_main
    from sparsebert.training.progress import for_this_terminal

    if kind not in ("structured", "unstructured"):
        raise ConfigError(f"--kind is {kind!r}; expected structured or unstructured")
    given: dict[str, Any] = {
        "kind": kind,
        "model": model,
        "corpus": corpus,
        "steps": steps,
        "length": length,
        "batch_size": batch_size,
        "preset": preset,
        "levels": levels,
        "diagonal": diagonal,
        "seed": seed,
        "sparsity": sparsity,
        "penalty": penalty or 0.0,
    }
    result = run_gate(resolve(given, settings_from(set_)), out, for_this_terminal("search") if is_main() else None)
    if is_main():
        typer.echo(_words(out, dict(result.fields)))


def _words(out: Path, fields: dict[str, Any]) -> str:
    metrics = fields["metrics"]
    return (
        f"{out}: {fields['sparsity']:.2%} sparse, held-out MLM loss under the pattern {metrics['mlm_loss']:.4f}; "
        f"{fields['heads_with_diagonal']:.0%} of heads keep the diagonal, {fields['heads_with_neighbours']:.0%} keep ±1"
    )
