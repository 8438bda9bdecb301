"""What every backend is handed: tensors that were checked once, and the settings that go with them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from sparsebert.errors import AttentionError
from sparsebert.patterns import Anchor, Pattern, full

Relaxation = Literal["multiplicative", "additive", "log"]


@dataclass(frozen=True)
class GateValues:
    """A soft pattern in [0, 1] with a gradient, and how it enters the attention weights."""

    values: Float[Tensor, "gate_heads positions positions"]
    relaxation: Relaxation
    c: float  # of the additive form, Q = -c (1 - P)


@dataclass(frozen=True)
class AttentionArguments:
    """What one layer's attention runs under, whatever its queries, keys and values are."""

    pattern: Pattern | None = None  # None: everyone attends to everyone
    bias: Float[Tensor, "..."] | None = None  # one value per kept entry of the pattern, [kept] or [heads, kept]
    gate: GateValues | None = None


@dataclass(frozen=True)
class Inputs:
    """The arguments of attend(), checked."""

    query: Float[Tensor, "batch heads n d"]
    key: Float[Tensor, "batch heads n d"]
    value: Float[Tensor, "batch heads n d"]
    pattern: Pattern | None
    lengths: Int[Tensor, " examples"] | None  # real tokens an example; None: no padding
    dropout: float
    scale: float
    bias: Float[Tensor, "..."] | None
    gate: GateValues | None
    packed: bool = False  # one row of all examples' tokens, one example after another, each as long as lengths says

    @property
    def heads(self) -> int:
        return self.query.shape[1]

    @property
    def length(self) -> int:
        """Tokens of an example, padding too; of the longest in a packed row."""
        if not self.packed or self.lengths is None:
            return self.query.shape[2]
        return int(self.lengths.max()) if len(self.lengths) else 0

    @property
    def anchored_to_token(self) -> bool:
        return self.pattern is not None and self.pattern.anchor == "token"

    @property
    def keeps_everything(self) -> bool:
        """Whether no entry is excluded but for padding."""
        return self.pattern is None or self.pattern.kept == self.pattern.heads * self.pattern.length**2

    def pattern_or_full(self) -> Pattern:
        """The pattern, or one that keeps everything."""
        return _everything(self.length) if self.pattern is None else self.pattern

    def everything(self, positions: int) -> Pattern:
        """A pattern of one head that keeps everything, anchored as this one is."""
        return _everything(positions, "token" if self.anchored_to_token else "position")

    def drawn_seed(self) -> Int[Tensor, " 1"] | None:
        """What dropout's draws come from, drawn on the CPU: the same torch seed drops the same entries everywhere."""
        return torch.randint(-(2**63), 2**63 - 1, (1,)) if self.dropout > 0 else None

    def padded(self) -> Bool[Tensor, "batch n"] | None:
        """Which tokens are padding; None: none."""
        if self.lengths is None:
            return None
        positions = torch.arange(self.length, device=self.query.device)
        return positions >= self.lengths.to(self.query.device)[:, None]

    def anchored(self, table: Tensor) -> Tensor:
        """Of a [heads, positions, positions] table, what each example uses whose true last token plays the last of the
        positions: [batch, heads, n, n]."""
        batch, device = self.query.shape[0], self.query.device
        tokens = torch.arange(self.length, device=device).expand(batch, -1)
        last = torch.full((batch,), self.length) if self.lengths is None else self.lengths
        is_last = tokens == (last.to(device) - 1).clamp(min=0)[:, None]
        places = torch.where(is_last, table.shape[-1] - 1, tokens)
        return table[:, places[:, :, None], places[:, None, :]].transpose(0, 1)


def checked_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    under: AttentionArguments,
    lengths: Tensor | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    packed: bool = False,
) -> Inputs:
    """The arguments of attend() as every backend wants them; what no backend could give a meaning to is refused."""
    pattern, bias, gate = under.pattern, under.bias, under.gate
    _check_tensors(query=query, key=key, value=value, lengths=lengths, bias=bias, gate=gate and gate.values)
    query, key, value = _cast_by_autocast(query, key, value)
    _check_query(query, key, value)
    if not 0.0 <= dropout < 1.0:
        raise AttentionError(f"dropout is {dropout}; it must be at least 0 and below 1")
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    inputs = Inputs(query, key, value, pattern, lengths, dropout, scale, bias, gate, packed)
    _check_lengths(inputs)
    _check_pattern(inputs)
    _check_gate(inputs)
    return inputs


def bert_layout(query: Tensor) -> Tensor:
    """Room for a result, laid out [batch, n, heads, d], so that joining the heads afterwards costs nothing."""
    batch, heads, length, size = query.shape
    return query.new_empty(batch, length, heads, size).transpose(1, 2)


def is_transformed() -> bool:
    """Whether this runs inside a transform of torch.func (grad, vmap, jvp, ...)."""
    return torch._C._are_functorch_transforms_active()


def is_forward_mode(inputs: Inputs) -> bool:
    """Whether a forward-mode derivative is taken through these inputs."""
    if torch.compiler.is_compiling():
        return False
    tensors = (inputs.query, inputs.key, inputs.value, inputs.bias, inputs.gate and inputs.gate.values)
    return any(
        tensor is not None and unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]
        for tensor in tensors
    )


@lru_cache(maxsize=4)
def _everything(length: int, anchor: Anchor = "position") -> Pattern:
    return full(length).anchored(anchor)


def _check_tensors(**tensors: object) -> None:
    """Tensors all, and all where the query is; lengths may stay on the CPU."""
    place = getattr(tensors["query"], "device", None)
    for name, tensor in tensors.items():
        if tensor is None and name in ("lengths", "bias", "gate"):
            continue
        if not isinstance(tensor, Tensor):
            raise AttentionError(
                f"{name} is a {type(tensor).__name__}; expected a torch tensor, so use torch.as_tensor"
            )
        if tensor.device != place and not (name == "lengths" and tensor.device.type == "cpu"):
            raise AttentionError(f"{name} is on {tensor.device} but query is on {place}; move both to one device")


def _cast_by_autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Under autocast, attention is one of the operations that run in its type, as torch's own attention does."""
    place = tensors[0].device.type
    if place == "meta" or not torch.is_autocast_enabled(place):
        return tensors
    kinds = (torch.float16, torch.bfloat16, torch.float32)
    return tuple(tensor.to(torch.get_autocast_dtype(place)) if tensor.dtype in kinds else tensor for tensor in tensors)


def _check_query(query: Tensor, key: Tensor, value: Tensor) -> None:
    shape = tuple(query.shape)
    if query.ndim != 4 or shape[-1] == 0:
        raise AttentionError(f"query has shape {shape}; expected [batch, heads, n, head size] with a head size above 0")
    for name, tensor in (("key", key), ("value", value)):
        if tensor.shape != query.shape or tensor.dtype != query.dtype:
            raise AttentionError(
                f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)} but query is {query.dtype} of shape "
                f"{shape}; self-attention needs the same of all three"
            )
    if not query.is_floating_point():
        raise AttentionError(f"query is {query.dtype}; expected a floating-point tensor")


def _check_pattern(inputs: Inputs) -> None:
    pattern = inputs.pattern
    if pattern is None:
        if inputs.bias is not None:
            raise AttentionError("bias is given without a pattern; it needs the kept entries of one to belong to")
        return
    if not isinstance(pattern, Pattern):
        raise AttentionError(f"pattern is a {type(pattern).__name__}; expected a sparsebert.Pattern")
    pattern.require_one_layer("attention")
    if inputs.length > pattern.length:
        raise AttentionError(pattern.too_short_for(inputs.length))
    if pattern.heads not in (1, inputs.heads):
        raise AttentionError(
            f"pattern has {pattern.heads} heads but the input has {inputs.heads}; use 1 or {inputs.heads}"
        )
    if inputs.bias is not None and tuple(inputs.bias.shape) not in _bias_shapes(pattern, inputs.heads):
        raise AttentionError(
            f"bias has shape {tuple(inputs.bias.shape)}; expected one value per kept entry, "
            f"{' or '.join(str(list(shape)) for shape in _bias_shapes(pattern, inputs.heads))}"
        )


def _bias_shapes(pattern: Pattern, heads: int) -> list[tuple[int, ...]]:
    shared = (pattern.kept,)
    return [shared, (heads, pattern.kept)] if pattern.heads == 1 else [shared]


def _check_lengths(inputs: Inputs) -> None:
    lengths = inputs.lengths
    if inputs.packed:
        _check_packed(inputs)
        return
    if lengths is None:
        return
    batch, n = inputs.query.shape[0], inputs.length
    if lengths.shape != (batch,) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise AttentionError(
            f"lengths is {lengths.dtype} of shape {tuple(lengths.shape)}; expected {batch} whole numbers, "
            "the count of real tokens of each example"
        )
    # Inside a graph or a transform there are no values to look at; there the backend finds out.
    looking = not (torch.compiler.is_compiling() or is_transformed())
    if looking and batch and not ((lengths >= 0) & (lengths <= n)).all():
        raise AttentionError(f"lengths run from {int(lengths.min())} to {int(lengths.max())}; expected 0 to {n}")


def _check_packed(inputs: Inputs) -> None:
    if torch.compiler.is_compiling():
        raise AttentionError("a graph cannot follow the lengths of a packed row; compile the model for padded rows")
    lengths, (rows, _, n, _) = inputs.lengths, inputs.query.shape
    if lengths is None or lengths.ndim != 1 or lengths.is_floating_point() or lengths.dtype == torch.bool or rows != 1:
        found = "none" if lengths is None else f"{lengths.dtype} of shape {tuple(lengths.shape)}"
        raise AttentionError(
            f"{rows} packed rows were given, and lengths {found}; expected one row of all examples' tokens, and whole "
            "numbers, how many of them belong to each example"
        )
    if int(lengths.sum()) != n or bool((lengths < 0).any()):
        raise AttentionError(
            f"the lengths of a packed row add up to {int(lengths.sum())}; expected numbers from 0, in all its {n}"
        )


def _check_gate(inputs: Inputs) -> None:
    gate = inputs.gate
    if gate is None:
        return
    if gate.relaxation not in get_args(Relaxation):
        raise AttentionError(f"relaxation is {gate.relaxation!r}; expected one of {', '.join(get_args(Relaxation))}")
    if inputs.bias is not None:
        raise AttentionError("both a gate and a bias are given; a gate already is one, so leave one out")
    size, shape = inputs.length, tuple(gate.values.shape)
    if len(shape) != 3 or shape[0] not in (1, inputs.heads) or shape[1] != shape[2] or shape[1] < size:
        raise AttentionError(f"gate has shape {shape}; expected [1 or {inputs.heads}, n, n] with n at least {size}")
    if inputs.pattern is not None and inputs.anchored_to_token and shape[1] != inputs.pattern.length:
        raise AttentionError(
            f"gate covers {shape[1]} positions and its token-anchored pattern {inputs.pattern.length}; use one length"
        )
