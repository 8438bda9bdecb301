"""A small study that is killed; python -m scorecard.study_kills does it to a large one."""

from pathlib import Path
from typing import Any

import pytest

from scorecard.study_kills import disturb
from sparsebert.files import canonical_json
from sparsebert.progress import Lines
from sparsebert.studies.study import StudyConfig, planned, run_study

SIZES: dict[str, Any] = {"stage_sparsities": [0.9], "stage_tasks": ["rte"], "base_steps": 20, "checkpoint_every": 1}


@pytest.mark.long
def test_a_study_that_is_killed_goes_on_and_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    with planned(StudyConfig("stages", calm, workers=1, flops_per_second=1e10, sizes=SIZES)) as plan:
        run_study(plan, Lines("undisturbed"))
    sizes = [word for name, value in SIZES.items() for word in ("--set", f"{name}={canonical_json(value)}")]
    words = ["study", "stages", "--workers", "1", "--device-flops", "1e10", *sizes]
    found = disturb(words, tmp_path / "disturbed", calm, kills=1, seed=0)
    assert found.repeated == []
    assert found.different == []
