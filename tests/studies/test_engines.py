"""Two engines, one result; a worker that is killed in the middle is replaced and its run goes on."""

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sparsebert.files import read_json
from sparsebert.progress import Lines
from sparsebert.studies.attempts import attempt
from sparsebert.studies.jobs import Job, JobResult, StudyPaths
from sparsebert.studies.local import Processes
from sparsebert.studies.runs import Run
from sparsebert.studies.scheduler import Engine, Scheduler
from sparsebert.studies.study import StudyPlan, planned
from tests.studies.conftest import small_config

pytestmark = pytest.mark.long


def _some_runs(plan: StudyPlan) -> list[Run]:
    """A chain through every stage."""
    runs = plan.graph.runs
    last = next(r for r in runs.values() if r.stage == "finetune" and r.condition.method == "p")
    chosen: dict[str, Run] = {}

    def add(run: Run) -> None:
        for one in run.depends:
            add(runs[one])
        chosen[run.id] = run

    add(last)
    found = next(run for run in runs.values() if run.stage == "search")
    return [*chosen.values(), found]


def _compare(study: Path, out: Path, runs: list[Run]) -> None:
    for run in runs:
        for name in ("result.json", "metrics.jsonl", "pattern.safetensors", "gate.safetensors"):
            here, there = (folder / "runs" / run.id / name for folder in (out, study))
            assert here.exists() == there.exists()
            assert not here.exists() or here.read_bytes() == there.read_bytes(), f"{name} of {run.stage} differs"


def _make(engine: Engine, plan: StudyPlan) -> list[Run]:
    runs = _some_runs(plan)
    Scheduler(runs, {run.id: 1.0 for run in runs}, plan.paths, 1).run(engine, Lines("test"))
    return runs


def _kill_when(folder: Path, steps: int, pid: int) -> None:
    """Kill a process as soon as a run has done so many steps."""
    metrics = folder / "metrics.jsonl"
    while not metrics.is_file() or len(metrics.read_bytes().splitlines()) < steps:
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)


def test_worker_processes_give_the_same_results_even_when_one_is_killed(small_study: Path, tmp_path: Path) -> None:
    with planned(small_config(tmp_path, small_study.parent / "text")) as plan:
        base = next(iter(plan.graph.runs.values()))
        engine = Processes(workers=1, threads=1)
        pid = engine.workers[0].process.pid
        assert pid is not None
        threading.Thread(target=_kill_when, args=(plan.paths.folder(base.id), 2, pid), daemon=True).start()
        try:
            runs = _make(engine, plan)
            assert engine.workers[0].process.pid != pid
        finally:
            engine.close()
    _compare(small_study, tmp_path, runs)


def test_a_job_whose_worker_always_dies_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Processes(workers=1, threads=1)
    try:
        monkeypatch.setattr(engine, "_send", lambda worker: worker.process.kill())
        engine.submit(Job(Run("base", {}, 0, 1, {}), StudyPaths(tmp_path, "m", None, None)))
        outcome = engine.wait()
        assert outcome.error is not None
        assert "died 3 times" in outcome.error
    finally:
        engine.close(at_once=True)


def _die_once(job: Job) -> JobResult:
    """Make the run; the first process that has done two steps of the base run dies."""
    folder = job.paths.folder(job.run.id)
    if job.run.stage == "base" and not (folder / "died").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "died").touch()
        threading.Thread(target=_kill_when, args=(folder, 2, os.getpid()), daemon=True).start()
    return attempt(job)


def test_a_ray_cluster_gives_the_same_results_even_when_a_worker_is_killed(
    small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("ray") is None:  # not imported here: the engine sets what Ray reads on import
        pytest.skip("needs the extra package ray")
    from sparsebert.studies.ray_engine import RayEngine

    project = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(project / "src"), str(project)]))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 otherwise: on a busy machine a worker would not get to start
    # Ray asks clouds' metadata address what machine this is, whatever its settings; this proxy refuses for them.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    with planned(small_config(tmp_path, small_study.parent / "text")) as plan:
        base = next(iter(plan.graph.runs.values()))
        engine = RayEngine(None, workers=2, threads=1)
        try:
            assert engine.slots() == 2
            engine.task = engine.ray.remote(_die_once).options(num_cpus=1, max_retries=3)
            runs = _make(engine, plan)
        finally:
            engine.close()
        assert (plan.paths.folder(base.id) / "died").exists()
        assert len(read_json(plan.paths.folder(base.id) / "timing.json")["sessions"]) == 2
    _compare(small_study, tmp_path, runs)
