"""How a model makes one embedding of a text, as far as its folder says so in sentence-transformers' own files."""

from typing import Any

from sparsebert.errors import FileError
from sparsebert.files import read_json
from sparsebert.model.head_pooling import Pooling
from sparsebert.model.sentence_folder import parts_of
from sparsebert.model.sources import model_folder

__all__ = ["Pooling", "pooling_of"]
_FLAGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}  # of earlier folders


def pooling_of(source: str) -> Pooling:
    """The mean of the tokens unless the folder has a pooling of its own, such as the first token's state."""
    folder = model_folder(source)
    named = [part.folder for part in parts_of(folder) if part.kind == "Pooling"]
    path = folder / (named[0] if named else "1_Pooling") / "config.json"
    if not path.is_file():
        return "mean"
    asked = _modes(read_json(path))
    if asked == ["mean"]:
        return "mean"
    if asked == ["cls"]:
        return "cls"
    found = " and ".join(asked) or "no pooling"
    raise FileError(f"{path} asks for {found}; expected the mean of the tokens or the first one")


def _modes(chosen: dict[str, Any]) -> list[str]:
    said = chosen.get("pooling_mode")
    if said is not None:
        return [said] if isinstance(said, str) else [str(one) for one in said]
    return [_FLAGS.get(name, name) for name, value in chosen.items() if value is True and name.startswith("pooling_")]
