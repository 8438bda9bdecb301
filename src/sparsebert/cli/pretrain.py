"""`sparsebert pretrain`: train a model's weights under a pattern, or from scratch."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sparsebert.cli.pretraining_run import PretrainingRun


def pretrain(
    model: Annotated[
        str | None,
        typer.Option(help="minilm, a model folder, a hub id, or scratch:tiny|mini|base.", show_default="the recipe's"),
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="A folder made by sparsebert prepare.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; an unfinished run in it is resumed.")] = None,
    pattern: Annotated[
        str | None, typer.Option(help="A file or a name such as star; without one everyone attends to everyone.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.", show_default="the recipe's epochs")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens in a row.", show_default="128")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step, over all ranks.", show_default="32")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its peak.", show_default="1e-4")] = None,
    seed: Annotated[int, typer.Option(help="Of new weights, batches and dropout.")] = 0,
    recipe: Annotated[str | None, typer.Option(help="Settings of a whole run: paper.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the run would be and cost; train nothing.")
    ] = False,
    device_flops: Annotated[
        float | None,
        typer.Option(
            help="With --dry-run: operations a second one device sustains.", show_default="measured here", min=1.0
        ),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="With --dry-run: how many of them.", min=1, show_default="1")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting: warmup_steps=100, dropout=0.0, evaluate_every=50 ..."),
    ] = None,
) -> None:
    """Train on corrupted text (MLM and NSP), under a pattern or without one.

    The same command on the same folder goes on after any interruption, and ends with the very bits that an
    undisturbed run would have had. SIGTERM and Ctrl-C write a checkpoint first.

    Examples:

    sparsebert pretrain --model minilm --corpus corpus --pattern star --steps 200 --out adapted

    torchrun --nproc-per-node 2 -m sparsebert pretrain --model scratch:tiny --corpus corpus --steps 500 --out tiny

    sparsebert pretrain --recipe paper --dry-run --device-flops 5e13 --devices 8
    """
    from sparsebert.cli.options import options_of, read_settings
    from sparsebert.cli.pretraining_run import describe, resolve, run_settings, train
    from sparsebert.errors import ConfigError

    given: dict[str, Any] = {
        "model": model,
        "corpus": corpus,
        "out": out,
        "pattern": pattern,
        "num_steps": steps,
        "length": length,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    is_built = pattern is not None and not Path(pattern).is_file()
    for pair in set_ or []:
        if pair.startswith("pattern.") and not is_built:
            raise ConfigError(f"--set was given {pair!r}, but --pattern names no builder that it could apply to")
    others = read_settings(set_, run_settings(pattern), options_of(pretrain, num_steps="--steps"))
    run = resolve(chosen, recipe, others)
    if dry_run:
        typer.echo("\n".join(describe(run, device_flops, devices or 1)))
        return
    only_dry = {"--device-flops": device_flops, "--devices": devices, "vocab_size": others.get("vocab_size")}
    for name, value in only_dry.items():
        if value is not None:
            raise ConfigError(f"{name} was given without --dry-run; it is for the estimate alone, so leave it out")
    _echo_result(run, train(run))


def _echo_result(run: "PretrainingRun", fields: dict[str, Any] | None) -> None:
    if fields is not None:
        metrics = fields["metrics"]
        typer.echo(
            f"{run.out}: {fields['steps']} steps, held-out MLM loss {metrics['mlm_loss']:.4f}, "
            f"MLM accuracy {metrics['mlm_accuracy']:.1%}, NSP accuracy {metrics['nsp_accuracy']:.1%}"
        )
