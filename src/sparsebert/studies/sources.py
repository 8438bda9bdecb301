"""What a study reads: a model, a corpus and the tasks' files, with the hashes that enter its runs' addresses."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsebert.embeddings import similarity_files
from sparsebert.errors import ConfigError
from sparsebert.files import canonical_json, sha256, sha256_of_file
from sparsebert.model.sources import model_folder
from sparsebert.settings import Count, fits, refuse_unknown
from sparsebert.studies.scales import Scale
from sparsebert.tasks.builtin import write_builtin
from sparsebert.tasks.files.reading import part_path
from sparsebert.tasks.loading import task_hash
from sparsebert.tasks.table import find_task
from sparsebert.text import TokenStore, prepare_corpus, source_of
from sparsebert.training.starting_points import require_own_vocabulary, shape_of

_BUILTIN_TEXT = "builtin:python-docs"
_BUILTIN_VOCABULARY = 4_000  # words to train on the built-in text, where the scale does not say
_UNKNOWN_VOCABULARY = 30_522


@dataclass(frozen=True)
class Sources:
    """Where things lie, and what they are; a hash of None: not at hand, so runs can be counted but not made."""

    model: str
    shape: dict[str, Any]  # width, layers, heads ... of the model
    corpus: Path | None
    data: Path | None
    vocab_size: int
    model_sha256: str | None
    corpus_sha256: str | None
    task_sha256: dict[str, str | None] = field(default_factory=dict)
    sts: Path | None = None  # folder of STS sets, beside the one among the tasks; None: that one alone
    sts_sha256: str | None = None

    @property
    def heads(self) -> int:
        return int(self.shape["num_attention_heads"])

    def require(self) -> None:
        """Refuse to run what can only be counted."""
        missing = [name for name, value in (("--corpus", self.corpus), ("--data", self.data)) if value is None]
        if missing:
            raise ConfigError(
                f"{' and '.join(missing)} missing; this scale needs real text and the official task files"
            )

    def as_json(self) -> dict[str, Any]:
        """The same wherever the files lie."""
        return {
            "model": Path(self.model).name if Path(self.model).is_dir() else self.model,
            "shape": self.shape,
            "model_sha256": self.model_sha256,
            "corpus_sha256": self.corpus_sha256,
            "tasks_sha256": self.task_sha256,
            **({} if self.sts_sha256 is None else {"sts_sha256": self.sts_sha256}),
        }


def find_sources(
    scale: Scale, tasks: list[str], out: Path, corpus: Path | None, data: Path | None, sts: Path | None = None
) -> Sources:
    """Use what is given; make the built-in text and tasks in the folder `out` where nothing is."""
    if sts is not None and not scale.is_distilled:
        raise ConfigError("sts is given, but protocol mlm scores no embeddings; leave it out, or use protocol distill")
    may_make = scale.name != "paper"
    shape, model_hash = _model(scale)  # first: whatever cannot be used is refused before anything is made
    if corpus is None and may_make:
        corpus = _builtin_corpus(scale, out / "corpus")
    vocab_size = _vocab_size(scale, corpus)
    if data is None and may_make:
        data = _builtin_tasks(out / "data")
    return Sources(
        model=scale.model,
        shape=shape,
        corpus=corpus,
        data=data,
        vocab_size=vocab_size,
        model_sha256=model_hash,
        corpus_sha256=None if corpus is None else sha256_of_file(corpus / "manifest.json"),
        task_sha256={task: None if data is None else task_hash(find_task(task), str(data)) for task in sorted(tasks)},
        sts=sts,
        sts_sha256=_sts_hash(sts_files(data, sts)) if scale.is_distilled and data is not None else None,
    )


def sts_files(data: Path, sts: Path | None) -> dict[str, Path]:
    """The STS sets of a study by their names: the dev rows of STS-B, and those of a folder."""
    return {
        "STS-B dev": part_path(find_task("stsb"), data, "dev"),
        **({} if sts is None else similarity_files(sts)),
    }


def _sts_hash(files: dict[str, Path]) -> str:
    return sha256(canonical_json([[name, sha256_of_file(path)] for name, path in files.items()]).encode())


def _builtin_corpus(scale: Scale, folder: Path) -> Path:
    own = (scale.vocabulary or _BUILTIN_VOCABULARY) if scale.model.startswith("scratch:") else None
    # One process: the text is small.
    return prepare_corpus([_BUILTIN_TEXT], folder, model=scale.model, train_vocab=own, workers=1).path


def _builtin_tasks(folder: Path) -> Path:
    # Written last by us: its presence says that the files are whole.
    done = folder / "complete"
    if not done.exists():
        write_builtin(folder)
        done.touch()
    return folder


def _model(scale: Scale) -> tuple[dict[str, Any], str]:
    config = shape_of(scale.model)
    if scale.model.startswith("scratch:"):
        shape = {**config, **scale.shape}
        _check_shape(shape)
        return shape, sha256(canonical_json(shape).encode())
    folder = model_folder(source_of(scale.model))
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    files = sorted(path for path in folder.iterdir() if path.name == "config.json" or path.suffix == ".safetensors")
    digest = canonical_json([[path.name, sha256_of_file(path)] for path in files])
    return {name: config[name] for name in names}, sha256(digest.encode())


def _check_shape(shape: dict[str, Any]) -> None:
    from transformers import BertConfig

    for name in shape:
        refuse_unknown(name, BertConfig().to_dict(), what="the shape of a model has no")
    width, heads = shape["hidden_size"], shape["num_attention_heads"]
    if not fits(width, Count) or not fits(heads, Count) or width % heads:
        raise ConfigError(f"hidden_size is {width} and num_attention_heads {heads}; expected a multiple of the heads")


def _vocab_size(scale: Scale, corpus: Path | None) -> int:
    if corpus is None:
        return scale.vocabulary or _UNKNOWN_VOCABULARY
    store = TokenStore.open(corpus)
    require_own_vocabulary(scale.model, store)
    return store.vocab_size
