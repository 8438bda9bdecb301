"""Gates with layers of their own, and a border whose sides are learned."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sparsebert import attend, gates, patterns
from sparsebert.errors import GateError


def _gate_of_layers(**changes: object) -> gates.Structured:
    gate = gates.Structured(length=8, heads=2, layers=3, sparsity=0.5, settings="distilled", **changes)  # type: ignore[arg-type]
    with torch.no_grad():
        gate.alpha.copy_(torch.randn(gate.alpha.shape, generator=torch.Generator().manual_seed(1)))
    return gate


def test_layers_of_a_gate_share_one_budget_and_freeze_to_a_pattern_with_layers() -> None:
    gate = _gate_of_layers()
    pattern = gate.freeze(sparsity=0.6, assured=0.0)
    assert (pattern.layers, pattern.heads) == (3, 2)
    assert abs(pattern.sparsity - 0.6) < 0.03
    assert len({len(pattern.layer(layer).keys) for layer in range(3)}) > 1
    assert pattern.at(20).layers == 3


def test_a_learned_border_spreads_each_side_and_gives_corners_to_the_columns() -> None:
    gate = gates.Structured(length=5, heads=1, learned_border=True)
    units = torch.arange(7.0)[None]  # distances 0, 1, 2; left 3, right 4, top 5, bottom 6
    assert gate.spread(units)[0].tolist() == [
        [3, 5, 5, 5, 4],
        [3, 0, 1, 2, 4],
        [3, 1, 0, 1, 4],
        [3, 2, 1, 0, 4],
        [3, 6, 6, 6, 4],
    ]
    assert gate.sizes.tolist() == [3, 4, 2, 5, 5, 3, 3]
    assert gate.fixed == 0


def test_a_learned_border_freezes_to_the_sides_that_were_kept() -> None:
    gate = gates.Structured(length=5, heads=2, learned_border=True)
    keep = np.array([[1, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 1]], dtype=bool)
    pattern = gate.pattern_of(keep)
    assert pattern.picture(0) == "#....\n##...\n#.#..\n#..#.\n#...."
    assert pattern.picture(1) == ".###.\n..#..\n.#.#.\n..#..\n.###."
    for head, units in enumerate(keep):
        found = gate.units_of(pattern.entries(head))
        assert set(found.tolist()) == set(np.flatnonzero(units).tolist())


def test_a_directed_gate_has_a_unit_for_each_offset() -> None:
    gate = gates.Structured(length=5, heads=1, learned_border=True, directed=True)
    units = torch.arange(9.0)[None]  # offsets 0, 1, 2, -1, -2; left 5, right 6, top 7, bottom 8
    assert gate.spread(units)[0].tolist() == [
        [5, 7, 7, 7, 6],
        [5, 0, 1, 2, 6],
        [5, 3, 0, 1, 6],
        [5, 4, 3, 0, 6],
        [5, 8, 8, 8, 6],
    ]
    assert gate.sizes.tolist() == [3, 2, 1, 2, 1, 5, 5, 3, 3]
    pattern = gate.pattern_of(np.array([[0, 1, 0, 0, 1, 0, 1, 0, 0]], dtype=bool))
    assert pattern.picture(0) == "....#\n..#.#\n...##\n.#..#\n....#"
    assert set(gate.units_of(pattern.entries(0)).tolist()) == {1, 4, 6}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("border", [True, False, "learned"])
def test_the_sparse_path_runs_what_the_dense_one_runs(border: object, directed: bool) -> None:
    settings = {"border": bool(border), "learned_border": border == "learned", "explore": 0.0, "directed": directed}
    dense = gates.Structured(length=9, heads=2, layers=2, path="dense", **settings)  # type: ignore[arg-type]
    sparse = gates.Structured(length=9, heads=2, layers=2, path="sparse", **settings)  # type: ignore[arg-type]
    with torch.no_grad():
        values = torch.randn(dense.alpha.shape, generator=torch.Generator().manual_seed(0)) * 3
        dense.alpha.copy_(values)
        sparse.alpha.copy_(values)
    dense.eval()
    sparse.eval()
    query, key, value = torch.randn(3, 1, 2, 9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for layer in range(2):
        from_lines = sparse.attention_arguments(None, layer)
        gate = dense.attention_arguments(None, layer).gate
        assert gate is not None
        # What the sparse path leaves out has a value of at most one half, which the dense one keeps.
        kept = torch.where(gate.values > 0.5, gate.values, torch.zeros(())).double()
        lines = attend(query, key, value, pattern=from_lines.pattern, bias=from_lines.bias.double())
        entries = attend(query, key, value, gate=kept, backend="reference")
        torch.testing.assert_close(lines, entries, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_a_ranking_gives_the_pattern_that_freezing_gives_and_nested_ones(directed: bool) -> None:
    gate = _gate_of_layers(directed=directed)
    ranking = gate.ranking()
    kept = {}
    for sparsity in (0.4, 0.6, 0.8):
        picked = patterns.from_ranking(8, 2, 3, ranking, sparsity=sparsity)
        assert abs(picked.sparsity - gate.freeze(sparsity=sparsity, assured=0.0).sparsity) < 0.02
        assert picked == gate.freeze(sparsity=picked.sparsity, assured=0.0)
        kept[sparsity] = {(layer, head, entry) for layer, head, found in picked.each_head() for entry in found.tolist()}
    assert kept[0.8] < kept[0.6] < kept[0.4]


@pytest.mark.parametrize("directed", [False, True])
def test_a_gate_with_layers_and_a_learned_border_comes_back_from_its_file(tmp_path: Path, directed: bool) -> None:
    gate = _gate_of_layers(directed=directed)
    gates.save(gate, tmp_path / "gate.safetensors")
    back = gates.load(tmp_path / "gate.safetensors")
    assert (back.layers, back.settings) == (3, gate.settings)
    assert torch.equal(back.alpha, gate.alpha)
    assert back.freeze(sparsity=0.6) == gate.freeze(sparsity=0.6)


def test_sides_are_not_learned_where_there_is_no_border() -> None:
    with pytest.raises(GateError, match="border=False"):
        gates.Structured(length=8, heads=1, border=False, learned_border=True)


def test_a_short_line_is_priced_as_a_longer_one_and_counted_as_it_is() -> None:
    plain = gates.Structured(length=8, heads=1, sparsity=0.5, border=False)
    priced = gates.Structured(length=8, heads=1, sparsity=0.5, border=False, least_price=0.5)
    for gate in (plain, priced):
        gate.dual.fill_(3.0)
        gate.penalty().backward()
    assert torch.equal(plain.penalty(), priced.penalty())
    assert torch.equal(plain.expected_density(), priced.expected_density())
    assert plain.alpha.grad is not None
    assert priced.alpha.grad is not None
    # Lines 0 to 7 have 8, 14, 12, 10, 8, 6, 4 and 2 entries; half of 8 positions is a price of 4.
    assert torch.equal(plain.alpha.grad[:, :7], priced.alpha.grad[:, :7])
    assert torch.allclose(priced.alpha.grad[:, 7], 2 * plain.alpha.grad[:, 7])


def test_a_preset_learns_no_sides_where_no_border_is_asked_for() -> None:
    gate = gates.Structured(length=8, heads=2, settings="distilled", border=False)
    assert not gate.settings.learned_border
    assert gate.alpha.shape[-1] == 15  # offsets from -7 to 7, and no side
