"""A run of a study, and its address: the sha256 of everything that determines its result."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from sparsebert.files import canonical_json, sha256

Hashes = Mapping[str, str | None]  # sha256 by what it is of; None: not at hand
Stage = Literal["base", "importance", "search", "prune", "adapt", "finetune"]

# Raised by hand when a stage's results change for the same configuration; golden losses in the tests say when that is
# due. The git revision is left out of addresses on purpose: it would void hours of work at every commit.
RECIPES: dict[Stage, int] = {"base": 1, "importance": 1, "search": 1, "prune": 1, "adapt": 1, "finetune": 1}

RESULT = "result.json"  # of a run folder; written last
STUDY = "study.json"  # which runs there are
_ID_DIGITS = 20  # 80 bits of the address name the folder

KINDS = {"unstructured": "DAM_u", "structured": "DAM_s"}  # of learned patterns, and what the paper calls them


def percent(share: float) -> str:
    """A sparsity that was aimed at, as labels and tables write it: 70.4%."""
    return f"{100 * share:.3g}%"


@dataclass(frozen=True)
class Condition:
    """What a run stands for in a table or figure."""

    family: str  # base, importance, dense, no-diagonal, random-drop, handmade, learned, pruned, published, to-prune-by
    pattern: str | None = None
    diagonal: bool = True  # False: dropped from the pattern
    kind: str | None = None  # of KINDS
    penalty: float | None = None  # the paper's lambda
    sparsity_target: float | None = None
    method: str | None = None  # pruning: p or random; importance: soft or attention
    draw: int | None = None  # of the random-drop condition
    task: str | None = None
    seed: int = 0
    taught: bool = False  # fine-tuned with the dense model of the task as its teacher

    @property
    def row(self) -> "Condition":
        """Of a table, where it stands with its other tasks, seeds and draws."""
        return replace(self, task=None, seed=0, draw=None)

    def label(self, stage: Stage) -> str:
        """A few words for people."""
        words = [self.pattern or self.family]
        if self.kind is not None:
            words = [KINDS.get(self.kind, self.kind)]
        if self.penalty is not None:
            words.append(f"λ={self.penalty:g}")
        if self.sparsity_target is not None:
            words.append(percent(self.sparsity_target))
        words += [self.method] if self.method else []
        words += [f"draw {self.draw}"] if self.draw is not None else []
        if self.family == "handmade" and not self.diagonal:
            words.append("without diagonal")
        elif self.family == "learned" and self.penalty is not None and stage in ("adapt", "finetune"):
            words.append("with diagonal" if self.diagonal else "without diagonal")
        words += [self.task] if self.task else []
        return " ".join([*words, *(["taught"] if self.taught else [])])


DENSE = Condition("dense", "dense")
PUBLISHED = Condition("published", "published")  # the model as it came, dense; not even adapted
NO_DIAGONAL = Condition("no-diagonal", "no-diagonal", diagonal=False)
RANDOM_DROP = Condition("random-drop", "random-drop")


@dataclass(frozen=True)
class Run:
    """One node of a study's graph."""

    stage: Stage
    config: Mapping[str, Any]  # JSON values: all that is chosen
    seed: int
    threads: int  # of the computation: sums come out in another order with another number
    data: Hashes  # of the files that are read
    depends: tuple[str, ...] = ()  # ids of the runs whose files are read
    condition: Condition = field(default_factory=lambda: Condition("base"))  # for people; not part of the address

    @property
    def address(self) -> str:
        """sha256 over stage, recipe number, configuration, seed, threads, data, and what it depends on."""
        parts = {
            "stage": self.stage,
            "recipe": RECIPES[self.stage],
            "config": dict(self.config),
            "seed": self.seed,
            "threads": self.threads,
            "data": dict(self.data),
            "depends": list(self.depends),
        }
        return sha256(canonical_json(parts).encode())

    @property
    def id(self) -> str:
        return self.address[:_ID_DIGITS]

    def as_json(self, studies: list[str]) -> dict[str, Any]:
        """The run's entry in study.json."""
        return {
            "id": self.id,
            "stage": self.stage,
            "label": self.condition.label(self.stage),
            "condition": asdict(self.condition),
            "depends": list(self.depends),
            "folder": f"runs/{self.id}",
            "studies": studies,
        }

    def result_fields(self) -> dict[str, Any]:
        """What every result.json says of its run."""
        return {"id": self.id, "stage": self.stage, "condition": asdict(self.condition), "seed": self.seed}
