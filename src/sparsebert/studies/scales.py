"""How large the runs of a study are: smoke (does it all work), laptop (CPU hours), paper (the paper's own sizes)."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from sparsebert.errors import ConfigError

GLUE = ("mnli", "qqp", "qnli", "sst2", "cola", "stsb", "mrpc", "rte")
OTHERS = ("swag", "squad1", "squad2")
TENTHS = tuple(tenth / 10 for tenth in range(1, 10))
# Training and dev rows of the official files, for the cost of runs that read them whole.
OFFICIAL_ROWS: dict[str, tuple[int, int]] = {
    "mnli": (392_702, 19_647),
    "qqp": (363_846, 40_430),
    "qnli": (104_743, 5_463),
    "sst2": (67_349, 872),
    "cola": (8_551, 1_043),
    "stsb": (5_749, 1_500),
    "mrpc": (3_668, 408),
    "rte": (2_490, 277),
    "swag": (73_546, 20_006),
    "squad1": (87_599, 10_570),
    "squad2": (130_319, 11_873),
}
# Tokens of an average row among the first 2,000 for training, by the vocabulary of bert-base-uncased.
MEAN_TOKENS: dict[str, float] = {
    "mnli": 40.1,
    "qqp": 30.1,
    "qnli": 49.4,
    "sst2": 13.2,
    "cola": 13.4,
    "stsb": 21.7,
    "mrpc": 53.5,
    "rte": 66.6,
    "swag": 24.0,
}


@dataclass(frozen=True)
class Scale:
    """Every size of a study that is chosen; `--set name=value` changes one."""

    name: Literal["smoke", "laptop", "paper"]
    model: str  # where every run starts, directly or by way of the base run
    shape: dict[str, Any] = field(default_factory=dict)  # changes to the configuration of a model from scratch
    vocabulary: int | None = None  # words to train on the corpus, for a model from scratch
    length: int = 128  # tokens in a row
    batch_size: int = 16  # rows of a pre-training step
    micro_batches: int = 1
    # A run starts from the base run ("continued"), or is a whole pre-training of its own, as in the paper ("whole").
    pretraining: Literal["continued", "whole"] = "continued"
    base_steps: int = 0
    importance_steps: int = 0
    search_steps: int = 0
    adapt_steps: int = 0
    settle_steps: int = 0  # in whole pre-training: under a learned or pruned pattern, from the weights it came with
    warmup: float = 0.1  # share of the steps
    learning_rate: float = 1e-4
    search_rate: float = 5e-5  # of the weights during a search
    weight_decay: float = 0.01  # of pre-training
    dropout: float | None = None  # None: the model's own
    precision: Literal["float32", "bfloat16"] = "float32"  # of forward passes
    num_held_out: int = 8  # held-out batches the MLM loss is measured on
    penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)  # the paper's lambda
    task_penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)  # those of them that are fine-tuned on tasks too
    penalty_scale: float = 1.0  # lambda is multiplied by it; docs/studies.md says why
    sparsities: tuple[float, ...] = TENTHS  # of progressive pruning
    task_sparsities: tuple[float, ...] = TENTHS  # those of them that are fine-tuned on tasks too
    own_sparsities: bool = True  # whether patterns are also learned at the hand-made ones' own sparsities
    task_own: tuple[str, ...] = ()  # the hand-made ones at whose sparsity learned ones are fine-tuned on tasks too
    stage_sparsities: tuple[float, ...] = (0.80, 0.85, 0.90, 0.95)
    random_drops: int = 3  # draws of the random-drop condition
    seeds: int = 1  # of everything but the base run
    study_seeds: dict[str, int] = field(default_factory=dict)  # of single studies, where they have more or fewer
    looks: int = 1  # how often the claims are judged, with more seeds each time; the report corrects for it
    task_seeds: int | None = None  # the first so many of them are fine-tuned on tasks too; None: all
    few_seeds: dict[str, dict[str, int]] = field(default_factory=dict)  # fewer still: by study and task
    diagonal_tasks: tuple[str, ...] = GLUE + OTHERS
    pruning_tasks: tuple[str, ...] = GLUE
    pattern_tasks: tuple[str, ...] = GLUE
    ablation_tasks: tuple[str, ...] = GLUE
    stage_tasks: tuple[str, ...] = ("qnli", "mrpc")
    finetune: dict[str, Any] = field(default_factory=dict)  # settings of every fine-tuning run
    squad: dict[str, Any] = field(default_factory=dict)  # and those that differ for SQuAD
    checkpoint_every: int = 50  # steps

    def changed(self, changes: dict[str, Any]) -> "Scale":
        """With some sizes replaced; lists become tuples, unknown names are refused."""
        known = {one.name for one in fields(self)} - {"name"}
        for name in changes:
            if name not in known:
                raise ConfigError(f"a scale has no size {name!r}; expected one of {', '.join(sorted(known))}")
        made: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
        }
        if "seeds" in made:
            made.setdefault("study_seeds", {})  # asked of every condition
        scale = replace(self, **made)
        if scale.seeds < 1 or scale.random_drops < 1:
            raise ConfigError("a study needs at least one seed and one random drop; set both to 1 or more")
        if scale.looks < 1:
            raise ConfigError(f"looks is {scale.looks}; expected 1 or more")
        for name, count in scale.study_seeds.items():
            if not isinstance(count, int) or count < 1:
                raise ConfigError(f"study_seeds has {name!r}: {count!r}; expected 1 or more seeds")
        for study, counts in scale.few_seeds.items():
            if not isinstance(counts, dict) or not all(isinstance(n, int) and n >= 0 for n in counts.values()):
                raise ConfigError(f"few_seeds has {study!r}: {counts!r}; expected tasks with 0 or more seeds each")
        if scale.task_seeds is not None and scale.task_seeds < 0:
            raise ConfigError(f"task_seeds is {scale.task_seeds}; expected 0 or more, or null for all seeds")
        return scale


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


def find_scale(name: str) -> Scale:
    if name not in SCALES:
        raise ConfigError(f"there is no scale {name!r}; expected {', '.join(SCALES)}")
    return SCALES[name]
