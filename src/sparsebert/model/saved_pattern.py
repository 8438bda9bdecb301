"""The pattern of a saved model: a sealed file beside the configuration; of earlier versions, among the weights."""

from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from transformers.utils.hub import cached_file

from sparsebert.errors import ModelError, PatternError
from sparsebert.model.config import PATTERN_FILE, pattern_fields
from sparsebert.patterns import Pattern

# Rows and keys, as earlier versions saved them with the encoder.
OF_EARLIER_FOLDERS = ("pattern_row_starts", "pattern_keys")
_WHERE = ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token")


def read_pattern(source: Any, fields: dict[str, Any], given: dict[str, Any]) -> Pattern:
    """Of a folder or a hub id; given: what from_pretrained was told about where to look."""
    where = {name: given[name] for name in _WHERE if name in given}
    path = cached_file(str(source), PATTERN_FILE, _raise_exceptions_for_missing_entries=False, **where)
    if path is not None:
        return _checked(Pattern.load(path), fields)
    weights = cached_file(str(source), "model.safetensors", _raise_exceptions_for_missing_entries=False, **where)
    found = {} if weights is None else _among(Path(weights))
    if len(found) != len(OF_EARLIER_FOLDERS):
        raise ModelError(f"{source} holds no {PATTERN_FILE}, which its configuration describes; copy the whole folder")
    starts, keys = (found[name] for name in OF_EARLIER_FOLDERS)
    return pattern_among_weights(starts, keys, fields)


def pattern_among_weights(starts: Tensor, keys: Tensor, fields: dict[str, Any]) -> Pattern:
    """As earlier versions saved it: rows and keys with the encoder, the rest in the configuration."""
    try:
        pattern = Pattern(
            int(fields["heads"]),
            int(fields["length"]),
            starts.cpu().numpy().copy(),
            keys.cpu().numpy().copy(),
            fields["anchor"],
            fields["rule"],
            int(fields.get("layers", 1)),
        )
    except (PatternError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the pattern saved with the weights cannot be used: {error}") from error
    return _checked(pattern, fields)


def _among(weights: Path) -> dict[str, Tensor]:
    with safe_open(weights, "pt") as opened:
        names = {name.rsplit(".", 1)[-1]: name for name in opened.keys()}  # noqa: SIM118 - it is no dictionary
        return {name: opened.get_tensor(names[name]) for name in OF_EARLIER_FOLDERS if name in names}


def _checked(pattern: Pattern, fields: dict[str, Any]) -> Pattern:
    """What is there must be what the configuration describes; how it was made may be told by the file alone."""
    found = {**(pattern_fields(pattern) or {}), "rule": fields.get("rule")}
    if found != fields:
        raise ModelError(
            "the pattern saved with the weights is not the one its configuration names; restore the folder from a copy"
        )
    return pattern
