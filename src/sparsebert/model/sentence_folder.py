"""A folder of sentence-transformers: what its files say of embeddings, and the files kept beside weights that are new.

modules.json names parts: the encoder (the folder itself), a pooling, perhaps Normalize; each in a folder of its own
"""

import logging
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparsebert.errors import FileError, ModelError
from sparsebert.files import read_bytes, read_json, write_atomic, write_json
from sparsebert.model.folder_checks import folder_config
from sparsebert.model.lengths import longest_input

logger = logging.getLogger(__name__)

MODULES = "modules.json"
_ABOUT = "config_sentence_transformers.json"
# The encoder's settings have had a name for each family.
_OF_ENCODER = [f"sentence_{name}_config.json" for name in ("bert", "roberta", "distilbert", "camembert", "albert")]
_OF_ENCODER += ["sentence_xlm-roberta_config.json", "sentence_xlnet_config.json"]
_KEPT = (".json", ".safetensors")  # files of a part; nothing that could run


@dataclass(frozen=True)
class Part:
    """One step from a text to its embedding."""

    kind: str  # Transformer, Pooling, Normalize ...
    folder: str  # inside the model's; empty: the model's own


def parts_of(folder: Path) -> list[Part]:
    """What modules.json lists, in order; nothing where there is none. Code from elsewhere is refused."""
    if not (folder / MODULES).is_file():
        return []
    listed = read_json(folder / MODULES)
    try:
        named = [(str(one["type"]), str(one["path"])) for one in listed]
    except (TypeError, KeyError) as error:
        raise FileError(f"{folder / MODULES} does not list parts with a type and a path; restore it") from error
    for kind, path in named:
        if not kind.startswith("sentence_transformers."):
            raise ModelError(f"{folder / MODULES} asks for code of its own ({kind[:60]}); such models are not run")
        if Path(path).name != path:
            raise ModelError(f"{folder / MODULES} names the folder {path[:60]!r}; expected one inside the model's")
    return [Part(kind.rsplit(".", 1)[-1], path) for kind, path in named]


def encoder_settings(folder: Path) -> dict[str, Any]:
    """max_seq_length, do_lower_case ... as far as they are there."""
    return _fields(next((folder / name for name in _OF_ENCODER if (folder / name).is_file()), None))


def default_prompt(folder: Path) -> str:
    """What stands before every text unless its user says otherwise."""
    about = _fields(folder / _ABOUT if (folder / _ABOUT).is_file() else None)
    return str((about.get("prompts") or {}).get(about.get("default_prompt_name")) or "")


def max_length_of(folder: Path) -> int | None:
    """Tokens beyond which a text is cut, as far as the folder says so."""
    said = encoder_settings(folder).get("max_seq_length")
    tokenizer = folder / "tokenizer_config.json"
    if said is None and tokenizer.is_file():
        said = _fields(tokenizer).get("model_max_length")
    return int(said) if isinstance(said, int | float) and said >= 1 else None


def keep_sentence_files(model: Any, into: Path) -> None:
    """Beside a model that was loaded from a folder of sentence-transformers, such files as make it one again."""
    source = Path(model.name_or_path)
    if not model.name_or_path or not (source / MODULES).is_file() or not _makes_embeddings(model):
        return
    try:
        parts = parts_of(source)
    except (FileError, ModelError) as error:  # no reason to lose a run
        logger.warning("the files of sentence-transformers are not kept: %s", error)
        return
    own = [name for name in (MODULES, _ABOUT) if (source / name).is_file()]
    inner = [
        file.relative_to(source).as_posix()
        for part in parts
        if part.folder
        for file in sorted((source / part.folder).glob("*"))
        if file.suffix in _KEPT and file.is_file()
    ]
    for name in [*own, *inner]:
        write_atomic(into / name, read_bytes(source / name))
    write_json(into / _OF_ENCODER[0], {**encoder_settings(source), "max_seq_length": _takes(model, source)})
    if not (into / _ABOUT).is_file():
        write_json(into / _ABOUT, {})
    require_this_package(into)


def require_this_package(folder: Path) -> None:
    """Let a sparse folder of sentence-transformers say what it takes to open it: where this package is not installed,
    the library refuses it by that name. Of any other folder nothing is changed."""
    about = folder / _ABOUT
    if about.is_file() and folder_config(folder).get("pattern") is not None:
        needed = {
            "specifier": f">={version('sparsebert')}",
            "reason": "The model is sparse; without it it would not run.",
        }
        told = _fields(about)
        write_json(about, {**told, "requirements": {**(told.get("requirements") or {}), "sparsebert": needed}})


def _takes(model: Any, source: Path) -> int:
    """As before, if the model still takes that many tokens; all it takes, if it was made for more than before."""
    before, now = max_length_of(source), longest_input(model)
    had = folder_config(source).get("max_position_embeddings")
    was_extended = had is not None and model.config.max_position_embeddings > had
    return now if before is None or was_extended else min(before, now)


def _makes_embeddings(model: Any) -> bool:
    """The encoder alone, or with a head that predicts words; one that was trained for a task answers that task."""
    return model is model.base_model or model.get_output_embeddings() is not None


def _fields(path: Path | None) -> dict[str, Any]:
    found = {} if path is None else read_json(path)
    if not isinstance(found, dict):
        raise FileError(f"{path} holds a {type(found).__name__}; expected a JSON object, so restore it")
    return found
