"""Predictor: a fine-tuned folder that answers rows; the same answer for a row alone or in any batch."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sparsebert.model import load_model
from sparsebert.model.precision import check_precision, in_precision
from sparsebert.tasks.encoding.encoded_rows import Items, make_items
from sparsebert.tasks.files.rows import ChoiceRow, Row
from sparsebert.tasks.folder import model_folder_of, open_settings, open_tokenizer
from sparsebert.tasks.packed_heads import head_packing_obstacle
from sparsebert.tasks.scoring.evaluation import evaluate_items, item_scores, predicted_labels, predicted_spans
from sparsebert.tasks.scoring.spans import SpanPrediction
from sparsebert.tasks.table import find_task
from sparsebert.training.launch import this_device

_CHUNK = 512  # rows in memory at once
_SHOWN = 5  # candidates of an answer that are written out


class Predictor:
    """Opens a run's model and answers rows of its task."""

    def __init__(self, run: str | Path, *, precision: str = "fp32") -> None:
        """precision: fp32, bf16 or int8; weights are converted once."""
        check_precision(precision)
        self.settings = open_settings(run)
        self.task = find_task(self.settings.task)
        self.tokenizer = open_tokenizer(run)
        self.model = load_model(str(model_folder_of(run)), self.task.head).eval()
        # On a GPU rows are padded; int8 layers run on the CPU alone.
        self.model.to(this_device() if precision == "fp32" else "cpu")
        self.packs = head_packing_obstacle(self.model, self.task.kind) is None
        self.model = in_precision(self.model, precision)

    def items(self, rows: Sequence[Row]) -> Items:
        return make_items(self.task, rows, self.tokenizer, self.settings.length, self.settings.stride)

    def metrics(self, rows: Sequence[Row]) -> dict[str, float]:
        """The task's metrics over labelled rows, in points."""
        return evaluate_items(self.model, self.task, self.items(rows), packed=self.packs)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """What a submission holds: a class, a score from 0 to 5, or the text of an answer, as the files spell it."""
        items = self.items(rows)
        found = item_scores(self.model, self.task, items, packed=self.packs)
        if self.task.kind == "span":
            return [one.text(self._threshold()) for one in predicted_spans(items, found)]
        return [self.task.spelled(label) for label in predicted_labels(self.task, found).tolist()]

    def predict(self, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
        """One JSON object a row, in their order; reads no further ahead than it must."""
        remaining = iter(rows)
        while chunk := list(islice(remaining, _CHUNK)):
            items = self.items(chunk)
            found = item_scores(self.model, self.task, items, packed=self.packs)
            if self.task.kind == "span":
                yield from (self._answer(one) for one in predicted_spans(items, found))
            else:
                yield from (self._label(row, scores) for row, scores in zip(chunk, found, strict=True))

    def _label(self, row: Row, scores: Float[np.ndarray, "..."]) -> dict[str, Any]:
        label = predicted_labels(self.task, [scores])[0]
        if self.task.kind == "regression":
            return {"id": row.id, "score": round(float(label), 6)}
        shares = _softmax(scores)
        if isinstance(row, ChoiceRow):
            return {"id": row.id, "label": int(label), "ending": row.endings[label], "probabilities": shares}
        names = [self.task.label_name(index) for index in range(len(shares))]
        return {"id": row.id, "label": names[label], "probabilities": dict(zip(names, shares, strict=True))}

    def _answer(self, one: SpanPrediction) -> dict[str, Any]:
        text = one.text(self._threshold())
        shown = [
            {"text": candidate.text, "start": candidate.start, "score": round(candidate.score, 6)}
            for candidate in one.candidates[:_SHOWN]
        ]
        start = one.candidates[0].start if text else None
        return {
            "id": one.id,
            "answer": text,
            "start": start,
            "no_answer": round(one.no_answer, 6) if one.candidates else None,
            "candidates": shown,
        }

    def _threshold(self) -> float | None:
        return self.settings.threshold if self.task.with_no_answer else None


def _softmax(scores: Float[np.ndarray, " labels"]) -> list[float]:
    powers = np.exp(scores.astype(np.float64) - scores.max())
    return [round(float(share), 6) for share in powers / powers.sum()]
