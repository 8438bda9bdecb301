"""A folder of an int8 model: config.json, and int8.safetensors in place of weights that transformers would look for.

Without model.safetensors nothing but load_model() opens it, whatever the family: codes are never taken for weights.
"""

from pathlib import Path
from typing import Any

from sparsebert.errors import ModelError
from sparsebert.files import seal_tensors, write_atomic
from sparsebert.model.folder_checks import INT8_FILE, refuse_other_weights

KIND, FORMAT = "int8 model", 1


class SaveQuantised:
    """Stands in for save_pretrained of a model that was quantised."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, folder: str | Path, **kwargs: Any) -> None:
        model, folder = self.model, Path(folder)
        if kwargs:
            raise ModelError(f"an int8 model is saved as it is; leave out {', '.join(sorted(kwargs))}")
        refuse_other_weights(folder, beside=INT8_FILE)
        tensors = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
        about = {"kind": KIND, "format": FORMAT, "class": type(model).__name__}
        folder.mkdir(parents=True, exist_ok=True)
        model.config.save_pretrained(folder)  # with the pattern beside it, if there is one
        write_atomic(folder / INT8_FILE, seal_tensors(tensors, about))
