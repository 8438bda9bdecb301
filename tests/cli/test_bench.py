"""`sparsebert bench` prints what it measured; how fast that is, no test can say."""

import json

import pytest
import torch
from typer.testing import CliRunner

from sparsebert.attention.sparse_library import is_built
from sparsebert.cli.bench import bench


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
