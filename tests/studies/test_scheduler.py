"""The order of runs, and what happens when some cannot be made; with an engine that only pretends."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparsebert.errors import RunInterruptedError, StudyError
from sparsebert.progress import Watcher
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import phase_of
from sparsebert.studies.jobs import Job, JobResult, StudyPaths
from sparsebert.studies.scheduler import Scheduler

PLACE = StudyPaths(Path("nowhere"), "m", None, None)


class Pretended:
    """Finishes jobs in the order they came."""

    def __init__(self, slots: int = 2, failing: str = "", interrupted: bool = False) -> None:
        self.jobs: list[Job] = []
        self.made: list[str] = []
        self.most_at_once = 0
        self.number, self.failing, self.interrupted = slots, failing, interrupted

    def slots(self) -> int:
        return self.number

    def submit(self, job: Job) -> None:
        assert set(job.run.depends) <= set(self.made)
        self.jobs.append(job)
        self.most_at_once = max(self.most_at_once, len(self.jobs))

    def wait(self) -> JobResult:
        run = self.jobs.pop(0).run
        self.made.append(run.id)
        if run.stage == self.failing:
            return JobResult(run.id, "no luck", is_interrupted=self.interrupted)
        return JobResult(run.id)

    def close(self, *, at_once: bool = False) -> None:
        pass


class Remembering(Watcher):
    def __init__(self) -> None:
        self.total, self.done, self.left = 0, list[int](), list[float]()

    def start(self, done: int, total: int) -> None:
        self.total = total

    def step(self, done: int, words: str, left: float) -> None:
        self.done.append(done)
        self.left.append(left)


def _scheduler(graph: Graph, seconds: float = 1.0) -> Scheduler:
    runs = list(graph.runs.values())
    return Scheduler(runs, {run.id: seconds for run in runs}, PLACE, 10)


def test_every_run_is_made_once_after_what_it_depends_on(graph_of: Callable[..., Graph]) -> None:
    graph, engine, watcher = graph_of("all"), Pretended(), Remembering()
    _scheduler(graph).run(engine, watcher)
    assert sorted(engine.made) == sorted(graph.runs)
    assert engine.most_at_once == 2
    assert watcher.total == len(graph.runs)
    assert watcher.done == list(range(1, len(graph.runs) + 1))
    assert watcher.left[-1] == 0


def test_the_longest_chain_goes_first(graph_of: Callable[..., Graph]) -> None:
    graph, engine = graph_of("pruning"), Pretended(slots=1)
    _scheduler(graph).run(engine, Remembering())
    stages = [graph.runs[one].stage for one in engine.made]
    assert stages[:3] == ["base", "importance", "prune"]


def test_an_earlier_phase_goes_before_a_longer_chain(graph_of: Callable[..., Graph]) -> None:
    graph, engine = graph_of("all"), Pretended(slots=1)
    runs = list(graph.runs.values())
    phases = {run.id: phase_of(graph, run) for run in runs}
    Scheduler(runs, {run.id: 1.0 for run in runs}, PLACE, 10, phases).run(engine, Remembering())
    assert [phases[one] for one in engine.made] == sorted(phases.values())
    assert [graph.runs[one].stage for one in engine.made[:3]] == ["base", "importance", "importance"]


def test_a_failed_run_takes_its_followers_with_it_and_no_others(graph_of: Callable[..., Graph]) -> None:
    graph, engine = graph_of("patterns"), Pretended(failing="search")
    with pytest.raises(StudyError, match=r"20 runs failed.*search DAM_u.*no luck"):
        _scheduler(graph).run(engine, Remembering())
    families = {graph.runs[one].condition.family for one in engine.made if graph.runs[one].stage == "finetune"}
    assert families == {"handmade"}


def test_an_interrupted_run_stops_the_study(graph_of: Callable[..., Graph]) -> None:
    engine = Pretended(failing="base", interrupted=True)
    with pytest.raises(RunInterruptedError, match="stopped"):
        _scheduler(graph_of("patterns")).run(engine, Remembering())


def test_nothing_is_begun_when_time_is_up(graph_of: Callable[..., Graph]) -> None:
    engine = Pretended()
    with pytest.raises(StudyError, match=r"time is up.*same command goes on"):
        _scheduler(graph_of("importance")).run(engine, Remembering(), deadline=time.time() - 1)
    assert engine.made == []
