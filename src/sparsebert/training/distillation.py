"""Learning to live under a pattern: the dense model teaches itself, on plain text and without a label.

The teacher is the model as it was, dense; the student is the same model under a pattern or a gate. The loss is what a
user of the encoder would notice: the relative error of the hidden states of every layer, and the distance between the
two embeddings of a text.
"""

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import torch

from sparsebert.batches import TextBatch, like_lengths
from sparsebert.files import write_json
from sparsebert.model.heads import encoder_inputs, pattern_of
from sparsebert.model.pooling import Pooling
from sparsebert.model.saving import save_trained
from sparsebert.training.comparison import Comparer, write_card
from sparsebert.training.fidelity import States, embedding_distances, encoder_states, hidden_errors
from sparsebert.training.objective import Losses
from sparsebert.training.teacher import Teacher
from sparsebert.training.text_objective import BatchParts, BatchSource, TextObjective


class DistillationObjective(TextObjective[TextBatch]):
    """A student learns to make the states that its teacher makes.

    trains_weights: False where only a gate beside them learns. embedding_weight: of the distance between embeddings
    beside the error of the states. saved_as: settings of the configuration that are another while the student learns.
    The other settings are those of every objective on text.
    """

    def __init__(
        self,
        model: Any,
        teacher: Teacher,
        batches: BatchParts[TextBatch],
        held_out: BatchSource[TextBatch],
        *,
        pooling: Pooling = "mean",
        trains_weights: bool = True,
        embedding_weight: float = 1.0,
        saved_as: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model.requires_grad_(trains_weights), batches, held_out, **settings)
        self.teacher, self.pooling, self.embedding_weight = teacher, pooling, embedding_weight
        self.saved_as = dict(saved_as or {})

    def on(self, batches: BatchParts[TextBatch]) -> "DistillationObjective":
        """The same student and teacher on other training rows."""
        other = copy(self)
        other.batches, other._parts = batches, {}
        return other

    def forward(self, step: int, micro: int) -> Losses:
        batch = self.source(micro).batch(step)
        states = [self.states(part) for part in like_lengths(batch)]
        # Rows count alike, however long they are and however the batch is cut.
        error = torch.cat([hidden_errors(*pair) for pair in states], dim=1).mean()
        distance = torch.cat([embedding_distances(*pair, self.pooling) for pair in states]).mean()
        parts = {"hidden_error": error.detach(), "embedding_distance": distance.detach()}
        return Losses(error + self.embedding_weight * distance, parts, int(batch.lengths.sum()))

    def states(self, batch: TextBatch) -> tuple[States, States]:
        """Of the student and of the teacher, who read the same."""
        inputs = encoder_inputs(self.model, batch)
        return encoder_states(self.model, inputs), self.teacher.states(inputs)

    def evaluate(self, step: int) -> dict[str, float]:
        """The same two figures on held-out text."""
        return self._compared().everything.figures()

    @torch.no_grad()
    def _compared(self) -> Comparer:
        made = Comparer(self.pooling)
        for number in range(self.num_held_out):
            batch = self.held_out.batch(number)
            made.add(*self.states(batch), batch.lengths)
        return made

    def finish(self, folder: Path) -> dict[str, Any]:
        """Save the model, its pattern, its tokenizer and what it kept; the score is the held-out embedding distance."""
        comparison = self._compared().result(pattern_of(self.model))
        write_json(folder / "comparison.json", comparison.as_json())
        self.model.config.update(self.saved_as)
        save_trained(self.model, folder, self.tokenizer, more=lambda part: write_card(part, comparison, self.model))
        return {"task": "distillation", "metric": "embedding_distance", "sparsity": comparison.sparsity}
