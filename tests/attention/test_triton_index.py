"""What the Triton kernels walk: offsets where a pattern is made of them, else lists; long lines in pieces."""

import numpy as np
import pytest
import torch

from sparsebert import patterns
from sparsebert.attention.triton_index import PIECE, build, shape_of
from sparsebert.gates.learned_lines import LearnedLines
from sparsebert.gates.sampled_lines import lines_pattern
from sparsebert.patterns import Pattern

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("pattern", "offsets", "border"),
    [
        (patterns.window(9, radius=1), [[-1, 0, 1]], False),
        (patterns.from_offsets(9, [[-3, 2], [0]], border=True), [[-3, 2], [0]], True),
        (patterns.from_offsets(9, [[8, 30]]), [[8]], False),
        (patterns.border(9), [[]], True),
        (patterns.full(3), [[0]], True),
        (patterns.full(1), [[]], True),
        (patterns.random(9, sparsity=1.0), [[]], False),
        (patterns.window(9, radius=1).anchored("token"), [[-1, 0, 1]], False),
    ],
)
def test_a_pattern_made_of_offsets_is_seen_as_such(pattern: Pattern, offsets: list[list[int]], border: bool) -> None:
    found = shape_of(pattern)
    assert found is not None
    assert ([each.tolist() for each in found[0]], found[1]) == (offsets, border)


@pytest.mark.parametrize(
    "pattern",
    [
        patterns.window(9).random_drop(1),
        patterns.random(9, sparsity=0.5),
        patterns.fixed(12),
        patterns.from_offsets(9, [[1]], border=True) & patterns.window(9, radius=7),
    ],
    ids=["a line with a hole", "random", "fixed", "a border with corners cut off"],
)
def test_a_pattern_that_is_not_made_of_offsets_is_a_list(pattern: Pattern) -> None:
    assert shape_of(pattern) is None
    index = build(pattern, pattern.length, CPU)
    keys = index.keys[index.entries].tolist()
    counts = np.diff(index.column_starts[0].numpy())
    assert keys == np.repeat(np.arange(pattern.length), counts).tolist()
    assert torch.equal(
        index.queries.sort().values.long(), torch.from_numpy(np.sort(pattern.entries() // pattern.length))
    )


def test_a_sample_of_a_structured_search_costs_n_numbers_a_head_and_nothing_an_entry() -> None:
    keep = np.zeros((2, 4094), dtype=bool)
    keep[0, [0, 3, 700]] = keep[1, [1]] = True
    pattern, _ = lines_pattern(4096, LearnedLines(4094), keep, True, "position")
    index = build(pattern, 4096, CPU)
    assert index.shifted
    tensors = [value for value in vars(index).values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.nbytes for tensor in tensors) < 17 * 2 * 4097
    assert index.offsets.tolist() == [-700, -3, 0, 3, 700, -1, 1]


def test_the_entry_of_every_offset_is_where_the_rows_have_it() -> None:
    pattern = patterns.from_offsets(20, [[-6, -1, 4], [2]], border=True)
    index = build(pattern, 20, CPU)
    for head in range(2):
        begin, end = index.bounds[head : head + 2].tolist()
        for row in range(1, 19):
            for number, offset in enumerate(index.offsets[begin:end].tolist()):
                if 0 < row + offset < 19:
                    assert pattern.keys[index.bases[head, row] + number] == row + offset


def test_border_lines_are_cut_into_pieces_that_cover_them_once() -> None:
    length = 2 * PIECE + 5
    pattern = patterns.from_offsets(length, [[1]], border=True)
    cut = build(pattern, length, CPU).row_pieces
    assert cut.lines.tolist() == [[0, 0, 0, 3], [0, length - 1, 3, 6]]
    assert cut.pieces[:3, 2:].tolist() == [[0, PIECE], [PIECE, 2 * PIECE], [2 * PIECE, length]]
