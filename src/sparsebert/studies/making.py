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
from sparsebert.batches import PretrainingBatches
from sparsebert.errors import ConfigError
from sparsebert.files import read_json, synced_together, write_json
from sparsebert.importance.saved import load_importance, write_summary
from sparsebert.patterns import Pattern, prune, random
from sparsebert.studies.folder import tidy
from sparsebert.studies.jobs import Job
from sparsebert.studies.recorded import Extra, Recorded
from sparsebert.studies.runs import RESULT, Run
from sparsebert.studies.stated import stated_pattern
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.finetune import prepare
from sparsebert.text import TokenStore
from sparsebert.training import FitConfig, Objective, fit
from sparsebert.training.importance import AttentionObjective, ImportanceObjective
from sparsebert.training.pretraining import PretrainingObjective, corpus_parts
from sparsebert.training.progress import Silent
from sparsebert.training.search import SearchObjective
from sparsebert.training.starting_points import load_for_corpus, shape_of

_HELD_OUT_SEED = 0  # of the held-out batches: every run of a study is measured on the same ones


def make(job: Job) -> None:
    """Make the run, in this process."""
    folder = job.place.folder(job.run.id)
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


def _make_pretraining(job: Job, folder: Path) -> None:
    pretraining = _pretraining(job)
    pattern = _pattern(job)
    if pattern is not None:
        pretraining.model.set_pattern(pattern)
    with torch.no_grad():
        before = pretraining.eval().evaluate(0)["mlm_loss"]
    _fit(job, folder, pretraining, fields={"mlm_loss_before": before})


def _make_importance(job: Job, folder: Path) -> None:
    config, seed = job.run.config, job.run.seed
    pretraining = _pretraining(job)
    inner: Objective
    if config["method"] == "attention":
        inner = AttentionObjective(pretraining, seed=seed)
    else:
        heads = pretraining.model.config.num_attention_heads
        gate = gates.Soft(int(config["length"]), heads, steps=int(config["steps"]), seed=seed)
        inner = ImportanceObjective(pretraining, gate, seed=seed)

    def files(into: Path) -> Mapping[str, Any]:
        write_summary(into, config["method"])
        return {"method": config["method"]}

    _fit(job, folder, inner, extra=files)


def _make_search(job: Job, folder: Path) -> None:
    config, seed = job.run.config, job.run.seed
    pretraining = _pretraining(job)
    heads = pretraining.model.config.num_attention_heads
    cls = gates.Structured if config["kind"] == "structured" else gates.Unstructured
    gate = cls(
        int(config["length"]),
        heads,
        sparsity=config["sparsity"],
        penalty=config["penalty"] or 0.0,
        steps=int(config["steps"]),
        seed=seed,
        settings=config["preset"],
    )
    _fit(job, folder, SearchObjective(pretraining, gate, seed=seed))


def _pretraining(job: Job) -> PretrainingObjective:
    config, seed = job.run.config, job.run.seed
    store = _store(job)
    start = config["start"]
    source = job.place.model if start is None else _model(job, start)
    shape = dict(config["shape"]) if start is None else {}
    length, batch_size = int(config["length"]), int(config["batch_size"])
    model = load_for_corpus(source, store, length, seed=seed, dropout=config["dropout"], **shape)
    return PretrainingObjective(
        model,
        corpus_parts(store, batch_size=batch_size, length=length, seed=seed),
        PretrainingBatches(store, split="held_out", seed=_HELD_OUT_SEED, batch_size=batch_size, length=length),
        num_held_out=int(config["num_held_out"]),
        learning_rate=float(config["learning_rate"]),
        weight_decay=float(config["weight_decay"]),
        tokenizer=store.tokenizer(),
    )


def _store(job: Job) -> TokenStore:
    if job.place.corpus is None:
        raise ConfigError("this study has no corpus; give --corpus, a folder made by sparsebert prepare")
    return TokenStore.open(job.place.corpus)


def _pattern(job: Job) -> Pattern | None:
    """The pattern that a run's configuration asks for; None: dense."""
    wanted = job.run.config["pattern"]
    if wanted is None:
        return None
    if "run" not in wanted:
        heads = _heads_at(job)
        return stated_pattern(wanted, int(job.run.config["length"]), heads)
    if wanted["diagonal"] == "learned":
        return Pattern.load(job.place.file(wanted["run"], "pattern.safetensors"))
    return gates.load(job.place.file(wanted["run"], "gate.safetensors")).freeze(diagonal=wanted["diagonal"])


def _heads_at(job: Job) -> int:
    start = job.run.config["start"]
    shape = {**shape_of(job.place.model), **job.run.config["shape"]} if start is None else shape_of(_model(job, start))
    return int(shape["num_attention_heads"])


def _model(job: Job, run_id: str) -> str:
    """The model that another run left."""
    return str(job.place.file(run_id, "model"))


# Stages that do not


def _make_prune(job: Job, folder: Path) -> None:
    run = job.run
    sparsity = float(run.config["sparsity"])
    if run.config["method"] == "p":
        pattern = prune(load_importance(job.place.file(run.depends[0], "gate.safetensors").parent), sparsity)
    else:
        pattern = random(int(run.config["length"]), int(run.config["heads"]), sparsity=sparsity, seed=run.seed)
    folder.mkdir(parents=True, exist_ok=True)
    with synced_together():
        pattern.save(folder / "pattern.safetensors")
        write_json(folder / "run.json", {"settings": _settings(run)})
        _add_seconds(job, folder)
    write_json(folder / RESULT, {**run.result_fields(), "metrics": {}, "sparsity": pattern.sparsity})


def _make_finetune(job: Job, folder: Path) -> None:
    run = job.run
    if job.place.data is None:
        raise ConfigError("this study has no task files; give --data, the folder that holds the official folders")
    adapted = job.place.file(run.config["start"], "model")
    config = FinetuneConfig(
        data=str(job.place.data),
        model=str(adapted),
        seed=run.seed,
        **run.config["settings"],
    )
    stated = run.config["pattern"]
    pattern = None
    if stated is not None:
        heads = int(read_json(adapted / "config.json")["num_attention_heads"])
        pattern = stated_pattern(stated, int(run.config["settings"]["length"]), heads)
    loop = {**run.config["loop"], "checkpoint_every": job.checkpoint_every}
    prepared = prepare(config, folder, pattern=pattern, fit_settings=loop)
    prepared.objective.task_folder = None  # once it is scored no one reads the weights
    _fit(job, folder, prepared.objective, prepared.config)


def _fit(
    job: Job,
    folder: Path,
    inner: Objective,
    config: FitConfig | None = None,
    *,
    fields: Mapping[str, Any] | None = None,
    extra: Extra | None = None,
) -> None:
    """Train the objective, with what its run stands for, these fields and the extra files recorded at the end."""

    def last_files(into: Path) -> Mapping[str, Any]:
        added = {} if extra is None else extra(into)
        _add_seconds(job, into)
        return added

    about = {**job.run.result_fields(), **(fields or {})}
    objective = Recorded(inner, about, scores_task=job.run.stage == "finetune", extra=last_files)
    chosen = job.run.config
    config = config or FitConfig(
        num_steps=int(chosen["steps"]),
        seed=job.run.seed,
        warmup_steps=int(chosen["warmup_steps"]),
        checkpoint_every=job.checkpoint_every,
        **chosen["loop"],
    )
    watcher = _UntilDeadline(job.deadline)
    # tidy() would remove the last checkpoint the moment it is written.
    fit(objective, config, folder, settings=_settings(job.run), progress=watcher, leave_checkpoint=False)


def _settings(run: Run) -> dict[str, Any]:
    """What run.json records, and holds a resumed run to."""
    return {
        "address": run.address,
        "stage": run.stage,
        "config": dict(run.config),
        "data": dict(run.data),
        "depends": list(run.depends),
    }


class _UntilDeadline(Silent):
    """Asks the loop to stop after a checkpoint once the time is over."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline

    def step(self, line: Mapping[str, Any], tokens_per_second: float) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if self.deadline is not None and in_main and time.time() > self.deadline:
            signal.raise_signal(signal.SIGTERM)


_MAKERS = {
    "base": _make_pretraining,
    "importance": _make_importance,
    "search": _make_search,
    "prune": _make_prune,
    "adapt": _make_pretraining,
    "finetune": _make_finetune,
}
