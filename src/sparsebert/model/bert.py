"""transformers' BERT with a pattern: one mixin, and the six classes it makes sparse.

The kept entries are buffers of the encoder, so they are saved with the weights and cannot be lost on the way;
their sizes come from the configuration, because transformers builds a model before it has read a single tensor.
"""

from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
)

from sparsebert.errors import ModelError, PatternError
from sparsebert.model.config import SparseBertConfig, pattern_fields
from sparsebert.model.folder_checks import check_folder, check_loaded
from sparsebert.model.plan import (
    IMPLEMENTATION,
    Plan,
    check_attention,
    check_backend,
    check_no_gate,
    check_pattern,
    give_plan,
    plan_of,
)
from sparsebert.patterns import Pattern

_STARTS, _KEYS = "pattern_row_starts", "pattern_keys"


class Sparse:
    """What every sparse BERT class shares; stands before the transformers class among the bases."""

    config_class = SparseBertConfig
    config: SparseBertConfig
    base_model: nn.Module

    def __init__(self, config: SparseBertConfig, *args: Any, **kwargs: Any) -> None:
        config._attn_implementation = IMPLEMENTATION
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]
        check_backend(config.attention_backend)
        self._plan = Plan(backend=config.attention_backend, is_read=config.pattern is None)
        give_plan(self, self._plan)  # type: ignore[arg-type]
        # A hook rather than a forward of our own: transformers' Trainer reads the arguments of forward by name.
        self.base_model.register_forward_pre_hook(_read_pattern)
        self.base_model.register_load_state_dict_post_hook(_forget_pattern)
        _make_buffers(self.base_model, config.pattern)

    @property
    def pattern(self) -> Pattern | None:
        """Who may attend to whom; None: everyone."""
        _read_pattern(self.base_model)
        return self._plan.pattern

    def set_pattern(self, pattern: Pattern | None) -> Self:
        """Run, and save, under this pattern from now on."""
        check_no_gate(self._plan)
        if pattern is not None:
            check_pattern(self, pattern)
        self.config.pattern = pattern_fields(pattern)
        _make_buffers(self.base_model, self.config.pattern, pattern)
        self._plan.pattern, self._plan.is_read = pattern, True
        return self

    def set_attn_implementation(self, attn_implementation: Any, *args: Any, **kwargs: Any) -> None:
        """As transformers', except that attention which would ignore a pattern or a gate is refused."""
        check_attention(self._plan, attn_implementation)
        super().set_attn_implementation(attn_implementation, *args, **kwargs)

    @classmethod
    def from_pretrained(cls, source: Any, *args: Any, **kwargs: Any) -> Any:
        """As transformers', except that tensors which are missing, extra or of another shape raise by name."""
        if Path(source).is_dir():
            check_folder(Path(source))
        asked = kwargs.get("attn_implementation")
        if asked not in (None, IMPLEMENTATION):
            raise ModelError(f"attention {asked!r} was asked for; a sparse model runs only {IMPLEMENTATION!r}")
        wants_info = kwargs.pop("output_loading_info", False)
        kwargs |= {"use_safetensors": True, "trust_remote_code": False}
        try:
            model, info = super().from_pretrained(source, *args, output_loading_info=True, **kwargs)
        except (OSError, RuntimeError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise ModelError(f"{source} cannot be loaded as {cls.__name__}: {error}") from error
        check_loaded(source, cls.__name__, info)
        _align(model)
        _ = model.pattern
        return (model, info) if wants_info else model

    def save_pretrained(self, folder: str | Path, **kwargs: Any) -> None:
        _ = self.pattern  # refuse to save a pattern that does not verify
        super().save_pretrained(folder, **kwargs)


def _align(model: nn.Module) -> None:
    """Weights at addresses as torch itself chooses them. Those of a mapped file lie anywhere, and on some processors a
    matrix product rounds differently there: the model would not compute what it computed when it was saved."""
    for parameter in model.parameters():
        if parameter.data_ptr() % 64:
            parameter.data = parameter.data.clone()


def _read_pattern(base: Any, _: Any = None) -> None:
    """From the loaded buffers, at first use."""
    plan = plan_of(base)
    if plan is not None and not plan.is_read:
        plan.pattern, plan.is_read = _read_buffers(base, base.config.pattern or {}), True


def _forget_pattern(base: Any, _: Any) -> None:
    """Buffers were loaded that may hold another pattern than the one in use."""
    plan = plan_of(base)
    if plan is not None and base.config.pattern is not None:
        plan.is_read = False


def _make_buffers(base: nn.Module, fields: dict[str, Any] | None, pattern: Pattern | None = None) -> None:
    for name in (_STARTS, _KEYS):
        if hasattr(base, name):
            delattr(base, name)
    if fields is None:
        return
    if pattern is None:
        rows = int(fields.get("layers", 1)) * int(fields["heads"])
        starts = torch.zeros(rows, int(fields["length"]) + 1, dtype=torch.int64)
        keys = torch.zeros(int(fields["kept"]), dtype=torch.int32)
    else:
        device = next(base.parameters()).device
        starts = torch.from_numpy(pattern.row_starts.copy()).to(device)
        keys = torch.from_numpy(pattern.keys.copy()).to(device)
    base.register_buffer(_STARTS, starts)
    base.register_buffer(_KEYS, keys)


def _read_buffers(base: nn.Module, fields: dict[str, Any]) -> Pattern:
    starts, keys = getattr(base, _STARTS), getattr(base, _KEYS)
    try:
        pattern = Pattern(
            int(fields["heads"]),
            int(fields["length"]),
            starts.cpu().numpy().copy(),
            keys.cpu().numpy().copy(),
            fields["anchor"],
            fields["rule"],
            int(fields.get("layers", 1)),
        )
    except (PatternError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the pattern saved with the weights cannot be used: {error}") from error
    if pattern.digest != fields.get("digest"):
        raise ModelError(
            "the pattern saved with the weights is not the one its configuration names; restore the folder from a copy"
        )
    return pattern


class SparseBertModel(Sparse, BertModel):
    """The encoder."""


class SparseBertForPreTraining(Sparse, BertForPreTraining):
    """The encoder with the MLM and NSP heads."""


class SparseBertForMaskedLM(Sparse, BertForMaskedLM):
    """The encoder with the MLM head."""


class SparseBertForSequenceClassification(Sparse, BertForSequenceClassification):
    """The encoder with a classifier or regressor on [CLS]."""


class SparseBertForMultipleChoice(Sparse, BertForMultipleChoice):
    """The encoder with one score a choice."""


class SparseBertForQuestionAnswering(Sparse, BertForQuestionAnswering):
    """The encoder with a start and an end score a token."""
