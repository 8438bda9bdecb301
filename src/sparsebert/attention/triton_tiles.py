"""Kernels for a tile of lines (rows, or columns), each of which meets one other token a step.

At step t a line meets the token `offsets[t]` away, so that the tile meets one shifted, contiguous tile (SHIFTED), and
at last the two ends of the border; or it meets the t-th token of its own list. Lines that are too long for a walk
step by step, border rows and columns among them, are left to triton_pieces.py.
"""

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


@triton.jit
def _tile(n, heads, LINES: tl.constexpr, SHARED: tl.constexpr):
    """Which example, head, pattern's head and lines this program works on."""
    tiles = tl.cdiv(n, LINES)
    program = tl.program_id(0)
    example, head = (program // tiles // heads).to(tl.int64), (program // tiles % heads).to(tl.int64)
    line = (program % tiles) * LINES + tl.arange(0, LINES)
    return example, head, head * 0 if SHARED else head, line


@triton.jit
def _walk(starts, bounds, pattern_head, place, mine, positions, longest, BORDER: tl.constexpr, SHIFTED: tl.constexpr):
    """Which lines are worked on here, where the list of each begins, how long it is, the offsets, the steps to walk."""
    if SHIFTED:
        first = tl.load(bounds + pattern_head)
        steps = tl.load(bounds + pattern_head + 1) - first
        none = place.to(tl.int64) * 0
        return mine & is_inside(place, positions, BORDER), none, place, first, steps, steps + (2 if BORDER else 0)
    else:
        begin = tl.load(starts + place, mask=mine, other=0)
        size = tl.load(starts + place + 1, mask=mine, other=0) - begin
        mine = mine & (size <= longest)
        size = tl.where(mine, size, 0).to(tl.int32)
        steps = tl.max(size, 0)
        return mine, begin, size, steps * 0, steps, steps


@triton.jit
def _met(
    offsets, others, place, begin, size, step, steps, mine, length, positions,
    SIGN: tl.constexpr, BORDER: tl.constexpr, TOKEN: tl.constexpr, SHIFTED: tl.constexpr,
):  # fmt: skip
    """The place and the position of the token that each line meets at a step, and whether it meets one."""
    if SHIFTED:
        shifted, walked = place + SIGN * tl.load(offsets + step, mask=step < steps, other=0), place * 0 + step
        mine = mine & ((walked >= steps) | is_inside(shifted, positions, BORDER))
        other = tl.where(walked < steps, shifted, tl.where(walked == steps, 0, positions - 1))
    else:
        mine = step < size
        other = tl.load(others + begin + step, mask=mine, other=0)
    at = position_of(other, length, positions, TOKEN)
    return other, at, mine & (at >= 0)


@triton.jit
def _entry_of_row(bases, starts, place, begin, step, steps, kept, SHIFTED: tl.constexpr):
    """Which of the pattern's entries each row's meeting is."""
    if SHIFTED:
        # Behind the offsets come the row's first entry and its last, the two ends of the border.
        walked = place * 0 + step
        side = tl.where(walked > steps, 1, 0)
        ends = tl.load(starts + place + side, mask=kept & (walked >= steps), other=0) - side
        return tl.where(walked < steps, tl.load(bases + place, mask=kept & (walked < steps), other=0) + step, ends)
    else:
        return begin + step


@triton.jit
def _entry_of_column(bases, starts, entries, place, other, begin, step, steps, kept, SHIFTED: tl.constexpr):
    """Which of the pattern's entries each column's meeting is."""
    if SHIFTED:
        walked = place * 0 + step
        within = tl.load(bases + other, mask=kept & (walked < steps), other=0) + step
        return tl.where(walked < steps, within, tl.load(starts + other, mask=kept & (walked >= steps), other=0) + place)
    else:
        return tl.load(entries + begin + step, mask=kept, other=0)


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
    example, head, pattern_head, line = _tile(n, heads, LINES, SHARED)
    length = real_tokens(lengths, example, n, PADDED)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    place = place_of(line, length, positions, TOKEN)
    starts += pattern_head * (positions + 1)
    bases += pattern_head * positions
    bias += head * bias_stride
    mine, begin, size, begin_offsets, steps, all_steps = _walk(
        starts, bounds, pattern_head, place, line < length, positions, longest, BORDER, SHIFTED
    )
    asking = load_rows(query + first, line, row_stride, column, d, mine)
    stream = draws_of_head(seed, example, head, DROPS)
    top = tl.full([LINES], float("-inf"), tl.float32)
    total, sums = tl.zeros([LINES], tl.float32), tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(all_steps):
        _, at, kept = _met(
            offsets + begin_offsets, others, place, begin, size, step, steps, mine, length, positions,
            1, BORDER, TOKEN, SHIFTED,
        )  # fmt: skip
        score = tl.sum(asking * load_rows(key + first, at, row_stride, column, d, kept), 1) * scale
        if BIASED:
            entry = _entry_of_row(bases, starts, place, begin, step, steps, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        values = load_rows(value + first, at, row_stride, column, d, kept)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        top, total, sums = absorbed(top, total, sums, score, kept, values, alive)
    share, logsum = normaliser(top, total)
    written = (line < n) & (mine | (line >= length))
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
    example, head, pattern_head, line = _tile(n, heads, LINES, SHARED)
    length = real_tokens(lengths, example, n, PADDED)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    place = place_of(line, length, positions, TOKEN)
    starts += pattern_head * (positions + 1)
    bases += pattern_head * positions
    bias += head * bias_stride
    mine, begin, size, begin_offsets, steps, all_steps = _walk(
        starts, bounds, pattern_head, place, line < length, positions, longest, BORDER, SHIFTED
    )
    asking = load_rows(query + first, line, row_stride, column, d, mine)
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n + line
    grads = load_rows(grad + joined, line, heads * d, column, d, mine)
    delta = tl.sum(grads * load_rows(output + joined, line, heads * d, column, d, mine), 1)
    tl.store(deltas + row, delta, mask=mine)
    logsum = tl.load(logsums + row, mask=mine, other=float("inf"))
    stream = draws_of_head(seed, example, head, DROPS)
    sums = tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(all_steps):
        _, at, kept = _met(
            offsets + begin_offsets, others, place, begin, size, step, steps, mine, length, positions,
            1, BORDER, TOKEN, SHIFTED,
        )  # fmt: skip
        answering = load_rows(key + first, at, row_stride, column, d, kept)
        score = tl.sum(asking * answering, 1) * scale
        values = load_rows(value + first, at, row_stride, column, d, kept)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        if BIASED:
            entry = _entry_of_row(bases, starts, place, begin, step, steps, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        _, slope = _slopes(score, grads, values, logsum, delta, kept, alive)
        if BIASED:
            tl.store(slopes + (example * heads + head if SHARED else example) * num_kept + entry, slope, mask=kept)
        sums += slope[:, None] * answering
    written = (line < n) & (mine | (line >= length))
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
    example, head, pattern_head, line = _tile(n, heads, LINES, SHARED)
    length = real_tokens(lengths, example, n, PADDED)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    place = place_of(line, length, positions, TOKEN)
    starts += pattern_head * (positions + 1)
    bases += pattern_head * positions
    bias += head * bias_stride
    row_starts += pattern_head * (positions + 1)
    mine, begin, size, begin_offsets, steps, all_steps = _walk(
        starts, bounds, pattern_head, place, line < length, positions, longest, BORDER, SHIFTED
    )
    answering = load_rows(key + first, line, row_stride, column, d, mine)
    values = load_rows(value + first, line, row_stride, column, d, mine)
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n
    stream = draws_of_head(seed, example, head, DROPS)
    key_sums, value_sums = tl.zeros([LINES, WIDTH], tl.float32), tl.zeros([LINES, WIDTH], tl.float32)
    for step in range(all_steps):
        other, at, kept = _met(
            offsets + begin_offsets, others, place, begin, size, step, steps, mine, length, positions,
            -1, BORDER, TOKEN, SHIFTED,
        )  # fmt: skip
        asking = load_rows(query + first, at, row_stride, column, d, kept)
        grads = load_rows(grad + joined, at, heads * d, column, d, kept)
        score = tl.sum(asking * answering, 1) * scale
        alive = survival(stream, at, line, threshold, factor, DROPS)
        if BIASED:
            entry = _entry_of_column(bases, row_starts, entries, place, other, begin, step, steps, kept, SHIFTED)
            score += tl.load(bias + entry, mask=kept, other=0.0)
        logsum = tl.load(logsums + row + at, mask=kept, other=float("inf"))
        delta = tl.load(deltas + row + at, mask=kept, other=0.0)
        weight, slope = _slopes(score, grads, values, logsum, delta, kept, alive)
        key_sums += slope[:, None] * asking
        value_sums += weight[:, None] * grads
    written = (line < n) & (mine | (line >= length))
    store_rows(grad_key + joined, line, heads * d, column, d, written, key_sums * scale)
    store_rows(grad_value + joined, line, heads * d, column, d, written, value_sums)
