"""The configuration of a sparse model: its family's own, which pattern, and a mark that transformers alone refuses."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

from huggingface_hub.dataclasses import strict
from transformers import BertConfig

from sparsebert.errors import ModelError
from sparsebert.model.head_pooling import check_head_pooling
from sparsebert.model.plan import IMPLEMENTATION, check_encoder
from sparsebert.patterns import Pattern

PATTERN_FILE = "pattern.safetensors"  # beside config.json
# What transformers says of a sparse folder where sparsebert was not imported, so that it is never opened as a dense
# one. A family's own configuration takes only a truth value as use_cache, or only a number as initializer_range, and
# raises, quoting what it found. The Auto classes know no such model type and would advise to
# update transformers, unless the folder names code to run: then they quote where that code is said to be; and since a
# sentence can be no address of anything, nothing is ever run.
_ONLY_WITH_SPARSEBERT = (
    "this model is sparse and needs the package sparsebert: import sparsebert before you open it with an Auto class"
)
ON_DISK = "sparsebert"  # the model type of every sparse folder; in memory transformers goes by the family's own
_CAN_BE_MARKED = ("use_cache", "initializer_range", "vocab_size", "hidden_size")  # fields, where a family checks them
_UNMARKED = "unmarked"  # what the marked field holds in memory
AUTO_MAP = {"AutoConfig": f"{_ONLY_WITH_SPARSEBERT}--sparsebert.SparseBertConfig"}


class SparseConfig:
    """What every sparse configuration adds; stands before the family's class among the bases."""

    family: ClassVar[str] = ""  # the model type of the family, as transformers knows it
    marked: ClassVar[str | None] = "use_cache"  # the field that holds the sentence on disk; None: none would be refused

    pattern: dict[str, Any] | None
    attention_backend: str
    head_pooling: str | None

    def __post_init__(self, **kwargs: Any) -> None:
        # Names of attention functions may name code on a hub; ours is the only one a sparse model can run.
        for name in ("attn_implementation", "_attn_implementation"):
            if kwargs.get(name) not in (None, IMPLEMENTATION):
                raise ModelError(
                    f"attention {kwargs[name]!r} was asked for; a sparse model runs only {IMPLEMENTATION!r}"
                )
        check_encoder(self)
        check_head_pooling(self.head_pooling)
        unmarked = kwargs.pop(_UNMARKED, None)
        if self.marked and getattr(self, self.marked) == _ONLY_WITH_SPARSEBERT:
            setattr(self, self.marked, False if unmarked is None else unmarked)
        for name in ("auto_map", "family", "model_type"):
            kwargs.pop(name, None)
        super().__post_init__(**kwargs)  # type: ignore[misc]

    @property
    def held(self) -> Pattern | None:
        """The entries of the pattern that the fields describe; None: there is none, or it was not read yet."""
        held: Pattern | None = self.__dict__.get("_held")
        return held if held is not None and self.pattern == pattern_fields(held) else None

    def hold(self, pattern: Pattern | None) -> None:
        """Describe a pattern, and keep it to be saved beside the description."""
        self.pattern = pattern_fields(pattern)
        self.__dict__["_held"] = pattern

    def to_dict(self) -> dict[str, Any]:
        return self._as_marked(super().to_dict())  # type: ignore[misc]

    def to_diff_dict(self) -> dict[str, Any]:
        return self._as_marked(super().to_diff_dict())  # type: ignore[misc]

    def _as_marked(self, written: dict[str, Any]) -> dict[str, Any]:
        written.pop("_held", None)
        if written.get("head_pooling") is None:
            written.pop("head_pooling", None)  # a folder that needs none of it opens in earlier versions too
        if self.family != "bert" and self.marked:
            written.setdefault(_UNMARKED, written.get(self.marked))  # it may be marked by to_dict already
        written |= {} if self.family == "bert" else {"family": self.family}
        written |= {self.marked: _ONLY_WITH_SPARSEBERT} if self.marked else {}
        return {**written, "model_type": ON_DISK, "auto_map": AUTO_MAP}

    @classmethod
    def get_config_dict(cls, *args: Any, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """As transformers', which would warn that a sparse folder is none of this family's."""
        read, rest = super().get_config_dict(*args, **kwargs)  # type: ignore[misc]
        if read.get("model_type") == ON_DISK and read.get("family", "bert") == cls.family:
            read["model_type"] = cls.model_type  # type: ignore[attr-defined]
        return read, rest

    def save_pretrained(self, save_directory: Any, push_to_hub: bool = False, **kwargs: Any) -> None:
        """As transformers', with the pattern beside it: whatever saves a model saves its configuration."""
        if self.marked is None:
            raise ModelError(
                f"{type(self).__name__} takes a sentence in any field, so that without this package a saved model "
                "would come back dense; decorate the family's configuration with huggingface_hub.dataclasses.strict"
            )
        if self.pattern is not None:
            if self.held is None:
                raise ModelError("the configuration describes a pattern that was never read; load it with its model")
            self.held.save(Path(save_directory) / PATTERN_FILE)
        super().save_pretrained(save_directory, push_to_hub, **kwargs)  # type: ignore[misc]

    @classmethod
    def from_family(cls, config: Any, **changes: Any) -> Self:
        """The sparse twin of a family's configuration."""
        given = config.to_dict()
        for name in ("model_type", "architectures", "transformers_version", "_name_or_path", "dtype", cls.marked):
            given.pop(name, None)
        if changes.get("num_labels", config.num_labels) != config.num_labels:
            for name in ("id2label", "label2id"):
                given.pop(name, None)
        return cls(**{**given, **changes})


@strict
class SparseBertConfig(SparseConfig, BertConfig):
    """BertConfig plus `pattern`: what must be known of a pattern before its entries are loaded."""

    model_type = ON_DISK
    family = "bert"

    use_cache: bool | str = False  # type: ignore[assignment]
    # layers if several, heads, length, kept, anchor, rule, digest; None: everyone attends to everyone
    pattern: dict[str, Any] | None = None
    attention_backend: str = "auto"
    head_pooling: str | None = None  # what a head for whole texts reads: mean or cls; None: what the family's does

    # families.config_of, which that module hands over: it makes the classes of all families.
    of_family: ClassVar[Callable[[str], Any]]

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.use_cache = False  # an encoder has none

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Of any family: AutoConfig reads every sparse folder with this class."""
        family = config_dict.get("family", "bert")
        if family != "bert":
            return cls.of_family(str(family)).from_dict(config_dict, **kwargs)
        return super().from_dict(config_dict, **kwargs)

    @classmethod
    def from_bert(cls, config: BertConfig, **changes: Any) -> Self:
        """The sparse twin of a BERT configuration."""
        return cls.from_family(config, **changes)


def sparse_twin(config_class: Any, module: str) -> type[SparseConfig]:
    """The sparse configuration of any family, as if it were written out in a module."""
    marked = next((name for name in _CAN_BE_MARKED if _refuses_mark(config_class, name)), None)
    written: dict[str, Any] = {
        "__module__": module,
        "__doc__": f"{config_class.__name__} plus `pattern`, as SparseBertConfig.",
        "__annotations__": {"pattern": dict[str, Any] | None, "attention_backend": str, "head_pooling": str | None},
        "model_type": config_class.model_type,
        "family": config_class.model_type,
        "marked": marked,
        "pattern": None,
        "attention_backend": "auto",
        "head_pooling": None,
    }
    if marked is not None:
        written["__annotations__"][marked] = Any
        written[marked] = next(one.default for one in fields(config_class) if one.name == marked)
    twin: type[SparseConfig] = strict(type(f"Sparse{config_class.__name__}", (SparseConfig, config_class), written))
    return twin


def _refuses_mark(config_class: Any, name: str) -> bool:
    if name not in setting_names(config_class):
        return False
    try:
        config_class(**{name: _ONLY_WITH_SPARSEBERT})
    except Exception as error:  # whatever kind it is, it has to quote the sentence
        return _ONLY_WITH_SPARSEBERT in str(error)
    return False


def unmarked(written: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as it is on disk, with what the marked field stands for."""
    own = written.get(_UNMARKED)
    return {
        name: own if own is not None and value == _ONLY_WITH_SPARSEBERT else value for name, value in written.items()
    }


def setting_names(config_class: Any) -> set[str]:
    """Fields of a configuration."""
    return {one.name for one in fields(config_class)}


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
