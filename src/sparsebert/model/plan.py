"""What the attention modules of one model share, how they get it, and what keeps a model from losing it unnoticed."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from torch import nn

from sparsebert.attention import BACKENDS, AttentionArguments
from sparsebert.errors import ModelError
from sparsebert.gates import Gate
from sparsebert.model.long_inputs import reaching
from sparsebert.model.positions import guard_positions
from sparsebert.patterns import Pattern, window

IMPLEMENTATION = "sparsebert"
_PLAN, _LAYER = "sparse_plan", "sparse_layer"  # attributes of attention modules


@dataclass
class Plan:
    """Change it and every layer changes."""

    pattern: Pattern | None = None  # None: everyone attends to everyone
    backend: str = "auto"
    gate: Gate | None = None  # a pattern being learned, which every layer asks for its sample
    inside: bool = False  # the gate is learned inside the pattern; else in place of it
    replaced: str | None = None  # the attention that ran before sparsify(); None: of a class that is sparse by itself
    is_read: bool = True  # False: the configuration describes a pattern whose entries are not here yet
    twin: Any = None  # the sparse class that sparsify() made of the model's own
    owner: Any = field(default=None, repr=False)  # the model itself, however it is wrapped since
    hooks: list[Any] = field(default_factory=list, repr=False)
    reaches: tuple[int | None, ...] = ()  # how far each layer looks by itself; None: everywhere

    @property
    def is_dense(self) -> bool:
        return self.is_read and self.pattern is None and self.gate is None

    def in_use(self, layer: int = 0, length: int = 0) -> Pattern | None:
        """The pattern that attention of a layer runs under at an input length, alone or around the gate."""
        if self.pattern is None or (self.gate is not None and not self.inside):
            return None
        return (self.pattern if self.gate is not None else reaching(self.pattern, length)).layer(layer)

    def arguments(self, module: nn.Module, reach: int | None, length: int) -> AttentionArguments:
        """What an attention module runs under at an input length."""
        layer: int = getattr(module, _LAYER)
        pattern = self._in_use_within(reach, length, layer)
        return AttentionArguments(pattern) if self.gate is None else self.gate.attention_arguments(pattern, layer)

    def _in_use_within(self, reach: int | None, length: int, layer: int) -> Pattern | None:
        """The pattern for a layer that looks only so far and keeps doing so, under a pattern and under a gate."""
        pattern, gate = self.in_use(layer, length), self.gate
        if reach is None:
            return pattern
        if "token" in (pattern and pattern.anchor, gate and gate.anchor):
            raise ModelError(
                f"this model has layers that look {reach - 1} tokens far, counted from each token, which "
                "anchor='token' cannot keep to; use anchor='position'"
            )
        owner = pattern or gate  # it knows its length, while that of an input is anything inside a graph
        return _within(pattern, length if owner is None else owner.length, reach - 1)

    def draw(self, training: bool) -> None:
        """Make the gate's sample for the forward that follows. Layers find it made: a layer that made it would make
        it part of its own graph, which a checkpoint throws away and builds again."""
        if self.gate is None:
            return
        self.gate.before_forward(training)
        for layer, reach in enumerate(self.reaches):
            self.gate.attention_arguments(self._in_use_within(reach, self.gate.length, layer), layer)


def pattern_of(model: Any) -> Pattern | None:
    """Who may attend to whom in an encoder; None: everyone."""
    plan = plan_of(model)
    pattern: Pattern | None = None if plan is None else plan.owner.pattern
    return pattern


def give_plan(model: nn.Module, plan: Plan) -> int:
    """Hand the plan to the model, its encoder and its attention modules; how many of these there were."""
    base: Any = model.base_model
    plan.owner = model
    modules = [module for module in model.modules() if _is_attention(module)]
    plan.reaches = _number_layers(modules)
    plan.hooks.append(base.register_forward_pre_hook(_before_forward))
    plan.hooks += guard_positions(base)
    for module in dict.fromkeys((model, base, *modules)):
        setattr(module, _PLAN, plan)
        if hasattr(module, "config"):
            plan.hooks.append(module.register_forward_pre_hook(_require_plan_is_run))
    return len(modules)


def take_plan(model: nn.Module) -> None:
    """Undo give_plan."""
    for module in model.modules():
        plan = module.__dict__.pop(_PLAN, None)
        module.__dict__.pop(_LAYER, None)
        while plan is not None and plan.hooks:
            plan.hooks.pop().remove()


def plan_of(module: Any) -> Plan | None:
    """The plan of a model, or of one of its attention modules; None where it runs attention of its own."""
    plan: Plan | None = getattr(getattr(module, "base_model", module), _PLAN, None)
    return plan


def check_attention(plan: Plan, name: Any) -> None:
    """Refuse attention that would ignore the plan."""
    if name != IMPLEMENTATION and not plan.is_dense:
        what = "a gate is being learned in it" if plan.gate is not None else "it has a pattern"
        raise ModelError(
            f"attention {name!r} would run this model dense, but {what}; leave it at {IMPLEMENTATION!r}, "
            "or call unsparsify(model) for a dense model"
        )


def check_encoder(config: Any) -> None:
    """Refuse a decoder: it would run without its causal order."""
    if getattr(config, "is_decoder", False) or getattr(config, "is_encoder_decoder", False):
        raise ModelError("the configuration asks for a decoder; a pattern of this kind needs an encoder")


def check_no_gate(plan: Plan | None) -> None:
    """Refuse another pattern under the hands of a gate."""
    if plan is not None and plan.gate is not None:
        raise ModelError("a gate is being learned in this model; call detach(model) before you give it a pattern")


def check_pattern(model: Any, pattern: Any) -> None:
    """Refuse what cannot be a pattern of this model."""
    if not isinstance(pattern, Pattern):
        raise ModelError(
            f"pattern is {pattern!r}; expected a sparsebert.Pattern such as patterns.star(128), "
            "or unsparsify(model) for a dense model"
        )
    heads = model.config.num_attention_heads
    if pattern.heads not in (1, heads):
        raise ModelError(
            f"pattern has {pattern.heads} heads but the model has {heads}; use a pattern of 1 or {heads} heads"
        )
    if pattern.layers > 1:
        check_layers(model, pattern.layers, "pattern")


def check_layers(model: Any, layers: int, what: str) -> None:
    """Refuse a pattern or a gate with layers where they are not the model's."""
    found = sum(map(_attends_itself, model.base_model.modules()))
    expected = getattr(model.config, "num_hidden_layers", found)
    if found != expected:
        raise ModelError(
            f"{what} has {layers} layers, but the {expected} layers of {type(model).__name__} share {found} attention "
            "modules (as ALBERT's do) and cannot be told apart; use 1 layer"
        )
    if layers != expected:
        raise ModelError(f"{what} has {layers} layers but the model has {expected}; use 1 or {expected}")


def check_backend(name: str) -> None:
    if name not in ("auto", *BACKENDS):
        raise ModelError(f"there is no backend {name!r}; expected one of auto, {', '.join(BACKENDS)}")


def _is_attention(module: nn.Module) -> bool:
    return type(module).__name__.endswith("Attention")


def _number_layers(modules: list[nn.Module]) -> tuple[int | None, ...]:
    """Tell each attention module which layer it belongs to; how far each layer looks by itself.

    Not every family numbers its layers (DistilBERT and NomicBert do not), but all of them build one after the other.
    """
    reaches: list[int | None] = []
    for module in modules:
        setattr(module, _LAYER, len(reaches))
        if _attends_itself(module):
            reaches.append(getattr(module, "sliding_window", None))
    return tuple(reaches)


def _attends_itself(module: nn.Module) -> bool:
    """Whether it is attention that does not only hold the one that attends."""
    return _is_attention(module) and sum(map(_is_attention, module.modules())) == 1


def _require_plan_is_run(module: Any, _: Any) -> None:
    plan = plan_of(module)
    if plan is not None:
        check_attention(plan, module.config._attn_implementation)
        check_encoder(module.config)


def _before_forward(base: Any, _: Any) -> None:
    plan = plan_of(base)
    if plan is not None:
        plan.draw(base.training)


@lru_cache(maxsize=64)  # more than an encoder has layers, each with a pattern of its own
def _within(pattern: Pattern | None, length: int, radius: int) -> Pattern:
    reach = window(length, radius=radius)
    return reach if pattern is None else pattern & reach
