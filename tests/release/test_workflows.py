"""Workflows, hooks and forms are readable, and call what is there."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FILES = [*WORKFLOWS, *FORMS, PROJECT / ".pre-commit-config.yaml"]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job.get("steps", [])]


def test_there_is_a_workflow_for_tests_wheels_release_and_docs() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "tests", "wheels"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_readable_and_names_no_host(path: Path) -> None:
    assert read(path)
    assert "//" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_no_more_than_it_says_and_pins_its_actions(workflow: Path) -> None:
    assert read(workflow)["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", action)] == []


def test_every_make_target_that_is_called_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    called = {word for path in FILES for word in re.findall(r"\bmake ([a-z]+)", path.read_text(encoding="utf-8"))}
    assert {"check", "test", "site", "wheel"} <= called <= targets


def test_the_tests_workflow_runs_what_continuous_integration_runs() -> None:
    ours = re.findall(r"^make \w+$", (PROJECT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
    both = [step for path in WORKFLOWS[::-1] if path.stem in ("tests", "docs") for step in steps(path)]
    theirs = [step["run"] for step in both if "run" in step]
    assert theirs == ours


def test_pythons_that_are_promised_are_tested_and_have_their_wheel_tried() -> None:
    named = [line.rsplit(" ", 1)[1] for line in SETTINGS["project"]["classifiers"] if "Python :: 3." in line]
    matrix = read(PROJECT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    built = re.findall(r"cp3(\d+)", SETTINGS["tool"]["cibuildwheel"]["build"])
    assert named == matrix == [f"3.{minor}" for minor in built]


def test_wheels_of_a_release_are_repaired_as_those_of_make_wheel() -> None:
    command = SETTINGS["tool"]["cibuildwheel"]["linux"]["repair-wheel-command"]
    assert "repair --exclude libgomp.so.1" in command
    assert "repair --exclude libgomp.so.1" in (PROJECT / "release" / "wheel.sh").read_text(encoding="utf-8")
