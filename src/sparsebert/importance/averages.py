"""P made small enough to look at: rows normalised, a sketch of few positions, the mean of each distance."""

import numpy as np
from jaxtyping import Float

SKETCH = 16  # positions a side, as in the paper's sketches


def normalised(importance: Float[np.ndarray, "heads n n"]) -> Float[np.ndarray, "n n"]:
    """Averaged over heads after each row was divided by its mean, so that 1 is average.

    Attention is a softmax over a row, so P has a meaning only relative to its row.
    """
    row_means = importance.mean(-1, keepdims=True)
    mean: np.ndarray = (importance / np.where(row_means > 0, row_means, 1.0)).mean(0)
    return mean


def sketch(heat: Float[np.ndarray, "n n"], size: int = SKETCH) -> Float[np.ndarray, "size size"]:
    """The same picture for a short input: the mean of each distance, and of the first and last row and column.

    Averaging blocks would blur the very lines that matter, so distances are kept and lengths are not.
    """
    size = min(size, len(heat))
    inner = heat[1:-1, 1:-1]
    lines = np.array([(np.diagonal(inner, d).mean() + np.diagonal(inner, -d).mean()) / 2 for d in range(size - 2)])
    places = np.arange(size)
    small: np.ndarray = lines[np.abs(places[:, None] - places).clip(max=size - 3)]
    small[0, :], small[-1, :] = heat[0, 1:-1].mean(), heat[-1, 1:-1].mean()
    small[:, 0], small[:, -1] = heat[1:-1, 0].mean(), heat[1:-1, -1].mean()
    for row, column in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        small[row, column] = heat[row, column]
    return small


def offset_profile(importance: Float[np.ndarray, "heads n n"]) -> list[float]:
    """Mean importance of each distance |i - j|, off the first and last row and column."""
    inner = importance[:, 1:-1, 1:-1]
    size = inner.shape[-1]
    lines = ((np.diagonal(inner, d, 1, 2), np.diagonal(inner, -d, 1, 2)) for d in range(size))
    return [float((above.mean() + below.mean()) / 2) for above, below in lines]
