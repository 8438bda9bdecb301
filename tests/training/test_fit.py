import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from sparsebert.errors import ConfigError, FileError, RunInterruptedError, TrainingError
from sparsebert.files import place_folder, read_json, write_atomic
from sparsebert.layers import bfloat16 as precision
from sparsebert.training import Losses, Objective, fit
from sparsebert.training.run_folder import RunFolder
from tests.training.cases import Regression, outcome, short_fit

torch.set_num_threads(1)


class CrashError(Exception):
    pass


class Interrupted(Regression):
    """Does something in the middle of a step."""

    def __init__(self, at: int, action: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.at, self.action = at, action

    def forward(self, step: int, micro: int) -> Losses:
        if step == self.at:
            self.action()
        return super().forward(step, micro)


def crash() -> None:
    raise CrashError


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    fit(Regression(), short_fit(), folder)
    return folder


def test_every_step_has_one_line_without_a_clock_value(undisturbed: Path) -> None:
    found = lines(undisturbed)
    assert [line["step"] for line in found] == list(range(1, 13))
    assert set(found[0]) == {"step", "loss", "squares", "grad_norm", "lr", "tokens"}
    assert [line["step"] for line in found if "evaluation" in line] == [5, 10, 12]


def test_the_result_holds_the_last_evaluation_as_its_score(undisturbed: Path) -> None:
    result = json.loads((undisturbed / "result.json").read_text())
    assert result["score"] == result["metrics"]["error"] == lines(undisturbed)[-1]["evaluation"]["error"]
    assert (result["steps"], result["updates"], result["skipped_steps"], result["tokens"]) == (12, 12, 0, 192)


@pytest.mark.parametrize("at", [0, 2, 3, 7, 11])
def test_a_run_that_stopped_anywhere_resumes_to_the_same_bits(undisturbed: Path, tmp_path: Path, at: int) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(at, crash), short_fit(), tmp_path)
    result = fit(Regression(), short_fit(), tmp_path)
    assert result.resumed_from == at // 3 * 3
    assert outcome(tmp_path) == outcome(undisturbed)


def test_a_half_written_line_is_taken_back(undisturbed: Path, tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(8, crash), short_fit(), tmp_path)
    with (tmp_path / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"step": 9, "lo')
    fit(Regression(), short_fit(), tmp_path)
    assert outcome(tmp_path) == outcome(undisturbed)


def test_a_damaged_checkpoint_costs_steps_but_no_bits(undisturbed: Path, tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(8, crash), short_fit(), tmp_path)
    path = tmp_path / "checkpoints" / "step-00000006" / "optimiser.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert fit(Regression(), short_fit(), tmp_path).resumed_from == 3
    assert outcome(tmp_path) == outcome(undisturbed)


def test_a_finished_run_is_left_as_it_is(undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if path.is_file()}
    result = fit(Interrupted(0, crash), short_fit(), undisturbed)
    assert result.was_finished
    assert before == {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if path.is_file()}


@pytest.mark.parametrize("change", [{"num_steps": 13}, {"seed": 1}, {"warmup_steps": 3}, {"micro_batches": 2}])
def test_a_changed_setting_is_refused_by_name(undisturbed: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        fit(Regression(), short_fit(**change), undisturbed)


def test_what_the_caller_adds_to_the_configuration_is_held_to_as_well(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(1, crash), short_fit(), tmp_path, settings={"model": {"name": "a"}, "where": {"at": "x"}})
    with pytest.raises(ConfigError, match=r"model\.name is 'a'.*'b' now"):
        fit(Regression(), short_fit(), tmp_path, settings={"model": {"name": "b"}, "where": {"at": "x"}})
    fit(Regression(), short_fit(), tmp_path, settings={"model": {"name": "a"}, "where": {"at": "y"}})


def test_the_first_setting_of_a_part_is_named_where_there_was_none(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(1, crash), short_fit(), tmp_path, settings={"gate": {}})
    with pytest.raises(ConfigError, match=r"gate\.rate is None .* but 0\.5 now"):
        fit(Regression(), short_fit(), tmp_path, settings={"gate": {"rate": 0.5}})


def test_settings_that_change_no_bit_may_change(undisturbed: Path, tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(8, crash), short_fit(), tmp_path)
    fit(Regression(), short_fit(checkpoint_every=5, keep_checkpoints=1), tmp_path)
    assert outcome(tmp_path) == outcome(undisturbed)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_run_after_its_step_with_a_checkpoint(
    undisturbed: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    handler = signal.getsignal(number)
    with pytest.raises(RunInterruptedError, match="after step 5") as caught:
        fit(Interrupted(4, lambda: os.kill(os.getpid(), number)), short_fit(), tmp_path)
    assert caught.value.exit_code == code
    assert signal.getsignal(number) is handler
    assert fit(Regression(), short_fit(), tmp_path).resumed_from == 5
    assert outcome(tmp_path) == outcome(undisturbed)


def test_the_folder_of_several_runs_is_not_taken_for_a_finished_one(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"score": 1.0}')
    with pytest.raises(FileError, match=r"result\.json but no run\.json"):
        fit(Regression(), short_fit(), tmp_path)


def test_a_folder_may_be_named_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found").mkdir()
    fit(Regression(), short_fit(), tmp_path / "run", settings={"model": "found"})
    assert fit(Regression(), short_fit(), tmp_path / "run", settings={"model": "./found/"}).was_finished
    with pytest.raises(ConfigError, match="model is 'found'"):
        fit(Regression(), short_fit(), tmp_path / "run", settings={"model": "lost"})


class Signalled(Regression):
    """Is asked to stop after the last step."""

    def finish(self, folder: Path) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGINT)
        return super().finish(folder)


def test_a_signal_after_the_last_step_reaches_whoever_made_the_run(undisturbed: Path, tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        fit(Signalled(), short_fit(), tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert outcome(tmp_path) == outcome(undisturbed)  # the run itself is finished


def test_a_step_that_is_not_finite_is_skipped_and_counted(tmp_path: Path) -> None:
    result = fit(Regression(broken_steps=(3, 6)), short_fit(), tmp_path)
    assert (result.fields["skipped_steps"], result.fields["updates"]) == (2, 10)
    skipped = [line for line in lines(tmp_path) if line.get("skipped")]
    assert [line["step"] for line in skipped] == [4, 7]
    assert [line["loss"] for line in skipped] == [None, None]


def test_a_run_that_stays_broken_stops_and_names_the_step(tmp_path: Path) -> None:
    objective = Regression(broken_steps=tuple(range(4, 12)))
    with pytest.raises(TrainingError, match="3 steps in a row, the last of them step 7"):
        fit(objective, short_fit(max_skipped=3), tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000003", "step-00000006"]


def test_skipped_steps_are_remembered_over_a_restart(tmp_path: Path) -> None:
    broken = (1, 4, 5, 6)
    with pytest.raises(CrashError):
        fit(Interrupted(6, crash, broken_steps=broken), short_fit(max_skipped=3), tmp_path)
    with pytest.raises(TrainingError, match="step 7"):
        fit(Regression(broken_steps=broken), short_fit(max_skipped=3), tmp_path)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path).claimed(), pytest.raises(FileError, match="another process is running"):
        fit(Regression(), short_fit(), tmp_path)


def test_a_resumed_run_computes_with_the_threads_it_began_with(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        fit(Interrupted(4, crash), short_fit(), tmp_path)
    torch.set_num_threads(2)
    try:
        fit(Regression(), short_fit(), tmp_path)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def test_cutting_the_batch_changes_nothing_but_rounding(tmp_path: Path) -> None:
    losses = []
    for parts in (1, 2, 4):
        fit(Regression(dropout=0.0), short_fit(micro_batches=parts), tmp_path / str(parts))
        losses.append(torch.tensor([line["loss"] for line in lines(tmp_path / str(parts))]))
    assert torch.allclose(losses[0], losses[1], rtol=1e-5)
    assert torch.allclose(losses[0], losses[2], rtol=1e-5)


def test_the_callers_random_numbers_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit(Regression(), short_fit(num_steps=2), tmp_path)
    assert torch.equal(torch.rand(2), expected)


def test_a_group_may_stand_apart_from_clipping_and_decay_of_its_rate(tmp_path: Path) -> None:
    class TwoGroups(Objective):
        def __init__(self) -> None:
            super().__init__()
            self.weights, self.gate = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
            self.seen: list[tuple[float, float]] = []

        def forward(self, step: int, micro: int) -> Losses:
            return Losses(3 * self.weights.sum() + 4 * self.gate.sum())

        def parameter_groups(self) -> list[dict[str, Any]]:
            gate = {"params": [self.gate], "lr": 1.0, "weight_decay": 0.0, "schedule": "constant", "clip": False}
            return [{"params": [self.weights], "lr": 1.0, "weight_decay": 0.0}, gate]

        def after_step(self, step: int) -> None:
            assert self.weights.grad is not None
            assert self.gate.grad is not None
            self.seen.append((float(self.weights.grad), float(self.gate.grad)))

    objective = TwoGroups()
    fit(objective, short_fit(num_steps=4, warmup_steps=0), tmp_path)
    assert objective.seen[0] == (pytest.approx(1.0), pytest.approx(4.0))
    # Adam moves a constant gradient by its rate: the linear schedule sums to 2.5 peak rates, the constant one to 4.
    assert float(objective.weights.detach()) == pytest.approx(-2.5, rel=1e-3)
    assert float(objective.gate.detach()) == pytest.approx(-4.0, rel=1e-3)


def test_event_files_are_written_when_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    fit(Regression(), short_fit(num_steps=2, tensorboard=True), tmp_path)
    assert list((tmp_path / "tensorboard").glob("events*"))


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the trial product of bfloat16 something else, on a processor that says it has AMX."""

    def pretend(product: str) -> None:
        monkeypatch.setattr(precision, "_advertises_amx", lambda: True)
        monkeypatch.setattr(precision, "_PRODUCT", product)
        precision.require_bfloat16.cache_clear()

    yield pretend
    precision.require_bfloat16.cache_clear()


def test_bfloat16_is_refused_where_a_product_kills_the_process(tmp_path: Path, processor: Any) -> None:
    processor("import os; os.kill(os.getpid(), 4)")
    with pytest.raises(ConfigError, match="ONEDNN_MAX_CPU_ISA"):
        fit(Regression(), short_fit(num_steps=2, precision="bfloat16"), tmp_path)
    assert not (tmp_path / "run.json").exists()


def test_bfloat16_trains_with_float32_weights(tmp_path: Path, processor: Any) -> None:
    processor("pass")  # products as small as these do not reach AMX
    objective = Regression()
    fit(objective, short_fit(num_steps=2, precision="bfloat16"), tmp_path)
    assert all(parameter.dtype == torch.float32 for parameter in objective.parameters())


def test_a_first_step_that_fails_does_not_bind_the_next_start(tmp_path: Path) -> None:
    class Broken(Regression):
        def forward(self, step: int, micro: int) -> Losses:
            raise ConfigError("this batch cannot be")

    with pytest.raises(ConfigError, match="cannot be"):
        fit(Broken(), short_fit(num_steps=2), tmp_path, settings={"rate": "abc"})
    assert not (tmp_path / "run.json").exists()
    fit(Regression(), short_fit(num_steps=2), tmp_path, settings={"rate": 0.05})
    assert read_json(tmp_path / "run.json")["settings"] == {"rate": 0.05}


class _Leaves(Regression):
    """Leaves a file and a folder, as models and patterns are left."""

    def finish(self, folder: Path) -> dict[str, Any]:
        write_atomic(folder / "pattern", b"entries")
        place_folder(folder / "model", lambda part: write_atomic(part / "weights", b"numbers"))
        return super().finish(folder)


def _in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], set[str]]:
    """What fit() brings to the disk, and what of its folder was not there when result.json got its name."""
    synced: dict[int, int] = {}  # size at the last sync, by inode
    names: list[str] = []
    missed: set[str] = set()
    fsync, replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        about = os.fstat(descriptor)
        synced[about.st_ino] = about.st_size
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def rename(source: str, target: Path) -> None:
        if Path(target).name == "result.json":
            left = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
            missed.update(path.name for path in left if synced.get(path.stat().st_ino) != path.stat().st_size)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    return names, missed


def test_everything_is_on_the_disk_before_the_result_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, missed = _in_order(tmp_path, monkeypatch)
    fit(_Leaves(), short_fit(), tmp_path)
    assert (tmp_path / "result.json").exists()
    assert missed == set()


def test_a_checkpoint_is_published_after_the_steps_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, _ = _in_order(tmp_path, monkeypatch)
    with pytest.raises(CrashError):
        fit(Interrupted(3, crash), short_fit(), tmp_path)
    assert names.index("metrics.jsonl") < names.index("manifest.json") < names.index(".step-00000003.part")
    assert names[-1] == "checkpoints"


def test_a_short_run_that_leaves_no_checkpoint_is_synced_a_few_times(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, _ = _in_order(tmp_path, monkeypatch)
    fit(Regression(), short_fit(checkpoint_every=100), tmp_path, leave_checkpoint=False)
    assert not (tmp_path / "checkpoints").exists()
    assert outcome(tmp_path) == outcome(undisturbed)
    assert len(names) <= 7, names


def test_a_run_that_leaves_no_checkpoint_resumes_from_the_one_before_the_end(undisturbed: Path, tmp_path: Path) -> None:
    class Fails(Regression):
        def finish(self, folder: Path) -> dict[str, Any]:
            raise CrashError

    with pytest.raises(CrashError):
        fit(Fails(), short_fit(), tmp_path, leave_checkpoint=False)
    assert fit(Regression(), short_fit(), tmp_path, leave_checkpoint=False).resumed_from == 9
    assert outcome(tmp_path) == outcome(undisturbed)
