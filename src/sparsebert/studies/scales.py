"""How large the runs of a study are: smoke (does it all work), laptop (CPU hours), paper (the paper's own sizes).

Under each protocol: mlm, the paper's, or distill, where a dense teacher leads. docs/studies.md says how they differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from sparsebert.errors import ConfigError
from sparsebert.runs.text import TextSizes
from sparsebert.settings import (
    Count,
    Declared,
    InnerShare,
    Natural,
    Positive,
    Share,
    ShareBelowOne,
    check,
    declared,
    refuse_unknown,
)
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.tasks.table import find_task

Protocol = Literal["mlm", "distill"]
GLUE = ("mnli", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte")
OTHERS = ("swag", "squad1", "squad2")
TENTHS = tuple(tenth / 10 for tenth in range(1, 10))
# For the cost of a run: training and dev rows of the official files; and tokens of an average row among the first 2,000
# for training, by the vocabulary of bert-base-uncased. None: SQuAD's windows are mostly full.
OFFICIAL: dict[str, tuple[int, int, float | None]] = {
    "mnli": (392_702, 19_647, 40.1),
    "qqp": (363_846, 40_430, 30.1),
    "qnli": (104_743, 5_463, 49.4),
    "sst2": (67_349, 872, 13.2),
    "cola": (8_551, 1_043, 13.4),
    "stsb": (5_749, 1_500, 21.7),
    "mrpc": (3_668, 408, 53.5),
    "rte": (2_490, 277, 66.6),
    "swag": (73_546, 20_006, 24.0),
    "squad1": (87_599, 10_570, None),
    "squad2": (130_319, 11_873, None),
}


@dataclass(frozen=True, kw_only=True)
class Scale(TextSizes):
    """Every size of a study that is chosen, those of training on text among them."""

    name: Literal["smoke", "laptop", "paper"]
    protocol: Protocol = "mlm"
    model: str  # where every run starts, directly or by way of the base run
    shape: dict[str, Any] = field(default_factory=dict)  # changes to the configuration of a model from scratch
    vocabulary: Count | None = None  # words to train on the corpus, for a model from scratch
    micro_batches: Count = 1
    # A run starts from the base run ("continued"), or is a whole pre-training of its own, as in the paper ("whole").
    pretraining: Literal["continued", "whole"] = "continued"
    base_steps: Count = 1
    importance_steps: Count = 1
    search_steps: Count = 1
    adapt_steps: Count = 1
    settle_steps: Natural = 0  # in whole pre-training: under a learned or pruned pattern, from the weights it came with
    warmup: Share = 0.1  # share of the steps
    learning_rate: Positive = 1e-4
    search_rate: Positive = 5e-5  # of the weights during a search
    precision: Literal["float32", "bfloat16"] = "float32"  # of forward passes
    penalties: tuple[Positive, ...] = (1e-4, 1e-3, 1e-2, 1e-1)  # the paper's lambda
    task_penalties: tuple[Positive, ...] = (1e-4, 1e-3, 1e-2, 1e-1)  # those of them that are fine-tuned on tasks too
    penalty_scale: Positive = 1.0  # lambda is multiplied by it; docs/studies.md says why
    sparsities: tuple[InnerShare, ...] = TENTHS  # of progressive pruning
    task_sparsities: tuple[InnerShare, ...] = TENTHS  # those of them that are fine-tuned on tasks too
    own_sparsities: bool = True  # whether patterns are also learned at the hand-made ones' own sparsities
    task_own: tuple[str, ...] = ()  # the hand-made ones at whose sparsity learned ones are fine-tuned on tasks too
    more_sparsities: tuple[InnerShare, ...] = ()  # that patterns are learned at beside those; all are fine-tuned too
    stage_sparsities: tuple[InnerShare, ...] = (0.80, 0.85, 0.90, 0.95)
    random_drops: Count = 3  # draws of the random-drop condition
    task_drops: Natural | None = None  # the first so many of them are fine-tuned on tasks too; None: all
    scratch: str | None = None  # a model that importance is learned in beside its pre-training; None: the study's own
    scratch_steps: Count = 1
    scratch_rate: Positive = 5e-4
    head_start: ShareBelowOne | None = None  # of the weights, before a P to prune by is learned; None: none
    seeds: Count = 1  # of everything but the base run
    study_seeds: dict[str, Count] = field(default_factory=dict)  # of single studies, where they have more or fewer
    looks: Count = 1  # how often the claims are judged, with more seeds each time; the report corrects for it
    task_seeds: Natural | None = None  # the first so many of them are fine-tuned on tasks too; None: all
    few_seeds: dict[str, dict[str, Natural]] = field(default_factory=dict)  # fewer still: by study and task
    few_penalty_seeds: dict[str, Natural] = field(default_factory=dict)  # of patterns learned at penalties: by task
    taught_seeds: dict[str, Natural] = field(default_factory=dict)  # so many are tuned with a teacher too: by task
    task_rows: dict[str, Sequence[str]] = field(default_factory=dict)  # of a task: the labels of its conditions, if few
    resamples: Count = 4_999  # of the bootstrap that judges the claims
    diagonal_tasks: tuple[str, ...] = GLUE + OTHERS
    pruning_tasks: tuple[str, ...] = GLUE
    pattern_tasks: tuple[str, ...] = GLUE
    ablation_tasks: tuple[str, ...] = GLUE
    stage_tasks: tuple[str, ...] = ("qnli", "mrpc")
    finetune: dict[str, Any] = field(default_factory=dict)  # settings of every fine-tuning run
    squad: dict[str, Any] = field(default_factory=dict)  # and those that differ for SQuAD
    task_settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # and for single tasks
    checkpoint_every: Count = 50  # steps

    def changed(self, changes: dict[str, Any]) -> "Scale":
        """With some sizes replaced; lists become tuples, unknown names are refused."""
        for name in changes:
            refuse_unknown(name, sizes(), what="a scale has no size")
        made: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
        }
        if "seeds" in made:
            made.setdefault("study_seeds", {})  # asked of every condition
        return replace(self, **made)

    @property
    def tasks(self) -> dict[str, tuple[str, ...]]:
        """What each study is scored on."""
        return {
            "diagonal": self.diagonal_tasks,
            "pruning": self.pruning_tasks,
            "patterns": self.pattern_tasks,
            "ablation": self.ablation_tasks,
            "stages": self.stage_tasks,
        }

    def __post_init__(self) -> None:
        check(self)
        if self.batch_size % self.micro_batches:
            raise ConfigError(
                f"a batch of {self.batch_size} rows cannot be cut into {self.micro_batches} micro-batches; "
                f"choose a multiple of {self.micro_batches} rows"
            )
        if self.pretraining == "whole" and not self.settle_steps:
            raise ConfigError("settle_steps is 0; in whole pre-training a found pattern needs at least 1")
        for task in chain(*self.tasks.values(), self.taught_seeds, self.task_rows, self.task_settings):
            find_task(task)
        for name, chosen in {"finetune": self.finetune, "squad": self.squad, **self.task_settings}.items():
            for setting in chosen:
                refuse_unknown(setting, declared(FinetuneConfig), what=f"{name} has no setting")

    @property
    def is_distilled(self) -> bool:
        return self.protocol == "distill"


def sizes() -> dict[str, Declared]:
    """What `--set` may change."""
    return {name: one for name, one in declared(Scale).items() if name not in ("name", "protocol")}


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        name="smoke",
        model="scratch:tiny",
        shape={"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4},
        vocabulary=800,
        # The border must leave room for 95 % sparsity: at 96 positions it takes 4.1 %.
        length=96,
        batch_size=4,
        base_steps=6,
        importance_steps=3,
        search_steps=3,
        adapt_steps=2,
        learning_rate=1e-3,
        search_rate=1e-3,
        num_held_out=1,
        penalty_scale=3e-7,
        finetune={
            "length": 96,
            "stride": 32,
            "max_rows": 16,
            "max_dev_rows": 16,
            "batch_size": 8,
            "num_epochs": 1.0,
            "learning_rate": 1e-3,
        },
    ),
    "laptop": Scale(
        name="laptop",
        model="minilm",
        length=128,
        batch_size=8,
        base_steps=3000,
        importance_steps=400,
        search_steps=80,
        adapt_steps=36,
        learning_rate=2e-4,
        num_held_out=12,
        penalty_scale=3e-4,
        seeds=5,
        # The second look at what five seeds leave open: docs/decisions/statistics.md.
        study_seeds={"importance": 10, "diagonal": 10},
        looks=2,
        task_seeds=3,
        few_seeds={"patterns": {"mrpc": 1, "rte": 1}},  # the two tasks of long rows
        task_sparsities=(0.5, 0.8, 0.9),
        task_penalties=(),
        task_own=("log_sparse",),
        diagonal_tasks=("cola", "stsb", "mrpc", "rte"),
        pruning_tasks=("stsb",),
        pattern_tasks=("stsb", "cola", "mrpc", "rte"),
        ablation_tasks=(),
        stage_tasks=(),
        finetune={
            "length": 128,
            # With 480 rows CoLA, MRPC and STS-B stay at what guessing gives.
            "max_rows": 2000,
            "max_dev_rows": 1000,
            "batch_size": 16,
            "num_epochs": 2.0,
            "learning_rate": 1e-4,
        },
    ),
    "paper": Scale(
        name="paper",
        model="scratch:base",
        vocabulary=30_000,
        batch_size=256,
        micro_batches=8,
        pretraining="whole",
        # 40 epochs of 3.3 billion words, as in the recipe called paper.
        base_steps=4_028_320,
        importance_steps=4_028_320,
        search_steps=4_028_320,
        adapt_steps=4_028_320,
        settle_steps=40_000,
        # The paper sets penalties only, and compares at whatever sparsity comes out.
        own_sparsities=False,
        warmup=0.0025,
        search_rate=1e-4,
        dropout=0.1,
        precision="bfloat16",
        num_held_out=64,
        checkpoint_every=2_000,
    ),
}


_LARGE = ("sst2", "qqp", "mnli", "qnli", "squad1")
# All conditions start from the published model; at the smoke scale a base run stands for it.
DISTILLED: dict[str, Scale] = {
    "smoke": replace(
        SCALES["smoke"],
        protocol="distill",
        scratch="scratch:tiny",
        scratch_steps=3,
        penalty_scale=1e-8,
        # Fewer than under mlm, but of every kind: a test makes them all.
        sparsities=(0.1, 0.9),
        task_sparsities=(0.1, 0.9),
        stage_sparsities=(0.8, 0.9),
        penalties=(1e-4, 1e-1),
        task_penalties=(1e-4, 1e-1),
        more_sparsities=(0.9,),
        task_own=("star",),
        random_drops=2,
        task_drops=1,
        head_start=0.5,
        diagonal_tasks=("cola", "rte", "squad1"),
        pruning_tasks=("cola", "rte"),
        pattern_tasks=("rte", "squad1"),
        ablation_tasks=(),
        stage_tasks=(),
        taught_seeds={"rte": 1, "squad1": 1},
        task_rows={"squad1": ("published", "dense", "star", "DAM_s 90%")},
        resamples=99_999,
    ),
    "laptop": replace(
        SCALES["laptop"],
        protocol="distill",
        base_steps=1,  # there is none
        importance_steps=400,
        search_steps=100,
        adapt_steps=80,
        learning_rate=1e-4,
        scratch="scratch:mini",  # the paper, too, learns P beside weights that know nothing yet
        scratch_steps=3000,
        head_start=0.5,
        # Seen: lambda 3e-8 led DAM_s to 45 % in 60 steps, 1e-6 to 98 %. A pattern a layer has six times the entries.
        penalty_scale=5e-6,
        precision="bfloat16",
        study_seeds={"importance": 3},
        looks=2,
        resamples=99_999,
        task_sparsities=(0.1, 0.9),
        task_penalties=(1e-4, 1e-3, 1e-2, 1e-1),
        more_sparsities=(0.5, 0.9),
        task_own=("strided", "fixed", "longformer", "log_sparse", "big_bird", "star"),
        task_drops=1,
        task_seeds=3,
        few_seeds={study: dict.fromkeys(_LARGE, 1) for study in ("diagonal", "patterns")},
        taught_seeds=dict.fromkeys(GLUE, 1),
        task_rows={"squad1": ("published", "dense", "no-diagonal", "star", "DAM_s 90%")},
        diagonal_tasks=(*GLUE, "squad1"),
        pruning_tasks=("cola", "rte"),
        pattern_tasks=(*GLUE, "squad1"),
        few_penalty_seeds={"mrpc": 1, "rte": 1},
        # The paper's batches and epochs. Rows were cut until the plan had 24 hours: docs/results/distill-plan.md.
        # The published model's embedding is the mean of its tokens; nothing ever asked its [CLS].
        finetune={"length": 128, "learning_rate": 1e-4, "max_dev_rows": 2000, "pooling": "mean"},
        squad={"length": 384, "max_rows": 1000, "max_dev_rows": 500, "pooling": None},
        task_settings={
            "cola": {"max_rows": 7000},
            "mrpc": {"max_rows": 1500},
            "rte": {"max_rows": 1000},
            **{task: {"max_rows": 1000, "max_dev_rows": 1000} for task in ("sst2", "qqp", "mnli", "qnli")},
        },
    ),
}
PROTOCOLS: dict[str, dict[str, Scale]] = {"mlm": SCALES, "distill": DISTILLED}


def find_scale(name: str, protocol: str = "mlm") -> Scale:
    if protocol not in PROTOCOLS:
        raise ConfigError(f"there is no protocol {protocol!r}; expected {' or '.join(PROTOCOLS)}")
    scales = PROTOCOLS[protocol]
    if name not in scales:
        of = "" if protocol == "mlm" else f" of protocol {protocol}"
        raise ConfigError(f"there is no scale {name!r}{of}; expected {', '.join(scales)}")
    return scales[name]
