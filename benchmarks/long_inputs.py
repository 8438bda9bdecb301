"""Does a pattern that was learned on short rows carry over to long ones, and what do long ones cost?

    python benchmarks/long_inputs.py cost --pattern FILE                       time and memory of the whole encoder
    python benchmarks/long_inputs.py quality --pattern FILE --model M --corpus C --out DIR   held-out loss at 512 tokens

cost: encoders of minilm's shape (6 layers, 384 wide, 12 heads), one row of n tokens: the pattern rebuilt at n, dense
(fused SDPA), transformers' Longformer (window 16, two global tokens) and BigBird (blocks of 16, 3 random ones). They
alternate in one process on one thread; medians of CPU time. Memory is what the process grows by at its peak during one
forward and backward pass, each in a process of its own. New weights throughout: time does not depend on them. Where
there is a GPU everything runs there: medians of CUDA events, and the peak of what torch has allocated on it.

quality: every condition starts from the same model and has the same steps, rows and rates at the longer length; what
differs is the pattern: none, the learned one rebuilt, and hand-made ones built there. Resumes when called again.
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median

import torch
from encoder import structured
from gpu_attention import milliseconds
from torch import Tensor

from sparsebert import Pattern, SparseBertConfig, SparseBertModel, patterns

SHAPE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VARIANTS = ("learned", "dense", "longformer", "big_bird")
HAND_MADE = ("star", "log_sparse", "big_bird")
Encoder = Callable[[Tensor], Tensor]


def encoder(variant: str, pattern: Pattern, length: int) -> Encoder:
    torch.manual_seed(0)
    if variant in ("learned", "dense"):
        config = SparseBertConfig(**SHAPE, max_position_embeddings=length)
        model = SparseBertModel(config, add_pooling_layer=False).to(DEVICE)
        if variant == "learned":
            model.set_pattern(pattern.at(length))
        return lambda ids: model.train()(ids).last_hidden_state
    return longformer(length) if variant == "longformer" else big_bird(length)


def longformer(length: int) -> Encoder:
    from transformers import LongformerConfig, LongformerModel

    layers = SHAPE["num_hidden_layers"]
    config = LongformerConfig(**SHAPE, attention_window=[16] * layers, max_position_embeddings=length + 2)
    model = LongformerModel(config, add_pooling_layer=False).to(DEVICE).train()
    is_global = torch.zeros(1, length, dtype=torch.long, device=DEVICE)
    is_global[:, [0, -1]] = 1
    return lambda ids: model(ids, global_attention_mask=is_global).last_hidden_state


def big_bird(length: int) -> Encoder:
    from transformers import BigBirdConfig, BigBirdModel

    config = BigBirdConfig(**SHAPE, block_size=16, num_random_blocks=3, max_position_embeddings=length)
    model = BigBirdModel(config, add_pooling_layer=False).to(DEVICE).train()
    return lambda ids: model(ids).last_hidden_state


def tokens(length: int) -> Tensor:
    return torch.randint(1000, 30000, (1, length), generator=torch.Generator().manual_seed(0)).to(DEVICE)


def seconds(run: Encoder, ids: Tensor, *, backward: bool) -> float:
    """Of CPU time, or of the GPU between two events."""

    def call() -> None:
        with torch.set_grad_enabled(backward):
            hidden = run(ids)
            if backward:
                hidden.square().mean().backward()

    if DEVICE.type == "cuda":
        return milliseconds(call, DEVICE) / 1e3
    start = time.process_time()
    call()
    return time.process_time() - start


def given_pattern(options: argparse.Namespace) -> Pattern:
    return Pattern.load(options.pattern) if options.pattern else structured(512)


def cost(options: argparse.Namespace) -> None:
    pattern = given_pattern(options)
    print("| n | encoder | entries kept | forward, tokens/s | forward + backward, tokens/s | | peak memory, MiB |")
    print("|---|---|---|---|---|---|---|")
    for length in options.lengths:
        ids, rounds = tokens(length), options.rounds
        runs = {variant: encoder(variant, pattern, length) for variant in VARIANTS}
        times: dict[tuple[str, bool], list[float]] = {}
        for turn in range(rounds + 1):
            for variant, run in runs.items():
                for backward in (False, True):
                    took = seconds(run, ids, backward=backward)
                    if turn:  # the first round pays for what is made once
                        times.setdefault((variant, backward), []).append(took)
        del runs
        gc.collect()
        for variant in VARIANTS:
            one, both = (median(times[variant, backward]) for backward in (False, True))
            slower = " / ".join(
                f"{median(times[variant, backward]) / median(times['learned', backward]):.2f}"
                for backward in (False, True)
            )
            kept = f"{1 - pattern.at(length).sparsity:.2%}" if variant == "learned" else ""
            figures = (
                f"{length / one:,.0f} | {length / both:,.0f} | {slower}x | {memory(variant, length, options):,.0f}"
            )
            print(f"| {length} | {variant} | {kept} | {figures} |", flush=True)


def memory(variant: str, length: int, options: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "cost", "--memory-of", variant, str(length)]
    command += ["--pattern", options.pattern] if options.pattern else []
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_of(variant: str, length: int, pattern: Pattern) -> None:
    run, ids = encoder(variant, pattern, length), tokens(length)
    gc.collect()
    if DEVICE.type == "cuda":
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        seconds(run, ids, backward=True)
        print((torch.cuda.max_memory_allocated() - held) / 2**20)
        return
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is held now
    before = _kilobytes("VmRSS")
    seconds(run, ids, backward=True)
    print((_kilobytes("VmHWM") - before) / 1024)


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def quality(options: argparse.Namespace) -> None:
    learned, length, found = given_pattern(options), options.length, {}
    chosen: dict[str, Pattern | None] = {"dense": None, "learned": learned.at(length)}
    chosen |= {name: getattr(patterns, name)(length) for name in HAND_MADE}
    for seed in range(options.seeds):
        for name, pattern in chosen.items():
            found[name, seed] = adapted_loss(name, pattern, seed, options)
    print(f"| pattern at {length} | sparsity | held-out MLM loss, by seed | mean | above dense |")
    print("|---|---|---|---|---|")
    dense = fmean(found["dense", seed] for seed in range(options.seeds))
    for name, pattern in chosen.items():
        losses = [found[name, seed] for seed in range(options.seeds)]
        sparsity = 0.0 if pattern is None else pattern.sparsity
        each = " / ".join(f"{loss:.3f}" for loss in losses)
        print(f"| {name} | {sparsity:.2%} | {each} | {fmean(losses):.3f} | {fmean(losses) - dense:+.3f} |")


def adapted_loss(name: str, pattern: Pattern | None, seed: int, options: argparse.Namespace) -> float:
    from sparsebert.runs import PretrainRun

    out = Path(options.out) / f"{name}-{seed}"
    path = None
    if pattern is not None:
        path = Path(options.out) / "patterns" / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        pattern.save(path)
    run = PretrainRun(
        model=options.model,
        corpus=Path(options.corpus),
        steps=options.steps,
        length=options.length,
        batch_size=options.rows,
        learning_rate=options.learning_rate,
        seed=seed,
        num_held_out=24,
        pattern=None if path is None else str(path),
        fit={"micro_batches": 1, "checkpoint_every": 1000, "keep_checkpoints": 1},
    )
    return float(run.make(out).fields["metrics"]["mlm_loss"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cost", "quality"), nargs="?", default="cost")
    parser.add_argument("--pattern", help="learned on short rows; a pattern of ten distances a head without it")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--corpus")
    parser.add_argument("--out")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.part == "quality":
        quality(options)
        return
    torch.set_num_threads(1)
    if options.memory_of:
        memory_of(options.memory_of[0], int(options.memory_of[1]), given_pattern(options))
    else:
        cost(options)


if __name__ == "__main__":
    main()
