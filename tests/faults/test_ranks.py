"""Several ranks make the run of one process; a rank that is lost ends the others, and the run resumes to the bit."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sparsebert.training import Losses, fit
from sparsebert.training.pretraining import PretrainingObjective
from sparsebert.training.watchdog import EXIT_CODE
from tests.faults.processes import die, ended, forked_ranks
from tests.training.cases import MadeUpBatches, outcome, short_fit, small_bert

torch.set_num_threads(1)
LOST = (2, EXIT_CODE)  # the error of a broken collective, or the watchdog's


class Watched(PretrainingObjective):
    """Runs something on one rank at the beginning of a step."""

    on_step: Callable[[int, int], None] | None = None

    def forward(self, step: int, micro: int) -> Losses:
        if self.on_step is not None:
            self.on_step(step, int(os.environ.get("RANK", "0")))
        return super().forward(step, micro)


def train(folder: Path, on_step: Callable[[int, int], None] | None = None) -> None:
    objective = Watched(
        small_bert(), MadeUpBatches, MadeUpBatches(0, 1, "held out"), num_held_out=2, learning_rate=3e-3
    )
    objective.on_step = on_step
    fit(objective, short_fit(micro_batches=2, peer_timeout=2.0), folder)


def on_rank(rank: int, at: int, action: Callable[[], object]) -> Callable[[int, int], None]:
    def check(step: int, own_rank: int) -> None:
        if (step, own_rank) == (at, rank):
            action()

    return check


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    train(folder)
    return folder


def finish_on_two_ranks(folder: Path) -> None:
    log = folder.with_suffix(".resumed")
    codes = [ended(child) for child in forked_ranks(lambda: train(folder), 2, log)]
    assert codes == [0, 0], [log.with_suffix(f".{rank}").read_text() for rank in range(2)]


def test_two_ranks_make_the_run_of_one_process_to_the_bit(undisturbed: Path, tmp_path: Path) -> None:
    finish_on_two_ranks(tmp_path / "run")
    assert outcome(tmp_path / "run") == outcome(undisturbed)


def check_lost_rank(undisturbed: Path, folder: Path, rank: int, at: int) -> None:
    log = folder.with_suffix(".lost")
    children = forked_ranks(lambda: train(folder, on_rank(rank, at, die)), 2, log)
    codes = [ended(child) for child in children]
    assert codes[rank] == -signal.SIGKILL
    assert codes[1 - rank] in LOST
    finish_on_two_ranks(folder)
    assert outcome(folder) == outcome(undisturbed)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_other_and_the_run_resumes(undisturbed: Path, tmp_path: Path, rank: int) -> None:
    check_lost_rank(undisturbed, tmp_path / "run", rank, at=7)


@pytest.mark.long
def test_a_rank_is_killed_at_many_steps(undisturbed: Path, tmp_path: Path) -> None:
    for number, at in enumerate((0, 3, 5, 8, 11)):
        check_lost_rank(undisturbed, tmp_path / f"run-{at}", number % 2, at)


def test_a_rank_that_stands_still_ends_the_one_that_waits_for_it(undisturbed: Path, tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"

    def stand_still() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    waiting, still = forked_ranks(lambda: train(folder, on_rank(1, 4, stand_still)), 2, log)
    try:
        assert ended(waiting) == EXIT_CODE
        assert "rank 1 gave no sign of life" in log.with_suffix(".0").read_text()
    finally:
        os.kill(still, signal.SIGKILL)
        ended(still)
    finish_on_two_ranks(folder)
    assert outcome(folder) == outcome(undisturbed)


def test_a_signal_to_one_rank_ends_both_after_the_same_step(undisturbed: Path, tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"

    def ask() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    children = forked_ranks(lambda: train(folder, on_rank(1, 4, ask)), 2, log)
    assert [ended(child) for child in children] == [143, 143]
    assert (folder / "checkpoints" / "step-00000005").is_dir()
    finish_on_two_ranks(folder)
    assert outcome(folder) == outcome(undisturbed)


def test_an_error_on_the_rank_that_writes_ends_the_other(tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"

    def fail() -> None:
        raise ValueError("no more")

    children = forked_ranks(lambda: train(folder, on_rank(0, 4, fail)), 2, log)
    codes = [ended(child) for child in children]
    assert codes[0] == 1
    assert codes[1] in LOST
