"""A model that makes embeddings, as its folder says: pooling, normalising, and where a text is cut."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AutoTokenizer

from sparsebert.embeddings.chunks import Span, spans
from sparsebert.errors import ConfigError, ModelError
from sparsebert.layers.float32 import full_speed_products
from sparsebert.model import load_model
from sparsebert.model.head_pooling import pooled_packed
from sparsebert.model.heads import give_pattern
from sparsebert.model.lengths import longest_input
from sparsebert.model.packing import packed_inputs, packing_obstacle
from sparsebert.model.pooling import pooling_of
from sparsebert.model.positions import positions_of
from sparsebert.model.precision import check_precision, in_precision
from sparsebert.model.sentence_folder import default_prompt, encoder_settings, max_length_of, parts_of
from sparsebert.model.sources import model_folder
from sparsebert.patterns import Pattern, find
from sparsebert.text import source_of

_KNOWN = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Tokens:
    """A text as the model reads it."""

    ids: list[int]
    is_cut: bool  # the text goes on where the model ends
    spans: list[Span]  # of its chunks; none: they were not asked for


class Encoder:
    """Loaded once, for any number of texts."""

    def __init__(
        self,
        model: str | Path,
        *,
        pattern: Pattern | str | None = None,
        length: int | None = None,
        precision: str = "fp32",
    ) -> None:
        """model: a folder, a run folder, a hub id or `minilm`. pattern: in place of the model's own; a Pattern, a file
        or a builder's name. length: tokens beyond which a text is cut; None: as the model's folder says."""
        check_precision(precision)
        source = source_of(str(model))
        if source.startswith("scratch:"):
            raise ConfigError(f"{source} has no weights yet; encode with a model that was trained")
        folder = model_folder(source)
        parts = [part.kind for part in parts_of(folder)]
        strange = [kind for kind in parts if kind not in _KNOWN]
        if strange:
            raise ModelError(
                f"{folder} has a part {strange[0]}; encode knows {', '.join(_KNOWN)}, so open the folder with "
                "SentenceTransformer"
            )
        self.pooling, self.is_normalised = pooling_of(source), "Normalize" in parts
        self.prompt = default_prompt(folder)
        self.tokenizer = _tokenizer(folder)
        self.model = load_model(source, "none").eval().requires_grad_(False)
        # Some tokenizers say a number beyond any model in place of no limit.
        positions = positions_of(self.model)
        said = min(max_length_of(folder) or positions, positions)
        if pattern is not None:
            heads = int(self.model.config.num_attention_heads)
            found = pattern if isinstance(pattern, Pattern) else find(pattern, length or said, heads)
            give_pattern(self.model, found)
        takes = longest_input(self.model)
        if length is not None and not 3 <= length <= takes:
            raise ConfigError(
                f"length is {length}; this model takes 3 to {takes} tokens (positions, or a pattern without a rule); "
                "choose a length in between, a pattern with a rule, or extend_positions and save the model first"
            )
        self.length = length or min(said, takes)
        self.packs = packing_obstacle(self.model) is None
        self.model = in_precision(self.model, precision)

    @property
    def width(self) -> int:
        """Numbers in an embedding."""
        return int(self.model.config.hidden_size)

    def tokens(self, texts: list[str], chunks: int | None = None) -> list[Tokens]:
        """Texts as the model reads them, with the spans of their chunks if these are asked for."""
        read = self.tokenizer(
            [self.prompt + text for text in texts],
            truncation=True,
            max_length=self.length,
            return_offsets_mapping=chunks is not None,
            return_attention_mask=False,
        )
        return [
            Tokens(one.ids, bool(one.overflowing), [] if chunks is None else self._spans(one, chunks))
            for one in read.encodings
        ]

    def _spans(self, one: Any, chunks: int) -> list[Span]:
        before = len(self.prompt)
        offsets = [(max(0, start - before), max(0, end - before)) for start, end in one.offsets]
        return spans(offsets, one.special_tokens_mask, chunks)

    @torch.inference_mode()
    @full_speed_products()
    def embeddings(self, batch: list[Tokens]) -> list[Float[np.ndarray, "chunks width"]]:
        """Of each text one row, or one for each of its chunks."""
        lengths = torch.tensor([len(one.ids) for one in batch])
        states = self._states(batch, lengths)
        if not any(one.spans for one in batch):
            return list(self._finished(pooled_packed(states, lengths, self.pooling))[:, None].numpy())
        rows = states.split_with_sizes(lengths.tolist())
        return [self._chunks(row, one.spans).numpy() for row, one in zip(rows, batch, strict=True)]

    def _states(self, batch: list[Tokens], lengths: Int[Tensor, " texts"]) -> Float[Tensor, "tokens width"]:
        """Of all tokens, text after text; a model that takes no packed rows gets padded ones."""
        if self.packs:
            ids = torch.tensor([token for one in batch for token in one.ids])
            states: Tensor = self.model(**packed_inputs(self.model, ids, lengths))[0][0]
            return states.float()
        ids = _padded([one.ids for one in batch], self.tokenizer.pad_token_id or 0)
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        padded: Tensor = self.model(input_ids=ids, attention_mask=real.long())[0][real]
        return padded.float()

    def _chunks(self, states: Float[Tensor, "n width"], where: list[Span]) -> Float[Tensor, "chunks width"]:
        made = [states[span.first : span.last] for span in where]
        return self._finished(torch.stack([part.mean(0) for part in made]))

    def _finished(self, vectors: Float[Tensor, "rows width"]) -> Float[Tensor, "rows width"]:
        return torch.nn.functional.normalize(vectors, dim=-1) if self.is_normalised else vectors


def _padded(rows: list[list[int]], padding: int) -> Int[Tensor, "rows n"]:
    widest = max(map(len, rows))
    return torch.tensor([row + [padding] * (widest - len(row)) for row in rows])


def _tokenizer(folder: Path) -> Any:
    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    if encoder_settings(folder).get("do_lower_case"):
        from tokenizers.normalizers import Lowercase, Sequence

        inner = tokenizer.backend_tokenizer
        inner.normalizer = Sequence([Lowercase(), *([] if inner.normalizer is None else [inner.normalizer])])
    return tokenizer
