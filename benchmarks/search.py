"""What a training step costs: with full logits, at predicted positions, under a gate, and a long structured search.

    python benchmarks/search.py [--rows 32] [--length 128] [--long 1024] [--long-rows 2] [--repeats 3]

One process, one thread, alternating runs; CPU time, medians. Prints ratios.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import BertForPreTraining

from sparsebert import gates, load_model
from sparsebert.batches import PretrainingBatch
from sparsebert.model import attach, extend_positions
from sparsebert.model.sources import model_folder
from sparsebert.training.pretraining import PretrainingObjective

Step = Callable[[int], None]


def batch_of(rows: int, length: int) -> PretrainingBatch:
    """Random tokens, 15 % of them predicted: what a step costs does not depend on what the tokens say."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1000, 30000, (rows, length), generator=generator)
    predicted = torch.randperm(rows * length, generator=generator)[: int(0.15 * rows * length)].sort().values
    return PretrainingBatch(
        tokens,
        torch.zeros_like(tokens),
        torch.full((rows,), length),
        predicted,
        tokens.view(-1)[predicted],
        torch.zeros(rows, dtype=torch.int64),
    )


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(list(parameters), lr=1e-5, fused=True)


def full_logits_step(batch: PretrainingBatch) -> Step:
    """transformers as it comes: scores of the whole vocabulary at every position."""
    model = BertForPreTraining.from_pretrained(model_folder("minilm"), local_files_only=True).train()
    optimiser = adam(model.parameters())
    labels = torch.full_like(batch.input_ids, -100)
    labels.view(-1)[batch.predicted_positions] = batch.predicted_ids

    def step(_: int) -> None:
        optimiser.zero_grad()
        output = model(input_ids=batch.input_ids, labels=labels, next_sentence_label=batch.next_sentence)
        output.loss.backward()
        optimiser.step()

    return step


def our_step(batch: PretrainingBatch, gate: gates.Gate | None = None, **config: Any) -> Step:
    """Scores at predicted positions; with a gate, its sample, penalty and update too."""
    model = load_model("minilm", "pretraining", **config).train()
    length = batch.input_ids.shape[1]
    if length > model.config.max_position_embeddings:
        extend_positions(model, length)
    objective = PretrainingObjective(model, lambda part, parts: None, None)  # type: ignore[arg-type, return-value]
    parameters = [*model.parameters(), *([] if gate is None else gate.parameters())]
    optimiser = adam(parameters)
    if gate is not None:
        attach(model, gate)

    def step(number: int) -> None:
        optimiser.zero_grad()
        if gate is not None:
            gate.resample(0, number)
        loss = objective.losses(batch, float(len(batch.predicted_ids))).total
        if gate is not None:
            loss = loss + gate.penalty()
        loss.backward()
        optimiser.step()
        if gate is not None:
            gate.after_step(number)

    return step


def medians(steps: dict[str, Step], repeats: int) -> dict[str, float]:
    """CPU seconds a step, the candidates taking turns; the first turn warms up."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(repeats + 1):
        for name, step in steps.items():
            started = time.process_time()
            step(turn)
            if turn:
                taken[name].append(time.process_time() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"rows": 32, "length": 128, "long": 1024, "long-rows": 2, "repeats": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    batch = batch_of(asked.rows, asked.length)
    common: dict[str, Any] = {"heads": 12, "sparsity": 0.93, "steps": 100}
    short = medians(
        {
            "full logits": full_logits_step(batch),
            "no pattern": our_step(batch),
            "structured": our_step(batch, gates.Structured(asked.length, **common)),
            "unstructured": our_step(batch, gates.Unstructured(asked.length, **common)),
        },
        asked.repeats,
    )
    print(f"minilm, {asked.rows} x {asked.length}, one thread, CPU seconds a step")
    for name, seconds in short.items():
        print(f"  {name:<14} {seconds:7.3f}   {seconds / short['no pattern']:.2f} x no pattern")
    batch = batch_of(asked.long_rows, asked.long)
    gate = gates.Structured(asked.long, initial_density=0.1, **common)
    # Without attention dropout SDPA stays on its fused path, so that dense is at its best.
    quiet = {"attention_probs_dropout_prob": 0.0}
    long = medians({"dense": our_step(batch, **quiet), "structured": our_step(batch, gate, **quiet)}, asked.repeats)
    print(f"minilm, {asked.long_rows} x {asked.long}, structured search from density 0.1")
    for name, seconds in long.items():
        print(f"  {name:<14} {seconds:7.3f}   {seconds / long['dense']:.2f} x dense")


if __name__ == "__main__":
    main()
