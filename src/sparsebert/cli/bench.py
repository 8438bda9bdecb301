"""`sparsebert bench`: what this machine does."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sparsebert.embeddings.speed import EncoderTiming

bench = typer.Typer(no_args_is_help=True, help="Measure on this machine.")


@bench.callback()
def _commands() -> None:
    """Measure on this machine."""


@bench.command()
def attention(
    lengths: Annotated[
        list[int] | None, typer.Option("--length", help="Input length; may be given again.", min=1)
    ] = None,
    densities: Annotated[
        list[float] | None, typer.Option("--density", help="Density; may be given again.", min=0.0, max=1.0)
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of both sides.", min=1)] = 1,
    rounds: Annotated[int, typer.Option(help="Turns that are timed.", min=1)] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The C++ kernel against dense SDPA by turns, forward and backward, and where "auto" goes over to the other."""
    import torch

    from sparsebert.attention.sdpa import attend_sdpa
    from sparsebert.attention.sparse_crossover import crossover, measure

    torch.set_num_threads(threads)
    for timing in measure(
        attend_sdpa,
        tuple(lengths or (128, 512, 1024)),
        tuple(densities or (0.1, 0.2, 0.3, 0.4, 0.5)),
        rounds=rounds,
    ):
        limit = crossover(timing.length)
        if as_json:
            fields = {"length": timing.length, "density": round(timing.density, 4)}
            times = {"sparse_ms": 1e3 * timing.sparse, "sdpa_ms": 1e3 * timing.dense, "speedup": timing.speedup}
            typer.echo(json.dumps(fields | times | {"auto": "sparse" if timing.density < limit else "sdpa"}))
            continue
        typer.echo(
            f"n={timing.length:<5} density {timing.density:.3f}  sparse {1e3 * timing.sparse:8.1f} ms  "
            f"sdpa {1e3 * timing.dense:8.1f} ms  {timing.speedup:5.2f}x  "
            f"auto takes {'sparse' if timing.density < limit else 'sdpa'} (crossover {limit:.2f})"
        )


@bench.command()
def encoder(
    model: Annotated[str, typer.Option(help="minilm, a model folder or a run folder, a hub id.")],
    patterns: Annotated[
        list[str] | None,
        typer.Option("--pattern", help="A file or a name; may be given again.", show_default="its own, or a window"),
    ] = None,
    precisions: Annotated[
        list[str] | None,
        typer.Option("--precision", help="fp32, bf16 or int8; may be given again.", show_default="all that are fast"),
    ] = None,
    lengths: Annotated[
        list[int] | None,
        typer.Option("--lengths", "--length", help="Tokens; may be given again.", show_default="128 and its positions"),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="A folder made by sparsebert prepare.", show_default="the built-in text")
    ] = None,
    loss: Annotated[float, typer.Option(help="Distance of embeddings that you accept.", min=0.0)] = 0.01,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    rounds: Annotated[int, typer.Option(help="Turns that are timed.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Your model on this machine: which precision, which pattern, how many tokens a second, at which loss.

    Every variant takes turns with the dense model in float32, on the same rows of text, one row at a time. Loss is the
    distance of embeddings, mean 1 - cosine to those of the dense float32 model: 0.001 moves few neighbours, 0.01 some,
    0.1 makes it another model. Where a model has no pattern, window_border of 90 % shows the speed; one that was
    learned (search, adapt) shows what the loss can be.

    Examples:

    sparsebert bench encoder --model minilm

    sparsebert bench encoder --model adapted --lengths 128 --lengths 2048 --threads 2

    sparsebert bench encoder --model minilm --pattern found/pattern.safetensors --precision int8 --corpus corpus --json
    """
    import torch

    from sparsebert.embeddings.speed import measure_encoder

    torch.set_num_threads(threads)
    timings = measure_encoder(
        model, patterns=patterns or (), precisions=precisions, lengths=lengths, corpus=corpus, rounds=rounds
    )
    _tell(timings, loss, as_json)


def _tell(timings: "Iterable[EncoderTiming]", loss: float, as_json: bool) -> None:
    found: dict[int, list[EncoderTiming]] = {}
    for timing in timings:
        if not found and not as_json:
            typer.echo(f"{'tokens':>6}  {'pattern':24} {'precision':9} {'tokens/s':>9} {'speed':>7} {'loss':>8}")
        found.setdefault(timing.length, []).append(timing)
        line = (
            f"{timing.length:>6}  {timing.pattern[-24:]:24} {timing.precision:9} {timing.tokens_per_second:>9,.0f} "
            f"{timing.speedup:>6.2f}x {timing.distance:>8.4f}"
        )
        typer.echo(json.dumps(asdict(timing)) if as_json else line)
    for length, at_length in found.items():
        typer.echo(_advice(length, at_length, loss), err=as_json)


def _advice(length: int, timings: "list[EncoderTiming]", loss: float) -> str:
    from sparsebert.embeddings.speed import DENSE, recommended

    best = recommended(timings, loss)
    if best is None:
        return f"At {length} tokens nothing stays within a loss of {loss:g}: keep dense fp32, or accept more (--loss)."
    under = "dense" if best.pattern == DENSE else f"under {best.pattern} ({best.sparsity:.1%} sparse)"
    return (
        f"At {length} tokens take {best.precision}, {under}: {best.tokens_per_second:,.0f} tokens a second, "
        f"{best.speedup:.1f} times dense fp32, at a loss of {best.distance:.4f}."
    )
