"""Model folders from anywhere: refused before anything of them is built, run, or allocated.

config.json -> names that could run code -> sizes -> headers of the weights -> do the two fit each other
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparsebert.errors import ModelError
from sparsebert.files import read_json
from sparsebert.model.config import AUTO_MAP

logger = logging.getLogger(__name__)

INT8_FILE = "int8.safetensors"  # the weights of a model that was quantised
_ATTENTION_NAMES = (None, "eager", "sdpa", "sparsebert")
_MAX_HEADER_BYTES = 100 * 2**20
# Far beyond any BERT; what is larger would only be found out by running out of memory.
_LARGEST = {
    "num_hidden_layers": 1_000,
    "num_attention_heads": 4_096,
    "hidden_size": 2**17,
    "intermediate_size": 2**20,
    "vocab_size": 2**24,
    "type_vocab_size": 2**16,
    "max_position_embeddings": 2**24,
    "num_labels": 2**16,
}
# Parts that may be new to, or left over from, a checkpoint: the heads on top of the encoder.
_HEADS = ("cls.", "classifier.", "qa_outputs.", "bert.pooler.", "pooler.")
_FLOATS, _WHOLE = {"F64", "F32", "F16", "BF16"}, {"I64", "I32"}
_WHOLE_NUMBERED = ("pattern_row_starts", "pattern_keys", "position_ids")
_LAYER = re.compile(r"(?:^|\.)encoder\.layer\.(\d{1,6})\.")
# Tensors that show every size of the configuration; the names of a bare encoder lack the prefix bert.
_SHAPES: dict[str, tuple[str, ...]] = {
    "embeddings.word_embeddings.weight": ("vocab_size", "hidden_size"),
    "embeddings.position_embeddings.weight": ("max_position_embeddings", "hidden_size"),
    "embeddings.token_type_embeddings.weight": ("type_vocab_size", "hidden_size"),
    "encoder.layer.0.intermediate.dense.weight": ("intermediate_size", "hidden_size"),
}


def check_folder(folder: Path) -> None:
    """Only safetensors and JSON, no code, no weights outside the folder, sizes that its own weights bear out."""
    config = check_config(folder)
    tensors = {name: entry for file in _weight_files(folder) for name, entry in _header(folder, file).items()}
    _check_types(folder, tensors)
    _check_shapes(folder, config, tensors)


def check_config(folder: Path, *, any_family: bool = False) -> dict[str, Any]:
    """config.json of a folder, without code to run and with sizes that can be."""
    config = folder_config(folder)
    if config.get("auto_map", AUTO_MAP) != AUTO_MAP or "custom_pipelines" in config:
        raise ModelError(f"{folder}/config.json asks for code of its own (auto_map); such models are not run")
    for name in ("attn_implementation", "_attn_implementation"):
        if config.get(name) not in _ATTENTION_NAMES:
            raise ModelError(f"{folder}/config.json asks for attention {config[name]!r}; expected eager or sdpa")
    if not any_family and config.get("model_type") not in ("bert", "sparsebert"):
        raise ModelError(f"{folder} holds a {config.get('model_type')!r} model; expected bert or sparsebert")
    if config.get("transformers_weights") is not None or config.get("quantization_config") is not None:
        raise ModelError(f"{folder}/config.json redirects or quantises its weights; expected plain model.safetensors")
    _check_sizes(folder, config)
    return config


def folder_config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ModelError(f"{folder}/config.json holds a {type(config).__name__}; expected a JSON object")
    return config


def _check_sizes(folder: Path, config: Mapping[str, Any]) -> None:
    for name, largest in _LARGEST.items():
        value = config.get(name)
        if value is not None and (type(value) is not int or not 1 <= value <= largest):
            raise ModelError(f"{folder}/config.json has {name} {_short(value)}; expected 1 to {largest:,}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _weight_files(folder: Path) -> Iterator[str]:
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        yield "model.safetensors"
        return
    if (folder / INT8_FILE).is_file():
        raise ModelError(f"{folder} holds an int8 model; open it with sparsebert.load_model")
    if not index.is_file():
        raise ModelError(
            f"{folder} holds no model.safetensors; weights in other formats are not read, convert them first"
        )
    found = read_json(index)
    weight_map = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise ModelError(f"{index} has no weight_map of file names; restore it from where it came from")
    yield from sorted(set(weight_map.values()))


def _header(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Name, type and shape of every tensor of a file."""
    path = folder / name
    if Path(name).name != name or not name.endswith(".safetensors"):
        raise ModelError(f"{folder} names weights {name!r}; expected a .safetensors file inside the folder")
    if not path.is_file():
        raise ModelError(f"{folder} names weights {name!r}, which are not there; copy the whole folder")
    if not _is_inside(path, folder):
        raise ModelError(f"{path} is a link that leads out of its folder; copy the file itself")
    size = path.stat().st_size
    with path.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        if size < 8 or header_size > min(size - 8, _MAX_HEADER_BYTES):
            raise ModelError(f"{path} is not a safetensors file: its header claims {header_size} of {size} bytes")
        try:
            header = json.loads(stream.read(header_size))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{path} is not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        raise ModelError(f"{path} is not a safetensors file: its header is no JSON object of tensors")
    header.pop("__metadata__", None)
    return header


def _is_inside(path: Path, folder: Path) -> bool:
    """Links may stay in the folder, or lead to the blobs beside it where it is a snapshot of a hub's cache."""
    real = path.resolve()
    blobs = folder.resolve().parents[1] / "blobs" if len(folder.resolve().parents) > 1 else folder
    return real.is_relative_to(folder.resolve()) or real.is_relative_to(blobs)


def _check_types(folder: Path, tensors: Mapping[str, Mapping[str, Any]]) -> None:
    for name, entry in tensors.items():
        expected = _WHOLE if name.endswith(_WHOLE_NUMBERED) else _FLOATS
        if entry.get("dtype") not in expected:
            found = _short(entry.get("dtype"))
            raise ModelError(f"{folder} holds {name} as {found}; expected {', '.join(sorted(expected))}")


def _check_shapes(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Any]]) -> None:
    """What is built is as large as the configuration says, so that must be what the weights are."""
    found = {name.removeprefix("bert."): entry.get("shape") for name, entry in tensors.items()}
    expected: dict[str, list[Any]] = {
        name: [config.get(size, length) for size, length in zip(sizes, found.get(name) or [0, 0], strict=False)]
        for name, sizes in _SHAPES.items()
    }
    expected |= _pattern_shapes(folder, config.get("pattern"))
    for name, shape in expected.items():
        if found.get(name) != shape:
            raise ModelError(
                f"{folder} has weights that its configuration does not describe: {name} is {_short(found.get(name))}, "
                f"expected {_short(shape)}"
            )
    layers = {int(number) for name in tensors for number in _LAYER.findall(name)}
    wanted = config.get("num_hidden_layers", len(layers))
    if layers != set(range(wanted)):
        raise ModelError(f"{folder} holds {len(layers)} layers; its configuration says {wanted}")


def _pattern_shapes(folder: Path, pattern: Any) -> dict[str, list[Any]]:
    if pattern is None:
        return {}
    names = ("heads", "length", "kept")
    if not isinstance(pattern, dict) or not all(type(pattern.get(name)) is int for name in names):
        raise ModelError(f"{folder}/config.json does not describe its pattern; expected heads, length and kept")
    layers = pattern.get("layers", 1)
    if type(layers) is not int:
        raise ModelError(f"{folder}/config.json has a pattern of {_short(layers)} layers; expected a whole number")
    return {
        "pattern_row_starts": [layers * pattern["heads"], pattern["length"] + 1],
        "pattern_keys": [pattern["kept"]],
    }


def check_loaded(source: Any, name: str, info: dict[str, Any]) -> None:
    """Refuse a checkpoint that does not hold exactly this encoder; say in one line which heads are new or left."""
    mismatched = [
        f"{key} is {tuple(found)}, expected {tuple(wanted)}" for key, found, wanted in info["mismatched_keys"]
    ]
    if mismatched:
        raise ModelError(f"{source} does not fit {name}: {'; '.join(sorted(mismatched)[:5])}")
    missing, extra = sorted(info["missing_keys"]), sorted(info["unexpected_keys"])
    lost = [key for key in missing if not key.startswith(_HEADS)]
    if lost:
        raise ModelError(f"{source} lacks {len(lost)} tensors of {name}: {', '.join(lost[:5])}")
    strange = [key for key in extra if not key.startswith(_HEADS) and not key.endswith("position_ids")]
    if strange:
        raise ModelError(
            f"{source} holds {len(strange)} tensors that {name} has no place for: {', '.join(strange[:5])}"
        )
    if missing:
        logger.info("new in %s: %s", name, ", ".join(sorted({key.rsplit(".", 1)[0] for key in missing})))
    if extra:
        logger.info("left out of %s: %s", name, ", ".join(sorted({key.rsplit(".", 1)[0] for key in extra})))
