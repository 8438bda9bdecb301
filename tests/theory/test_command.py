import json

import pytest
import typer
from typer.testing import CliRunner

from sparsebert import patterns
from sparsebert.cli.theory import theory
from sparsebert.errors import TheoryError

app = typer.Typer()
app.command()(theory)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_the_audit_is_printed_and_written(tmp_path):
    result = run("--tokens", "3", "--width", "1", "--resolution", "4", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "any one entry of q decodes" in result.stdout
    written = json.loads((tmp_path / "audit.json").read_text())
    for entry in written:
        assert {"claim", "where", "verdict", "checked", "bounds", "counter_example"} <= set(entry)
        assert entry["verdict"] in ("holds", "fails", "not checked")
        assert (entry["counter_example"] is not None) == (entry["verdict"] == "fails")
    assert (tmp_path / "audit.svg").is_file()
    assert (tmp_path / "shifts.svg").is_file()


def test_json_holds_the_counter_example_in_multiples_of_delta():
    findings = json.loads(run("--tokens", "4", "--resolution", "6", "--json").stdout)
    identity = next(entry for entry in findings if entry["claim"] == "l~_n is the unique identity of the input")
    assert identity["counter_example"]["inputs"] == [[0, 2, 3, 5], [1, 2, 4, 5]]


def test_the_control_says_where_it_breaks():
    result = run("--show", "control", "--tokens", "6", "--resolution", "2")
    assert "phase 4" in result.stdout


def test_a_saved_pattern_is_viewed_at_its_own_length(tmp_path):
    patterns.star(length=24, heads=2).without_diagonal().save(tmp_path / "star.safetensors")
    found = json.loads(run("--pattern", str(tmp_path / "star.safetensors"), "--json").stdout)
    assert (found["length"], found["heads"], found["layers"]) == (24, 2, 2)


def test_a_named_pattern_is_viewed_in_words():
    result = run("--pattern", "window", "--length", "10")
    assert "every token has heard every other after 9 layers" in result.stdout


def test_too_few_tokens_are_refused_in_one_sentence():
    with pytest.raises(TheoryError, match="at least 3"):
        run("--tokens", "2")
