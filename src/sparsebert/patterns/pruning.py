"""Two-stage patterns: the least important entries of a learned P removed, head by head."""

from typing import TYPE_CHECKING, Union

import numpy as np
from jaxtyping import Float

from sparsebert.errors import PatternError
from sparsebert.patterns.entries import Entries
from sparsebert.patterns.pattern import Anchor, Pattern

if TYPE_CHECKING:
    from torch import Tensor


def prune(
    importance: Union["Tensor", Float[np.ndarray, "heads n n"]], sparsity: float, *, anchor: Anchor = "position"
) -> Pattern:
    """Keep the entries of highest importance, as many in every head as the sparsity asks for.

    Equal entries go by position, the earlier row and column first; an entry and its mirror image are equal in a
    symmetric P, so at the very edge one of a pair may stay without the other.
    """
    array = importance if isinstance(importance, np.ndarray) else importance.detach().cpu().numpy()
    if array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
        raise PatternError(f"importance has shape {tuple(array.shape)}; expected [heads, n, n]")
    if not np.isfinite(array).all():
        raise PatternError("importance holds values that are not finite; train it again from a good checkpoint")
    if not 0.0 <= sparsity <= 1.0:
        raise PatternError(f"sparsity is {sparsity}; it must lie between 0 and 1")
    length = array.shape[1]
    count = round((1.0 - sparsity) * length**2)
    return Pattern.from_entries(length, [_highest(head, count) for head in array], anchor=anchor)


def _highest(head: np.ndarray, count: int) -> Entries:
    order = np.argsort(-head.reshape(-1), kind="stable")
    return np.sort(order[:count]).astype(np.int64)
