"""export(): a model as a file of one of three formats, written whole or not at all."""

import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from sparsebert.embeddings import Encoder
from sparsebert.errors import ConfigError, MissingExtraError, ModelError
from sparsebert.exporting.graph import Embedded, TracedModel, quiet, traced
from sparsebert.files import write_atomic
from sparsebert.patterns import Pattern
from sparsebert.settings import refuse_unknown


@dataclass(frozen=True)
class FileFormat:
    """One kind of file."""

    suffix: str
    plain: bool  # nothing of this package is needed to run it
    write: Callable[[TracedModel], bytes]


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    format: str
    inputs: tuple[str, ...]  # int64 [batch, length]; attention_mask: ones and then zeros
    outputs: tuple[str, ...]
    length: int  # tokens that it takes at most
    pattern: Pattern | None


def export(model: Any, path: str | Path, *, length: int | None = None, format: str | None = None) -> Exported:
    """Write a model, its pattern inside, for any number of rows of up to `length` tokens.

    format: "onnx", the default of .onnx; "torch", the default of .pt2, for torch.export.load after
    `import sparsebert.model`, which runs at the speed of the package; "compiled", a .pt2 of AOTInductor for
    torch._inductor.aoti_load_package or C++, which needs nothing of this package. length: beyond the pattern's it is
    rebuilt by its rule; None: the pattern's, or all positions of a dense model.
    """
    return _written(model, Path(path), length, _format(Path(path), format), None)


def export_embedder(
    source: str | Path,
    path: str | Path,
    *,
    pattern: Pattern | str | None = None,
    length: int | None = None,
    format: str | None = None,
) -> Exported:
    """As export(), of a model folder, a run folder, a hub id or minilm: with one more output, `sentence_embedding`,
    pooled and normalised as the folder says."""
    name = _format(Path(path), format)
    encoder = Encoder(source, pattern=pattern, length=None if pattern is None else length)
    return _written(encoder.model, Path(path), length, name, Embedded(encoder.pooling, encoder.is_normalised))


def _written(model: Any, path: Path, length: int | None, name: str, embedded: Embedded | None) -> Exported:
    chosen = FORMATS[name]
    if chosen.plain and next(model.parameters()).dtype != torch.float32:
        raise ModelError(f"the weights are {next(model.parameters()).dtype}; format {name!r} needs float32")
    graph = traced(model, length, embedded, plain=chosen.plain)
    write_atomic(path, chosen.write(graph))
    return Exported(path, name, graph.inputs, graph.outputs, graph.length, graph.pattern)


def _format(path: Path, asked: str | None) -> str:
    by_suffix = {".onnx": "onnx", ".pt2": "torch"}
    name = asked or by_suffix.get(path.suffix)
    if name is None:
        raise ConfigError(f"{path} ends in neither .onnx nor .pt2, which say what is to be written; choose one of them")
    refuse_unknown(name, FORMATS, ConfigError, "there is no format")
    if path.suffix != FORMATS[name].suffix:
        raise ConfigError(f"{path} ends in {path.suffix!r}; a file of format {name!r} ends in {FORMATS[name].suffix}")
    return name


def _onnx(graph: TracedModel) -> bytes:
    try:
        import onnxscript  # noqa: F401 - torch's exporter asks for it deep inside
    except ImportError:
        raise MissingExtraError("ONNX is not installed here; run pip install 'sparsebert[onnx]'") from None
    with quiet():
        made: Any = torch.onnx.export(
            graph.program,
            dynamo=True,
            verbose=False,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
        )
    about = {"sparsebert": version("sparsebert"), "max_length": str(graph.length)}
    if graph.pattern is not None:
        about |= {"pattern": graph.pattern.digest, "sparsity": f"{graph.pattern.sparsity:.6f}"}
    made.model.metadata_props.update(about)
    written: bytes = made.model_proto.SerializeToString()
    return written


def _torch(graph: TracedModel) -> bytes:
    buffer = io.BytesIO()
    with quiet():
        torch.export.save(graph.program, buffer)
    return buffer.getvalue()


def _compiled(graph: TracedModel) -> bytes:
    from torch._inductor.exc import CppCompileError, InvalidCxxCompiler

    with tempfile.TemporaryDirectory() as folder, quiet():
        path = os.path.join(folder, "model.pt2")  # noqa: PTH118 - torch takes no Path here
        try:
            torch._inductor.aoti_compile_and_package(graph.program, package_path=path)
        except (CppCompileError, InvalidCxxCompiler) as error:
            raise ConfigError(f"there is no C++ compiler that could build the model ({error}); install g++") from error
        return Path(path).read_bytes()


FORMATS: dict[str, FileFormat] = {
    "onnx": FileFormat(".onnx", True, _onnx),
    "torch": FileFormat(".pt2", False, _torch),
    "compiled": FileFormat(".pt2", True, _compiled),
}
