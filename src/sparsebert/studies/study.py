"""run_study(): a study from its name to a folder in which every run is finished."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sparsebert.errors import ConfigError, RunInterruptedError
from sparsebert.progress import Watcher
from sparsebert.settings import Count, NotNegative, Positive, check
from sparsebert.studies.cost import Cost, Estimator, estimator
from sparsebert.studies.folder import (
    claimed,
    describe,
    make_ready,
    names_with_earlier,
    record_study,
    runs_to_make,
    take_finished,
    write_study,
)
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import Phase, make_graph, name_of, names_in, phase_of, tasks_of
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.record_store import write_record
from sparsebert.studies.runs import RESULT, STUDY, Run
from sparsebert.studies.scales import Protocol, Scale, find_scale
from sparsebert.studies.scheduler import Engine, Scheduler
from sparsebert.studies.sources import find_sources

EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class StudyConfig:
    """What is asked for."""

    name: str  # a study, several joined by +, or all
    out: Path
    scale: str = "smoke"
    model: str | None = None  # None: the scale's own
    corpus: Path | None = None  # None: the built-in text
    data: Path | None = None  # None: the built-in tasks
    protocol: Protocol = "mlm"
    sts: Path | None = None  # STS sets that embeddings are scored on under distill, beside STS-B's dev rows
    finished: Path | None = None  # finished runs to take over: another study folder, or records
    record: Path | None = None  # the file in which finished runs are recorded
    engine: EngineName = "local"
    address: str | None = None  # of a Ray cluster; None: a local one
    workers: Count | None = None  # processes; None: as many as there are processors for their threads
    threads: Count = 1  # of each run
    gpus: NotNegative = 0.0  # of each run, on a Ray cluster
    max_hours: Positive | None = None  # after which it stops, with a checkpoint
    flops_per_second: Positive | None = None  # of one slot, for estimates; None: measured
    sizes: dict[str, Any] = field(default_factory=dict)  # changes to the scale

    def __post_init__(self) -> None:
        check(self)
        if self.engine == "local" and (self.address is not None or self.gpus):
            raise ConfigError(
                "an address or GPUs are given, which only the engine ray uses; choose it, or leave them out"
            )
        if self.finished is not None and self.finished != self.record and not self.finished.exists():
            raise ConfigError(f"there are no records {self.finished} to take finished runs from; check the name")
        if self.finished is not None and self.finished.is_dir() and not (self.finished / STUDY).is_file():
            raise ConfigError(
                f"{self.finished} holds no {STUDY}, so no finished runs are in it; name a study folder, or the "
                "file that --record wrote"
            )
        names_in(self.name)
        self.chosen_scale()

    @property
    def num_workers(self) -> int:
        return self.workers or max(1, len(os.sched_getaffinity(0)) // self.threads)

    def chosen_scale(self) -> Scale:
        scale = find_scale(self.scale, self.protocol).changed(self.sizes)
        if self.model is None or self.model == scale.model:
            return scale
        # The shape that a scale gives its own model is not for another one.
        return replace(scale, model=self.model, shape=self.sizes.get("shape", {}))


@dataclass(frozen=True)
class StudyPlan:
    """A study that is ready to run."""

    config: StudyConfig
    names: list[str]
    graph: Graph
    paths: StudyPaths
    missing: list[Run]
    estimator: Estimator

    @property
    def name(self) -> str:
        return name_of(self.names)

    @property
    def cost(self) -> Cost:
        """Of what is missing."""
        return self.estimator.total(self.missing)

    def by_phase(self) -> dict[Phase, Cost]:
        """What is missing, in the order in which it is made."""
        phases: dict[Phase, list[Run]] = {}
        for run in self.missing:
            phases.setdefault(phase_of(self.graph, run), []).append(run)
        return {phase: self.estimator.total(phases[phase]) for phase in sorted(phases)}


def plan_study(config: StudyConfig, built_in: Path | None = None) -> StudyPlan:
    """Find sources, make the graph, and see what is missing; trains nothing, and no study.json is written.

    built_in: where built-in text and tasks are written, if they are asked for; None: to the study folder.
    """
    scale = config.chosen_scale()
    out = config.out.absolute()
    names = names_with_earlier(config.name, out)
    given = _absolute(config.corpus), _absolute(config.data), _absolute(config.sts)
    sources = find_sources(scale, tasks_of(names, scale), built_in or out, *given)
    graph = make_graph(names, scale, sources, config.threads)
    paths = StudyPaths(out, scale.model, sources.corpus, sources.data, _absolute(config.finished), sources.sts)
    chosen = estimator(graph, paths, config.flops_per_second)
    return StudyPlan(config, names, graph, paths, runs_to_make(graph, paths), chosen)


@contextlib.contextmanager
def planned(config: StudyConfig) -> Iterator[StudyPlan]:
    """A plan whose folder is claimed and described, ready to run."""
    out = config.out.absolute()
    with claimed(out):
        plan = plan_study(config)
        plan.graph.sources.require()
        description = describe(plan.graph, plan.names)
        write_study(out, description)
        if config.record is not None:
            record_study(config.record, description)
        yield plan


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def run_study(plan: StudyPlan, watcher: Watcher) -> None:
    """Make every missing run."""
    missing = {run.id for run in plan.missing}
    take_finished([run for run in plan.graph.runs.values() if run.id not in missing], plan.paths)
    make_ready(plan.graph, plan.missing, plan.paths)
    if not plan.missing:
        return
    config = plan.config
    seconds = {run.id: plan.estimator.seconds(run) for run in plan.missing}
    phases = {run.id: phase_of(plan.graph, run) for run in plan.missing}
    scheduler = Scheduler(plan.missing, seconds, plan.paths, plan.graph.scale.checkpoint_every, phases)
    deadline = None if config.max_hours is None else time.time() + 3600 * config.max_hours
    engine = open_engine(config)
    is_done = False
    try:
        with _stopping_on_sigterm():
            # Each is recorded as it ends: a study that is killed has lost no record.
            scheduler.run(engine, watcher, deadline, ended=lambda run: record(plan, [run]))
        is_done = True
    except KeyboardInterrupt as error:
        raise RunInterruptedError("the study was stopped; the same command goes on from here", signal.SIGINT) from error
    finally:
        engine.close(at_once=not is_done)


def record(plan: StudyPlan, runs: Iterable[Run]) -> int:
    """Record those of the runs that are finished, where that is asked for; how many were new."""
    into, folder = plan.config.record, plan.paths.folder
    if into is None:
        return 0
    return sum(write_record(run, folder(run.id), into) for run in runs if (folder(run.id) / RESULT).is_file())


def open_engine(config: StudyConfig) -> Engine:
    """The engine that was asked for."""
    if config.engine == "ray":
        from sparsebert.studies.ray_engine import RayEngine

        return RayEngine(config.address, config.num_workers, config.threads, config.gpus)
    from sparsebert.studies.local import InProcess, Processes

    return InProcess() if config.num_workers == 1 else Processes(config.num_workers, config.threads)


@contextlib.contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """SIGTERM ends a study as Ctrl-C does: what runs writes a checkpoint first."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
