"""A study's graph: runs by what they stand for, each once however many studies want it.

    base -> importance -> prune  \\
         -> search  -----------> adapt -> finetune
         -> (a stated pattern) -/

Under the protocol distill the published model stands where the base run does, searches and adaptation have it as their
teacher, and a task's dense model may be the teacher of a fine-tuning run.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sparsebert.gates import Settings, Soft, Structured, preset
from sparsebert.runs.text import TextSizes
from sparsebert.settings import declared
from sparsebert.studies.addresses import addressed
from sparsebert.studies.runs import PUBLISHED, Condition, Hashes, Run, Stage
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
        scale, condition = self.scale, Condition("base", "dense")
        return self._trained("base", condition, None, scale.base_steps, pattern=None)

    def importance(self, method: str, seed: int) -> Run:
        """P learned beside the weights (soft), or the attention maps of as many plain steps (attention)."""
        scale, condition = self.scale, Condition("importance", method=method, seed=seed)
        chosen = {"method": method, **(_soft() if method == "soft" else {})}
        if scale.scratch is None:
            return self._trained("importance", condition, self._start(), scale.importance_steps, **chosen)
        chosen |= {"model": scale.scratch, "learning_rate": scale.scratch_rate}
        return self._trained("importance", condition, None, scale.scratch_steps, **chosen)

    def to_prune_by(self, seed: int) -> Run:
        """P of the study's own model. No teacher leads to a P: the dense model's states ask for all of it alike."""
        scale = self.scale
        if scale.scratch is None:
            return self.importance("soft", seed)
        head_start = {} if scale.head_start is None else {"head_start": scale.head_start}
        condition = Condition("to-prune-by", method="soft", seed=seed)
        chosen = {"method": "soft", **_soft(), **head_start}
        return self._trained("importance", condition, self._start(), scale.importance_steps, **chosen)

    def search(self, kind: str, seed: int, *, penalty: float | None = None, sparsity: float | None = None) -> Run:
        """A gate learned beside the weights, under a penalty or towards a sparsity."""
        scale = self.scale
        name = "paper" if scale.name == "paper" else "distilled" if scale.is_distilled else "default"
        if kind == "structured":  # refuses now, not in the middle of the study, what its border leaves no room for
            Structured(scale.length, 1, sparsity=sparsity, settings=name)
        return self._trained(
            "search",
            Condition("learned", kind=kind, penalty=penalty, sparsity_target=sparsity, seed=seed),
            self._start(),
            scale.search_steps,
            learning_rate=scale.search_rate,
            kind=kind,
            penalty=None if penalty is None else penalty * scale.penalty_scale,
            sparsity=sparsity,
            preset=name,
            # The settings behind the preset's name are part of what determines the run.
            gate=addressed(preset(name), Settings()),
            **self._objective(),
        )

    def prune(self, method: str, sparsity: float, seed: int) -> Run:
        """A pattern from P by its least important entries, or at random."""
        depends = [self.to_prune_by(seed).id] if method == "p" else []
        config = {"method": method, "sparsity": sparsity, "length": self.scale.length, "heads": self.sources.heads}
        condition = Condition("pruned", method=method, sparsity_target=sparsity, seed=seed)
        return self._add("prune", condition, config, depends, {})

    def adapt_stated(self, pattern: dict[str, Any] | None, condition: Condition) -> Run:
        """Pre-training under a pattern that words describe; None: dense."""
        if self.scale.pretraining == "whole" and pattern is None and condition.seed == 0:
            return self.base()
        return self._adapted(condition, self._start(), self.scale.adapt_steps, pattern=pattern)

    def published(self, seed: int) -> Run:
        """The published model, measured as it is."""
        return self._adapted(replace(PUBLISHED, seed=seed), self._start(), 0, pattern=None)

    def adapt_found(self, found: Run, diagonal: str, condition: Condition) -> Run:
        """Pre-training under the pattern of a search or of pruning; diagonal: learned, keep or drop."""
        steps, start = self.scale.adapt_steps, self._start()
        if self.scale.pretraining == "whole":  # from the weights that were trained with what was found
            steps = self.scale.settle_steps
            start = found if found.stage == "search" else self.importance("soft", found.seed)
        pattern = {"run": found.id, "diagonal": diagonal}
        return self._adapted(condition, start, steps, found, pattern=pattern)

    def finetune(self, adapted: Run, task: str, *, taught: bool = False) -> Run:
        """A task trained and scored from the weights of an adapted run, under its pattern.

        taught: with the published model as its teacher, fine-tuned with the same seed.
        """
        scale = self.scale
        chosen = {**scale.finetune, **(scale.squad if task in _SQUAD else {}), **scale.task_settings.get(task, {})}
        # A stated pattern is built anew at the task's length; a found one comes with the model.
        pattern = adapted.config.get("pattern")
        config: dict[str, Any] = {
            "settings": _tuning(task, chosen),
            "loop": _loop(precision=scale.precision),
            "pattern": pattern if pattern is not None and "run" not in pattern else None,
            "start": adapted.id,
        }
        depends = [adapted.id]
        if taught:
            teacher = self.finetune(self.published(adapted.seed), task)
            config["teacher"], depends = teacher.id, [adapted.id, teacher.id]
        elif adapted.condition.row == PUBLISHED:
            config["keeps_model"] = True  # it may be a teacher
        condition = replace(adapted.condition, task=task, taught=taught)
        return self._add("finetune", condition, config, depends, {"task": self.sources.task_sha256[task]})

    # Parts of the above

    def _start(self) -> Run | None:
        """Whose weights a run starts from; None: the study's model itself."""
        if self.scale.is_distilled:
            return self.base() if self.scale.model.startswith("scratch:") else None
        return self.base() if self.scale.pretraining == "continued" else None

    def _objective(self) -> dict[str, Any]:
        return {"objective": "distill"} if self.scale.is_distilled else {}

    def _adapted(self, condition: Condition, start: Run | None, steps: int, *others: Run, **chosen: Any) -> Run:
        """Under distill its embeddings are scored at the end."""
        scored = {"sts": self.sources.sts_sha256} if self.scale.is_distilled else {}
        return self._trained("adapt", condition, start, steps, *others, data=scored, **chosen, **self._objective())

    def _trained(
        self,
        stage: Stage,
        condition: Condition,
        start: Run | None,
        steps: int,
        *others: Run,
        data: Hashes | None = None,
        **chosen: Any,
    ) -> Run:
        """A run on text; others: runs it reads besides the one it starts from. data: files beside model and corpus."""
        scale = self.scale
        config = {
            "steps": steps,
            "warmup_steps": round(scale.warmup * steps),
            "learning_rate": scale.learning_rate,
            **{name: getattr(scale, name) for name in declared(TextSizes)},
            "loop": _loop(micro_batches=scale.micro_batches, precision=scale.precision),
            "shape": dict(scale.shape) if scale.model.startswith("scratch:") else {},
            "start": None if start is None else start.id,
            **chosen,
        }
        depends = dict.fromkeys(one.id for one in (start, *others) if one is not None)
        read = {"model": self.sources.model_sha256, "corpus": self.sources.corpus_sha256, **(data or {})}
        return self._add(stage, condition, config, depends, read)

    def _add(
        self, stage: Stage, condition: Condition, config: dict[str, Any], depends: Iterable[str], data: Hashes
    ) -> Run:
        run = Run(stage, config, condition.seed, self.threads, data, tuple(depends), condition)
        known = self.runs.setdefault(run.id, run)
        using = self.studies.setdefault(run.id, [])
        if self.study not in using:
            using.append(self.study)
        return known


def _soft() -> dict[str, Any]:
    return {"gate": addressed(Soft(length=3, heads=1).settings, Settings())}


def _loop(**chosen: Any) -> dict[str, Any]:
    """What else a result owes to the loop: every setting of fit() but steps and seed, which the run itself names."""
    return addressed(FitConfig(num_steps=1, **chosen), FitConfig(num_steps=1), _APART)


def _tuning(task: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Every setting of a fine-tuning run but its seed; files and weights are known by their hashes."""
    settings, default = (FinetuneConfig(task, data="", model="", **given).resolved() for given in (chosen, {}))
    return addressed(settings, default, {"data", "model", "seed"})
