"""`sparsebert bench` prints what it measured; how fast that is, no test can say."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from typer.testing import CliRunner

from sparsebert import patterns
from sparsebert.attention.sparse_library import is_built
from sparsebert.cli.bench import bench
from sparsebert.embeddings.speed import _token_stream, measure_encoder
from sparsebert.errors import SparseBertError
from tests.model.sentence_cases import tiny_sentence_folder


@pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")
def test_bench_attention_prints_the_crossover() -> None:
    before = torch.get_num_threads()
    try:
        arguments = ["attention", "--length", "16", "--density", "0.2", "--density", "0.9", "--rounds", "1"]
        lines = CliRunner().invoke(bench, arguments).output.splitlines()
        assert "auto takes sparse" in lines[0]
        assert "auto takes sdpa" in lines[1]
        rows = [json.loads(line) for line in CliRunner().invoke(bench, [*arguments, "--json"]).output.splitlines()]
        assert [row["auto"] for row in rows] == ["sparse", "sdpa"]
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")
def test_bench_encoder_measures_every_variant_and_recommends_one(tmp_path: Path) -> None:
    folder, before = tiny_sentence_folder(tmp_path / "model"), torch.get_num_threads()
    asked = ["encoder", "--model", str(folder), "--precision", "fp32", "--precision", "int8", "--rounds", "1"]
    try:
        shown = CliRunner().invoke(bench, [*asked, "--lengths", "16", "--pattern", "star", "--loss", "2"])
        assert shown.exit_code == 0, shown.output
        lines = shown.output.splitlines()
        assert len(lines) == 6
        assert "dense" in lines[1]
        assert "0.0000" in lines[1]
        assert "star" in lines[4]
        assert lines[-1].startswith("At 16 tokens take ")
        made = CliRunner().invoke(bench, [*asked, "--lengths", "16", "--loss", "0", "--json"])
        rows = [json.loads(line) for line in made.stdout.splitlines()]
        assert [(row["pattern"], row["precision"]) for row in rows] == [
            (pattern, precision) for pattern in ("dense", "window_border 90%") for precision in ("fp32", "int8")
        ]
        assert rows[0]["distance"] == 0.0
        assert rows[0]["speedup"] == 1.0
        assert rows[3]["distance"] > 0
        assert "take fp32, dense" in made.stderr
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")
def test_bench_encoder_reads_whole_lines_and_says_the_sparsity_at_each_length(tmp_path: Path) -> None:
    folder, before = tiny_sentence_folder(tmp_path / "model"), torch.get_num_threads()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    whole = _token_stream(str(folder), None)[0]
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert np.array_equal(_token_stream(str(folder), None)[0], whole)
    try:
        timings = list(measure_encoder(str(folder), patterns=["star"], precisions=["fp32"], lengths=[8, 16], rounds=1))
        found = {timing.length: timing.sparsity for timing in timings if timing.pattern == "star"}
        assert found == {length: patterns.star(length).sparsity for length in (8, 16)}
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["--precision", "fp8"], "there is no precision"),
        (["--pattern", "moon"], "moon"),
        (["--lengths", "9000000"], "this text has room"),
        (["--lengths", "2"], "3 to"),
        (["--model", "scratch:tiny"], "no weights yet"),
    ],
)
def test_what_bench_encoder_cannot_measure_is_refused(tmp_path: Path, wrong: list[str], sentence: str) -> None:
    folder = tiny_sentence_folder(tmp_path / "model")
    found = CliRunner().invoke(bench, ["encoder", "--model", str(folder), *wrong])
    assert isinstance(found.exception, SparseBertError)
    assert sentence in str(found.exception)
