"""A run's address: everything that determines the result, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from sparsebert.studies import runs
from sparsebert.studies.runs import Condition, Run

RUN = Run("adapt", {"steps": 5, "pattern": {"name": "star"}}, 0, 1, {"corpus": "c"}, ("base",), Condition("handmade"))


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "base"},
        {"config": {"steps": 6, "pattern": {"name": "star"}}},
        {"config": {"steps": 5, "pattern": {"name": "fixed"}}},
        {"seed": 1},
        {"threads": 2},
        {"data": {"corpus": "d"}},
        {"depends": ("other",)},
    ],
)
def test_anything_that_determines_a_run_changes_its_address(change: dict[str, Any]) -> None:
    assert replace(RUN, **change).address != RUN.address


def test_a_raised_recipe_number_changes_addresses_of_its_stage_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(RUN, stage="finetune")
    before = RUN.address, other.address
    monkeypatch.setitem(runs.RECIPES, "adapt", runs.RECIPES["adapt"] + 1)
    assert RUN.address != before[0]
    assert other.address == before[1]


def test_what_a_run_stands_for_is_not_part_of_its_address() -> None:
    assert replace(RUN, condition=Condition("learned")).address == RUN.address


def test_an_address_does_not_depend_on_the_order_of_settings() -> None:
    turned = {"pattern": {"name": "star"}, "steps": 5}
    assert replace(RUN, config=turned).address == RUN.address


@pytest.mark.parametrize(
    ("condition", "stage", "words"),
    [
        (Condition("handmade", "star", task="rte"), "finetune", "star rte"),
        (Condition("handmade", "star", diagonal=False), "adapt", "star without diagonal"),
        (Condition("learned", kind="structured", penalty=0.1), "search", "DAM_s λ=0.1"),
        (Condition("learned", kind="structured", penalty=0.1), "adapt", "DAM_s λ=0.1 with diagonal"),
        (Condition("learned", kind="unstructured", sparsity_target=0.95), "adapt", "DAM_u 95%"),
        (Condition("learned", kind="banded", sparsity_target=0.95), "adapt", "banded 95%"),
        (Condition("pruned", method="random", sparsity_target=0.3), "prune", "pruned 30% random"),
        (Condition("random-drop", "random-drop", draw=2), "adapt", "random-drop draw 2"),
    ],
)
def test_a_label_says_what_sets_the_condition_apart(condition: Condition, stage: runs.Stage, words: str) -> None:
    assert condition.label(stage) == words


def test_a_row_is_the_same_for_every_task_seed_and_draw() -> None:
    rows = {
        Condition("random-drop", draw=draw, task=task, seed=2 * draw).row for draw in (0, 1) for task in ("rte", None)
    }
    assert rows == {Condition("random-drop")}
    assert Condition("handmade", "star", diagonal=False).row != Condition("handmade", "star").row
