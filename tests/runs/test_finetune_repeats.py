"""Several seeds of one run, and the grid of the appendix."""

from pathlib import Path

import pytest

from sparsebert.files import read_json
from sparsebert.runs import FinetuneRun
from sparsebert.runs.finetune_repeats import Scores, run_grid, run_seeds


def test_seeds_are_summed_up_with_mean_deviation_and_interval(tmp_path: Path) -> None:
    scores = {0: 80.0, 1: 82.0, 2: 84.0}

    def make(run: FinetuneRun, folder: Path) -> dict[str, object]:
        score = scores[run.seed]
        return {"metric": "accuracy", "score": score, "metrics": {"accuracy": score}}

    fields = run_seeds(FinetuneRun("rte", "d", "m"), [0, 1, 2], tmp_path, make)
    assert (fields["score"], fields["deviation"]) == (82.0, 2.0)
    # t(0.975, 2) = 4.3027, over sqrt(3) * 2.
    assert fields["interval"] == pytest.approx([82 - 4.9683, 82 + 4.9683], abs=1e-3)
    assert Scores((80.0,)).interval is None


def test_the_grid_takes_what_serves_best_on_dev(tmp_path: Path) -> None:
    tried = []

    def make(run: FinetuneRun, folder: Path) -> dict[str, object]:
        tried.append((run.learning_rate, run.weight_decay, run.seed))
        score = 90.0 if (run.learning_rate, run.weight_decay) == (3e-5, 0.01) else 70.0
        return {"metric": "accuracy", "score": score, "metrics": {"accuracy": score}}

    fields = run_grid(FinetuneRun("rte", "d", "m"), [0, 1], tmp_path, make)
    assert len(set(tried[:12])) == 12
    assert tried[12:] == [(3e-5, 0.01, 0), (3e-5, 0.01, 1)]
    assert fields["score"] == 90.0
    assert read_json(tmp_path / "grid.json")["best"]["learning_rate"] == 3e-5
