"""Square arrays as small PNG images inside the page: a few bytes a head, sharp at any size."""

import io
from base64 import b64encode

import numpy as np
from jaxtyping import Shaped, UInt8

from sparsebert.importance.figures import heat_range

_KEPT = (0x3B, 0x76, 0xE1, 0xFF)  # readable on white and on near-black alike


def colours(square: Shaped[np.ndarray, "n n"]) -> UInt8[np.ndarray, "n n 4"]:
    """Kept entries filled and the rest clear; numbers from dark to bright."""
    from matplotlib import colormaps

    if square.dtype == bool:
        clear = np.zeros((*square.shape, 4), dtype=np.uint8)
        clear[square] = _KEPT
        return clear
    low, high = heat_range(square)
    mixed: np.ndarray = colormaps["viridis"]((square - low) / (high - low or 1.0), bytes=True)
    return mixed


def data_uri(square: Shaped[np.ndarray, "n n"]) -> str:
    """The image as an address that carries it."""
    from PIL import Image

    png = io.BytesIO()
    Image.fromarray(colours(square)).save(png, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(png.getvalue()).decode()
