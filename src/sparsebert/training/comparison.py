"""compare(): how much of a dense model a sparse one keeps, layer by layer and by the length of the input."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
from jaxtyping import Int64
from torch import Tensor

from sparsebert.batches import PlainBatches, TextBatch
from sparsebert.errors import ConfigError
from sparsebert.files import write_atomic
from sparsebert.layers.float32 import full_speed_products
from sparsebert.model.card import CARD, Measured, attention_part, opening, with_part
from sparsebert.model.heads import encoder_inputs, pattern_of
from sparsebert.model.pooling import Pooling
from sparsebert.model.positions import positions_of
from sparsebert.patterns import Pattern
from sparsebert.text import TokenStore
from sparsebert.training.fidelity import (
    FidelitySums,
    States,
    embedding_distances,
    encoder_states,
    hidden_errors,
    require_same_shape,
)

_ROWS_A_BATCH = 16
_EDGES = (32, 64, 128, 256, 512, 1024, 2048, 4096)  # tokens: lengths are told apart by doublings


@dataclass(frozen=True)
class LengthFigures:
    """Rows of a range of lengths."""

    shortest: int  # tokens
    longest: int
    rows: int
    hidden_error: float
    embedding_cosine: float


@dataclass(frozen=True)
class ModelComparison:
    """What a model under a pattern makes of the same rows as the dense one."""

    sparsity: float  # of the sparse model's pattern
    rows: int
    layer_errors: list[float]  # relative squared error of hidden states after each layer
    hidden_error: float  # their mean
    embedding_cosine: float  # mean over rows
    lengths: list[LengthFigures]
    head_agreement: float | None = None  # share of rows with the same answer of the task's head, where both have one

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "lengths": [LengthFigures(**one) for one in fields["lengths"]]})

    def measured(self, **more: str) -> Measured:
        """As a model card tells it."""
        rows = "".join(
            f"| {one.shortest}-{one.longest} | {one.rows} | {one.hidden_error:.4f} | {one.embedding_cosine:.4f} |\n"
            for one in self.lengths
        )
        head = "\n| tokens | texts | relative error of hidden states | cosine of embeddings |\n|---|---|---|---|\n"
        near = (
            f"cosine of embeddings to the dense model's {self.embedding_cosine:.4f}, mean of {self.rows} held-out texts"
        )
        return Measured(fidelity=near, table=head + rows, **more)

    def __str__(self) -> str:
        lines = [f"{'tokens':>12} {'rows':>6} {'hidden error':>13} {'embedding cosine':>17}"]
        for one in self.lengths:
            where = f"{one.shortest}-{one.longest}"
            lines.append(f"{where:>12} {one.rows:>6} {one.hidden_error:>13.4f} {one.embedding_cosine:>17.4f}")
        lines.append(f"{'all':>12} {self.rows:>6} {self.hidden_error:>13.4f} {self.embedding_cosine:>17.4f}")
        lines.append("error by layer: " + ", ".join(f"{error:.4f}" for error in self.layer_errors))
        if self.head_agreement is not None:
            lines.append(f"the task head gives the same answer on {self.head_agreement:.1%} of the rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same as two small tables, for notebooks; no script, no outside resource."""
        by_length = [
            (f"{one.shortest}-{one.longest}", str(one.rows), f"{one.hidden_error:.4f}", f"{one.embedding_cosine:.4f}")
            for one in self.lengths
        ]
        by_length.append(("all", str(self.rows), f"{self.hidden_error:.4f}", f"{self.embedding_cosine:.4f}"))
        layers = [str(layer) for layer in range(1, len(self.layer_errors) + 1)]
        errors = [f"{error:.4f}" for error in self.layer_errors]
        agreed = "" if self.head_agreement is None else f", same answer of the task head {self.head_agreement:.1%}"
        return (
            f'<div><div style="font:12px sans-serif">{self.sparsity:.2%} sparse, held against the dense model{agreed}'
            f"</div>{_html_table(('tokens', 'rows', 'hidden error', 'embedding cosine'), by_length)}"
            f"{_html_table(('layer', *layers), [('hidden error', *errors)])}</div>"
        )


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first = "".join(f"<th>{cell}</th>" for cell in head)
    others = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{others}</tbody></table>"


def compare(
    dense: Any,
    sparse: Any,
    corpus: TokenStore | Path | str,
    *,
    rows: int = 256,
    length: int | None = None,
    pooling: Pooling = "mean",
    seed: int = 0,
) -> ModelComparison:
    """Run both models over held-out rows of a corpus, of many lengths.

    length: tokens of the longest rows; None: what both models and the pattern take, at most 512. Both models must read
    the corpus's own vocabulary.
    """
    store = corpus if isinstance(corpus, TokenStore) else TokenStore.open(Path(corpus))
    longest = _longest(dense, sparse) if length is None else length
    batches = PlainBatches(store, batch_size=_ROWS_A_BATCH, length=longest, seed=seed, split="held_out")
    return compare_batches(
        dense, sparse, (batches.batch(number) for number in range(-(-rows // _ROWS_A_BATCH))), pooling
    )


@torch.no_grad()
@full_speed_products()
def compare_batches(
    dense: Any, sparse: Any, batches: Iterable[TextBatch], pooling: Pooling = "mean"
) -> ModelComparison:
    """The same over given batches."""
    require_same_shape(sparse, dense, "the dense model")
    made = Comparer(pooling)
    modes = [(model, model.training) for model in (dense, sparse)]
    try:
        for model, _ in modes:
            model.eval()
        for batch in batches:
            (theirs, wanted), (ours, answers) = _run(dense, batch), _run(sparse, batch)
            made.add(ours, theirs, batch.lengths)
            if wanted is not None and answers is not None and wanted.shape[-1] > 1:  # one score names no class
                made.agreed.append(float((wanted.argmax(-1) == answers.argmax(-1)).double().mean()))
    finally:
        for model, was_training in modes:
            model.train(was_training)
    return made.result(pattern_of(sparse))


class Comparer:
    """Adds up what two encoders make of batch after batch."""

    def __init__(self, pooling: Pooling) -> None:
        self.pooling = pooling
        self.everything, self.by_length = FidelitySums(), [FidelitySums() for _ in range(len(_EDGES) + 1)]
        self.agreed: list[float] = []

    def add(self, ours: States, theirs: States, lengths: Int64[Tensor, " rows"]) -> None:
        errors, distances = hidden_errors(ours, theirs), embedding_distances(ours, theirs, self.pooling)
        self.everything.add(errors, distances)
        bands = torch.bucketize(lengths.cpu(), torch.tensor(_EDGES))
        for band in sorted(set(bands.tolist())):
            chosen = (bands == band).to(errors.device)
            self.by_length[band].add(errors[:, chosen], distances[chosen])

    def result(self, pattern: Pattern | None) -> ModelComparison:
        if not self.everything.rows:
            raise ConfigError("there are no rows to compare the models on; give at least one")
        figures = self.everything.figures()
        return ModelComparison(
            sparsity=0.0 if pattern is None else pattern.sparsity,
            rows=self.everything.rows,
            layer_errors=self.everything.layer_errors,
            hidden_error=figures["hidden_error"],
            embedding_cosine=1.0 - figures["embedding_distance"],
            lengths=_length_figures(self.by_length),
            head_agreement=sum(self.agreed) / len(self.agreed) if self.agreed else None,
        )


def _run(model: Any, batch: TextBatch) -> tuple[States, Tensor | None]:
    """States of the encoder, and the scores of a head that classifies whole rows."""
    inputs = encoder_inputs(model, batch)
    if not type(model).__name__.endswith("ForSequenceClassification"):
        return encoder_states(model, inputs), None
    output = model(**inputs, output_hidden_states=True)
    return States(output["hidden_states"], inputs["attention_mask"].float()), output["logits"]


def _length_figures(tallies: list[FidelitySums]) -> list[LengthFigures]:
    made = []
    for band, tally in enumerate(tallies):
        if tally.rows:
            shortest = 1 if band == 0 else _EDGES[band - 1] + 1
            longest = _EDGES[band] if band < len(_EDGES) else 2 * _EDGES[-1]
            figures = tally.figures()
            cosine = 1.0 - figures["embedding_distance"]
            made.append(LengthFigures(shortest, longest, tally.rows, figures["hidden_error"], cosine))
    return made


def _longest(*models: Any) -> int:
    """Tokens that every one of the models takes."""
    patterns = [pattern_of(model) for model in models]
    covered = [pattern.length for pattern in patterns if pattern is not None]
    positions = [positions_of(model) for model in models]
    return min([512, *covered, *positions])


def write_card(folder: Path, comparison: ModelComparison, model: Any) -> None:
    """The card of a model that was just saved: how sparse it is, and how near to the dense model on held-out text."""
    library, opened = opening(folder)
    card = f"""---
library_name: {library}
tags: [sparsebert, sparse-attention, feature-extraction]
---
# An encoder under a sparse attention pattern
"""
    if pattern_of(model) is not None:
        card = with_part(card, attention_part(model, opened, comparison.measured()))
    write_atomic(folder / CARD, card.encode())
