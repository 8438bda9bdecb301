"""The comparison with other programs: what it keeps, how it goes on, what it writes."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sparsebert import patterns

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
LINES = [
    {"kind": "about", "text": "A machine.", "pattern": "abc"},
    {"kind": "speed", "input": "128", "threads": 1, "encoder": "torch float32", "tokens_per_second": 1000.0},
    {"kind": "speed", "input": "128", "threads": 1, "encoder": "OpenVINO int8", "tokens_per_second": 2000.0},
    {"kind": "speed", "input": "128", "threads": 1, "encoder": "ours int8", "tokens_per_second": 5000.0},
    {"kind": "speed", "input": "mixed", "threads": 1, "encoder": "ours int8", "tokens_per_second": 4000.0},
    {"kind": "speed", "input": "mixed", "threads": 1, "encoder": "BigBird", "tokens_per_second": 500.0},
    {"kind": "quality", "encoder": "ours int8", "mean": 80.1, "distance": 0.002},
    {"kind": "missing", "encoder": "ModernBERT", "why": "no reason"},
]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Modules of the folder, which stand beside each other there."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_the_table_has_a_row_an_encoder_and_gaps_where_nothing_was_measured(benchmark: Any) -> None:
    made = benchmark("peer_page").table(LINES, 1).split("\n")
    assert made[0] == "| encoder | 128 | mixed | mean STS | distance |"
    assert made[2:] == [
        "| torch float32 | 1,000 | - |  |  |",
        "| OpenVINO int8 | 2,000 | - |  |  |",
        "| ours int8 | 5,000 | 4,000 | 80.10 | 0.00200 |",
        "| BigBird | - | 500 |  |  |",
    ]


def test_ours_is_held_against_the_fastest_other_one(benchmark: Any) -> None:
    said = benchmark("peer_page").ratios(LINES, 1)
    assert "128: 2.50x OpenVINO int8, 5.00x torch float32" in said
    assert "mixed: 8.00x BigBird" in said


def test_the_page_changes_between_its_comments_alone_and_twice_to_the_same(benchmark: Any, tmp_path: Path) -> None:
    module, page = benchmark("peer_page"), tmp_path / "page.md"
    page.write_text(f"before\n{module.START}old\n{module.END}\nafter\n")
    module.write_page(page, LINES)
    once = page.read_text()
    assert once.startswith(f"before\n{module.START}A machine.")
    assert once.endswith(f"ModernBERT was left out: no reason.\n{module.END}\nafter\n")
    assert "old" not in once
    module.write_page(page, LINES)
    assert page.read_text() == once


def test_the_page_of_the_docs_has_its_comments(benchmark: Any) -> None:
    text = (BENCHMARKS.parent / "docs/results/encoder-peers.md").read_text()
    module = benchmark("peer_page")
    assert text.count(module.START) == text.count(module.END) == 1


def test_the_figure_is_the_same_bytes_every_time(benchmark: Any, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        benchmark("peer_page").draw(LINES, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_what_was_measured_is_not_measured_again(benchmark: Any, tmp_path: Path) -> None:
    module, path = benchmark("encoder_peers"), tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    comparison = object.__new__(module.Comparison)
    comparison.record, comparison.asked = module.Record(path), argparse.Namespace(budget=0.0)
    asked = []

    def runs(one: int | str, threads: int) -> tuple[dict[str, Any], int]:
        asked.append((one, threads))
        return {"torch float32": lambda: None, "ours int8": lambda: None}, 128

    comparison.runs = runs
    threads = torch.get_num_threads()
    comparison.speed(128, 1)
    comparison.speed(512, 1)
    torch.set_num_threads(threads)
    assert asked == [(512, 1)]
    again = module.Record(path)
    assert [line["encoder"] for line in again.lines if line.get("input") == "512"] == ["torch float32", "ours int8"]


def test_a_group_that_was_cut_off_while_it_was_written_is_measured_again(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, path = benchmark("encoder_peers"), tmp_path / "lines.jsonl"
    group = [{"kind": "speed", "input": "64", "threads": 1, "encoder": name} for name in ("one", "other")]
    record = module.Record(path)
    record.add({"kind": "about"})

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            record.add(*group)
    for seen in (record, module.Record(path)):
        assert seen.lines == [{"kind": "about"}]
        assert not seen.has(kind="speed", input="64", threads=1)
    record.add(*group)
    assert module.Record(path).lines == [{"kind": "about"}, *group]


def test_lines_of_another_pattern_are_refused(benchmark: Any, tmp_path: Path) -> None:
    module = benchmark("encoder_peers")
    record = module.Record(tmp_path / "lines.jsonl")
    module.about(record, patterns.star(16))
    module.about(module.Record(record.path), patterns.star(16))
    with pytest.raises(SystemExit, match="another pattern"):
        module.about(module.Record(record.path), patterns.window(16))


def test_an_encoder_that_cannot_be_made_is_left_out_with_its_reason(benchmark: Any, tmp_path: Path) -> None:
    module = benchmark("encoder_peers")
    record = module.Record(tmp_path / "lines.jsonl")

    def fails() -> None:
        raise ImportError("no such program\nand more")

    assert list(module.made({"one": lambda: 1, "other": fails}, record)) == ["one"]
    assert record.lines == [{"kind": "missing", "encoder": "other", "why": "no such program"}]


def test_encoders_of_other_families_have_the_shape_they_are_compared_at(benchmark: Any) -> None:
    module = benchmark("peer_encoders")
    ids = torch.randint(5, 99, (2, 40), generator=torch.Generator().manual_seed(0))
    real = (torch.arange(40) < torch.tensor([[40], [7]])).long()
    for name, make in module.FAMILIES.items():
        model = make(40)
        assert model.config.num_hidden_layers == 6, name
        with torch.no_grad():
            assert module.in_torch(module.same, model)(ids, real).shape == (2, 40, 384), name
