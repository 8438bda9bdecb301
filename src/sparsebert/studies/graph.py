"""A study's graph: runs by what they stand for, each once however many studies want it.

    base -> importance -> prune  \\
         -> search  -----------> adapt -> finetune
         -> (a stated pattern) -/
"""

from dataclasses import replace
from typing import Any

from sparsebert.gates import Settings, Soft, Structured, preset
from sparsebert.runs.text import TextSizes
from sparsebert.settings import declared
from sparsebert.studies.addresses import addressed
from sparsebert.studies.runs import Condition, Run, Stage
from sparsebert.studies.scales import Scale
from sparsebert.studies.sources import Sources
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.training.config import FREE_FIELDS, FitConfig

_SQUAD = ("squad1", "squad2")
_APART = FREE_FIELDS | {"num_steps", "warmup_steps", "seed"}


class Graph:
    """Runs in an order in which each comes after what it depends on."""

    def __init__(self, scale: Scale, sources: Sources, threads: int) -> None:
        self.scale, self.sources, self.threads = scale, sources, threads
        self.runs: dict[str, Run] = {}
        self.studies: dict[str, list[str]] = {}  # run id to the studies that use it
        self.study = ""  # the one being described

    # The stages, each with what it depends on

    def base(self) -> Run:
        """The weights that everything else starts from; dense, seed 0."""
        scale = self.scale
        config = {**self._pretraining(scale.base_steps, scale.learning_rate), "pattern": None, "start": None}
        return self._add("base", config, 0, [], Condition("base", "dense"))

    def importance(self, method: str, seed: int) -> Run:
        """P learned beside the weights (soft), or the attention maps of as many plain steps (attention)."""
        scale = self.scale
        start = self._start()
        config = {**self._pretraining(scale.importance_steps, scale.learning_rate), "method": method}
        if method == "soft":
            config["gate"] = addressed(Soft(length=3, heads=1).settings, Settings())
        condition = Condition("importance", method=method, seed=seed)
        return self._add("importance", config | _from(start), seed, start, condition)

    def search(self, kind: str, seed: int, *, penalty: float | None = None, sparsity: float | None = None) -> Run:
        """A gate learned beside the weights, under a penalty or towards a sparsity."""
        scale = self.scale
        start = self._start()
        used = None if penalty is None else penalty * scale.penalty_scale
        config = {**self._pretraining(scale.search_steps, scale.search_rate), "kind": kind}
        name = "paper" if scale.name == "paper" else "default"
        if kind == "structured":  # refuses now, not in the middle of the study, what its border leaves no room for
            Structured(scale.length, 1, sparsity=sparsity, settings=name)
        # The settings behind the preset's name are part of what determines the run.
        config |= {"penalty": used, "sparsity": sparsity, "preset": name, "gate": addressed(preset(name), Settings())}
        condition = Condition("learned", kind=kind, penalty=penalty, sparsity_target=sparsity, seed=seed)
        return self._add("search", config | _from(start), seed, start, condition)

    def prune(self, method: str, sparsity: float, seed: int) -> Run:
        """A pattern from P by its least important entries, or at random."""
        depends = [self.importance("soft", seed)] if method == "p" else []
        config = {"method": method, "sparsity": sparsity, "length": self.scale.length, "heads": self.sources.heads}
        condition = Condition("pruned", method=method, sparsity_target=sparsity, seed=seed)
        return self._add("prune", config, seed, depends, condition)

    def adapt_stated(self, pattern: dict[str, Any] | None, condition: Condition) -> Run:
        """Pre-training under a pattern that words describe; None: dense."""
        start = self._start()
        if self.scale.pretraining == "whole" and pattern is None and condition.seed == 0:
            return self.base()
        config = {**self._pretraining(self.scale.adapt_steps, self.scale.learning_rate), "pattern": pattern}
        return self._add("adapt", config | _from(start), condition.seed, start, condition)

    def adapt_found(self, found: Run, diagonal: str, condition: Condition) -> Run:
        """Pre-training under the pattern of a search or of pruning; diagonal: learned, keep or drop."""
        steps, start = self.scale.adapt_steps, self._start()
        if self.scale.pretraining == "whole":
            steps, start = self.scale.settle_steps, [self._weights_of(found)]
        config = {
            **self._pretraining(steps, self.scale.learning_rate),
            "pattern": {"run": found.id, "diagonal": diagonal},
        }
        depends = [*start, *([found] if found not in start else [])]
        return self._add("adapt", config | _from(start), condition.seed, depends, condition)

    def finetune(self, adapted: Run, task: str) -> Run:
        """A task trained and scored from the weights of an adapted run, under its pattern."""
        scale = self.scale
        chosen = {**scale.finetune, **(scale.squad if task in _SQUAD else {})}
        # A stated pattern is built anew at the task's length; a found one comes with the model.
        pattern = adapted.config.get("pattern")
        stated = pattern if pattern is not None and "run" not in pattern else None
        config = {
            "settings": _tuning(task, chosen),
            "loop": _loop(precision=scale.precision),
            "pattern": stated,
            "start": adapted.id,
        }
        condition = replace(adapted.condition, task=task)
        data = {"task": self.sources.task_sha256[task]}
        return self._add("finetune", config, adapted.condition.seed, [adapted], condition, data)

    # Parts of the above

    def _pretraining(self, steps: int, rate: float) -> dict[str, Any]:
        scale = self.scale
        return {
            "steps": steps,
            "warmup_steps": round(scale.warmup * steps),
            "learning_rate": rate,
            **{name: getattr(scale, name) for name in declared(TextSizes)},
            "loop": _loop(micro_batches=scale.micro_batches, precision=scale.precision),
            "shape": dict(scale.shape) if scale.model.startswith("scratch:") else {},
        }

    def _start(self) -> list[Run]:
        return [self.base()] if self.scale.pretraining == "continued" else []

    def _weights_of(self, found: Run) -> Run:
        """In whole pre-training: the run whose weights were trained with what was found."""
        if found.stage == "search":
            return found
        return self.importance("soft", found.seed)

    def _add(
        self,
        stage: Stage,
        config: dict[str, Any],
        seed: int,
        depends: list[Run],
        condition: Condition,
        data: dict[str, str | None] | None = None,
    ) -> Run:
        if data is None:
            data = (
                {} if stage == "prune" else {"model": self.sources.model_sha256, "corpus": self.sources.corpus_sha256}
            )
        run = Run(stage, config, seed, self.threads, data, tuple(one.id for one in depends), condition)
        known = self.runs.setdefault(run.id, run)
        using = self.studies.setdefault(run.id, [])
        if self.study not in using:
            using.append(self.study)
        return known


def _loop(**chosen: Any) -> dict[str, Any]:
    """What else a result owes to the loop: every setting of fit() but steps and seed, which the run itself names."""
    return addressed(FitConfig(num_steps=1, **chosen), FitConfig(num_steps=1), _APART)


def _tuning(task: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Every setting of a fine-tuning run but its seed; files and weights are known by their hashes."""
    settings, default = (FinetuneConfig(task, data="", model="", **given).resolved() for given in (chosen, {}))
    return addressed(settings, default, {"data", "model", "seed"})


def _from(start: list[Run]) -> dict[str, Any]:
    """Whose weights a run starts from; None: the study's model itself."""
    return {"start": start[0].id if start else None}
