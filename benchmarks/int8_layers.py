"""How fast is a whole encoder in float32, bfloat16 and int8, and how near to the products' own speed?

    python benchmarks/int8_layers.py                  minilm at four lengths, one thread, batch 1
    python benchmarks/int8_layers.py --lengths 512 --threads 2

Every encoder has minilm's weights (6 layers, 384 wide, 12 heads, 1536 inside), its positions repeated beyond 512.
"torch" is transformers' own model with SDPA; "ours" runs a pattern of a border and 10 offsets a head, made at 128
tokens and rebuilt at each length. Encoders take turns in one process; CPU time, medians. The share is the time that
torch's product of int8 matrices (_int_mm) takes for the same products and nothing else, over that of the whole encoder
in int8.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertModel

from sparsebert import extend_positions, load_model, patterns, quantize, to_bfloat16
from sparsebert.layers import full_speed_products
from sparsebert.model.sources import model_folder
from sparsebert.patterns import Pattern

LEARNED, HEADS, LAYERS, WIDTH, INNER = 128, 12, 6, 384, 1536
PRODUCTS = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, INNER), (INNER, WIDTH))


def pattern_at(length: int) -> Pattern:
    """A border and 10 offsets a head within 32, half of them to each side."""
    draw = np.random.default_rng(0)
    distances = [draw.choice(np.arange(1, 33), 5, replace=False).tolist() for _ in range(HEADS)]
    offsets = [sorted([*head, *(-distance for distance in head)]) for head in distances]
    return patterns.from_offsets(length=LEARNED, offsets=offsets, border=True).at(length)


def sparse(length: int) -> Any:
    model = load_model("minilm").eval()
    if length > 512:
        extend_positions(model, length)
    return model.set_pattern(pattern_at(length))


def dense(length: int) -> Any:
    model = BertModel.from_pretrained(model_folder("minilm"), attn_implementation="sdpa").eval()
    return extend_positions(model, length) if length > 512 else model


def dynamic(model: Any) -> Any:
    """torch's own int8 layers, where this build of torch has them."""
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def products(length: int) -> Callable[[Tensor], None]:
    """The products of an encoder in int8 by torch, and nothing else."""
    rows = {k: torch.randint(-127, 128, (length, k), dtype=torch.int8) for k in (WIDTH, INNER)}
    weights = [
        (k, torch.randint(-127, 128, (n, k), dtype=torch.int8).t()) for _ in range(LAYERS) for k, n in PRODUCTS
    ]  # each layer's own, as in the encoder

    def run(_: Tensor) -> None:
        for k, weight in weights:
            torch._int_mm(rows[k], weight)

    return run


def encoders(length: int) -> dict[str, Callable[[Tensor], Any]]:
    made: dict[str, Callable[[Tensor], Any]] = {
        "torch float32": dense(length),
        "ours float32": full_speed_products()(sparse(length)),
        "ours int8": quantize(sparse(length)),
        "_int_mm alone": products(length),
    }
    for name, make in (
        ("ours bfloat16", lambda: to_bfloat16(sparse(length))),
        ("torch dynamic int8", lambda: dynamic(dense(length))),
    ):
        try:
            made[name] = make()
        except Exception as error:
            print(f"no {name}: {error}")
    return made


@torch.no_grad()
def by_turns(variants: dict[str, Callable[[Tensor], Any]], tokens: Tensor, rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 2):
        for name, variant in variants.items():
            start = time.process_time()
            variant(tokens)
            if turn >= 2:
                times[name].append(time.process_time() - start)
    return {name: median(runs) for name, runs in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048, 4096])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="turns of each encoder; more where they are short")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for length in options.lengths:
        tokens = torch.randint(1000, 2000, (1, length))
        times = by_turns(encoders(length), tokens, options.rounds or max(7, 25_600 // length))
        reference, quick = times["torch float32"], times["ours int8"]
        print(
            f"n={length}: " + ", ".join(f"{name} {length / seconds:,.0f} tokens/s" for name, seconds in times.items())
        )
        print(
            f"n={length}: int8 against torch float32 {reference / quick:.2f}x, share of _int_mm's speed "
            f"{times['_int_mm alone'] / quick:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
