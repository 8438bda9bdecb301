"""BERT's configuration, and the size of the pattern that is saved with the weights."""

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from sparsebert.errors import ModelError
from sparsebert.model.plan import IMPLEMENTATION, check_encoder
from sparsebert.patterns import Pattern

# What transformers says of a sparse folder where sparsebert was not imported, so that it is never opened as a dense
# one. Its own BertConfig takes only a truth value as use_cache and raises, quoting what it found. Its Auto classes
# know no such model type and would advise to update transformers, unless the folder names code to run: then they
# quote where that code is said to be, and since a sentence can be no address of anything, nothing is ever run.
_ONLY_WITH_SPARSEBERT = (
    "this model is sparse and needs the package sparsebert: import sparsebert before you open it with an Auto class"
)
AUTO_MAP = {"AutoConfig": f"{_ONLY_WITH_SPARSEBERT}--sparsebert.SparseBertConfig"}


@strict
class SparseBertConfig(BertConfig):
    """BertConfig plus `pattern`: what must be known of a pattern before its entries are loaded."""

    model_type = "sparsebert"

    use_cache: bool | str = False  # type: ignore[assignment]
    pattern: dict[str, Any] | None = (
        None  # layers if several, heads, length, kept, anchor, rule, digest; None: everyone attends to everyone
    )
    attention_backend: str = "auto"

    def __post_init__(self, **kwargs: Any) -> None:
        # Names of attention functions may name code on a hub; ours is the only one a sparse model can run.
        for name in ("attn_implementation", "_attn_implementation"):
            if kwargs.get(name) not in (None, IMPLEMENTATION):
                raise ModelError(
                    f"attention {kwargs[name]!r} was asked for; a sparse model runs only {IMPLEMENTATION!r}"
                )
        check_encoder(self)
        self.use_cache = False
        kwargs.pop("auto_map", None)
        super().__post_init__(**kwargs)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "use_cache": _ONLY_WITH_SPARSEBERT, "auto_map": AUTO_MAP}

    def to_diff_dict(self) -> dict[str, Any]:
        return {**super().to_diff_dict(), "use_cache": _ONLY_WITH_SPARSEBERT, "auto_map": AUTO_MAP}

    @classmethod
    def from_bert(cls, config: BertConfig, **changes: Any) -> "SparseBertConfig":
        """The sparse twin of a BERT configuration."""
        fields = config.to_dict()
        for name in ("model_type", "architectures", "transformers_version", "use_cache", "_name_or_path", "dtype"):
            fields.pop(name, None)
        if changes.get("num_labels", config.num_labels) != config.num_labels:
            for name in ("id2label", "label2id"):
                fields.pop(name, None)
        return cls(**{**fields, **changes})


def pattern_fields(pattern: Pattern | None) -> dict[str, Any] | None:
    """What the configuration records of a pattern."""
    if pattern is None:
        return None
    layers = {"layers": pattern.layers} if pattern.layers > 1 else {}
    return {
        **layers,
        "heads": pattern.heads,
        "length": pattern.length,
        "kept": pattern.kept,
        "anchor": pattern.anchor,
        "rule": pattern.rule,
        "digest": pattern.digest,
    }
