"""Every Python block of the README and the docs runs as written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparsebert import Pattern, load_model
from tests.docs.pages import PAGES, blocks, name_of
from tests.docs.python_blocks import run
from tests.docs.stages import STAGES

RUN_ELSEWHERE = ("docs/extending.md",)  # by test_extending.py, which puts the tables back
# What a page's code leaves behind, in the folder or under its names; some pages assert it themselves.
LEFT: dict[str, Callable[[dict[str, Any]], bool]] = {
    "README.md": lambda names: (
        Pattern.load("longer.safetensors") == names["pattern"].at(4096)
        and load_model("sparse-minilm").pattern == names["pattern"]
        and names["output"].shape == (1, 12, 128, 64)
    ),
    "docs/batches.md": lambda names: names["batch"].input_ids.shape == (32, 128),
    "docs/embeddings.md": lambda names: names["vectors"].shape == (2, 384),
    "docs/exporting.md": lambda names: Path("classifier.onnx").is_file(),
    "docs/installing.md": lambda names: names["query"].shape == (1, 2, 64, 16),
    "docs/families.md": lambda names: Path("sparse/pattern.safetensors").is_file(),
    "docs/learning.md": lambda names: abs(names["pattern"].sparsity - 0.93) < 0.05 and names["gate"].steps == 6,
    "docs/results/packed-rows.md": lambda names: names["states"].shape == (1, 12, 384),
    "docs/training.md": lambda names: (
        len(Path("runs/mine/metrics.jsonl").read_text().splitlines()) >= 20
        and names["result"].folder == Path("runs/mine")
    ),
}
WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if name_of(page) not in RUN_ELSEWHERE], ids=name_of)
def test_the_python_of_a_page_runs_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    defined = run(page, STAGES[name_of(page)]())
    assert LEFT[name_of(page)](defined), "the page ran, but did not leave what it says"


def test_a_block_says_what_language_it_is_where_that_can_be_run() -> None:
    silent = [
        f"{name_of(page)}:{block.first_line}"
        for page in PAGES
        for block in blocks(page)
        if block.language == "" and block.code.startswith(("import ", "from "))
    ]
    assert silent == []
