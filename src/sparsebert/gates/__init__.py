"""How a pattern is learned: a gate gives every entry a value in [0, 1] with a gradient, and freezes to a pattern.

settings (presets) -> Soft | Unstructured | Structured -> distributions, penalty -> freezing -> Pattern
"""

from sparsebert.gates.freezing import Diagonal, Method
from sparsebert.gates.gate import Gate
from sparsebert.gates.schedules import Schedule, constant
from sparsebert.gates.settings import PRESETS, Settings, preset
from sparsebert.gates.storage import KINDS, load, load_into, save
from sparsebert.gates.structured import Structured
from sparsebert.gates.unstructured import Soft, Unstructured

__all__ = [
    "KINDS",
    "PRESETS",
    "Diagonal",
    "Gate",
    "Method",
    "Schedule",
    "Settings",
    "Soft",
    "Structured",
    "Unstructured",
    "constant",
    "load",
    "load_into",
    "preset",
    "save",
]
