"""Synthetic study folders: every table and figure of the paper filled, with effects that are planted and known."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparsebert import draws
from sparsebert.importance.categories import NAMES, categories
from sparsebert.report import paper
from sparsebert.studies.results import Study, StudyRun
from sparsebert.studies.runs import KINDS, Condition, Stage
from sparsebert.tasks import GLUE, TASKS

STAGE_SPARSITIES = (0.80, 0.85, 0.90, 0.95)
TENTHS = tuple(tenth / 10 for tenth in range(1, 10))
_METRICS = {"mnli": "accuracy", "qqp": "f1", "cola": "matthews", "stsb": "spearman", "mrpc": "f1"}
_DENSE = dict(zip(GLUE, (85.6, 88.2, 91.5, 92.9, 62.1, 88.8, 90.4, 69.0), strict=True))
_DENSE |= {"swag": 82.5, "squad1": 87.1, "squad2": 75.5}
_SPARSITY = {name: paper.PATTERNS["Hand-made"][title]["sparsity"] / 100 for name, title in paper.HANDMADE.items()}


@dataclass(frozen=True)
class Effects:
    """Planted differences, in points of score, unless said otherwise; importance in P."""

    diagonal: float = -0.04
    neighbours: float = 0.06
    specials: float = 0.03
    no_diagonal: float = 0.2  # against dense
    random_drop: float = -0.4  # against dense
    by_p: float = 3.0  # against random pruning, at every sparsity
    learned: float = 2.5  # against hand-made at the same sparsity
    globals_: float = 1.5  # patterns with globals against those without
    ablation: float = 0.0  # without the diagonal against with
    one_stage: float = 2.0  # against two-stage
    penalty: float = 2.0  # points of sparsity a decade
    redundancy: float = 6.0  # what RTE loses more than CoLA
    maps: float = 0.05  # trained maps: diagonal above other
    far: float = 0.0  # slope of P over far distances


NOTHING = Effects(0, 0, 0, -1.0, 0.0, 0, 0, 0, -1.0, 0, 0, 0, 0, 0)  # at the edge of every claim: the null itself


@dataclass(frozen=True)
class World:
    """What a synthetic study holds."""

    effects: Effects = field(default_factory=Effects)
    scale: str = "laptop"
    seeds: int = 3
    noise: float = 0.3  # points, of each run
    seed_noise: float = 0.1  # points, shared by the tasks of one condition and seed
    tasks: tuple[str, ...] = tuple(TASKS)
    heads: int = 4
    length: int = 32
    draw: int = 0  # another one gives other noise
    prefix: str = ""  # put before every label and name, to see that it is escaped


class _Maker:
    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.runs: list[StudyRun] = []
        self.random = draws.generator(world.draw, "tests/synthetic")

    def add(
        self, stage: Stage, label: str, studies: tuple[str, ...], result: dict[str, Any], **condition: Any
    ) -> StudyRun:
        given = Condition(**condition)
        fields = asdict(given)
        id_ = hashlib.sha256(f"{len(self.runs)}/{stage}/{label}/{fields}".encode()).hexdigest()[:20]
        result = {"id": id_, "stage": stage, "condition": fields, "seed": fields["seed"], "metrics": {}, **result}
        path, seconds = self.folder / "runs" / id_, 12.5 + len(self.runs) % 7
        run = StudyRun(id_, stage, f"{self.world.prefix}{label}", given, path, studies, result, seconds)
        self.runs.append(run)
        return run

    def group(
        self,
        studies: tuple[str, ...],
        label: str,
        level: float,
        sparsity: float,
        tasks: tuple[str, ...],
        **condition: Any,
    ) -> None:
        """An adapted run and its fine-tuned ones; `level` points away from dense, or a function of the task."""
        shared = self.random.normal(0, self.world.seed_noise)
        loss = 1.9 - 0.03 * (level + shared) + self.random.normal(0, 0.001)
        slope = condition.pop("slope", {})
        self.add("adapt", label, studies, {"metrics": {"mlm_loss": loss}, "sparsity": sparsity}, **condition)
        for task in tasks:
            score = _DENSE[task] + level + shared + slope.get(task, 0.0) + self.random.normal(0, self.world.noise)
            metric = _METRICS.get(task, "f1" if task.startswith("squad") else "accuracy")
            result = {"task": task, "metric": metric, "score": score, "sparsity": sparsity, "metrics": {metric: score}}
            if task == "mnli":
                result["metrics"] = {"accuracy_matched": score - 0.2, "accuracy_mismatched": score + 0.2}
            if task.startswith("squad"):
                result["metrics"]["exact"] = score - 5.0
            self.add("finetune", f"{label} {task}", studies, result, **condition, task=task)


def make_study(world: World, folder: Path = Path("synthetic")) -> Study:
    """The study in memory, importance runs aside: those are read from files."""
    maker, effects = _Maker(world, folder), world.effects
    glue = tuple(task for task in world.tasks if task in GLUE)
    maker.add("base", "base", ("diagonal",), {"metrics": {"mlm_loss": 1.95}, "sparsity": 0.0}, family="base", seed=0)
    for seed in range(world.seeds):
        for method in ("soft", "attention"):
            result = {"task": "importance", "metrics": {"mlm_loss": 1.9}, "sparsity": None}
            maker.add("importance", f"importance {method}", ("importance",), result, family="importance", method=method,
                      seed=seed)  # fmt: skip
        _diagonal(maker, effects, seed)
        _pruning(maker, effects, seed, glue)
        _patterns(maker, effects, seed, glue)
        _stages(maker, effects, seed)
    name = f"{world.prefix}all"
    base = {"model": f"{world.prefix}scratch:tiny", "corpus": f"{world.prefix}builtin:python-docs"}
    return Study(name, world.scale, folder, tuple(maker.runs), base)


def _diagonal(maker: _Maker, effects: Effects, seed: int) -> None:
    tasks, used = maker.world.tasks, ("diagonal",)
    one = 1 / maker.world.length
    maker.group(("diagonal", "pruning"), "dense", 0.0, 0.0, tasks, family="dense", pattern="dense", seed=seed)
    maker.group(used, "no-diagonal", effects.no_diagonal, one, tasks,
                family="no-diagonal", pattern="no-diagonal", diagonal=False, seed=seed)  # fmt: skip
    for draw in range(3):
        maker.group(used, f"random-drop draw {draw}", effects.random_drop, one, tasks,
                    family="random-drop", pattern="random-drop", draw=draw, seed=seed)  # fmt: skip


def _pruning(maker: _Maker, effects: Effects, seed: int, tasks: tuple[str, ...]) -> None:
    for sparsity in TENTHS:
        fall = -8.0 * sparsity**3
        slope = {"rte": -effects.redundancy * (sparsity - 0.1) / 0.8}
        for method, gain in (("p", effects.by_p), ("random", 0.0)):
            maker.group(("pruning",), f"pruned {sparsity:.0%} {method}", fall + gain, sparsity, tasks,
                        family="pruned", method=method, sparsity_target=sparsity, seed=seed, slope=slope)  # fmt: skip


def _patterns(maker: _Maker, effects: Effects, seed: int, tasks: tuple[str, ...]) -> None:
    one = 1 / 128
    for name in paper.HANDMADE:
        level = -5.0 + (effects.globals_ if name in paper.NEIGHBOURS_AND_GLOBALS else 0.0)
        for diagonal in (True, False):
            studies = ("patterns", "ablation") if diagonal else ("ablation",)
            label = name if diagonal else f"{name} without diagonal"
            change, sparser = (0.0, 0.0) if diagonal else (effects.ablation, one)
            maker.group(studies, label, level + change, _SPARSITY[name] + sparser, tasks,
                        family="handmade", pattern=name, diagonal=diagonal, seed=seed)  # fmt: skip
    # The null of "learned beat hand-made" is equality with the better class.
    best = -5.0 + effects.globals_ + effects.learned
    for name in paper.HANDMADE:
        for kind, title in KINDS.items():
            target = round(_SPARSITY[name], 3)
            maker.group(("patterns",), f"{title} {100 * target:.3g}%", best, target, (),
                        family="learned", kind=kind, sparsity_target=target, seed=seed)  # fmt: skip
    for kind, start in (("unstructured", 0.80), ("structured", 0.91)):
        for place, penalty in enumerate(paper.PENALTIES):
            sparsity = start + effects.penalty / 100 * place + maker.random.normal(0, 0.0005)
            title = f"{KINDS[kind]} λ={penalty:g}"
            common = {"family": "learned", "kind": kind, "penalty": penalty, "seed": seed}
            maker.add("search", title, ("patterns",), {"sparsity": sparsity, "metrics": {"mlm_loss": 2.1}}, **common)
            maker.group(("patterns", "ablation"), title, best, sparsity + one, tasks, **common, diagonal=False)
            if kind == "structured" and penalty in (1e-4, 1e-1):
                level = best - effects.ablation
                maker.group(("ablation",), f"{title} with diagonal", level, sparsity, tasks, **common, diagonal=True)


def _stages(maker: _Maker, effects: Effects, seed: int) -> None:
    tasks = tuple(task for task in ("qnli", "mrpc") if task in maker.world.tasks)
    for sparsity in STAGE_SPARSITIES:
        fall = -8.0 * sparsity**3
        maker.group(("stages",), f"pruned {sparsity:.0%} p", fall, sparsity, tasks,
                    family="pruned", method="p", sparsity_target=sparsity, seed=seed)  # fmt: skip
        for kind, title in KINDS.items():
            maker.group(("stages",), f"{title} {sparsity:.0%}", fall + effects.one_stage, sparsity, tasks,
                        family="learned", kind=kind, sparsity_target=sparsity, seed=seed)  # fmt: skip


def write_study(world: World, folder: Path) -> Study:
    """The study as a folder, with the files that each stage leaves."""
    study = make_study(world, folder)
    entries = []
    for run in study.runs:
        run.path.mkdir(parents=True)
        entries.append(
            {
                "id": run.id,
                "stage": run.stage,
                "label": run.label,
                "condition": asdict(run.condition),
                "folder": f"runs/{run.id}",
                "studies": list(run.studies),
            }
        )
        _write(run.path / "result.json", run.result)
        _write(run.path / "timing.json", {"seconds": run.seconds, "sessions": []})
        _write(run.path / "run.json", _settings(run))
        steps = [json.dumps({"step": step, "loss": 6.0 - 0.6 * step**0.5}) for step in range(20)]
        (run.path / "metrics.jsonl").write_text("\n".join(steps) + "\n")
        if run.stage == "importance":
            _write_importance(run, world)
        if run.stage == "search":
            _write_search(run, world)
    about = {"name": study.name, "scale": study.scale, "version": 1, "base": dict(study.base), "runs": entries}
    _write(folder / "study.json", about)
    return study


def _settings(run: StudyRun) -> dict[str, Any]:
    tuned = {"batch_size": 8, "num_epochs": 1.0, "learning_rate": 5e-5, "weight_decay": 0.01, "warmup": 0.1}
    return {
        "settings": tuned if run.stage == "finetune" else {"learning_rate": 1e-4},
        "fit": {"num_steps": 20, "schedule": "linear", "seed": run.seed},
        "environment": {"versions": {"sparsebert": "0.1.0", "torch": "2.13.0"}, "threads": 1, "device": "cpu"},
    }


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def importance_values(world: World, method: str, seed: int) -> np.ndarray:
    """P, or trained maps, with the planted categories."""
    n, effects = world.length, world.effects
    level = {
        "diagonal": effects.diagonal,
        "±1": effects.neighbours,
        "[CLS]": effects.specials,
        "[SEP]": effects.specials,
    }
    if method == "attention":
        level = {"diagonal": effects.maps, "±1": effects.maps}
    numbers = categories(n)
    centre = np.full((n, n), 0.5) + effects.far * np.abs(np.arange(n)[:, None] - np.arange(n)) / n
    for name, change in level.items():
        centre[numbers == NAMES.index(name)] += change
    random = draws.generator(seed, f"tests/importance/{method}/{world.draw}")
    noise = random.normal(0, 0.01, (world.heads, n, n))
    for place in range(len(NAMES)):  # a head's own level of a category, so that heads and seeds differ
        noise[:, numbers == place] += random.normal(0, 0.004, (world.heads, 1))
    values = centre + (noise + noise.transpose(0, 2, 1)) / 2
    return values.clip(0.01, 0.99)


def _write_importance(run: StudyRun, world: World) -> None:
    import torch

    from sparsebert import gates
    from sparsebert.importance.saved import save_maps

    method = run.condition.method
    values = importance_values(world, method, run.seed)
    if method == "attention":
        save_maps(run.path, values)
        return
    gate = gates.Soft(world.length, world.heads)
    logits = np.log(values / (1 - values))[:, *np.triu_indices(world.length)]
    with torch.no_grad():
        gate.alpha.copy_(torch.from_numpy(logits))
    gates.save(gate, run.path / "gate.safetensors")


def _write_search(run: StudyRun, world: World) -> None:
    import torch

    from sparsebert import gates

    kind, (heads, n) = run.condition.kind, (world.heads, world.length)
    random = draws.generator(run.seed, f"tests/search/{kind}/{run.condition.penalty}")
    gate: gates.Gate
    if kind == "structured":
        gate = gates.Structured(n, heads)
        alpha = random.normal(-1, 1, tuple(gate.alpha.shape)) - 0.02 * np.arange(gate.alpha.shape[1])
        alpha[:, 0], alpha[:, 1] = -3.0, 2.0
    else:
        gate = gates.Unstructured(n, heads, pooled=False)
        rows, columns = np.triu_indices(n)
        alpha = random.normal(-1, 0.7, tuple(gate.alpha.shape)) + 2.0 * (np.abs(rows - columns) == 1)
        alpha -= 3.0 * (rows == columns)
    with torch.no_grad():
        gate.alpha.copy_(torch.from_numpy(alpha))
    gates.save(gate, run.path / "gate.safetensors")
    gate.freeze(sparsity=0.75 if n < 64 else 0.9).save(run.path / "pattern.safetensors")
