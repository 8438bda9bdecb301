"""All layers of a BERT-like encoder in int8 as one call of the kernel, where they run under a pattern.

hidden -> [query, key, value -> attention -> + residual, norm -> GELU -> + residual, norm] x layers

At short inputs Python took a quarter of the time. What is computed are the same calls that the layers make one by one,
to the same bits; whatever asks for more than the last states (hidden states, weights, hooks, a gate, a graph) is left
to them.
"""

import os
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from transformers.utils import output_capturing

from sparsebert.attention import choose
from sparsebert.attention.inputs import is_transformed
from sparsebert.attention.sparse import prepared_attention
from sparsebert.attention.sparse_library import ISA_VARIABLE, Call
from sparsebert.layers import Int8Linear
from sparsebert.layers.int8_kernel import Codes, LinearResult, matrix, prepared, room
from sparsebert.layers.int8_library import LinearCall
from sparsebert.layers.int8_steps import Steps
from sparsebert.model.interface import attention_inputs, shares_of
from sparsebert.model.plan import IMPLEMENTATION, plan_of
from sparsebert.model.quantised_layers import attention_dtype, fused_activation, norm_of

_KEPT_ROWS = 4096  # of all shapes whose steps are kept, at some 27 times their width in bytes
# What a forward may be told without asking for more than the last states.
_HARMLESS = {"position_ids", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"}


class BertLikeEncoder:
    """Stands in for the forward of a list of BERT-like layers."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        modules = list(encoder.layer.modules())
        self.attention = [layer.attention.self for layer in encoder.layer]
        self.hooks = [hooks for module in modules for hooks in (module._forward_hooks, module._forward_pre_hooks)]
        self.known_hooks = self._watchers()
        self.tensors = [(held, name) for module in modules for held in _held(module) for name in held]
        self.is_fused = None not in map(fused_activation, encoder.layer)
        self.ready: dict[tuple[int, ...], _ShapeSteps] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ready": {}}  # addresses are of no use to a copy

    def __call__(self, hidden_states: Tensor, attention_mask: Tensor | None = None, *more: Any, **settings: Any) -> Any:
        steps = None
        if not more and self._is_plain(hidden_states, settings):
            steps = self._steps(hidden_states, attention_mask, settings.get("cu_seq_lens_q"))
        if steps is None:
            return type(self.encoder).forward(self.encoder, hidden_states, attention_mask, *more, **settings)
        states: Any = steps.run(hidden_states)
        if steps.key is not None:
            self._keep(steps.key, steps)
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=states)

    def _is_plain(self, hidden: Tensor, settings: dict[str, Any]) -> bool:
        """Whether this is inference as such, and nothing but the last states is asked for."""
        plan = plan_of(self.attention[0])
        if plan is None or plan.gate is not None or not plan.is_read or not self.is_fused:
            return False
        if plan.pattern is None and plan.backend == "auto":
            return False
        config = self.encoder.config
        if config._attn_implementation != IMPLEMENTATION or config.is_decoder or config.is_encoder_decoder:
            return False
        if any(module.training for module in self.attention) or self._watchers() != self.known_hooks:
            return False
        if output_capturing._active_collector.get():
            return False
        asked = (value for name, value in settings.items() if name not in _HARMLESS)
        if any(value is not None and value is not False for value in asked):
            return False
        return _is_eager(hidden) and hidden.dtype is torch.float32 and hidden.device.type == "cpu"

    def _watchers(self) -> int:
        """Hooks on modules of the layers, but for those by which transformers collects hidden states: once asked for,
        they stay, and do nothing until they are asked again."""
        named = (getattr(hook, "__module__", None) for hooks in self.hooks for hook in hooks.values())
        return sum(name != output_capturing.__name__ for name in named)

    def _steps(self, hidden: Tensor, padding: Tensor | None, bounds: Tensor | None) -> "_ShapeSteps | None":
        """Prepared before for this shape, and not in use by another thread; else prepared now, if they can be."""
        batch, n, _ = hidden.shape
        plain = padding is None and bounds is None and batch * n <= _KEPT_ROWS
        key = (batch, n, torch.get_num_threads()) if plain else None
        state = self._state()
        found = None if key is None else self.ready.pop(key, None)
        if found is not None and found.state == state:
            return found
        return _ShapeSteps.of(self.encoder, self.attention, hidden, padding, bounds, key, state)

    def _keep(self, key: tuple[int, ...], steps: "_ShapeSteps") -> None:
        """For the next input of this shape; the shapes that were seen longest ago make room.

        Other threads take steps out meanwhile: what is taken out is in use, so nothing is ever put back but one's own.
        """
        self.ready[key] = steps
        shapes = list(self.ready)
        rows = sum(batch * n for batch, n, _ in shapes)
        for batch, n, threads in shapes:
            if rows <= _KEPT_ROWS:
                break
            self.ready.pop((batch, n, threads), None)
            rows -= batch * n

    def _state(self) -> "_State":
        plan: Any = plan_of(self.attention[0])
        addresses = [held[name].data_ptr() for held, name in self.tensors]
        return _State(plan.pattern, plan.backend, os.environ.get(ISA_VARIABLE), addresses)


class _State(NamedTuple):
    """What steps were prepared for; other steps are needed when it changes."""

    pattern: Any
    backend: str
    isa: str | None
    addresses: list[int]  # of all weights


class _ShapeSteps(NamedTuple):
    """Steps for hidden states of one shape."""

    steps: Steps
    key: tuple[int, ...] | None  # None: not to be kept
    state: _State

    @classmethod
    def of(
        cls,
        encoder: Any,
        attention: list[Any],
        hidden: Tensor,
        padding: Tensor | None,
        bounds: Tensor | None,
        key: tuple[int, ...] | None,
        state: _State,
    ) -> "_ShapeSteps | None":
        """None where attention of a layer is not one call of the kernel."""
        batch, n, width = hidden.shape
        memory = _Memory(batch * n)
        shares = None if bounds is None else shares_of(bounds, padding, {})
        nothing = room(0, 0, values=False)
        result = LinearResult(hidden.reshape(-1, width), nothing.codes)
        calls: list[LinearCall | Call] = []
        for number, (layer, module) in enumerate(zip(encoder.layer, attention, strict=True)):
            first, second, up = layer.attention.output, layer.output, layer.intermediate.dense.packed
            dtype = attention_dtype(module)
            qkv = memory.values("qkv", module.qkv.packed.outputs, dtype)
            attended = memory.values("attended", first.dense.packed.inputs, dtype)
            query, key_states, value = qkv.values.view(batch, n, 3, module.num_attention_heads, -1).permute(
                2, 0, 3, 1, 4
            )
            inputs = attention_inputs(module, query, key_states, value, padding, shares, module.scaling)
            plan: Any = plan_of(module)
            if inputs is None or (choose(inputs).backend if plan.backend == "auto" else plan.backend) != "sparse":
                return None
            output = attended.values.view(batch, n, module.num_attention_heads, -1).transpose(1, 2)
            # What was read for the last time is written over while it is still in the caches: query, key and value by
            # the codes after GELU, a layer's input by its output.
            between, inner = memory.both("between", width), memory.codes_over(qkv, up.outputs)
            entering, residual = (result.codes if number else result.values), result.values
            result = memory.both("states", width)
            if number == len(attention) - 1:
                result = LinearResult(result.values, nothing.codes)
            calls += [
                prepared(entering, module.qkv.packed, qkv),
                prepared_attention(inputs, output),
                prepared(
                    attended.values, first.dense.packed, between, residual=residual, norm=norm_of(first.LayerNorm)
                ),
                prepared(between.codes, up, inner, activation=fused_activation(layer)),
                prepared(
                    inner.codes, second.dense.packed, result, residual=between.values, norm=norm_of(second.LayerNorm)
                ),
            ]
        return cls(Steps(calls), key, state)

    def run(self, hidden: Tensor) -> Tensor:
        """The last states: fresh memory, while all between first and last is used again."""
        calls, rows = self.steps.calls, hidden.reshape(-1, hidden.shape[-1])
        made = torch.empty(rows.shape, dtype=torch.float32)
        calls[0].values = calls[2].residual = matrix(rows, torch.float32)
        calls[-1].out = matrix(made, torch.float32)
        self.steps.run()
        return made.view(hidden.shape)


class _Memory:
    """What lies between the steps: layers take turns with it."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.made: dict[tuple[Any, ...], LinearResult] = {}

    def values(self, name: str, width: int, dtype: torch.dtype) -> LinearResult:
        return self._room(name, width, values=True, codes=False, dtype=dtype)

    def codes_over(self, dead: LinearResult, width: int) -> LinearResult:
        """Codes, in the memory of values that are needed no more, if that is enough."""
        made = self._room("inner", 0, values=False, codes=True)
        held = dead.values.flatten().view(torch.uint8)
        if len(held) < self.rows * width:
            return self._room("inner", width, values=False, codes=True)
        codes = held[: self.rows * width].view(self.rows, width)
        return LinearResult(made.values, Codes(codes, made.codes.marks))

    def both(self, name: str, width: int) -> LinearResult:
        return self._room(name, width, values=True, codes=True)

    def _room(
        self, name: str, width: int, *, values: bool, codes: bool, dtype: torch.dtype = torch.float32
    ) -> LinearResult:
        if (name, width) not in self.made:
            self.made[name, width] = room(self.rows, width, values=values, codes=codes, dtype=dtype)
        return self.made[name, width]


def _held(module: Any) -> list[dict[str, Any]]:
    """Where a module of a layer keeps tensors that the kernel reads."""
    if isinstance(module, Int8Linear):
        return [module._buffers]
    return [module._parameters] if isinstance(module, torch.nn.LayerNorm) else []


def _is_eager(hidden: Tensor) -> bool:
    """Whether tensors are tensors: no graph is made of this, no transform and no gradient taken, nothing cast."""
    return (
        type(hidden) is Tensor
        and hidden.ndim == 3
        and hidden.numel() > 0
        and hidden.is_contiguous()
        and not (hidden.requires_grad and torch.is_grad_enabled())
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
        and torch._C._len_torch_dispatch_stack() == 0
        and not is_transformed()
        and not torch.is_autocast_enabled("cpu")
    )
