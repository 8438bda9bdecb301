"""Every example runs as its first lines say, offline, and leaves what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
LEAVES = {
    "what_matters": ["importance.png"],
    "sparse_embeddings": [f"found/model/{name}" for name in ("modules.json", "pattern.safetensors", "README.md")],
    "long_documents": ["embeddings.npy"],
    "trainer": ["model/config.json", "checkpoints/checkpoint-60/gate.safetensors"],
    "own_pattern": ["pattern.safetensors", "near-and-far.png"],
}


def test_every_script_is_known_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*LEAVES, "texts"}


@pytest.mark.long
@pytest.mark.parametrize("name", LEAVES)
def test_a_script_runs_and_leaves_what_it_promises(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [file for file in LEAVES[name] if not (tmp_path / "out" / file).is_file()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.long
def test_the_notebook_runs_from_top_to_bottom_and_draws_three_pictures() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `site`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `site`")
    pytest.importorskip("ipykernel", reason="needs the extra `site`")
    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == []  # nothing is committed that goes stale
    place = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=300, resources=place).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/png" in output["data"] for output in shown) == 3


def test_no_row_of_the_shared_text_comes_twice_so_what_is_held_out_was_not_learned_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    from texts import rows

    from sparsebert.text import load_tokenizer

    ids = rows(load_tokenizer("minilm"), 64)
    assert len(ids.unique(dim=0)) == len(ids) > 64 + 200
