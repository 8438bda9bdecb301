"""What every sparse model shares, whatever its family: a pattern that it runs under, saves and loads.

The weights are the family's own. The pattern is a sealed file beside them, named by its digest in the configuration,
which holds the entries in memory; so whatever saves the configuration saves the pattern.
"""

from pathlib import Path
from typing import Any, Self

from safetensors import SafetensorError
from torch import nn
from transformers.utils.output_capturing import _CAN_RECORD_REGISTRY

from sparsebert.errors import ModelError
from sparsebert.model.config import SparseConfig
from sparsebert.model.folder_checks import check_folder, check_loaded, check_size, refuse_other_weights
from sparsebert.model.head_pooling import install_head_pooling
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
from sparsebert.model.probe import check_family, probe, require_same
from sparsebert.model.saved_pattern import OF_EARLIER_FOLDERS, pattern_among_weights, read_pattern
from sparsebert.model.sentence_folder import require_this_package
from sparsebert.model.sentence_models import show_patterns
from sparsebert.patterns import Pattern


class Sparse:
    """Stands before the family's class among the bases."""

    config: Any
    config_class: Any
    base_model: nn.Module
    # Earlier versions saved the pattern among the weights.
    _keys_to_ignore_on_load_unexpected = (rf"({'|'.join(OF_EARLIER_FOLDERS)})$",)

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        config._attn_implementation = IMPLEMENTATION
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]
        check_backend(config.attention_backend)
        is_read = config.pattern is None or config.held is not None
        give_plan(self, Plan(config.held, config.attention_backend, is_read=is_read))  # type: ignore[arg-type]
        start(self)
        install_head_pooling(self)

    @property
    def pattern(self) -> Pattern | None:
        """Who may attend to whom; None: everyone."""
        return _read_plan(self).pattern

    def set_pattern(self, pattern: Pattern | None) -> Self:
        """Run, and save, under this pattern from now on."""
        plan = _plan(self)
        check_no_gate(plan)
        if pattern is not None:
            check_pattern(self, pattern)
        self.config.hold(pattern)
        plan.pattern, plan.is_read = pattern, True
        return self

    def set_attn_implementation(self, attn_implementation: Any, *args: Any, **kwargs: Any) -> None:
        """As transformers', except that attention which would ignore a pattern or a gate is refused."""
        check_attention(_plan(self), attn_implementation)
        super().set_attn_implementation(attn_implementation, *args, **kwargs)  # type: ignore[misc]

    @classmethod
    def is_custom_code(cls) -> bool:
        """Whether it is none of transformers' own, for which alone tensors are renamed on the way to and from disk."""
        return cls.config_class.family == "bert" or bool(dense_class(cls, Sparse).is_custom_code())

    @classmethod
    def from_pretrained(cls, source: Any, *args: Any, **kwargs: Any) -> Any:
        """As transformers', except that tensors which are missing, extra or of another shape raise by name."""
        check_family(cls)
        folder = Path(source) / kwargs.get("subfolder", "")
        if folder.is_dir():
            elements = check_folder(folder)
            if "config" in kwargs:
                check_size(folder, cls, kwargs["config"], elements)
        asked = kwargs.get("attn_implementation")
        if asked not in (None, IMPLEMENTATION):
            raise ModelError(f"attention {asked!r} was asked for; a sparse model runs only {IMPLEMENTATION!r}")
        wants_info = kwargs.pop("output_loading_info", False)
        kwargs |= {"use_safetensors": True, "trust_remote_code": False}
        try:
            loading = super().from_pretrained  # type: ignore[misc]
            model, info = loading(source, *args, output_loading_info=True, **kwargs)
        except (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, SafetensorError) as error:
            raise ModelError(f"{source} cannot be loaded as {cls.__name__}: {error}") from error
        check_loaded(source, model, info)
        _align(model)
        plan = _plan(model)
        if not plan.is_read:
            model.set_pattern(read_pattern(source, model.config.pattern, kwargs))
        _prove(model, plan)
        return (model, info) if wants_info else model

    def save_pretrained(self, folder: str | Path, **kwargs: Any) -> None:
        refuse_other_weights(Path(folder), beside="model.safetensors")
        plan = _read_plan(self)
        if plan.replaced is None or plan.pattern is not None:
            super().save_pretrained(folder, **kwargs)  # type: ignore[misc]
            require_this_package(Path(folder))
            return
        become_dense(self)  # only a gate is attached, which is saved apart
        try:
            type(self).save_pretrained(self, folder, **kwargs)
        finally:
            become_sparse(self, plan.twin)


def start(model: Any) -> None:
    """What a model does once it has a plan."""
    plan = _plan(model)
    show_patterns()
    # A hook rather than a forward of our own: transformers' Trainer reads the arguments of forward by name.
    plan.hooks.append(model.base_model.register_forward_pre_hook(_require_read))
    plan.hooks.append(model.base_model.register_load_state_dict_pre_hook(_take_pattern))


def become_sparse(model: Any, twin: type[Any]) -> None:
    """The sparse class of its family, in place; its configuration too, which all its modules share."""
    plan = _plan(model)
    plan.twin, model.__class__ = twin, twin
    # transformers notes by class, when a model is built, which states it can be asked for; this one was built before.
    _CAN_RECORD_REGISTRY[str(twin)] = twin._can_record_outputs
    config = model.config
    config.__class__ = twin.config_class
    config.attention_backend, config.head_pooling = "auto", None
    config.hold(None)


def become_dense(model: Any) -> None:
    """Undo become_sparse."""
    config = model.config
    for name in ("pattern", "attention_backend", "head_pooling", "_held"):
        config.__dict__.pop(name, None)
    model.__class__, config.__class__ = dense_class(type(model), Sparse), dense_class(type(config), SparseConfig)
    if config.architectures:
        config.architectures = [name.removeprefix("Sparse") for name in config.architectures]


def dense_class(twin: type[Any], mixin: type[Any]) -> type[Any]:
    """The class of its family that a sparse class comes from."""
    return next(base for base in twin.__mro__ if not issubclass(base, mixin))


def _plan(model: Any) -> Plan:
    plan = plan_of(model)
    if plan is None:
        raise ModelError(f"{type(model).__name__} has lost what it runs under; load it again")
    return plan


def _read_plan(model: Any) -> Plan:
    plan = _plan(model)
    if not plan.is_read:
        raise ModelError(
            "the configuration describes a pattern whose entries were not loaded; load the model with from_pretrained, "
            "or give it the pattern with set_pattern(...)"
        )
    return plan


def _require_read(base: Any, _: Any) -> None:
    _read_plan(base)


def _take_pattern(base: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Weights that an earlier version saved bring the pattern they were trained under: it must be the one in use."""
    plan = _plan(base)
    starts, keys = (state.pop(f"{prefix}{name}", None) for name in OF_EARLIER_FOLDERS)
    if starts is None or keys is None:
        return
    pattern = pattern_among_weights(starts, keys, base.config.pattern or {})
    if not plan.is_read:
        plan.owner.set_pattern(pattern)


def _align(model: nn.Module) -> None:
    """Weights at addresses as torch itself chooses them. Those of a mapped file lie anywhere, and on some processors a
    matrix product rounds differently there: the model would not compute what it computed when it was saved."""
    for parameter in model.parameters():
        if parameter.data_ptr() % 64:
            parameter.data = parameter.data.clone()


def _prove(model: Any, plan: Plan) -> None:
    """Hold our attention against the family's own, once a model is loaded; BERT's was held against it by tests.

    A model of which a part stays on disk (device_map) was held against it before it was saved.
    """
    if model.config.family == "bert" or any(parameter.device.type == "meta" for parameter in model.parameters()):
        return
    before = plan.pattern, plan.backend
    plan.pattern, plan.backend = None, "reference"
    own = "sdpa" if model._supports_sdpa else "eager"
    try:
        model.set_attn_implementation(own)
        states = probe(model)
        model.set_attn_implementation(IMPLEMENTATION)
        require_same(states, probe(model))
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError, IndexError) as error:
        raise ModelError(f"{type(model).__name__} cannot be made sparse: {error}") from error
    finally:
        plan.pattern, plan.backend = before
