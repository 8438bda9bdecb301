"""Model folders from anywhere: refused before anything of them is built, run, or allocated.

config.json -> names that could run code -> sizes -> headers of the weights -> do the two fit each other
"""

import json
import logging
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from sparsebert.errors import ModelError
from sparsebert.files import read_json
from sparsebert.model.config import AUTO_MAP, ON_DISK, PATTERN_FILE, unmarked

logger = logging.getLogger(__name__)

_INDEX = "model.safetensors.index.json"
INT8_FILE = "int8.safetensors"  # the weights of a model that was quantised
_ATTENTION_NAMES = (None, "eager", "sdpa", "sparsebert")
_MAX_HEADER_BYTES = 100 * 2**20
# Far beyond any encoder; what is larger would only be found out by running out of memory. Some families have names of
# their own.
_LARGEST = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num"), 1_000),
    **dict.fromkeys(("num_attention_heads", "n_heads"), 4_096),
    **dict.fromkeys(("hidden_size", "dim", "embedding_size"), 2**17),
    **dict.fromkeys(("intermediate_size", "hidden_dim"), 2**20),
    "vocab_size": 2**24,
    "type_vocab_size": 2**16,
    "max_position_embeddings": 2**24,
    "num_labels": 2**16,
}
_POOLER = "pooler"  # a part of the encoder that heads bring along, or do without
_FLOATS, _WHOLE = {"F64", "F32", "F16", "BF16"}, {"I64", "I32"}
_WHOLE_NUMBERED = ("pattern_row_starts", "pattern_keys", "position_ids")
# A model may have this many times the numbers of its weights, and some for a new head; no configuration needs more.
_TIMES, _MORE = 3, 2**27
_LAYER = re.compile(r"(?:^|\.)encoder\.layer\.(\d{1,6})\.")
# Tensors that show every size of the configuration; the names of a bare encoder lack the prefix bert.
_SHAPES: dict[str, tuple[str, ...]] = {
    "embeddings.word_embeddings.weight": ("vocab_size", "hidden_size"),
    "embeddings.position_embeddings.weight": ("max_position_embeddings", "hidden_size"),
    "embeddings.token_type_embeddings.weight": ("type_vocab_size", "hidden_size"),
    "encoder.layer.0.intermediate.dense.weight": ("intermediate_size", "hidden_size"),
}


def check_folder(folder: Path) -> int:
    """Only safetensors and JSON, no code, no weights outside the folder, sizes that its own weights bear out.

    Returns how many numbers the weights hold.
    """
    config = check_config(folder)
    tensors = {name: entry for file in _weight_files(folder) for name, entry in _header(folder, file).items()}
    _check_types(folder, tensors)
    if family_of(folder, config) == "bert":
        _check_shapes(folder, config, tensors)
    if config.get("pattern") is not None:
        _check_pattern(folder, config["pattern"], tensors)
    return sum(math.prod(entry.get("shape") or [0]) for entry in tensors.values())


def check_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder, without code to run and with sizes that can be."""
    config = folder_config(folder)
    if config.get("auto_map", AUTO_MAP) != AUTO_MAP or "custom_pipelines" in config:
        raise ModelError(f"{folder}/config.json asks for code of its own (auto_map); such models are not run")
    for name in ("attn_implementation", "_attn_implementation"):
        if config.get(name) not in _ATTENTION_NAMES:
            raise ModelError(f"{folder}/config.json asks for attention {config[name]!r}; expected eager or sdpa")
    family_of(folder, config)
    if config.get("transformers_weights") is not None or config.get("quantization_config") is not None:
        raise ModelError(f"{folder}/config.json redirects or quantises its weights; expected plain model.safetensors")
    _check_sizes(folder, config)
    return config


def family_of(folder: Path, config: Mapping[str, Any]) -> str:
    """What transformers calls the family of a model, sparse or not."""
    named = config.get("model_type")
    family = config.get("family", "bert") if named == ON_DISK else named
    if not isinstance(family, str) or not family:
        raise ModelError(f"{folder}/config.json has model_type {_short(family)}; expected an encoder of transformers")
    return family


def check_size(folder: Path, cls: Any, config: Any, elements: int) -> None:
    """Refuse to build what is far larger than the weights that are to fill it."""
    if config.family == "bert":
        return  # whose every size was held against its tensors
    try:
        with torch.device("meta"):
            built = sum(parameter.numel() for parameter in cls(config).parameters())
    except (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise ModelError(f"{folder} cannot be built as {cls.__name__}: {error}") from error
    if built > _TIMES * elements + _MORE:
        raise ModelError(
            f"{folder} has weights of {elements:,} numbers but its configuration asks for {built:,}; restore the folder"
        )


def folder_config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ModelError(f"{folder}/config.json holds a {type(config).__name__}; expected a JSON object")
    return unmarked(config)


def _check_sizes(folder: Path, config: Mapping[str, Any]) -> None:
    for name, largest in _LARGEST.items():
        value = config.get(name)
        if value is not None and (type(value) is not int or not 1 <= value <= largest):
            raise ModelError(f"{folder}/config.json has {name} {_short(value)}; expected 1 to {largest:,}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refuse_other_weights(folder: Path, *, beside: str) -> None:
    """Refuse a folder that holds other weights than those of the file `beside`: which of them count is not to guess."""
    others = (INT8_FILE,) if beside != INT8_FILE else ("model.safetensors", _INDEX)
    for name in others:
        if (folder / name).is_file():
            raise ModelError(
                f"{folder} holds the weights of another model ({name}), and only one may count; keep that and what "
                f"belongs to {beside} in folders of their own"
            )


def _weight_files(folder: Path) -> Iterator[str]:
    index = folder / _INDEX
    if (folder / "model.safetensors").is_file():
        refuse_other_weights(folder, beside="model.safetensors")
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


def _check_pattern(folder: Path, pattern: Any, tensors: Mapping[str, Mapping[str, Any]]) -> None:
    """A file, or as earlier versions saved it, two tensors of the sizes that are told."""
    names = ("heads", "length", "kept")
    if not isinstance(pattern, dict) or not all(type(pattern.get(name)) is int for name in names):
        raise ModelError(f"{folder}/config.json does not describe its pattern; expected heads, length and kept")
    layers = pattern.get("layers", 1)
    if type(layers) is not int:
        raise ModelError(f"{folder}/config.json has a pattern of {_short(layers)} layers; expected a whole number")
    path = folder / PATTERN_FILE
    if path.is_file():
        if not _is_inside(path, folder):
            raise ModelError(f"{path} is a link that leads out of its folder; copy the file itself")
        return
    found = {name.rsplit(".", 1)[-1]: entry.get("shape") for name, entry in tensors.items()}
    expected = {
        "pattern_row_starts": [layers * pattern["heads"], pattern["length"] + 1],
        "pattern_keys": [pattern["kept"]],
    }
    for name, shape in expected.items():
        if found.get(name) != shape:
            raise ModelError(
                f"{folder} holds no {PATTERN_FILE}, which its configuration describes, and among its weights {name} is "
                f"{_short(found.get(name))}, not {_short(shape)}; copy the whole folder"
            )


def check_loaded(source: Any, model: Any, info: dict[str, Any]) -> None:
    """Refuse a checkpoint that does not hold exactly this encoder; say in one line which heads are new or left."""
    name = type(model).__name__
    mismatched = [
        f"{key} is {tuple(found)}, expected {tuple(wanted)}" for key, found, wanted in info["mismatched_keys"]
    ]
    if mismatched:
        raise ModelError(f"{source} does not fit {name}: {'; '.join(sorted(mismatched)[:5])}")
    missing, extra = sorted(info["missing_keys"]), sorted(info["unexpected_keys"])
    lost = [key for key in missing if _is_of_encoder(model, key)]
    if lost:
        raise ModelError(f"{source} lacks {len(lost)} tensors of {name}: {', '.join(lost[:5])}")
    strange = [key for key in extra if _is_of_encoder(model, key) and not key.endswith("position_ids")]
    if strange:
        raise ModelError(
            f"{source} holds {len(strange)} tensors that {name} has no place for: {', '.join(strange[:5])}"
        )
    if missing:
        logger.info("new in %s: %s", name, ", ".join(sorted({key.rsplit(".", 1)[0] for key in missing})))
    if extra:
        logger.info("left out of %s: %s", name, ", ".join(sorted({key.rsplit(".", 1)[0] for key in extra})))


def _is_of_encoder(model: Any, key: str) -> bool:
    """Whether a tensor belongs to the encoder; the heads on top of it may be new to a checkpoint, or left over."""
    inner = key.removeprefix(f"{model.base_model_prefix}.")
    part = inner.split(".")[0]
    return part != _POOLER and (inner != key or part in dict(model.base_model.named_children()))
