"""What an importance run leaves for figures: means by category and head, the offset profile, the heat map."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sparsebert.files import write_atomic, write_json
from sparsebert.training.categories import NAMES, categories
from sparsebert.training.figures import normalised

# Names of the categories in importance.json.
_SHORT = dict(zip(NAMES, ("diagonal", "1", "2", "3-5", "cls", "sep", "other"), strict=True))


def write_importance(folder: Path, importance: Float[np.ndarray, "heads n n"], method: str) -> Mapping[str, Any]:
    """importance.json and heat.npy; nothing to add to result.json but the method."""
    number = categories(importance.shape[-1])
    means = {
        short: importance[:, number == index].mean(1).tolist()
        for index, short in enumerate(_SHORT.values())
        if (number == index).any()
    }
    summary = {"categories": means, "offset_profile": offset_profile(importance), "method": method}
    write_json(folder / "importance.json", summary)
    buffer = io.BytesIO()
    np.save(buffer, normalised(importance).astype(np.float32))
    write_atomic(folder / "heat.npy", buffer.getvalue())
    return {"method": method}


def offset_profile(importance: Float[np.ndarray, "heads n n"]) -> list[float]:
    """Mean importance of each distance |i - j|, off the first and last row and column."""
    inner = importance[:, 1:-1, 1:-1]
    size = inner.shape[-1]
    lines = ((np.diagonal(inner, d, 1, 2), np.diagonal(inner, -d, 1, 2)) for d in range(size))
    return [float((above.mean() + below.mean()) / 2) for above, below in lines]
