"""Linear layers in int8: weights and activations as codes, sums in whole numbers.

int8_library (C++) -> int8_kernel (one call) -> int8_linear (modules)
"""

from sparsebert.layers.float32 import full_speed_products
from sparsebert.layers.int8_kernel import Codes, Norm, linear
from sparsebert.layers.int8_library import require_kernel
from sparsebert.layers.int8_linear import Int8Linear, check_inference, joined

__all__ = [
    "Codes",
    "Int8Linear",
    "Norm",
    "check_inference",
    "full_speed_products",
    "joined",
    "linear",
    "require_kernel",
]
