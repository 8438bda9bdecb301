"""Kernels for long lines, cut into pieces that are worked on side by side, and the sums over a line's pieces.

A piece is a stretch of one row or column: entries of its list, or (RUN) positions, where the line is a border that
meets everyone. Each leaves a partial result, put together in the order of the pieces, so the bits are the same
each time, and no program walks more than a piece.
"""

import triton
import triton.language as tl

from sparsebert.attention.triton_parts import (
    base_of,
    draws_of_head,
    load_row,
    load_rows,
    normaliser,
    place_of,
    position_of,
    real_tokens,
    survival,
)


@triton.jit
def _listed(table, count, heads, SHARED: tl.constexpr):
    """The example, head and row of a table that this program works on; its first column is a head of the pattern."""
    program = tl.program_id(0).to(tl.int64)
    row, group = program % count, program // count
    table += 4 * row
    place, begin, end = tl.load(table + 1), tl.load(table + 2), tl.load(table + 3)
    if SHARED:
        return group // heads, group % heads, place.to(tl.int32), begin, end
    else:
        return group, tl.load(table), place.to(tl.int32), begin, end


@triton.jit
def _met(others, index, end, length, positions, TOKEN: tl.constexpr, RUN: tl.constexpr):
    """The places and positions of a stretch of a line, and which of them are met."""
    if RUN:
        at = index.to(tl.int32)
        return place_of(at, length, positions, TOKEN), at, (index < end) & (at < length)
    else:
        other = tl.load(others + index, mask=index < end, other=0)
        at = position_of(other, length, positions, TOKEN)
        return other, at, (index < end) & (at >= 0)


@triton.jit
def piece_forward(
    query, key, value, tops, totals, partial, table, bias, lengths, seed, row_starts, others,
    count, heads, n, d, positions, batch_stride, head_stride, row_stride, bias_stride, scale, threshold, factor,
    SHARED: tl.constexpr, RUN: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr, BIASED: tl.constexpr,
    DROPS: tl.constexpr, STRETCH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The running softmax of one piece of a row."""
    example, head, place, begin, end = _listed(table, count, heads, SHARED)
    pattern_head = head * 0 if SHARED else head
    length = real_tokens(lengths, example, n, PADDED)
    line = position_of(place, length, positions, TOKEN)
    end = tl.where(line >= 0, end, begin)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    asking = load_row(query + first, line, row_stride, column, d)
    stream = draws_of_head(seed, example, head, DROPS)
    row_start = tl.load(row_starts + pattern_head * (positions + 1) + place)
    top, total = tl.full([], float("-inf"), tl.float32), tl.full([], 0.0, tl.float32)
    sums = tl.zeros([WIDTH], tl.float32)
    for where in range(begin, end, STRETCH):
        index = where + tl.arange(0, STRETCH)
        other, at, kept = _met(others, index, end, length, positions, TOKEN, RUN)
        score = tl.sum(load_rows(key + first, at, row_stride, column, d, kept) * asking[None, :], 1) * scale
        if BIASED:
            entry = row_start + other if RUN else index
            score += tl.load(bias + head * bias_stride + entry, mask=kept, other=0.0)
        score = tl.where(kept, score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 0))
        base = base_of(higher)
        shrink, weight = tl.exp(top - base), tl.exp(score - base)
        values = load_rows(value + first, at, row_stride, column, d, kept)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        sums = sums * shrink + tl.sum((weight * alive)[:, None] * values, 0)
        top, total = higher, total * shrink + tl.sum(weight, 0)
    program = tl.program_id(0).to(tl.int64)
    tl.store(tops + program, top)
    tl.store(totals + program, total)
    tl.store(partial + program * d + column, sums, mask=column < d)


@triton.jit
def merge_rows(
    output, logsums, tops, totals, partial, table, lengths, count, num_pieces, heads, n, d, positions,
    SHARED: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The softmax of a whole row from those of its pieces."""
    example, head, place, begin, end = _listed(table, count, heads, SHARED)
    line = position_of(place, real_tokens(lengths, example, n, PADDED), positions, TOKEN)
    column = tl.arange(0, WIDTH)
    pieces = tl.program_id(0).to(tl.int64) // count * num_pieces
    top, total = tl.full([], float("-inf"), tl.float32), tl.full([], 0.0, tl.float32)
    sums = tl.zeros([WIDTH], tl.float32)
    for piece in range(begin, end):
        one = tl.load(tops + pieces + piece)
        higher = tl.maximum(top, one)
        base = base_of(higher)
        before, now = tl.exp(top - base), tl.exp(one - base)
        total = total * before + tl.load(totals + pieces + piece) * now
        sums = sums * before + tl.load(partial + (pieces + piece) * d + column, mask=column < d, other=0.0) * now
        top = higher
    share, logsum = normaliser(top, total)
    tl.store(logsums + (example * heads + head) * n + line, logsum, mask=line >= 0)
    output += ((example * n + line) * heads + head) * d + column
    tl.store(output, (sums * share).to(output.dtype.element_ty), mask=(column < d) & (column * 0 + line >= 0))


@triton.jit
def piece_backward_rows(
    query, key, value, output, grad, logsums, deltas, partial, slopes, table, bias, lengths, seed, row_starts, others,
    count, heads, n, d, positions, batch_stride, head_stride, row_stride, bias_stride, num_kept,
    scale, threshold, factor,
    SHARED: tl.constexpr, RUN: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr, BIASED: tl.constexpr,
    DROPS: tl.constexpr, STRETCH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """What one piece of a row adds to its query's gradient."""
    example, head, place, begin, end = _listed(table, count, heads, SHARED)
    pattern_head = head * 0 if SHARED else head
    length = real_tokens(lengths, example, n, PADDED)
    line = position_of(place, length, positions, TOKEN)
    end = tl.where(line >= 0, end, begin)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n
    asking = load_row(query + first, line, row_stride, column, d)
    grads = load_row(grad + joined, line, heads * d, column, d)
    delta = tl.sum(grads * load_row(output + joined, line, heads * d, column, d), 0)
    tl.store(deltas + row + line, delta, mask=line >= 0)  # every piece of the row writes the same number
    logsum = tl.load(logsums + row + line, mask=line >= 0, other=float("inf"))
    stream = draws_of_head(seed, example, head, DROPS)
    row_start = tl.load(row_starts + pattern_head * (positions + 1) + place)
    sums = tl.zeros([WIDTH], tl.float32)
    for where in range(begin, end, STRETCH):
        index = where + tl.arange(0, STRETCH)
        other, at, kept = _met(others, index, end, length, positions, TOKEN, RUN)
        answering = load_rows(key + first, at, row_stride, column, d, kept)
        values = load_rows(value + first, at, row_stride, column, d, kept)
        score = tl.sum(answering * asking[None, :], 1) * scale
        entry = row_start + other if RUN else index
        if BIASED:
            score += tl.load(bias + head * bias_stride + entry, mask=kept, other=0.0)
        alive = survival(stream, line, at, threshold, factor, DROPS)
        weight = tl.where(kept, tl.exp(score - logsum), 0.0)
        slope = tl.where(kept, weight * (tl.sum(values * grads[None, :], 1) * alive - delta), 0.0)
        if BIASED:
            tl.store(slopes + (example * heads + head if SHARED else example) * num_kept + entry, slope, mask=kept)
        sums += tl.sum(slope[:, None] * answering, 0)
    tl.store(partial + tl.program_id(0).to(tl.int64) * d + column, sums * scale, mask=column < d)


@triton.jit
def piece_backward_columns(
    query, key, value, grad, logsums, deltas, partial_key, partial_value, table, bias, lengths, seed,
    row_starts, others, entries,
    count, heads, n, d, positions, batch_stride, head_stride, row_stride, bias_stride, scale, threshold, factor,
    SHARED: tl.constexpr, RUN: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr, BIASED: tl.constexpr,
    DROPS: tl.constexpr, STRETCH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """What one piece of a column adds to the gradients of its key and value."""
    example, head, place, begin, end = _listed(table, count, heads, SHARED)
    pattern_head = head * 0 if SHARED else head
    length = real_tokens(lengths, example, n, PADDED)
    line = position_of(place, length, positions, TOKEN)
    end = tl.where(line >= 0, end, begin)
    column, first = tl.arange(0, WIDTH), example * batch_stride + head * head_stride
    joined, row = (example * n * heads + head) * d, (example * heads + head) * n
    answering = load_row(key + first, line, row_stride, column, d)
    values = load_row(value + first, line, row_stride, column, d)
    stream = draws_of_head(seed, example, head, DROPS)
    key_sums, value_sums = tl.zeros([WIDTH], tl.float32), tl.zeros([WIDTH], tl.float32)
    for where in range(begin, end, STRETCH):
        index = where + tl.arange(0, STRETCH)
        other, at, kept = _met(others, index, end, length, positions, TOKEN, RUN)
        asking = load_rows(query + first, at, row_stride, column, d, kept)
        grads = load_rows(grad + joined, at, heads * d, column, d, kept)
        score = tl.sum(asking * answering[None, :], 1) * scale
        if BIASED:
            if RUN:  # a border column is the first entry of each row, or the last
                side = tl.where(place == 0, 0, 1)
                at_starts = row_starts + pattern_head * (positions + 1) + other
                entry = tl.load(at_starts + side, mask=kept, other=1) - side
            else:
                entry = tl.load(entries + index, mask=kept, other=0)
            score += tl.load(bias + head * bias_stride + entry, mask=kept, other=0.0)
        alive = survival(stream, at, line, threshold, factor, DROPS)
        weight = tl.where(kept, tl.exp(score - tl.load(logsums + row + at, mask=kept, other=float("inf"))), 0.0)
        delta = tl.load(deltas + row + at, mask=kept, other=0.0)
        slope = tl.where(kept, weight * (tl.sum(grads * values[None, :], 1) * alive - delta), 0.0)
        key_sums += tl.sum(slope[:, None] * asking, 0)
        value_sums += tl.sum((weight * alive)[:, None] * grads, 0)
    partial = tl.program_id(0).to(tl.int64) * d + column
    tl.store(partial_key + partial, key_sums * scale, mask=column < d)
    tl.store(partial_value + partial, value_sums, mask=column < d)


@triton.jit
def add_pieces(
    gradient, partial, table, lengths, count, num_pieces, heads, n, d, positions,
    SHARED: tl.constexpr, TOKEN: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of a whole line from what its pieces add."""
    example, head, place, begin, end = _listed(table, count, heads, SHARED)
    line = position_of(place, real_tokens(lengths, example, n, PADDED), positions, TOKEN)
    column = tl.arange(0, WIDTH)
    pieces = tl.program_id(0).to(tl.int64) // count * num_pieces
    sums = tl.zeros([WIDTH], tl.float32)
    for piece in range(begin, end):
        sums += tl.load(partial + (pieces + piece) * d + column, mask=column < d, other=0.0)
    gradient += ((example * n + line) * heads + head) * d + column
    tl.store(gradient, sums.to(gradient.dtype.element_ty), mask=(column < d) & (column * 0 + line >= 0))
