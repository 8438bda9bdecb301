"""attach(): let every layer of a model run under a gate while the gate is learned."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from sparsebert.errors import GateError
from sparsebert.gates import Gate
from sparsebert.model.conversion import install, uninstall
from sparsebert.model.plan import Plan, check_layers, plan_of
from sparsebert.model.probe import check_family
from sparsebert.model.sentence_models import encoder_of, fit_length
from sparsebert.patterns import Pattern

logger = logging.getLogger(__name__)


def attach(model: Any, gate: Gate, *, inside: bool | None = None) -> Any:
    """From now on the model's attention runs under the gate; returns the model.

    Every forward in training mode draws a sample of its own, unless gate.resample() was called just before it; in
    evaluation mode the gate runs without noise. The gate stays a module of its own: give its parameter_groups() to
    the optimiser beside the model's parameters. A model of another encoder class is adapted as by sparsify().

    inside: asked for where the model already has a pattern. True: the gate is learned inside it; entries outside
    count neither in the penalty nor in the frozen pattern. False: the gate is learned in place of it, on all entries;
    detach() brings the pattern back.
    """
    if not isinstance(gate, Gate):
        raise GateError(f"gate is a {type(gate).__name__}; expected one of sparsebert.gates, such as gates.Structured")
    encoder = encoder_of(model)
    check_family(encoder)
    heads = encoder.config.num_attention_heads
    if gate.heads not in (1, heads):
        raise GateError(f"the gate has {gate.heads} heads but the model has {heads}; make a gate of {heads} heads")
    if gate.layers > 1:
        check_layers(encoder, gate.layers, "the gate")
    plan = _plan(model)
    own = None if plan is None or plan.pattern is None or plan.pattern.sparsity == 0 else plan.pattern
    if own is not None and inside is None:
        raise GateError(
            f"the model already has a pattern ({own.sparsity:.1%} sparse); say what is meant: attach(model, gate, "
            "inside=True) learns inside it, attach(model, gate, inside=False) in place of it"
        )
    if own is not None and inside:
        own.require_one_layer("a gate that is learned inside a pattern")
    if own is not None and not inside:
        logger.info("the model's own pattern (%.1f%% sparse) rests: a gate is learned in its place", 100 * own.sparsity)
    plan = plan or install(encoder)
    gate.restrict(own if inside else None)
    plan.gate, plan.inside = gate, own is not None and bool(inside)
    fit_length(model)
    return model


def detach(model: Any) -> Any:
    """Back to the model's own pattern, or its own attention; what the gate learned stays in the gate."""
    plan = _plan(model)
    if plan is not None:
        plan.gate = None
        if plan.pattern is None and plan.replaced is not None:
            uninstall(plan)
    fit_length(model)
    return model


@contextlib.contextmanager
def running(model: Any, pattern: Pattern | None) -> Iterator[None]:
    """For the length of a `with` block, run under this pattern instead of a gate or the model's own pattern."""
    plan = _plan(model)
    if plan is None:
        raise GateError(f"{type(model).__name__} has no pattern to put another in place of; call sparsify first")
    before = plan.pattern, plan.gate
    plan.pattern, plan.gate = pattern, None
    try:
        yield
    finally:
        plan.pattern, plan.gate = before


def _plan(model: Any) -> Plan | None:
    plan = plan_of(encoder_of(model))
    if plan is not None:
        _ = plan.owner.pattern  # refuses one that was never loaded
    return plan
