"""Scores of every item, whatever batch it is computed in, and the task's metrics over them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from sparsebert.embeddings.batching import batches_by_length
from sparsebert.layers.float32 import full_speed_products
from sparsebert.tasks.encoding.batch_order import by_length
from sparsebert.tasks.encoding.encoded_rows import Items
from sparsebert.tasks.files.rows import QuestionRow
from sparsebert.tasks.heads import run_head
from sparsebert.tasks.packed_heads import run_head_packed
from sparsebert.tasks.scoring.metrics import scores
from sparsebert.tasks.scoring.spans import SpanPrediction, predict_spans
from sparsebert.tasks.scoring.squad_metrics import best_threshold, exact_match, f1, squad_scores
from sparsebert.tasks.table import SCORE_RANGE, Task

EVALUATION_TOKENS = 4096  # of a batch, padding too


@torch.no_grad()
@full_speed_products()
def item_scores(
    model: Any, task: Task, items: Items, batch_size: int | None = None, *, packed: bool = False
) -> list[Float[np.ndarray, "..."]]:
    """The head's scores for each item, in the items' order; padding is cut off span scores.

    packed: batches have no padding, for a model that takes them so.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    longest = int(items.lengths.max()) * items.each
    size = batch_size or max(1, EVALUATION_TOKENS // longest)
    by_tokens = batches_by_length(items.lengths.tolist(), EVALUATION_TOKENS, packed=True)
    found: list[Any] = [None] * len(items)
    for indices in map(np.array, by_tokens) if packed else by_length(items.lengths, size):
        batch = items.batch(indices).to(device)
        if packed:
            rows = run_head_packed(model, task.kind, batch)
        else:
            rows = list(run_head(model, task.kind, batch, items.each))
        for index, row in zip(indices, rows, strict=True):
            given = row.float().cpu().numpy()
            found[index] = given[: items.lengths[index]] if task.kind == "span" else given
    model.train(was_training)
    return found


def predicted_labels(task: Task, found: Sequence[Float[np.ndarray, "..."]]) -> np.ndarray:
    """Classes, or scores held to their range."""
    stacked = np.stack(found)
    labels: np.ndarray = np.clip(stacked, *SCORE_RANGE) if task.kind == "regression" else stacked.argmax(axis=1)
    return labels


def predicted_spans(items: Items, found: Sequence[Float[np.ndarray, "n 2"]]) -> list[SpanPrediction]:
    return predict_spans(_questions(items), items.windows, found)


def evaluate_items(model: Any, task: Task, items: Items, *, packed: bool = False) -> dict[str, float]:
    """The task's metrics, in points; of SQuAD v2.0 also the thresholds that serve best."""
    found = item_scores(model, task, items, packed=packed)
    if task.kind == "span":
        return _span_metrics(task, items, predicted_spans(items, found))
    assert items.labels is not None
    # Ranks and correlations see the model's own scores: holding them to the range would tie some.
    predicted = np.stack(found) if task.kind == "regression" else predicted_labels(task, found)
    return scores(task.metrics, predicted, items.labels)


def _span_metrics(task: Task, items: Items, predictions: Sequence[SpanPrediction]) -> dict[str, float]:
    answers = {row.id: [answer.text for answer in row.answers] for row in _questions(items)}
    forced = {one.id: one.text() for one in predictions}
    if not task.with_no_answer:
        return squad_scores(forced, answers)
    no_answer = {one.id: one.no_answer for one in predictions}
    figures = squad_scores({one.id: one.text(0.0) for one in predictions}, answers)
    metrics: dict[str, Callable[[str, str], float]] = {"f1": f1, "exact": exact_match}
    for name, metric in metrics.items():
        best = best_threshold(metric, forced, no_answer, answers)
        figures |= {f"best_{name}": best.score, f"best_{name}_threshold": best.value}
    return figures


def _questions(items: Items) -> list[QuestionRow]:
    return [row for row in items.rows if isinstance(row, QuestionRow)]
