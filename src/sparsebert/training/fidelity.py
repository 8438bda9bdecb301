"""How far one encoder's states lie from another's: hidden states layer by layer, and the embedding of a whole text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from sparsebert.errors import ConfigError
from sparsebert.model.head_pooling import Pooling, pooled


@dataclass(frozen=True)
class States:
    """What an encoder makes of a batch."""

    layers: Sequence[Float[Tensor, "rows n width"]]  # after the embeddings, then after each layer
    real: Float[Tensor, "rows n"]  # 1 for a token that is there, 0 for padding

    def embedding(self, pooling: Pooling) -> Float[Tensor, "rows width"]:
        """One vector a row."""
        return pooled(self.layers[-1].float(), self.real, pooling)


def encoder_states(model: Any, inputs: dict[str, Tensor]) -> States:
    """All hidden states of a model's encoder."""
    layers = model.base_model(**inputs, output_hidden_states=True)["hidden_states"]
    return States(layers, inputs["attention_mask"].float())


def require_same_shape(student: Any, teacher: Any, name: str) -> None:
    """Refuse a teacher whose states cannot be held against the student's; name: what messages call the teacher."""
    for setting, words in (("num_hidden_layers", "layers"), ("hidden_size", "numbers a token")):
        ours, theirs = getattr(student.config, setting, None), getattr(teacher.config, setting, None)
        if ours != theirs:
            raise ConfigError(
                f"{name} has {theirs} {words}, the model held against it {ours}; their states are compared layer by "
                "layer, so choose models of one shape"
            )


def hidden_errors(student: States, teacher: States) -> Float[Tensor, "layers rows"]:
    """Squared error over real tokens, relative to the teacher's own squares, of each layer and row."""
    pairs = zip(student.layers[1:], teacher.layers[1:], strict=True)
    return torch.stack([_relative_error(ours.float(), theirs.float(), teacher.real) for ours, theirs in pairs])


def _relative_error(ours: Tensor, theirs: Tensor, real: Tensor) -> Float[Tensor, " rows"]:
    error = ((ours - theirs).square().sum(-1) * real).sum(-1)
    return error / (theirs.square().sum(-1) * real).sum(-1).clamp(min=1e-12)


def embedding_distances(student: States, teacher: States, pooling: Pooling) -> Float[Tensor, " rows"]:
    """1 - cosine of the two embeddings of each row."""
    return 1.0 - cosine_similarity(student.embedding(pooling), teacher.embedding(pooling), dim=-1)


@dataclass
class FidelitySums:
    """Sums over rows that were compared."""

    rows: int = 0
    error: Float[Tensor, " layers"] | None = None
    distance: float = 0.0

    def add(self, errors: Float[Tensor, "layers rows"], distances: Float[Tensor, " rows"]) -> None:
        total = errors.double().sum(1).cpu()
        self.error = total if self.error is None else self.error + total
        # Rounded, a vector's cosine to itself may be a little above 1.
        self.distance += float(distances.double().clamp(min=0).sum())
        self.rows += len(distances)

    @property
    def layer_errors(self) -> list[float]:
        """Mean relative error after each layer."""
        return [] if self.error is None else (self.error / self.rows).tolist()

    def figures(self) -> dict[str, float]:
        errors = self.layer_errors
        return {"hidden_error": sum(errors) / len(errors), "embedding_distance": self.distance / self.rows}
