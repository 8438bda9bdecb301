"""What the Triton kernels are made of: places and positions, dropout's draws, the running softmax.

A *position* is where a token stands in its example; a *place* is the pattern's line it uses. They differ only where
the true last token plays the part of the pattern's last place (anchor="token"). A position of -1 is nowhere.

Conditions are written over whole tiles, `tile * 0 + number >= 0`: Triton's interpreter cannot combine a condition on
one number with one on a tile. It costs nothing in compiled code.
"""

import triton
import triton.language as tl


@triton.jit
def real_tokens(lengths, example, n, PADDED: tl.constexpr):
    """How many tokens of an example are real."""
    if PADDED:
        return tl.load(lengths + example).to(tl.int32)
    else:
        return n


@triton.jit
def place_of(position, length, positions, TOKEN: tl.constexpr):
    """The pattern's place that a position uses."""
    if TOKEN:
        return tl.where(position == length - 1, positions - 1, position)
    else:
        return position


@triton.jit
def position_of(place, length, positions, TOKEN: tl.constexpr):
    """Where a place stands in an example of `length` tokens; negative where it does not."""
    if TOKEN:
        before = tl.where(place < length - 1, place, -1)
        return tl.where(place == positions - 1, length - 1, before)
    else:
        return tl.where(place < length, place, -1)


@triton.jit
def is_inside(place, positions, BORDER: tl.constexpr):
    """Whether a place is one that offsets speak of: not the first or the last where these are a border."""
    if BORDER:
        return (place > 0) & (place < positions - 1)
    else:
        return (place >= 0) & (place < positions)


@triton.jit
def load_row(tensor, position, stride, column, d):
    """One token's numbers, in float32; zeros where the position is nowhere."""
    somewhere = column * 0 + position >= 0
    at = position.to(tl.int64) * stride + column
    return tl.load(tensor + at, mask=(column < d) & somewhere, other=0.0).to(tl.float32)


@triton.jit
def load_rows(tensor, positions, stride, column, d, kept):
    """A row of numbers for each position, in float32; zeros where it is not kept."""
    at = positions.to(tl.int64)[:, None] * stride + column[None, :]
    return tl.load(tensor + at, mask=kept[:, None] & (column < d)[None, :], other=0.0).to(tl.float32)


@triton.jit
def store_rows(tensor, positions, stride, column, d, kept, values):
    at = positions.to(tl.int64)[:, None] * stride + column[None, :]
    tl.store(tensor + at, values.to(tensor.dtype.element_ty), mask=kept[:, None] & (column < d)[None, :])


@triton.jit
def mixed(x):
    """splitmix64's finaliser."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def draws_of_head(seed, example, head, DROPS: tl.constexpr):
    """The stream of (seed, example, head) that csrc/dropout.h draws from."""
    if DROPS:
        drawn = tl.load(seed).to(tl.uint64, bitcast=True) + 0x9E3779B97F4A7C15
        return mixed(mixed(mixed(drawn) + example.to(tl.uint64)) + head.to(tl.uint64))
    else:
        return tl.full([], 0, tl.uint64)


@triton.jit
def survival(stream, query, key, threshold, factor, DROPS: tl.constexpr):
    """What dropout multiplies the weight of (query, key) by: 0, or 1 / (1 - rate); as csrc/dropout.h."""
    if DROPS:
        row = mixed(stream + query.to(tl.uint64) * 0x9E3779B97F4A7C15)
        x = row.to(tl.uint32) + key.to(tl.uint32) * 0x9E3779B9
        x = (x ^ (x >> 16)) * 0x7FEB352D
        x = ((x ^ (x >> 15)) * 0x846CA68B) ^ (row >> 32).to(tl.uint32)
        x = (x ^ (x >> 16)) * 0x7FEB352D
        x = (x ^ (x >> 15)) * 0x846CA68B
        x = x ^ (x >> 16)
        return tl.where(x >= threshold.to(tl.uint32), factor, 0.0)
    else:
        return 1.0


@triton.jit
def base_of(top):
    """What exponents are counted from: the highest score, or 0 where there is none."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def absorbed(top, total, sums, score, kept, values, factor):
    """The running softmax of many rows after one more key each: highest score, sum of exponentials, weighted sum."""
    score = tl.where(kept, score, float("-inf"))
    higher = tl.maximum(top, score)
    base = base_of(higher)
    shrink = tl.exp(top - base)
    weight = tl.exp(score - base)
    sums = sums * shrink[:, None] + (weight * factor)[:, None] * values
    return higher, total * shrink + weight, sums


@triton.jit
def normaliser(top, total):
    """1 / the sum of a row, and its logarithm as the gradient wants it: a row with nothing has no weight at all."""
    empty = total == 0.0
    safe = tl.where(empty, 1.0, total)
    return tl.where(empty, 0.0, 1.0 / safe), tl.where(empty, float("inf"), base_of(top) + tl.log(safe))
