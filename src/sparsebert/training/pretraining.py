"""BERT's objective: masked language modelling and next-sentence prediction, under any pattern.

Vocabulary scores are computed at the predicted positions alone: at every position they would cost as much as a
six-layer encoder.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from sparsebert.batches import PretrainingBatch, PretrainingBatches
from sparsebert.model.heads import encoder_inputs, encoder_states_changed, pattern_of, require_word_head
from sparsebert.model.saving import save_trained
from sparsebert.text import TokenStore
from sparsebert.training.launch import these_ranks
from sparsebert.training.objective import Losses
from sparsebert.training.text_objective import BatchParts, BatchSource, TextObjective


def corpus_parts(
    store: TokenStore, *, batch_size: int, length: int, seed: int, whole_words: bool = False
) -> BatchParts[PretrainingBatch]:
    """The training batches of a corpus; batch_size: rows of a step, whatever the number of parts and ranks."""

    def part_of(part: int, parts: int) -> BatchSource[PretrainingBatch]:
        return PretrainingBatches(
            store, batch_size=batch_size, length=length, seed=seed, rank=part, ranks=parts, whole_words=whole_words
        )

    return part_of


class PretrainingObjective(TextObjective[PretrainingBatch]):
    """Weights learn to predict corrupted tokens and whether one segment follows the other.

    The model has a head that predicts words; one for the order of segments is trained where there is one.
    """

    def __init__(
        self,
        model: Any,
        batches: BatchParts[PretrainingBatch],
        held_out: BatchSource[PretrainingBatch],
        **settings: Any,  # of every objective on text
    ) -> None:
        require_word_head(model)
        super().__init__(model, batches, held_out, **settings)
        self._step_batches: tuple[int, dict[int, PretrainingBatch], float] = (-1, {}, 0.0)

    def forward(self, step: int, micro: int) -> Losses:
        batch, predicted = self.part(step, micro)
        return self.losses(batch, predicted)

    def part(self, step: int, micro: int) -> tuple[PretrainingBatch, float]:
        """One part of a step's batch, and the mean number of predictions over all parts of all ranks.

        Dividing by that mean, rather than by the part's own number, makes every prediction of the step count the
        same, so that the gradient does not depend on how the batch is cut.
        """
        if self._step_batches[0] != step:
            ranks = these_ranks()
            made = {number: self.source(number).batch(step) for number in ranks.share(self.micro_batches)}
            (count,) = ranks.sum([float(sum(len(batch.predicted_ids) for batch in made.values()))])
            self._step_batches = (step, made, max(count, 1.0) / self.micro_batches)
        _, made, mean = self._step_batches
        return made[micro], mean

    def losses(self, batch: PretrainingBatch, predicted: float) -> Losses:
        """MLM and NSP loss; predicted: what the sum over the predicted positions is divided by."""
        words, order = self.scores(batch)
        mlm = cross_entropy(words.float(), batch.predicted_ids.to(words.device), reduction="sum") / predicted
        tokens = int(batch.lengths.sum())
        if order is None:
            return Losses(mlm, {"mlm_loss": mlm.detach()}, tokens)
        nsp = cross_entropy(order.float(), batch.next_sentence.to(order.device))
        return Losses(mlm + nsp, {"mlm_loss": mlm.detach(), "nsp_loss": nsp.detach()}, tokens)

    def scores(
        self, batch: PretrainingBatch
    ) -> tuple[Float[Tensor, "predicted vocabulary"], Float[Tensor, "rows two"] | None]:
        """Vocabulary scores at the predicted positions, and whether the second segment is a random one, if asked."""
        device = self.device
        places = batch.predicted_positions.to(device)

        def at_places(states: Tensor) -> Tensor:
            return states.flatten(0, 1).index_select(0, places)[None]

        with encoder_states_changed(self.model, at_places):
            output = self.model(**encoder_inputs(self.model, batch))
        words = output["prediction_logits" if "prediction_logits" in output else "logits"]
        return words[0], output.get("seq_relationship_logits")

    @torch.no_grad()
    def evaluate(self, step: int) -> dict[str, float]:
        """Losses and accuracies on the held-out batches."""
        words = torch.zeros(3, dtype=torch.float64)  # loss, right answers, questions
        order = torch.zeros(3, dtype=torch.float64)
        for number in range(self.num_held_out):
            batch = self.held_out.batch(number)
            word_scores, order_scores = self.scores(batch)
            words += _tally(word_scores, batch.predicted_ids)
            if order_scores is not None:
                order += _tally(order_scores, batch.next_sentence)
        figures: dict[str, float] = {}
        for name, (loss, right, asked) in (("mlm", words.tolist()), ("nsp", order.tolist())):
            if asked or name == "mlm":
                figures |= {f"{name}_loss": loss / max(asked, 1.0), f"{name}_accuracy": right / max(asked, 1.0)}
        return figures

    def finish(self, folder: Path) -> dict[str, Any]:
        """Save the model, its pattern and its tokenizer; the score is the held-out MLM loss."""
        save_trained(self.model, folder, self.tokenizer)
        pattern = pattern_of(self.model)
        sparsity = 0.0 if pattern is None else pattern.sparsity
        return {"task": "pretraining", "metric": "mlm_loss", "sparsity": sparsity}


def _tally(scores: Float[Tensor, "rows classes"], answers: Tensor) -> Float[Tensor, "three"]:
    answers = answers.to(scores.device)
    loss = cross_entropy(scores.float(), answers, reduction="sum")
    right = (scores.argmax(-1) == answers).sum()
    return torch.tensor([float(loss), float(right), float(len(answers))], dtype=torch.float64)
