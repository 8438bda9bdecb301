"""TaskObjective: a task's loss as fit() trains it."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsebert.errors import TaskError
from sparsebert.model.heads import pattern_of
from sparsebert.tasks.encoding.batch_order import BatchOrder
from sparsebert.tasks.encoding.encoded_rows import Items
from sparsebert.tasks.folder import TaskFolder
from sparsebert.tasks.heads import item_losses, run_head, run_head_and_layers
from sparsebert.tasks.scoring.evaluation import evaluate_items
from sparsebert.tasks.table import Task
from sparsebert.tasks.teacher import TaskTeacher
from sparsebert.training import Losses, Objective, weight_groups


class TaskObjective(Objective):
    """Fine-tuning: the loss of a task's rows, its metrics on dev rows, and a saved model at the end.

    folder: how the model is saved; None: it is not. teacher: a dense model of the task, whose states count too.
    """

    def __init__(
        self,
        model: Any,
        task: Task,
        train: Items,
        dev: Mapping[str, Items],
        *,
        folder: TaskFolder | None,
        batch_size: int,
        learning_rate: float,
        weight_decay: float,
        seed: int = 0,
        teacher: TaskTeacher | None = None,
    ) -> None:
        super().__init__()
        if train.labels is None:
            raise TaskError(f"{task.title} cannot be trained on rows without labels; use the official training file")
        self.model = model
        self.task, self.train_items, self.dev_items, self.task_folder = task, train, dict(dev), folder
        self.order = BatchOrder(train.lengths, batch_size, seed)
        self.labels = torch.from_numpy(np.asarray(train.labels))
        self.learning_rate, self.weight_decay, self.teacher = learning_rate, weight_decay, teacher
        self.figures: dict[str, float] | None = None  # of the last evaluation

    def reordered(self, seed: int) -> "TaskObjective":
        """The same rows and the same model, in batches of another order."""
        other = copy(self)
        other.order = replace(self.order, seed=seed)
        return other

    @property
    def steps_per_epoch(self) -> int:
        return self.order.steps_per_epoch

    def forward(self, step: int, micro: int) -> Losses:
        whole = self.order.batch(step)
        # Striding gives parts of equal size and of similar lengths; the last batch of an epoch may be a small one.
        part = whole[micro :: self.micro_batches]
        loss, tokens = self._loss(part) if len(part) else (self._nothing(), 0)
        # fit() takes the mean over parts, the loss is the mean over rows: parts count by their rows.
        return Losses(loss * (len(part) * self.micro_batches / len(whole)), {}, tokens)

    def _loss(self, part: np.ndarray) -> tuple[Tensor, int]:
        batch = self.train_items.batch(part).to(self.device)
        labels = self.labels[torch.from_numpy(part)].to(self.device)
        kind, each = self.task.kind, self.train_items.each
        if self.teacher is None:
            losses = item_losses(kind, run_head(self.model, kind, batch, each), labels, batch)
        else:
            scores, layers = run_head_and_layers(self.model, kind, batch, each)
            losses = item_losses(kind, scores, labels, batch) + self.teacher.losses(scores, layers, batch)
        return losses.mean(), batch.num_tokens

    def _nothing(self) -> Tensor:
        first: Tensor = next(self.model.parameters())
        return first.sum() * 0.0

    def parameter_groups(self) -> list[dict[str, Any]]:
        return weight_groups(self.model, self.learning_rate, self.weight_decay)

    def evaluate(self, step: int) -> dict[str, float]:
        """Dev metrics in points; those of MNLI's sections end in the section's name."""
        figures = {}
        for section, items in self.dev_items.items():
            for name, value in evaluate_items(self.model, self.task, items).items():
                figures[f"{name}_{section}" if section else name] = value
        self.figures = figures
        return figures

    def finish(self, folder: Path) -> dict[str, Any]:
        """Score the model as it is saved, and save it and its pattern."""
        with torch.no_grad():
            figures = self.figures or self.evaluate(-1)
        pattern = pattern_of(self.model)
        result = {
            "task": self.task.name,
            "metric": self.task.metric,
            "score": main_score(self.task, figures),
            "metrics": figures,
            "rows": len(self.train_items.rows),
            "sparsity": 0.0 if pattern is None else pattern.sparsity,
        }
        if self.task_folder is not None:
            self.task_folder.save(folder, self.model, result)
        elif pattern is not None:
            pattern.save(folder / "pattern.safetensors")
        return result


def main_score(task: Task, figures: Mapping[str, float]) -> float:
    """The task's one figure: its metric, and of MNLI the mean of both sections, as the paper draws it."""
    names = [f"{task.metric}_{section}" if section else task.metric for section in task.dev]
    return fmean(figures[name] for name in names if name in figures)
