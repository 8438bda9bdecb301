"""How a model makes one embedding of a text, as far as its folder says so in sentence-transformers' own files."""

from typing import Literal

from sparsebert.errors import FileError
from sparsebert.files import read_json
from sparsebert.model.sources import model_folder

Pooling = Literal["mean", "cls"]


def pooling_of(source: str) -> Pooling:
    """The mean of the tokens unless the folder has a pooling of its own, such as the first token's state."""
    path = model_folder(source) / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    chosen = read_json(path)
    if chosen.get("pooling_mode_mean_tokens"):
        return "mean"
    if chosen.get("pooling_mode_cls_token"):
        return "cls"
    names = ", ".join(name for name, value in chosen.items() if value is True)
    raise FileError(f"{path} asks for {names or 'no pooling'}; expected the mean of the tokens or the first one")
