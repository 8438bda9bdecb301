"""`sparsebert pretrain`: train a model's weights under a pattern, or from scratch."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsebert.cli import options
from sparsebert.errors import ConfigError

if TYPE_CHECKING:
    from sparsebert.runs import PretrainRun


def pretrain(
    context: typer.Context,
    model: Annotated[str | None, typer.Option(help=options.MODEL, show_default="the recipe's")] = None,
    corpus: options.Corpus[Path | None] = None,
    out: options.RunFolder[Path | None] = None,
    pattern: Annotated[
        str | None, typer.Option(help="A file or a name such as star.", show_default="the model's own, if it has one")
    ] = None,
    steps: Annotated[int | None, typer.Option(help=options.STEPS, show_default="the recipe's epochs")] = None,
    length: Annotated[int | None, typer.Option(help=options.LENGTH, show_default="128")] = None,
    batch_size: Annotated[int | None, typer.Option(help=options.BATCH_SIZE, show_default="32")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its peak.", show_default="1e-4")] = None,
    seed: options.Seed = 0,
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
        options.other_settings("Any other setting: warmup_steps=100, dropout=0.0, evaluate_every=50 ..."),
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
    from sparsebert.runs import PretrainRun

    chosen = options.chosen_under_pattern(pretrain, PretrainRun, context, pattern, set_)
    run = _run(chosen, recipe)
    if dry_run:
        typer.echo("\n".join(_description(run, device_flops, devices or 1)))
        return
    only_dry = {"--device-flops": device_flops, "--devices": devices, "vocab_size": chosen.get("vocab_size")}
    for name, value in only_dry.items():
        if value is not None:
            raise ConfigError(f"{name} was given without --dry-run; it is for the estimate alone, so leave it out")
    _train(run, out)


def _run(chosen: dict[str, Any], recipe: str | None) -> "PretrainRun":
    from sparsebert.runs.pretrain import PretrainRun, recipe_settings

    if recipe is not None:
        chosen = recipe_settings(recipe, chosen) | chosen
    for name in ("model", "steps"):
        if name not in chosen:
            raise ConfigError(f"--{name} is missing; give it, or a --recipe that has it")
    return PretrainRun.read(chosen)


def _train(run: "PretrainRun", out: Path | None) -> None:
    if out is None:
        raise ConfigError("--out is missing; name the run folder to write, or to resume")
    if run.corpus is None:
        raise ConfigError("--corpus is missing; make one with: sparsebert prepare FILE --model MODEL --out CORPUS")
    fields = options.make(run, out, "pretrain")
    if fields is not None:
        metrics = fields["metrics"]
        order = f", NSP accuracy {metrics['nsp_accuracy']:.1%}" if "nsp_accuracy" in metrics else ""  # BERT's alone
        typer.echo(
            f"{out}: {fields['steps']} steps, held-out MLM loss {metrics['mlm_loss']:.4f}, "
            f"MLM accuracy {metrics['mlm_accuracy']:.1%}{order}"
        )


def _description(run: "PretrainRun", device_flops: float | None, devices: int) -> list[str]:
    """The run in words, and its cost on given hardware."""
    import torch

    from sparsebert.training.operations import flops_per_token, product_speed

    shape, config = run.model_shape(), run.fit_config()
    vocab_size = shape.get("vocab_size") or (run.store().vocab_size if run.corpus else run.vocab_size)
    if vocab_size is None:
        raise ConfigError(f"{run.model} has no vocabulary yet; give --corpus, or --set vocab_size=30000")
    per_device = product_speed(torch.get_num_threads()) if device_flops is None else device_flops
    density = run.density(int(shape["num_attention_heads"]))
    tokens = float(run.steps) * run.batch_size * run.length
    flops = tokens * flops_per_token(shape, vocab_size, run.length, density)
    told = "measured here with matrix products, an upper bound" if device_flops is None else "as given"
    return [
        f"{run.model}: {shape['num_hidden_layers']} layers, width {shape['hidden_size']}, "
        f"{vocab_size:,} words, length {run.length}, attention density {density:.3f}",
        f"batch {run.batch_size}, {run.steps:,} steps, {tokens:.3g} tokens; AdamW {run.learning_rate:g}, "
        f"{config.warmup_steps:,} warm-up steps, decay {run.weight_decay:g}, "
        f"dropout {'as in the model' if run.dropout is None else run.dropout}",
        f"{flops:.3g} operations; at {per_device:.3g} a second on each of {devices} (rate {told}): "
        f"{flops / (per_device * devices) / 86_400:,.1f} days",
    ]
