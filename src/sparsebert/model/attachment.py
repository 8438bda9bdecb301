"""attach(): let every layer of a model run under a gate while the gate is learned."""

import contextlib
from collections.abc import Iterator
from typing import Any

from sparsebert.errors import GateError
from sparsebert.gates import Gate
from sparsebert.model import bert
from sparsebert.model.conversion import install
from sparsebert.model.interface import Plan
from sparsebert.patterns import Pattern

_HOOK = "_gate_hook"


def attach(model: Any, gate: Gate) -> Any:
    """From now on the model's attention runs under the gate; returns the model.

    Every forward in training mode draws a sample of its own, unless gate.resample() was called just before it; in
    evaluation mode the gate runs without noise. The gate stays a module of its own: give its parameter_groups() to
    the optimiser beside the model's parameters. A model of another encoder class is adapted as by sparsify().
    """
    heads = model.config.num_attention_heads
    if gate.heads not in (1, heads):
        raise GateError(f"the gate has {gate.heads} heads but the model has {heads}; make a gate of {heads} heads")
    plan = plan_of(model) or install(model)
    detach(model)
    plan.gate = gate

    def before_forward(module: Any, _: Any) -> None:
        gate.before_forward(module.training)

    setattr(model.base_model, _HOOK, model.base_model.register_forward_pre_hook(before_forward))
    return model


def detach(model: Any) -> Any:
    """Back to the model's own pattern; what the gate learned stays in the gate."""
    plan = plan_of(model)
    hook = model.base_model.__dict__.pop(_HOOK, None)
    if hook is not None:
        hook.remove()
    if plan is not None:
        plan.gate = None
    return model


@contextlib.contextmanager
def running(model: Any, pattern: Pattern | None) -> Iterator[None]:
    """For the length of a `with` block, run under this pattern instead of a gate or the model's own pattern."""
    plan = plan_of(model)
    if plan is None:
        raise GateError(f"{type(model).__name__} has no pattern to put another in place of; call sparsify first")
    before = plan.pattern, plan.gate
    plan.pattern, plan.gate = pattern, None
    try:
        yield
    finally:
        plan.pattern, plan.gate = before


def plan_of(model: Any) -> Plan | None:
    """What the attention modules of a model share; None where it runs attention of its own."""
    if isinstance(model, bert.Sparse):
        _ = model.pattern  # read from the loaded buffers at first use
        return model._plan
    plan: Plan | None = getattr(model, "_sparse_plan", None)
    return plan
