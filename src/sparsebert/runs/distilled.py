"""What runs share that learn from the dense model itself: the teacher, the student, the rows they both read."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparsebert.batches import PlainBatches, TextBatch
from sparsebert.batches.plain import FULL
from sparsebert.errors import ConfigError
from sparsebert.files import read_json
from sparsebert.model import extend_positions, load_model, unsparsify
from sparsebert.model.loading import dropouts
from sparsebert.model.pooling import Pooling, pooling_of
from sparsebert.model.positions import positions_of
from sparsebert.runs.text import TextRun
from sparsebert.settings import NotNegative, Share
from sparsebert.text import TokenStore, source_of
from sparsebert.training import Objective
from sparsebert.training.distillation import DistillationObjective
from sparsebert.training.fidelity import require_same_shape
from sparsebert.training.fingerprint import fingerprint
from sparsebert.training.starting_points import require_own_vocabulary
from sparsebert.training.teacher import Teacher
from sparsebert.training.text_objective import BatchParts, BatchSource


@dataclass(frozen=True)
class Lead:
    """What a student is led by where nobody says so."""

    embedding_weight: float  # of the embeddings' distance beside the states' error
    full_rows: float  # share of a batch


FOR_TEXTS = Lead(embedding_weight=4.0, full_rows=FULL)  # what weights can give texts
FOR_BOTH = Lead(embedding_weight=2.0, full_rows=0.4)  # a single entry far behind costs short texts nothing
FOR_SENTENCES = Lead(embedding_weight=1.0, full_rows=0.3)  # lines hold at any length: short texts pay for long ones


@dataclass(frozen=True, kw_only=True)
class DistilledRun(TextRun):
    """A model under a pattern or a gate that learns to make the states of the dense one."""

    teacher: str | None = None  # a model; None: what the student's weights began as, dense
    pooling: Pooling | None = None  # of an embedding; None: as the model's folder says, or the mean
    # Of the embeddings' distance beside the states' error; None: what suits the kind of run.
    embedding_weight: NotNegative | None = None
    full_rows: Share | None = None  # of a batch; the others are shorter, or pairs; None: what suits the kind of run

    @property
    def lead(self) -> Lead:
        """As given, else as it suits the kind of run."""
        given = {"embedding_weight": self.embedding_weight, "full_rows": self.full_rows}
        return replace(self.usual_lead, **{name: value for name, value in given.items() if value is not None})

    @property
    def usual_lead(self) -> Lead:
        return FOR_TEXTS

    def distillation(self, store: TokenStore, *, trains_weights: bool) -> DistillationObjective:
        if self.model.startswith("scratch:"):
            raise ConfigError(f"{self.model} has no weights to learn from; train it with MLM, or name a trained model")
        student = self.student(store)
        taught = teacher_of(self.model) if self.teacher is None else self.teacher
        teacher = unsparsify(load_model(source_of(taught), "none"))
        _require_vocabulary(taught, teacher, store)
        require_same_shape(student, teacher, f"teacher {taught}")
        held_out_seed = self.seed if self.held_out_seed is None else self.held_out_seed
        return DistillationObjective(
            student,
            Teacher(teacher, window=positions_of(teacher)),
            self.text_parts(store, self.seed),
            # The same kinds of rows for every run: what is held against each other must be.
            PlainBatches(store, split="held_out", seed=held_out_seed, **self.batch_sizes()),
            pooling=self.pooling or pooling_of(source_of(self.model)),
            trains_weights=trains_weights,
            embedding_weight=self.lead.embedding_weight,
            # Whoever trains the model on is to find the dropout that it came with.
            saved_as=dropouts(source_of(self.model)) if self.dropout is None else None,
            num_held_out=self.num_held_out,
            # The loss is the same whether a gate is learned beside the weights or not, and so is their rate.
            learning_rate=TextRun.RATE if self.learning_rate is None else self.learning_rate,
            weight_decay=self.weight_decay,
            tokenizer=store.tokenizer(),
        )

    def settings(self, store: TokenStore, objective: Objective) -> dict[str, Any]:
        found = super().settings(store, objective)
        taught = next((one for one in objective.modules() if isinstance(one, DistillationObjective)), None)
        return found if taught is None else {**found, "teacher_sha256": fingerprint(taught.teacher.model)}

    def student(self, store: TokenStore) -> Any:
        """The encoder alone: no head is needed, and none is trained."""
        require_own_vocabulary(self.model, store)
        # Dropout would be one more difference from the teacher that nobody is to learn.
        dropout = 0.0 if self.dropout is None else self.dropout
        student = load_model(source_of(self.model), "none", seed=self.seed, dropout=dropout)
        if self.length > positions_of(student):
            extend_positions(student, self.length)
        return student

    def text_parts(self, store: TokenStore, seed: int) -> BatchParts[TextBatch]:
        """The training rows, in as many parts as a step has."""
        full = self.lead.full_rows

        def part_of(part: int, parts: int) -> BatchSource[TextBatch]:
            return PlainBatches(store, seed=seed, rank=part, ranks=parts, full=full, **self.batch_sizes())

        return part_of


def _require_vocabulary(name: str, teacher: Any, store: TokenStore) -> None:
    """Refuse a teacher that reads other words; a folder of weights alone is taken at the number of its words."""
    folder = Path(source_of(name))
    if not folder.is_dir() or any((folder / file).is_file() for file in ("tokenizer.json", "vocab.txt")):
        require_own_vocabulary(name, store)
    elif teacher.config.vocab_size < store.vocab_size:
        raise ConfigError(
            f"teacher {name} knows {teacher.config.vocab_size:,} words, the corpus has {store.vocab_size:,}; choose a "
            "teacher with the model's vocabulary"
        )


def teacher_of(model: str) -> str:
    """Who taught a model that was distilled before, however often; else the model itself."""
    about = Path(model) / "run.json"
    settings = read_json(about).get("settings", {}) if about.is_file() else {}
    if "full_rows" not in settings or not isinstance(settings.get("model"), str):
        return model
    if settings.get("command") == "search" and settings.get("objective") != "distill":
        return model  # it learned by MLM, from nobody
    if settings["teacher"]:
        return _as_named_in(about, settings["teacher"])
    return teacher_of(_as_named_in(about, settings["model"]))


def _as_named_in(about: Path, name: str) -> str:
    """A model that a run's settings name, seen from here: they may name it from any folder above the run's own."""
    if name == "minilm" or Path(name).is_absolute():
        return name
    above = (folder / name for folder in about.resolve().parents[1:])
    return next((str(one) for one in above if (Path(source_of(str(one))) / "config.json").is_file()), name)
