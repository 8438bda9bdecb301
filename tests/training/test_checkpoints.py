import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert.errors import FileError, TrainingError
from sparsebert.files import verified_files
from sparsebert.training.checkpoints import Checkpoints, RunState
from tests.training.cases import Regression

torch.set_num_threads(1)


def trained(steps: int = 3) -> tuple[Regression, torch.optim.Optimizer]:
    objective = Regression(dropout=0.0)
    optimiser = torch.optim.AdamW(objective.parameter_groups(), fused=True)
    for step in range(steps):
        optimiser.zero_grad()
        objective(step, 0).total.backward()
        optimiser.step()
    return objective, optimiser


def published(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "checkpoints"
    Checkpoints(folder, keep=2).save(RunState(step=3), *trained())
    return folder


def test_weights_and_moments_come_back_to_the_bit(saved: Path) -> None:
    objective, optimiser = trained()
    other = Regression()
    other_optimiser = torch.optim.AdamW(other.parameter_groups(), fused=True)
    assert Checkpoints(saved, keep=2).load(3, other, other_optimiser) == RunState(step=3)
    for name, tensor in objective.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
    for mine, theirs in zip(objective.parameters(), other.parameters(), strict=True):
        assert optimiser.state[mine].keys() == other_optimiser.state[theirs].keys()
        for key, value in optimiser.state[mine].items():
            assert torch.equal(value, other_optimiser.state[theirs][key])


def test_the_newest_are_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 10):
        checkpoints.save(RunState(step=step), *trained(1))
    assert published(tmp_path) == ["step-00000002", "step-00000010"]
    assert checkpoints.newest() == 10


def test_what_a_killed_writer_left_is_swept_and_never_taken_for_a_checkpoint(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "step-00000003", tmp_path / "step-00000003")
    shutil.copytree(saved / "step-00000003", tmp_path / ".step-00000009.part")
    shutil.copytree(saved / "step-00000003", tmp_path / ".step-00000001.old")
    assert Checkpoints(tmp_path, keep=2).newest() == 3
    assert published(tmp_path) == ["step-00000003"]


@settings(max_examples=60)
@given(st.data())
def test_any_flipped_bit_is_noticed(saved: Path, data: st.DataObject) -> None:
    folder = saved / "step-00000003"
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    good = path.read_bytes()
    bit = data.draw(st.integers(0, len(good) * 8 - 1))
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << (bit % 8)
    try:
        path.write_bytes(bad)
        with pytest.raises(FileError):
            list(verified_files(folder))
    finally:
        path.write_bytes(good)


@pytest.mark.parametrize("damage", ["cut", "missing", "extra", "manifest"])
def test_a_damaged_checkpoint_is_set_aside_by_name_and_the_one_before_is_used(
    saved: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    for step in (3, 6):
        shutil.copytree(saved / "step-00000003", tmp_path / f"step-{step:08d}")
    newest = tmp_path / "step-00000006"
    weights = newest / "objective.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "missing":
        weights.unlink()
    elif damage == "extra":
        (newest / "more").touch()
    else:
        (newest / "manifest.json").unlink()
    assert Checkpoints(tmp_path, keep=2).newest() == 3
    assert "step-00000006 is refused" in caplog.text
    assert published(tmp_path) == ["step-00000003", "step-00000006.refused"]


def test_without_a_checkpoint_the_run_starts_at_zero(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none", keep=2).newest() == 0


@pytest.mark.parametrize("where", ["weights", "moments"])
def test_a_value_that_is_not_finite_is_never_written(tmp_path: Path, where: str) -> None:
    objective, optimiser = trained()
    parameter = next(objective.parameters())
    with torch.no_grad():
        target = parameter if where == "weights" else optimiser.state[parameter]["exp_avg_sq"]
        target.view(-1)[3] = float("nan")
    with pytest.raises(TrainingError, match=r"net\.0\.weight.*step 3"):
        Checkpoints(tmp_path / "none", keep=2).save(RunState(step=3), objective, optimiser)
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsebert.files.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(FileError, match="MiB free"):
        Checkpoints(tmp_path, keep=2).save(RunState(step=1), *trained(1))
    assert published(tmp_path) == []


def test_a_checkpoint_of_another_objective_is_refused(saved: Path) -> None:
    objective = Regression()
    objective.extra = torch.nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(objective.parameters())
    with pytest.raises(TrainingError, match="extra"):
        Checkpoints(saved, keep=2).load(3, objective, optimiser)
