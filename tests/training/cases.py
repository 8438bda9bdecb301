"""Small things to train: a regression, and BERT's objective on batches that need no corpus."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from sparsebert import draws
from sparsebert.batches import PretrainingBatch
from sparsebert.model import load_model
from sparsebert.patterns import star
from sparsebert.training import FitConfig, Losses, Objective, weight_groups
from sparsebert.training.pretraining import PretrainingObjective

ROWS, LENGTH, WORDS = 8, 12, 60


class Regression(Objective):
    """A small net learns to add; `broken_steps` give a loss that is not a number."""

    def __init__(self, broken_steps: tuple[int, ...] = (), dropout: float = 0.1) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(dropout), nn.Tanh(), nn.Linear(16, 1))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.broken_steps = broken_steps

    def forward(self, step: int, micro: int) -> Losses:
        rows = 16 // self.micro_batches
        inputs = torch.from_numpy(draws.generator(0, "regression", step).standard_normal((16, 8))).float()
        inputs = inputs[micro * rows : (micro + 1) * rows]
        loss = ((self.net(inputs)[:, 0] - inputs.sum(1)) ** 2).mean()
        if step in self.broken_steps:
            loss = loss * float("nan")
        return Losses(loss, {"squares": loss.detach()}, tokens=rows)

    def parameter_groups(self) -> list[dict[str, Any]]:
        return weight_groups(self.net, 1e-2, 0.01)

    def after_step(self, step: int) -> None:
        self.updates += 1

    def evaluate(self, step: int) -> dict[str, float]:
        return {"error": float((self.net(torch.ones(1, 8)) - 8).abs())}

    def finish(self, folder: Path) -> dict[str, Any]:
        return {"task": "regression", "metric": "error", "updates": int(self.updates)}


class MadeUpBatches:
    """Rows of random ids in which the next id is the last one plus one; part `part` of `parts`."""

    def __init__(self, part: int, parts: int, stream: str = "train") -> None:
        self.part, self.parts, self.stream = part, parts, stream

    def batch(self, step: int) -> PretrainingBatch:
        rows = range(self.part * ROWS // self.parts, (self.part + 1) * ROWS // self.parts)
        made = [self._row(step, row) for row in rows]
        ids = torch.stack([row[0] for row in made])
        positions = torch.cat([number * LENGTH + row[1] for number, row in enumerate(made)])
        answers = torch.cat([row[0][row[1]] for row in made])
        corrupted = ids.flatten().clone()
        corrupted[positions] = 4
        lengths = torch.tensor([row[2] for row in made])
        order = torch.tensor([row[3] for row in made])
        shaped = corrupted.view_as(ids)
        return PretrainingBatch(shaped, torch.zeros_like(ids), lengths, positions, answers, order)

    def _row(self, step: int, row: int) -> tuple[torch.Tensor, torch.Tensor, int, int]:
        draw = draws.generator(1, self.stream, step, row)
        length = int(draw.integers(LENGTH // 2, LENGTH + 1))
        ids = (torch.arange(LENGTH) + int(draw.integers(0, WORDS))) % (WORDS - 5) + 5
        ids[length:] = 0
        count = int(draw.integers(1, 4))
        positions = torch.from_numpy(draw.choice(length, count, replace=False)).sort().values
        return ids, positions, length, int(draw.integers(0, 2))


def small_bert(dropout: float = 0.1) -> Any:
    return load_model(
        "scratch:tiny",
        "pretraining",
        vocab_size=WORDS,
        pattern=star(length=LENGTH),
        hidden_size=32,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


def small_pretraining(dropout: float = 0.1) -> PretrainingObjective:
    return PretrainingObjective(
        small_bert(dropout), MadeUpBatches, MadeUpBatches(0, 1, "held out"), num_held_out=2, learning_rate=3e-3
    )


def short_fit(**changes: Any) -> FitConfig:
    return FitConfig(**{"num_steps": 12, "checkpoint_every": 3, "warmup_steps": 2, "evaluate_every": 5, **changes})


def outcome(folder: Path) -> dict[str, bytes]:
    """Every file whose bytes an interruption must not change."""
    names = ["metrics.jsonl", "result.json", "model/model.safetensors", "pattern.safetensors"]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
