"""A model as a graph of torch operators that takes any number of rows of any length up to one."""

import contextlib
import inspect
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from sparsebert.errors import ModelError
from sparsebert.layers import Int8Linear
from sparsebert.model.head_pooling import pooled
from sparsebert.model.heads import segments
from sparsebert.model.plan import Plan, plan_of
from sparsebert.model.pooling import Pooling
from sparsebert.model.positions import positions_of
from sparsebert.patterns import Pattern

_ROWS, _TOKENS = 2, 4  # of the input that a graph is traced with
_MOST_ROWS = 2**16
EMBEDDING = "sentence_embedding"


@dataclass(frozen=True)
class Embedded:
    """How a model's states become one embedding."""

    pooling: Pooling
    is_normalised: bool


@dataclass(frozen=True)
class TracedModel:
    """A traced model, and what its inputs and outputs are called."""

    program: torch.export.ExportedProgram
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    length: int  # tokens that it takes at most
    pattern: Pattern | None


def traced(model: Any, length: int | None, embedded: Embedded | None, *, plain: bool) -> TracedModel:
    """The graph of a model that was made for inference. plain: of torch's own operators alone, which any runtime has.

    length: None is that of the pattern, or all positions that the model has.
    """
    plan = _checked(model)
    length, pattern = _reach(model, plan, length)
    inputs = _example(model, min(length, _TOKENS), embedded)
    shape = {0: torch.export.Dim("batch", min=1, max=_MOST_ROWS), 1: torch.export.Dim("length", min=2, max=length)}
    with quiet(), torch.no_grad(), _running(plan, pattern, plain), _in_evaluation(model):
        module = _Positional(model, embedded, tuple(inputs))
        names = module.output_names(*inputs.values())
        program = torch.export.export(module, tuple(inputs.values()), dynamic_shapes=((shape,) * len(inputs),))
        if plain:
            program = program.run_decompositions({torch.ops.sparsebert.real_tokens.default: _real_tokens})
    return TracedModel(program, tuple(inputs), names, length, pattern)


class _Positional(nn.Module):
    """Tensors in, tensors out, each by its place."""

    def __init__(self, model: Any, embedded: Embedded | None, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.embedded, self.inputs = model, embedded, inputs

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        return tuple(self._named(*given).values())

    def output_names(self, *given: Tensor) -> tuple[str, ...]:
        return tuple(self._named(*given))

    def _named(self, *given: Tensor) -> dict[str, Tensor]:
        inputs = dict(zip(self.inputs, given, strict=True))
        found = self.model(**inputs)
        if self.embedded is None:
            return {name: tensor for name, tensor in found.items() if isinstance(tensor, Tensor)}
        states = found["last_hidden_state"]
        embedding = pooled(states, inputs["attention_mask"].to(states), self.embedded.pooling)
        if self.embedded.is_normalised:
            embedding = torch.nn.functional.normalize(embedding, dim=-1)
        return {"last_hidden_state": states, EMBEDDING: embedding}


def _checked(model: Any) -> Plan:
    plan = plan_of(model)
    if plan is None or plan.gate is not None:
        what = "runs attention of its own" if plan is None else "is learning a gate"
        raise ModelError(f"this {type(model).__name__} {what}; give it a pattern with sparsify(model, pattern) first")
    if any(isinstance(module, Int8Linear) for module in model.modules()):
        raise ModelError("this model has int8 layers, which only this package runs; export it before quantize(model)")
    if plan.pattern is None and any(plan.reaches):
        raise ModelError(
            "this model has no pattern, and layers that look only so far; give it one, such as "
            "patterns.window(length, radius) of the farthest"
        )
    return plan


def _reach(model: Any, plan: Plan, length: int | None) -> tuple[int, Pattern | None]:
    pattern, positions = plan.pattern, positions_of(model)
    if length is None:
        length = positions if pattern is None else min(positions, pattern.length)
    if not 2 <= length <= positions:
        raise ModelError(f"length is {length}; this model takes 2 to {positions} tokens, so choose one of these")
    return length, pattern.at(length) if pattern is not None and length > pattern.length else pattern


def _example(model: Any, tokens: int, embedded: Embedded | None) -> dict[str, Int[Tensor, "rows n"]]:
    """Inputs as they are called in the graph, with some padding."""
    ids = torch.ones(_ROWS, tokens, dtype=torch.long)
    real = torch.ones_like(ids)
    real[1, tokens - 1 :] = 0
    # Embeddings are made of one text; a head may be asked for two.
    told_apart = segments(model, torch.zeros_like(ids)) if embedded is None else {}
    takes = inspect.signature(model.forward).parameters
    return {"input_ids": ids, "attention_mask": real, **{name: at for name, at in told_apart.items() if name in takes}}


@contextlib.contextmanager
def _running(plan: Plan, pattern: Pattern | None, plain: bool) -> Iterator[None]:
    before = plan.pattern, plan.backend
    plan.pattern, plan.backend = pattern, "gather" if plain else plan.backend
    try:
        yield
    finally:
        plan.pattern, plan.backend = before


@contextlib.contextmanager
def _in_evaluation(model: Any) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _real_tokens(real: Bool[Tensor, "rows n"]) -> Int[Tensor, " rows"]:
    """As the operator of that name. A plain graph cannot raise, but it can ask for what is not there: where padding is
    not on the right, the second of one zero."""
    lengths = real.sum(-1)
    is_run = (real == (torch.arange(real.shape[1], device=real.device) < lengths[:, None])).all()
    return lengths + torch.zeros_like(lengths[:1]).index_select(0, (~is_run).long().view(1))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch warns of its own insides, and of torchvision, which nobody needs here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
