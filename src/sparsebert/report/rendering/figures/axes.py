"""Axes and ticks: numbers to places on a drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """From a range of numbers to a range of places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(x) for x in (self.low, self.high, value)) if self.log else (
            self.low, self.high, value)  # fmt: skip
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 2)


def span(values: Sequence[float], room: float = 0.06) -> tuple[float, float]:
    """The range of the values with some room at either end."""
    low, high = min(values), max(values)
    reach = (high - low) * room or abs(high) * 0.05 or 1.0
    return low - reach, high + reach


def log_span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return low / 1.4, high * 1.4


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within the range: 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / max(count, 1)
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.75)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def tick_words(value: float, log: bool = False) -> str:
    """A tick's words."""
    if log:
        power = round(math.log10(value))
        return f"1e{power}" if abs(power) > 2 else f"{value:g}"
    return f"{value:.10g}".replace("-", "\N{MINUS SIGN}")
