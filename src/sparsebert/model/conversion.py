"""sparsify() and unsparsify(): give any encoder of transformers a pattern, prove that it takes it, and take it back."""

from typing import Any

from sparsebert.errors import ModelError
from sparsebert.layers import Int8Linear
from sparsebert.model.families import sparse_class
from sparsebert.model.plan import (
    IMPLEMENTATION,
    Plan,
    check_backend,
    check_no_gate,
    check_pattern,
    give_plan,
    plan_of,
    take_plan,
)
from sparsebert.model.probe import PROBE_TOKENS, check_family, probe, require_same
from sparsebert.model.sentence_models import encoder_of, fit_length
from sparsebert.model.sparse import become_dense, become_sparse, start
from sparsebert.patterns import Pattern, full


def sparsify(model: Any, pattern: Pattern, *, backend: str = "auto") -> Any:
    """Run every layer of the model under the pattern, in place; returns the model. One that is refused stays as it was.

    Before it does, a few tokens are run through the model's own attention and through ours with a full pattern: a
    model whose attention does more than ours knows of (relative positions, say) is refused rather than run wrong.
    The model becomes the sparse class of its own (a RobertaModel a SparseRobertaModel, which is one): it has `pattern`
    and `set_pattern`, and what it saves comes back as sparse as it is. Of a SentenceTransformer it is the encoder
    inside, and max_seq_length says what that takes.
    """
    encoder = encoder_of(model)
    check_family(encoder)
    check_pattern(encoder, pattern)
    check_backend(backend)
    plan = plan_of(encoder)
    check_no_gate(plan)
    plan = plan or install(encoder)
    plan.owner.set_pattern(pattern)
    plan.backend = backend
    fit_length(model)
    return model


def unsparsify(model: Any) -> Any:
    """Back to dense, in place; returns the model. A model that sparsify() changed gets its class and attention back."""
    plan = plan_of(encoder_of(model))
    if plan is not None:
        plan.gate = None
        if plan.replaced is None:
            plan.owner.set_pattern(None)
        else:
            uninstall(plan)
    fit_length(model)
    return model


def install(model: Any) -> Plan:
    """Swap the attention and check that nothing else changed; a model it cannot be swapped in is refused as it was."""
    check_family(model)
    if any(isinstance(module, Int8Linear) for module in model.modules()):
        raise ModelError(f"this {type(model).__name__} is int8 already; make it sparse first, then quantise it")
    plan = Plan(full(PROBE_TOKENS), backend="reference", replaced=model.config._attn_implementation)
    try:
        before = probe(model)
        if give_plan(model, plan) == 0:
            raise ModelError("no attention module was found")
        model.set_attn_implementation(IMPLEMENTATION)
        require_same(before, probe(model))
        twin = sparse_class(type(model), type(model.config))
    except (ModelError, RuntimeError, TypeError, KeyError, ValueError, IndexError) as error:
        take_plan(model)
        model.set_attn_implementation(plan.replaced)
        raise ModelError(f"{type(model).__name__} cannot be made sparse: {error}") from error
    plan.pattern, plan.backend = None, "auto"
    become_sparse(model, twin)
    start(model)
    return plan


def uninstall(plan: Plan) -> None:
    """Undo install()."""
    model = plan.owner
    become_dense(model)
    take_plan(model)
    model.set_attn_implementation(plan.replaced)
