"""Square arrays as small PNG images, written here: a few bytes a head, sharp at any size."""

import struct
import zlib
from base64 import b64encode

import numpy as np
from jaxtyping import Shaped, UInt8

from sparsebert.importance.figures import heat_range

_KEPT = (0x3B, 0x76, 0xE1, 0xFF)  # readable on white and on near-black alike
# Dark to bright, even to the eye and in grey (the anchors of viridis).
_HEAT = ("440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")


def png(pixels: UInt8[np.ndarray, "height width channels"]) -> bytes:
    """An RGB or RGBA image; few colours become a palette by way of deflate, so no palette is kept."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def colours(square: Shaped[np.ndarray, "n n"]) -> UInt8[np.ndarray, "n n channels"]:
    """Kept entries filled and the rest clear; numbers from dark to bright."""
    if square.dtype == bool:
        clear = np.zeros((*square.shape, 4), dtype=np.uint8)
        clear[square] = _KEPT
        return clear
    low, high = heat_range(square)
    share = ((square - low) / (high - low or 1.0)).clip(0, 1) * (len(_HEAT) - 1)
    anchors = np.array([[int(code[place : place + 2], 16) for place in (0, 2, 4)] for code in _HEAT], dtype=float)
    below = np.floor(share).astype(int).clip(max=len(_HEAT) - 2)
    part = (share - below)[..., None]
    mixed: np.ndarray = np.round(anchors[below] * (1 - part) + anchors[below + 1] * part).astype(np.uint8)
    return mixed


def data_uri(square: Shaped[np.ndarray, "n n"]) -> str:
    return "data:image/png;base64," + b64encode(png(colours(square))).decode()
