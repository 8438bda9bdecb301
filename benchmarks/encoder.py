"""What does a pattern buy a whole self-attention module, and a whole encoder layer?

    python benchmarks/encoder.py                 the tables of docs/results/attention.md
    python benchmarks/encoder.py --lengths 1024

The module has its four projections (768 wide, 12 heads). Baselines from transformers, at comparable density:
Longformer's self-attention with a window of 16 and 2 global tokens, BigBird's block-sparse one with blocks of 16; both
are taken as their library runs them, the output projection left out on all sides. The layer adds the output
projection, two normalisations and a 3072-wide feed-forward part; "none" is the same module or layer with attention
removed (query, key and value are added up, so that all projections still run). Variants alternate in one process;
medians.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from torch.nn.functional import scaled_dot_product_attention as sdpa

from sparsebert import attend, patterns
from sparsebert.patterns import Pattern

WIDTH, HEADS, INNER = 768, 12, 3072


def structured(length: int) -> Pattern:
    """Border and 10 random offsets within 256, both signs, drawn for each head."""
    draw = np.random.default_rng(0)
    distances = [draw.choice(np.arange(1, 257), 5, replace=False).tolist() for _ in range(HEADS)]
    offsets = [sorted([*head, *(-distance for distance in head)]) for head in distances]
    return patterns.from_offsets(length=length, offsets=offsets, border=True)


class SelfAttention(nn.Module):
    """Projections to query, key and value, then whatever attention it is given."""

    def __init__(self, attention: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.attention = attention

    def forward(self, hidden: Tensor) -> Tensor:
        heads = [
            projection(hidden).view(*hidden.shape[:2], HEADS, -1).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        ]
        return self.attention(*heads).transpose(1, 2).reshape(hidden.shape)


class Layer(nn.Module):
    """A BERT-base encoder layer around a self-attention."""

    def __init__(self, attention: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.attention = SelfAttention(attention)
        self.output, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = self.first(hidden + self.output(self.attention(hidden)))
        return self.second(hidden + self.down(gelu(self.up(hidden))))


def sparse(pattern: Pattern) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda *heads: attend(*heads, pattern=pattern, backend="sparse")


def none(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return query + key + value


def longformer(length: int) -> Callable[[Tensor], Tensor]:
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    config = LongformerConfig(
        attention_window=[16], num_hidden_layers=1, attention_probs_dropout_prob=0.0, max_position_embeddings=length
    )
    module = LongformerSelfAttention(config, 0)
    padding = torch.zeros(1, length)
    padding[:, :2] = 10_000.0  # positive: global attention

    def run(hidden: Tensor) -> Tensor:
        return module(
            hidden,
            attention_mask=padding,
            is_index_masked=padding < 0,
            is_index_global_attn=padding > 0,
            is_global_attn=True,
        )[0]

    return run


def big_bird(length: int) -> Callable[[Tensor], Tensor]:
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel

    config = BigBirdConfig(
        block_size=16, num_random_blocks=3, attention_probs_dropout_prob=0.0, max_position_embeddings=length
    )
    module = BigBirdBlockSparseAttention(config, seed=0)
    block, band, from_padding, to_padding = BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(1, length), 16)

    def run(hidden: Tensor) -> Tensor:
        return module(
            hidden,
            band_mask=band,
            from_mask=from_padding,
            to_mask=to_padding,
            from_blocked_mask=block,
            to_blocked_mask=block,
        )[0]

    return run


def alternate(variants: dict[str, Callable[[Tensor], Tensor]], hidden: Tensor, backward: bool, rounds: int) -> dict:
    times: dict[str, list[float]] = {name: [] for name in variants}
    grad = torch.randn_like(hidden)
    for turn in range(rounds + 1):
        for name, variant in variants.items():
            start = time.process_time()
            with torch.set_grad_enabled(backward):
                output = variant(hidden)
                if backward:
                    torch.autograd.backward(output, grad)
            if turn:
                times[name].append(time.process_time() - start)
    return {name: median(runs) for name, runs in times.items()}


def show(title: str, variants: dict[str, Callable[[Tensor], Tensor]], length: int, rounds: int) -> None:
    hidden = torch.randn(1, length, WIDTH, requires_grad=True)
    for backward in (False, True):
        times = alternate(variants, hidden, backward, rounds)
        ratios = ", ".join(
            f"{name} {1e3 * value:.1f} ms ({value / times['sparse']:.2f}x sparse)" for name, value in times.items()
        )
        print(f"{title} n={length} {'forward+backward' if backward else 'forward'}: {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for length in options.lengths:
        pattern = structured(length)
        modules = {
            "sparse": SelfAttention(sparse(pattern)),
            "longformer": longformer(length),
            "big_bird": big_bird(length),
            "none": SelfAttention(none),
        }
        show("self-attention", modules, length, options.rounds)
        layers = {"sparse": Layer(sparse(pattern)), "dense": Layer(sdpa), "none": Layer(none)}
        show("layer", layers, length, options.rounds)


if __name__ == "__main__":
    main()
