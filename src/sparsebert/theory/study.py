"""The approximation study: errors against delta, with and without marked rows, and against temperature (Step 3)."""

from collections.abc import Callable
from typing import Any

from sparsebert.theory.approximation import (
    FIRST_TIMES_LAST,
    LINEAR,
    TARGETS,
    error_against_delta,
    error_against_sharpness,
    floor_without_positions,
)
from sparsebert.theory.grid import Grid

# The finest grids of three tokens whose contexts float64 still tells apart are 1/delta = 7 (marked) and 21 (not).
MARKED = (2, 3, 4, 5, 6, 7)
UNMARKED = (3, 4, 6, 8, 12, 16)
WIDE = (2, 3, 4)
POWERS = (1.0, 2.0, 4.0)
SCALES = (4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 120.0)
RAMPS = (0.3, 0.1, 0.03, 0.01)


def approximation_study(told: Callable[[float], object] = lambda share: None) -> dict[str, Any]:
    """Everything measured; told: the share that is done, now and then."""
    delta: list[dict[str, Any]] = []
    for target in TARGETS:
        delta += error_against_delta(target, 3, 1, MARKED, marked=True)
        told(0.03 * len(delta))
    delta += error_against_delta(LINEAR, 3, 1, UNMARKED, marked=False, powers=POWERS)
    told(0.3)
    delta += error_against_delta(LINEAR, 3, 2, WIDE, marked=False, points=2)
    told(0.5)
    delta += error_against_delta(FIRST_TIMES_LAST, 3, 1, UNMARKED, marked=False)
    told(0.7)
    sharpness = error_against_sharpness(LINEAR, Grid(3, 1, 3, marked=True), SCALES, RAMPS, samples=1000)
    floor = floor_without_positions(FIRST_TIMES_LAST, 3, 1)
    told(1.0)
    return {"delta": delta, "sharpness": sharpness, "floor_without_positions": floor}
