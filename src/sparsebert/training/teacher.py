"""The dense model as a teacher: frozen, without dropout, in its own best precision, and in windows of what it can read.

A model that has 512 positions cannot be asked about 4,096 tokens. It reads such a row in windows that overlap by half,
each between the row's own first and last token, and of every window the middle counts: there a token has seen text on
both sides. So the states of a long row are made of states that mean what they mean in short ones.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sparsebert.layers.bfloat16 import has_fast_bfloat16
from sparsebert.training.fidelity import States, encoder_states

_ROWS_AT_ONCE = 16  # windows in one pass


class Teacher:
    """Not a module: what does not change is no part of a checkpoint."""

    def __init__(self, model: Any, window: int) -> None:
        """model: dense. window: tokens that it reads at once."""
        self.model, self.window = model.requires_grad_(False).eval(), window

    @torch.no_grad()
    def states(self, inputs: dict[str, Tensor]) -> States:
        """All hidden states of a batch of any length."""
        device = inputs["input_ids"].device
        if next(self.model.parameters()).device != device:
            self.model.to(device)
        with _fastest(device):
            if inputs["input_ids"].shape[1] <= self.window:
                return encoder_states(self.model, inputs)
            return self._in_windows(inputs)

    def _in_windows(self, inputs: dict[str, Tensor]) -> States:
        rows = [_windows(int(length), self.window) for length in inputs["attention_mask"].sum(1)]
        places = [(row, window) for row, windows in enumerate(rows) for window in windows]
        layers: list[Tensor] | None = None
        for first in range(0, len(places), _ROWS_AT_ONCE):
            chosen = places[first : first + _ROWS_AT_ONCE]
            read = encoder_states(self.model, _cut(inputs, chosen)).layers
            if layers is None:
                shape = inputs["input_ids"].shape
                layers = [states.new_zeros(*shape, states.shape[-1], dtype=torch.float32) for states in read]
            for whole, part in zip(layers, read, strict=True):
                for number, (row, window) in enumerate(chosen):
                    whole[row, window.tokens[window.counts]] = part[number, : len(window.tokens)][window.counts].float()
        return States(layers or [], inputs["attention_mask"].float())


class _Reading:
    """The places of a row that are read together, and which of them count."""

    def __init__(self, tokens: Tensor, counts: Tensor) -> None:
        self.tokens, self.counts = tokens, counts


def _windows(length: int, window: int) -> list[_Reading]:
    """Windows over a row of so many tokens; every token counts in exactly one, where it is nearest to the middle."""
    if length <= window:
        everything = torch.arange(length)
        return [_Reading(everything, torch.ones(length, dtype=torch.bool))]
    inner = window - 2  # between the row's first and last token
    starts = [*range(1, length - 1 - inner, inner // 2), length - 1 - inner]
    middles = torch.tensor(starts).float() + inner / 2
    tokens = torch.arange(1, length - 1)
    nearest = (tokens[:, None] - middles).abs().argmin(1)
    made = []
    for number, start in enumerate(starts):
        inside = torch.arange(start, start + inner)
        counts = nearest[inside - 1] == number
        ends = torch.tensor([number == 0]), torch.tensor([number == len(starts) - 1])
        made.append(
            _Reading(
                torch.cat([torch.tensor([0]), inside, torch.tensor([length - 1])]),
                torch.cat([ends[0], counts, ends[1]]),
            )
        )
    return made


def _cut(inputs: dict[str, Tensor], places: list[tuple[int, _Reading]]) -> dict[str, Tensor]:
    width = max(len(window.tokens) for _, window in places)
    cut = {name: tensor.new_zeros(len(places), width) for name, tensor in inputs.items()}
    for number, (row, window) in enumerate(places):
        for name, tensor in inputs.items():
            cut[name][number, : len(window.tokens)] = tensor[row, window.tokens]
    return cut


@contextlib.contextmanager
def _fastest(device: torch.device) -> Iterator[None]:
    """bfloat16 where the processor has it: what it rounds away is far below what a student gets wrong."""
    enabled = device.type != "cpu" or has_fast_bfloat16()
    with torch.autocast(device.type, torch.bfloat16, enabled=enabled):
        yield
