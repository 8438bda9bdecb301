"""Distillation under kills and on two ranks: a search beside trained weights, and adapting, end with the same bits."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from sparsebert.gates import Structured
from sparsebert.model import unsparsify
from sparsebert.training import Losses, fit
from sparsebert.training.distillation import DistillationObjective
from sparsebert.training.gated import Frozen, Gated
from sparsebert.training.objective import Objective, Wrapper
from sparsebert.training.teacher import Teacher
from tests.faults.processes import die, ended, forked, forked_ranks
from tests.training.cases import LENGTH, MadeUpBatches, outcome, short_fit, small_bert

torch.set_num_threads(1)


def distillation(pattern_kept: bool) -> DistillationObjective:
    student = small_bert()
    teacher = Teacher(unsparsify(small_bert()), window=LENGTH)
    if not pattern_kept:
        unsparsify(student)
    held_out = MadeUpBatches(0, 1, "held out")
    return DistillationObjective(student, teacher, MadeUpBatches, held_out, num_held_out=2, learning_rate=3e-3)


def adapting() -> Objective:
    return distillation(pattern_kept=True)


def searching() -> Objective:
    gate = Structured(LENGTH, 2, layers=2, sparsity=0.6, steps=short_fit().num_steps, settings="distilled")
    return Frozen(Gated(distillation(pattern_kept=False), gate, seed=0), ranked=True)


KINDS: dict[str, Callable[[], Objective]] = {"adapt": adapting, "search": searching}


class Dying(Wrapper):
    """Any objective whose process is killed in the middle of a step."""

    def __init__(self, inner: Objective, at: int) -> None:
        super().__init__(inner)
        self.at = at

    def forward(self, step: int, micro: int) -> Losses:
        if step == self.at:
            die()
        return super().forward(step, micro)


def train(kind: str, folder: Path, killed_at: int = -1, **changes: Any) -> None:
    fit(Dying(KINDS[kind](), killed_at), short_fit(**changes), folder)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_in_any_step_it_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    train(kind, tmp_path / "whole")
    log = tmp_path / "log"
    for first in range(short_fit().num_steps - 2):
        folder = tmp_path / f"killed-{first}"
        for step in (first, first + 2):
            assert ended(forked(partial(train, kind, folder, step), log)) == -signal.SIGKILL, log.read_text()
        assert ended(forked(partial(train, kind, folder), log)) == 0, log.read_text()
        assert outcome(folder) == outcome(tmp_path / "whole"), first


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_make_the_run_of_one_process(kind: str, tmp_path: Path) -> None:
    parts = {"micro_batches": 2, "peer_timeout": 5.0}
    train(kind, tmp_path / "one", **parts)
    log = tmp_path / "ranks"
    codes = [ended(child) for child in forked_ranks(lambda: train(kind, tmp_path / "two", **parts), 2, log)]
    assert codes == [0, 0], [log.with_suffix(f".{rank}").read_text() for rank in range(2)]
    assert outcome(tmp_path / "two") == outcome(tmp_path / "one")
