"""TensorBoard's event files, where they are asked for."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparsebert.errors import MissingExtraError
from sparsebert.training.config import FitConfig


class EventWriter:
    """Mirrors metrics.jsonl; does nothing unless the configuration asks for it."""

    def __init__(self, folder: Path, config: FitConfig) -> None:
        self.writer = _open(folder / "tensorboard") if config.tensorboard else None

    def write(self, line: Mapping[str, Any]) -> None:
        if self.writer is None:
            return
        flat = {name: value for name, value in line.items() if name not in ("step", "evaluation")}
        flat |= {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
        for name, value in flat.items():
            if value is not None:
                self.writer.add_scalar(name, float(value), line["step"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.writer is not None:
            self.writer.close()


def _open(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "tensorboard=true needs the package tensorboard; pip install 'sparsebert[tensorboard]'"
        ) from error
    return SummaryWriter(str(folder))
