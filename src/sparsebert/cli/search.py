"""`sparsebert search`: learn a sparse pattern beside the weights."""

from pathlib import Path
from typing import Annotated, Any

import typer


def search(
    model: Annotated[str, typer.Option(help="minilm, a model folder, a hub id, or scratch:tiny|mini|base.")],
    out: Annotated[Path, typer.Option(help="The run folder; an unfinished run in it is resumed.")],
    corpus: Annotated[Path | None, typer.Option(help="A folder made by sparsebert prepare.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.", show_default="required with --corpus")] = None,
    task: Annotated[
        str | None, typer.Option(help="Learn on this task's own loss instead of a corpus: rte, mrpc, squad1 ...")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="With --task: folder of the official folders.", show_default="builtin:tasks")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="structured: lines |i - j| a head, usable at any length. unstructured: single entries.")
    ] = "structured",
    sparsity: Annotated[float | None, typer.Option(help="Target, reached by dual ascent on the penalty.")] = None,
    penalty: Annotated[float | None, typer.Option(help="Lambda of the paper instead of a target.")] = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="Tokens in a row; beyond 256 only sampled lines are computed.", show_default="128; the task's own"
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows a step, over all ranks.", show_default="32; the task's own")
    ] = None,
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

    sparsebert search --model minilm --task rte --data DIR --sparsity 0.9 --out found-for-rte
    """
    from sparsebert.cli.options import require_folder, say_what_happens
    from sparsebert.errors import ConfigError

    if kind not in ("structured", "unstructured"):
        raise ConfigError(f"--kind is {kind!r}; expected structured or unstructured")
    if (corpus is None) == (task is None):
        raise ConfigError("search learns on text or on a task; give either --corpus or --task, one of them")
    if task is None and data is not None:
        raise ConfigError("--data was given without --task; a search on a corpus reads no task files, so leave it out")
    if task is not None and levels != 1:
        raise ConfigError(f"--levels is {levels}; a search on a task has one level, so leave it out")
    require_folder(out)
    say_what_happens()
    given: dict[str, Any] = {
        "kind": kind,
        "model": model,
        "length": length,
        "batch_size": batch_size,
        "preset": preset,
        "diagonal": diagonal,
        "seed": seed,
        "sparsity": sparsity,
        "penalty": penalty or 0.0,
    }
    if task is None:
        _on_text(out, {**given, "corpus": corpus, "steps": steps, "levels": levels}, set_)
    else:
        _on_task(out, task, data or "builtin:tasks", steps, given, set_)


def _on_text(out: Path, given: dict[str, Any], pairs: list[str] | None) -> None:
    from sparsebert.cli.options import options_of, read_settings
    from sparsebert.errors import ConfigError
    from sparsebert.training.gate_runs import resolve, run_gate, run_settings
    from sparsebert.training.launch import is_main
    from sparsebert.training.progress import for_this_terminal

    if given["steps"] is None:
        raise ConfigError("search on a corpus was given no --steps; say how many, such as --steps 240")
    chosen = {name: value for name, value in given.items() if value is not None}
    run = resolve(chosen, read_settings(pairs, run_settings(), options_of(search, num_steps="--steps")))
    result = run_gate(run, out, for_this_terminal("search") if is_main() else None)
    if is_main():
        typer.echo(_words(out, dict(result.fields)))


def _on_task(
    out: Path, task: str, data: str, steps: int | None, given: dict[str, Any], pairs: list[str] | None
) -> None:
    from sparsebert.cli.options import options_of
    from sparsebert.cli.task_settings import read_task_settings
    from sparsebert.gates import Settings
    from sparsebert.tasks.config import FinetuneConfig
    from sparsebert.tasks.search import TaskGate, search_on_task
    from sparsebert.training.launch import is_main
    from sparsebert.training.progress import for_this_terminal

    of_run, of_loop, of_gate = read_task_settings(
        pairs, options_of(search, num_steps="--steps"), {"num_steps": steps}, Settings
    )
    chosen = {name: given[name] for name in ("model", "length", "batch_size", "seed")}
    config = FinetuneConfig(task=task, data=data, **(chosen | of_run))
    gate = TaskGate(
        **{name: given[name] for name in ("kind", "sparsity", "penalty", "preset", "diagonal")}, changes=of_gate
    )
    loop = of_loop if steps is None else {**of_loop, "num_steps": steps}
    progress = for_this_terminal("search") if is_main() else None
    result = search_on_task(config, gate, out, fit_settings=loop, progress=progress)
    if is_main():
        fields = result.fields
        typer.echo(f"{out}: {fields['sparsity']:.2%} sparse, {task} {fields['metric']} {fields['score']:.2f} under it")


def _words(out: Path, fields: dict[str, Any]) -> str:
    metrics = fields["metrics"]
    return (
        f"{out}: {fields['sparsity']:.2%} sparse, held-out MLM loss under the pattern {metrics['mlm_loss']:.4f}; "
        f"{fields['heads_with_diagonal']:.0%} of heads keep the diagonal, {fields['heads_with_neighbours']:.0%} keep ±1"
    )
