"""make(): one run of a study, from its job to result.json, through the one training loop.

Called again after a kill it goes on from the last checkpoint; a finished run is left as it is.
"""

import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sparsebert import gates
from sparsebert.embeddings import Encoder, mean_similarity, read_similarity, similarity_scores
from sparsebert.errors import ConfigError
from sparsebert.files import read_json, synced_together, write_json
from sparsebert.importance.saved import write_summary
from sparsebert.patterns import Pattern
from sparsebert.progress import Watcher
from sparsebert.runs import AdaptRun, FinetuneRun, ImportanceRun, Prepared, PretrainRun, PruneRun, SearchRun
from sparsebert.runs.text import TextRun
from sparsebert.studies.folder import tidy
from sparsebert.studies.jobs import Job
from sparsebert.studies.runs import RESULT, Run
from sparsebert.studies.sources import sts_files
from sparsebert.studies.stated_patterns import stated_pattern
from sparsebert.text import TokenStore
from sparsebert.training import Objective, fit
from sparsebert.training.recorded import Files, Recorded
from sparsebert.training.starting_points import shape_of

_HELD_OUT_SEED = 0  # of the held-out batches: every run of a study is measured on the same ones
# Words of an objective about itself that mean a task's score to whoever reads a study.
_OWN_WORDS = ("task", "metric", "score", "verdict", "table")


def make(job: Job) -> None:
    """Make the run, in this process."""
    folder = job.paths.folder(job.run.id)
    if (folder / RESULT).is_file():
        return
    torch.set_num_threads(job.run.threads)
    _MAKERS[job.run.stage](replace(job, started=time.perf_counter()), folder)
    tidy(job.run, folder)


def _add_seconds(job: Job, folder: Path) -> None:
    """timing.json also says how long the whole run took this time, loading and saving included."""
    path = folder / "timing.json"
    known = read_json(path) if path.is_file() else {}
    write_json(path, {**known, "run_seconds": time.perf_counter() - job.started})


# Stages that pre-train


def _make_adapted(job: Job, folder: Path) -> None:
    make_it = _make_distilled if "objective" in job.run.config else _make_pretraining
    make_it(job, folder)


def _make_pretraining(job: Job, folder: Path) -> None:
    run = PretrainRun.read({**_on_text(job, PretrainRun), "pattern": None})
    heads = int(run.model_shape()["num_attention_heads"])
    prepared = replace(run, pattern=_pattern(job, heads)).prepare(folder)
    with torch.no_grad():
        before = prepared.objective.eval().evaluate(0)["mlm_loss"]
    _fit(job, folder, prepared, fields={"mlm_loss_before": before})


def _make_importance(job: Job, folder: Path) -> None:
    method = job.run.config["method"]
    prepared = ImportanceRun.read({**_on_text(job, ImportanceRun), "kind": method}).prepare(folder)

    def files(into: Path) -> Mapping[str, Any]:
        write_summary(into, method)
        return {"method": method}

    _fit(job, folder, prepared, files=files)


def _make_search(job: Job, folder: Path) -> None:
    _fit(job, folder, SearchRun.read({"objective": "mlm", **_on_text(job, SearchRun)}).prepare(folder))


def _make_distilled(job: Job, folder: Path) -> None:
    """Weights that learn under a pattern what the dense model makes of a text; with no steps they are only measured."""
    config = job.run.config
    kind = _DenseRun if config["pattern"] is None else AdaptRun
    run = kind.read({**_on_text(job, kind), "pattern": None, "steps": max(1, config["steps"])})
    heads = int(run.model_shape()["num_attention_heads"])
    prepared = replace(run, pattern=_pattern(job, heads)).prepare(folder)
    with torch.no_grad():
        before = prepared.objective.eval().evaluate(0)

    def files(into: Path) -> Mapping[str, Any]:
        return {"before": before, "sts": _similarity(job, into / "model")}

    if config["steps"]:
        _fit(job, folder, prepared, files=files)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with synced_together():
        sparsity = prepared.objective.finish(folder)["sparsity"]
        added = files(folder)
        write_json(folder / "run.json", {"settings": _settings(job.run)})
        _add_seconds(job, folder)
    about = job.run.result_fields()
    write_json(folder / RESULT, {**about, "metrics": before, "sparsity": sparsity, "steps": 0, **added})


class _DenseRun(AdaptRun):
    """As many steps without a pattern: what they alone do."""

    def build(self, store: TokenStore, shape: Mapping[str, Any]) -> Objective:
        return self.distillation(store, trains_weights=True)


def _similarity(job: Job, model: Path) -> dict[str, float]:
    """The model's score on every STS set, and their mean."""
    if job.paths.data is None:
        raise ConfigError("this study has no task files; give --data, the folder that holds the official folders")
    config = job.run.config
    precision = "bf16" if config["loop"]["precision"] == "bfloat16" else "fp32"
    sets = {name: read_similarity(path) for name, path in sts_files(job.paths.data, job.paths.sts).items()}
    scores = similarity_scores(Encoder(model, length=int(config["length"]), precision=precision), sets)
    return {**scores, "mean": mean_similarity(scores)}


def _on_text(job: Job, kind: type[TextRun]) -> dict[str, Any]:
    """Settings of a run on text: whatever of its configuration this kind of run knows, and where things lie."""
    config, start = job.run.config, job.run.config["start"]
    if job.paths.corpus is None:
        raise ConfigError("this study has no corpus; give --corpus, a folder made by sparsebert prepare")
    named = {**config, **config["loop"], "checkpoint_every": job.checkpoint_every}
    known = kind.known()
    return {
        **{name: value for name, value in named.items() if name in known and value is not None},
        "model": config.get("model", job.paths.model) if start is None else _model(job, start),
        "shape": dict(config["shape"]) if start is None else None,
        "corpus": job.paths.corpus,
        "seed": job.run.seed,
        "held_out_seed": _HELD_OUT_SEED,
    }


def _pattern(job: Job, heads: int) -> Pattern | None:
    """The pattern that a run's configuration asks for; None: dense."""
    wanted = job.run.config["pattern"]
    if wanted is None:
        return None
    if "run" not in wanted:
        return stated_pattern(wanted, int(job.run.config["length"]), heads)
    if wanted["diagonal"] == "learned":
        return Pattern.load(job.paths.file(wanted["run"], "pattern.safetensors"))
    return gates.load(job.paths.file(wanted["run"], "gate.safetensors")).freeze(diagonal=wanted["diagonal"])


def _model(job: Job, run_id: str) -> str:
    """The model that another run left."""
    return str(job.paths.file(run_id, "model"))


# Stages that do not


def _make_prune(job: Job, folder: Path) -> None:
    run = job.run
    importance = job.paths.file(run.depends[0], "gate.safetensors").parent if run.depends else None
    pattern = PruneRun(**run.config, importance=importance, seed=run.seed).pattern()
    folder.mkdir(parents=True, exist_ok=True)
    with synced_together():
        pattern.save(folder / "pattern.safetensors")
        write_json(folder / "run.json", {"settings": _settings(run)})
        _add_seconds(job, folder)
    write_json(folder / RESULT, {**run.result_fields(), "metrics": {}, "sparsity": pattern.sparsity})


def _make_finetune(job: Job, folder: Path) -> None:
    run, stated = job.run, job.run.config["pattern"]
    if job.paths.data is None:
        raise ConfigError("this study has no task files; give --data, the folder that holds the official folders")
    adapted, settings, teacher = _model(job, run.config["start"]), run.config["settings"], run.config.get("teacher")
    heads = int(shape_of(adapted)["num_attention_heads"])
    tuning = FinetuneRun(
        data=str(job.paths.data),
        model=adapted,
        seed=run.seed,
        pattern=None if stated is None else stated_pattern(stated, int(settings["length"]), heads),
        teacher=None if teacher is None else str(job.paths.file(teacher, "model")),
        saves_model="keeps_model" in run.config,  # of others no one reads the weights once they are scored
        fit={**run.config["loop"], "checkpoint_every": job.checkpoint_every},
        **settings,
    )
    _fit(job, folder, tuning.prepare(folder))


def _fit(
    job: Job,
    folder: Path,
    prepared: Prepared,
    *,
    fields: Mapping[str, Any] | None = None,
    files: Files | None = None,
) -> None:
    """Train, with what the run stands for, these fields and files recorded at the end."""

    def last_files(into: Path) -> Mapping[str, Any]:
        added = {} if files is None else files(into)
        _add_seconds(job, into)
        return added

    without = () if job.run.stage == "finetune" else _OWN_WORDS
    about = {**job.run.result_fields(), **(fields or {})}
    objective = Recorded(prepared.objective, about, without=without, files=last_files)
    watcher = _UntilDeadline(job.deadline)
    # tidy() would remove the last checkpoint the moment it is written.
    fit(objective, prepared.config, folder, settings=_settings(job.run), progress=watcher, leave_checkpoint=False)


def _settings(run: Run) -> dict[str, Any]:
    """What run.json records, and holds a resumed run to."""
    return {
        "address": run.address,
        "stage": run.stage,
        "config": dict(run.config),
        "data": dict(run.data),
        "depends": list(run.depends),
    }


class _UntilDeadline(Watcher):
    """Asks the loop to stop after a checkpoint once the time is over."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline

    def step(self, done: int, words: str, left: float) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if self.deadline is not None and in_main and time.time() > self.deadline:
            signal.raise_signal(signal.SIGTERM)


_MAKERS = {
    "base": _make_pretraining,
    "importance": _make_importance,
    "search": _make_search,
    "prune": _make_prune,
    "adapt": _make_adapted,
    "finetune": _make_finetune,
}
