"""TensorBoard's event files, where they are asked for."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparsebert.errors import MissingExtraError
from sparsebert.training.config import FitConfig
from sparsebert.training.run_folder import Write


@contextmanager
def event_writer(folder: Path, config: FitConfig) -> Iterator[Write]:
    """Mirrors metrics.jsonl; does nothing unless the configuration asks for it."""
    if not config.tensorboard:
        yield lambda line: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "tensorboard=true needs the package tensorboard; pip install 'sparsebert[tensorboard]'"
        ) from error
    writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def write(line: Mapping[str, Any]) -> None:
        flat = {name: value for name, value in line.items() if name not in ("step", "evaluation")}
        flat |= {f"evaluation/{name}": value for name, value in line.get("evaluation", {}).items()}
        for name, value in flat.items():
            if value is not None:
                writer.add_scalar(name, float(value), line["step"])

    try:
        yield write
    finally:
        writer.close()
