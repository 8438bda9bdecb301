"""Kernels for a tile of lines (rows, or columns), each of which meets one other token a step.

At step t a line meets the token `offsets[t]` away, so that the tile meets one shifted, contiguous tile (SHIFTED), and
at last the two ends of the border; or it meets the t-th token of its own list. Lines that are too long for a walk
step by step, border rows and columns among them, are left to triton_pieces.py.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from sparsebert.attention.triton_parts import (
    absorbed,
    draws_of_head,
    is_inside,
    load_rows,
    normaliser,
    place_of,
    position_of,
    real_tokens,
    store_rows,
    survival,
)


class Walk(NamedTuple):
    """How a tile of lines is walked."""

    place: Any  # of each line
    mine: Any  # which of the lines are walked here
    begin: Any  # where the list of each begins
    size: Any  # how long it is
    listed: Any  # the offsets that all of them share, or the lists
    steps: Any  # along these
    all_steps: Any  # and the ends of the border
    length: Any  # real tokens of the example
    starts: Any  # of the lists


@triton.jit
def _tile(
    starts, others, offsets, bounds, lengths, heads, n, positions, longest,
    SHARED: tl.constexpr, SHIFTED: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr,
    LINES: tl.constexpr,
):  # fmt: skip
    """Which example, head, pattern's head and lines this program works on, which of these it writes, and their walk."""
    tiles = tl.cdiv(n, LINES)
    program = tl.program_id(0)
    example, head = (program // tiles // heads).to(tl.int64), (program // tiles % heads).to(tl.int64)
    line = (program % tiles) * LINES + tl.arange(0, LINES)
    pattern_head = head * 0 if SHARED else head
    length = real_tokens(lengths, example, n, PADDED)
    place = place_of(line, length, positions, TOKEN)
    starts += pattern_head * (positions + 1)
    mine = line < length
    if SHIFTED:
        first = tl.load(bounds + pattern_head)
        steps = tl.load(bounds + pattern_head + 1) - first
        mine = mine & is_inside(place, positions, BORDER)
        begin, size, listed = place.to(tl.int64) * 0, place, offsets + first
        all_steps = steps + (2 if BORDER else 0)
    else:
        begin = tl.load(starts + place, mask=mine, other=0)
        size = tl.load(starts + place + 1, mask=mine, other=0) - begin
        mine = mine & (size <= longest)
        size = tl.where(mine, size, 0).to(tl.int32)
        steps = tl.max(size, 0)
        listed, all_steps = others, steps
    written = (line < n) & (mine | (line >= length))
    walk = Walk(place, mine, begin, size, listed, steps, all_steps, length, starts)
    return example, head, pattern_head, line, written, walk


@triton.jit
def _met(
    walk, step, positions, SIGN: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, SHIFTED: tl.constexpr
):  # fmt: skip
    """The place and the position of the token that each line meets at a step, and whether it meets one."""
    if SHIFTED:
        walked, steps = walk.place * 0 + step, walk.steps
        shifted = walk.place + SIGN * tl.load(walk.listed + step, mask=step < steps, other=0)
        mine = walk.mine & ((walked >= steps) | is_inside(shifted, positions, BORDER))
        other = tl.where(walked < steps, shifted, tl.where(walked == steps, 0, positions - 1))
    else:
        mine = step < walk.size
        other = tl.load(walk.listed + walk.begin + step, mask=mine, other=0)
    at = position_of(other, walk.length, positions, TOKEN)
    return other, at, mine & (at >= 0)


@triton.jit
def _entry_of_row(walk, bases, step, kept, SHIFTED: tl.constexpr):
    """Which of the pattern's entries each row's meeting is."""
    if SHIFTED:
        # Behind the offsets come the row's first entry and its last, the two ends of the border.
        place, steps = walk.place, walk.steps
        walked = place * 0 + step
        side = tl.where(walked > steps, 1, 0)
        ends = tl.load(walk.starts + place + side, mask=kept & (walked >= steps), other=0) - side
        return tl.where(walked < steps, tl.load(bases + place, mask=kept & (walked < steps), other=0) + step, ends)
    else:
        return walk.begin + step


@triton.jit
def _entry_of_column(walk, bases, row_starts, entries, other, step, kept, SHIFTED: tl.constexpr):
    """Which of the pattern's entries each column's meeting is."""
    if SHIFTED:
        place, steps = walk.place, walk.steps
        walked = place * 0 + step
        within = tl.load(bases + other, mask=kept & (walked < steps), other=0) + step
        ends = tl.load(row_starts + other, mask=kept & (walked >= steps), other=0) + place
        return tl.where(walked < steps, within, ends)
    else:
        return tl.load(entries + walk.begin + step, mask=kept, other=0)


@triton.jit
def _slopes(score, grad, value, logsum, delta, kept, alive):
    """An entry's weight after dropout, and the gradient of its score."""
    weight = tl.where(kept, tl.exp(score - logsum), 0.0)
    return weight * alive, tl.where(kept, weight * (tl.sum(grad * value, 1) * alive - delta), 0.0)


@triton.jit
def tile_forward(
    query, key, value, output, logsums, bias, lengths, seed, starts, others, offsets, bounds, bases,
    heads, n, d, positions, longest, batch_stride, head_stride, row_stride, bias_stride, scale, threshold, factor,
    SHARED: tl.constexpr, SHIFTED: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr,
    BIASED: tl.constexpr, DROPS: tl.constexpr, LINES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Output and log of the softmax's sum for a tile of queries."""
    example, head, pattern_head, line, written, walk = _tile(
        starts, others, offsets, bounds, lengths, heads, n, positions, longest,
        SHARED, SHIFTED, BORDER, TOKEN, PADDED, LINES,
    )  # fmt: skip
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    bases += pattern_head * positions
    bias += head * bias_stride
    asking = load_rows(query + first, line, row_stride, column, d, walk.mine)
    stream = draws_of_head(seed, example, head, DROPS)
    top = tl.full([LINES], float("-inf"), tl.float32)
    total, sums = tl.zeros([LINES], tl.float32), tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(walk.all_steps):
        _, at, kept = _met(walk, step, positions, 1, BORDER, TOKEN, SHIFTED)
        score = tl.sum(asking * load_rows(key + first, at, row_stride, column, d, kept), 1) * scale
        if BIASED:
            entry = _entry_of_row(walk, bases, step, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        values = load_rows(value + first, at, row_stride, column, d, kept)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        top, total, sums = absorbed(top, total, sums, score, kept, values, alive)
    share, logsum = normaliser(top, total)
    tl.store(logsums + (example * heads + head) * n + line, logsum, mask=written)
    output += (example * n * heads + head) * d
    store_rows(output, line, heads * d, column, d, written, sums * share[:, None])


@triton.jit
def tile_backward_rows(
    query, key, value, output, grad, logsums, deltas, grad_query, slopes,
    bias, lengths, seed, starts, others, offsets, bounds, bases,
    heads, n, d, positions, longest, batch_stride, head_stride, row_stride, bias_stride, num_kept,
    scale, threshold, factor,
    SHARED: tl.constexpr, SHIFTED: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr,
    BIASED: tl.constexpr, DROPS: tl.constexpr, LINES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries; <grad, output> of each for the pass over columns; each score's gradient."""
    example, head, pattern_head, line, written, walk = _tile(
        starts, others, offsets, bounds, lengths, heads, n, positions, longest,
        SHARED, SHIFTED, BORDER, TOKEN, PADDED, LINES,
    )  # fmt: skip
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    bases += pattern_head * positions
    bias += head * bias_stride
    asking = load_rows(query + first, line, row_stride, column, d, walk.mine)
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n + line
    grads = load_rows(grad + joined, line, heads * d, column, d, walk.mine)
    delta = tl.sum(grads * load_rows(output + joined, line, heads * d, column, d, walk.mine), 1)
    tl.store(deltas + row, delta, mask=walk.mine)
    logsum = tl.load(logsums + row, mask=walk.mine, other=float("inf"))
    stream = draws_of_head(seed, example, head, DROPS)
    sums = tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(walk.all_steps):
        _, at, kept = _met(walk, step, positions, 1, BORDER, TOKEN, SHIFTED)
        answering = load_rows(key + first, at, row_stride, column, d, kept)
        score = tl.sum(asking * answering, 1) * scale
        values = load_rows(value + first, at, row_stride, column, d, kept)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        if BIASED:
            entry = _entry_of_row(walk, bases, step, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        _, slope = _slopes(score, grads, values, logsum, delta, kept, alive)
        if BIASED:
            tl.store(slopes + (example * heads + head if SHARED else example) * num_kept + entry, slope, mask=kept)
        sums += slope[:, None] * answering
    store_rows(grad_query + joined, line, heads * d, column, d, written, sums * scale)


@triton.jit
def tile_backward_columns(
    query, key, value, grad, logsums, deltas, grad_key, grad_value,
    bias, lengths, seed, row_starts, starts, others, entries, offsets, bounds, bases,
    heads, n, d, positions, longest, batch_stride, head_stride, row_stride, bias_stride, scale, threshold, factor,
    SHARED: tl.constexpr, SHIFTED: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr,
    BIASED: tl.constexpr, DROPS: tl.constexpr, LINES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and their values, gathered from the queries that see them."""
    example, head, pattern_head, line, written, walk = _tile(
        starts, others, offsets, bounds, lengths, heads, n, positions, longest,
        SHARED, SHIFTED, BORDER, TOKEN, PADDED, LINES,
    )  # fmt: skip
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    bases += pattern_head * positions
    bias += head * bias_stride
    row_starts += pattern_head * (positions + 1)
    answering = load_rows(key + first, line, row_stride, column, d, walk.mine)
    values = load_rows(value + first, line, row_stride, column, d, walk.mine)
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n
    stream = draws_of_head(seed, example, head, DROPS)
    key_sums, value_sums = tl.zeros([LINES, WIDTH], tl.float32), tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(walk.all_steps):
        other, at, kept = _met(walk, step, positions, -1, BORDER, TOKEN, SHIFTED)
        asking = load_rows(query + first, at, row_stride, column, d, kept)
        grads = load_rows(grad + joined, at, heads * d, column, d, kept)
        score = tl.sum(asking * answering, 1) * scale
        alive = survival(stream, at, line, threshold, factor, DROPS)
        if BIASED:
            entry = _entry_of_column(walk, bases, row_starts, entries, other, step, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        logsum = tl.load(logsums + row + at, mask=kept, other=float("inf"))
        delta = tl.load(deltas + row + at, mask=kept, other=0.0)
        weight, slope = _slopes(score, grads, values, logsum, delta, kept, alive)
        key_sums += slope[:, None] * asking
        value_sums += weight[:, None] * grads
    store_rows(grad_key + joined, line, heads * d, column, d, written, key_sums * scale)
    store_rows(grad_value + joined, line, heads * d, column, d, written, value_sums)
