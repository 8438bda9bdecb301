"""The command line as a whole: starts fast, teaches, and fails in one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparsebert import Pattern, patterns
from sparsebert.cli import app, main

_HEAVY = ("torch", "transformers", "numpy", "matplotlib", "sklearn", "scipy", "tokenizers", "datasets", "ray")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, sparsebert.cli; print([name for name in sys.argv[1:] if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code, *_HEAVY], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_pattern_as_json_tells_what_it_keeps() -> None:
    told = json.loads(run("pattern", "star", "--length", "128", "--heads", "12", "--json"))
    assert (told["length"], told["heads"], told["kept"]) == (128, 12, 12 * 634)
    assert told["sparsity"] == pytest.approx(0.9613, abs=1e-4)
    assert told["digest"] == patterns.star(128, heads=12).digest


def test_pattern_as_words_shows_a_picture() -> None:
    output = run("pattern", "star", "--length", "4")
    words = "star: length 4, heads 1, kept 14 of 16, sparsity 12.500%, 3.5 keys a query"
    assert output == f"{words}\n####\n###.\n####\n#.##\n"


def test_a_layer_is_shown_and_a_sparsity_picked_from_a_ranking(tmp_path: Path) -> None:
    saved = str(tmp_path / "p.safetensors")
    ranking = [(1, 0, 0), (0, 0, 1), (0, 0, 0), (1, 0, 1)]
    patterns.from_ranking(4, 1, 2, ranking, sparsity=0.1).save(saved)
    output = run("pattern", saved, "--sparsity", "0.1875", "--layer", "1")
    assert output.startswith(f"{saved}: length 4, layers 2, heads 1, kept 26 of 32, sparsity 18.750%, 3.2 keys a query")
    assert output.endswith("####\n##.#\n#.##\n####\n")
    told = json.loads(run("pattern", "window_border", "--sparsity", "0.9", "--json"))
    assert told["rule"]["arguments"] == {"radius": 4}
    assert told["keys_per_query"] == 1622 / 128


def test_pattern_is_saved_drawn_and_read_again(tmp_path: Path) -> None:
    saved, figure = tmp_path / "p.safetensors", tmp_path / "p.svg"
    run("pattern", "longformer", "--set", "reading=text", "--seed", "3", "--out", str(saved), "--figure", str(figure))
    assert Pattern.load(saved) == patterns.longformer(128, reading="text", seed=3)
    assert figure.read_text().startswith("<?xml")
    longer = json.loads(run("pattern", str(saved), "--length", "256", "--json"))
    assert longer["digest"] == patterns.longformer(256, radius=2, seed=3).digest


def test_the_names_can_be_listed() -> None:
    assert {"star", "big_bird", "strided", "fixed", "log_sparse", "longformer"} <= set(run("pattern", "list").split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pattern", "sun"], "no pattern called 'sun'"),
        (["pattern", "star", "--set", "rays"], "expected key=value"),
        (["pattern", "star", "--set", "rays=3"], "no setting 'rays'"),
        (["pattern", "star", "--set", "heads=3"], "heads has an option of its own"),
        (["pattern", "star", "--figure", "star.bmp"], "must end in .png"),
        (["pattern", "star", "--length", "0"], "at least 1"),
        (["pattern", "star", "--head", "4"], "no head 4"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_two(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sparsebert", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("error: ")
    assert words in message
    assert "\n" not in message
