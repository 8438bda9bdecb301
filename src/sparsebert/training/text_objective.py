"""What objectives on text share: a model, the batches it learns on, and held-out ones that it is judged by."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from tokenizers import Tokenizer

from sparsebert.batches import TextBatch
from sparsebert.errors import ConfigError
from sparsebert.training.objective import Objective
from sparsebert.training.schedules import weight_groups

Made = TypeVar("Made", bound=TextBatch, covariant=True)


class BatchSource(Protocol[Made]):
    """Makes the batch of a step from its number alone."""

    def batch(self, step: int) -> Made: ...


# The source of part `part` of `parts` of every step's batch.
BatchParts = Callable[[int, int], BatchSource[Made]]


class TextObjective(Objective, Generic[Made]):
    """Weights that learn on batches of text."""

    def __init__(
        self,
        model: Any,
        batches: BatchParts[Made],
        held_out: BatchSource[Made],
        *,
        num_held_out: int = 8,  # batches of the held-out documents, the same at every evaluation
        learning_rate: float = 1e-4,
        weight_decay: float = 0.01,
        tokenizer: Tokenizer | None = None,  # saved beside the model
    ) -> None:
        super().__init__()
        if num_held_out < 1:
            raise ConfigError(f"num_held_out is {num_held_out}; a figure needs at least one held-out batch")
        self.model, self.batches, self.held_out = model, batches, held_out
        self.num_held_out, self.learning_rate, self.weight_decay = num_held_out, learning_rate, weight_decay
        self.tokenizer = tokenizer
        self._parts: dict[int, BatchSource[Made]] = {}

    def source(self, part: int) -> BatchSource[Made]:
        """Of one part of every step's batch."""
        if part not in self._parts:
            self._parts[part] = self.batches(part, self.micro_batches)
        return self._parts[part]

    def parameter_groups(self) -> list[dict[str, Any]]:
        return weight_groups(self.model, self.learning_rate, self.weight_decay)
