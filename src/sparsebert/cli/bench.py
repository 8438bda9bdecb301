"""`sparsebert bench`: what this machine does."""

import json
from typing import Annotated

import typer

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
