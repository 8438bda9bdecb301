"""The encoders that encoder_peers.py sets side by side: minilm's weights in torch, here, ONNX Runtime and OpenVINO.

Each is a function of token ids and which of them are real, [rows, n], and gives the last states, [rows, n, width].
Longformer, BigBird and ModernBERT have minilm's shape and new weights: their time does not depend on what they know.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import BertModel

from sparsebert import extend_positions, load_model, quantize, to_bfloat16
from sparsebert.layers import full_speed_products
from sparsebert.model.sources import model_folder
from sparsebert.patterns import Pattern

Run = Callable[[Tensor, Tensor], Tensor]
POSITIONS = 4096  # beyond minilm's own 512 they are its own again, tiled
HEADS = 12
SHAPE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": HEADS,
    "intermediate_size": 1536,
    "vocab_size": 30522,
}
LOCAL = 128  # tokens of a window: ModernBERT's own, and Longformer's here


class States(nn.Module):
    """A dense BERT as other programs take it: two inputs, one output, and padding as a bias of the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = dense()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states: Tensor = self.bert(
            input_ids=input_ids,
            attention_mask=(1.0 - attention_mask[:, None, None, :].float()) * -30000.0,
            position_ids=torch.ones_like(input_ids).cumsum(1) - 1,
            token_type_ids=torch.zeros_like(input_ids),
        ).last_hidden_state
        return states


def dense() -> Any:
    model = BertModel.from_pretrained(model_folder("minilm"), attn_implementation="sdpa", add_pooling_layer=False)
    return extend_positions(model.eval(), POSITIONS)


def in_torch(change: Callable[[Any], Any], model: Any) -> Run:
    model = change(model.eval().requires_grad_(False))
    return lambda ids, real: model(input_ids=ids, attention_mask=None if bool(real.all()) else real)[0]


def sparse(pattern: Pattern, length: int) -> Any:
    model = extend_positions(load_model("minilm", "none"), POSITIONS)
    return model.set_pattern(pattern.at(max(length, pattern.length)))


def dynamic(model: Any) -> Any:
    """torch's own int8 layers: a scale for all activations of a call."""
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def same(model: Any) -> Any:
    return model


def onnx_file(folder: Path) -> Path:
    path = folder / "minilm.onnx"
    if not path.exists():
        names, axes = ["input_ids", "attention_mask"], {0: "rows", 1: "tokens"}
        ids = torch.ones(2, 16, dtype=torch.int64)
        half_made = folder / "half-made.onnx"
        torch.onnx.export(
            States().eval(),
            (ids, ids),
            str(half_made),
            input_names=names,
            output_names=["states"],
            dynamic_axes=dict.fromkeys([*names, "states"], axes),
            dynamo=False,
        )
        half_made.rename(path)
    return path


def onnx_int8_file(folder: Path) -> Path:
    """By ONNX Runtime's own tool: weights by channel, activations when they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    path, half_made = folder / "minilm-int8.onnx", folder / "half-made-int8.onnx"
    if not path.exists():
        settings = {"extra_options": {"MatMulConstBOnly": True}, "op_types_to_quantize": ["MatMul"]}
        quantize_dynamic(onnx_file(folder), half_made, weight_type=QuantType.QInt8, per_channel=True, **settings)
        half_made.rename(path)
    return path


def in_onnx_runtime(path: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(ids: Tensor, real: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"input_ids": ids.numpy(), "attention_mask": real.numpy()})[0])

    return run


def openvino_int8_file(folder: Path, calibration: list[Tensor]) -> Path:
    """By OpenVINO's own tool, NNCF: weights and activations, scales of the activations from real texts."""
    import nncf
    import openvino

    path = folder / f"minilm-int8-{len(calibration)}.xml"
    if not path.exists():
        rows = [{"input_ids": ids.numpy(), "attention_mask": torch.ones_like(ids).numpy()} for ids in calibration]
        model = openvino.Core().read_model(onnx_file(folder))
        kind = nncf.ModelType.TRANSFORMER
        made = nncf.quantize(model, nncf.Dataset(rows), model_type=kind, subset_size=len(rows))
        openvino.save_model(made, path, compress_to_fp16=False)
    return path


def in_openvino(path: Path, precision: str, threads: int) -> Run:
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
    model = core.compile_model(core.read_model(path), "CPU", settings)

    def run(ids: Tensor, real: Tensor) -> Tensor:
        return torch.from_numpy(model({"input_ids": ids.numpy(), "attention_mask": real.numpy()})[0])

    return run


def longformer(length: int) -> Any:
    positions = -(-length // LOCAL) * LOCAL + 2
    config = transformers.LongformerConfig(**SHAPE, attention_window=LOCAL, max_position_embeddings=positions)
    return transformers.LongformerModel(config, add_pooling_layer=False)


def big_bird(length: int) -> Any:
    config = transformers.BigBirdConfig(**SHAPE, block_size=64, max_position_embeddings=max(length, 64))
    return transformers.BigBirdModel(config, add_pooling_layer=False)


def modern_bert(length: int) -> Any:
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    config = transformers.ModernBertConfig(
        **SHAPE, **tokens, local_attention=LOCAL, max_position_embeddings=length, attn_implementation="sdpa"
    )
    return transformers.ModernBertModel(config)


# Speed only.
FAMILIES = {"Longformer": longformer, "BigBird": big_bird, "ModernBERT": modern_bert}


def makers(pattern: Pattern, length: int, threads: int, folder: Path, calibration: list[Tensor]) -> dict[str, Any]:
    """How each encoder is made for inputs of this length, by its name; nothing is made yet."""
    ours, torch_run = partial(sparse, pattern, length), in_torch
    return {
        "torch float32": lambda: torch_run(same, dense()),
        "torch bfloat16": lambda: torch_run(lambda model: model.to(torch.bfloat16), dense()),
        "torch int8": lambda: torch_run(dynamic, dense()),
        "ours float32": lambda: full_speed_products()(torch_run(same, ours())),
        "ours bfloat16": lambda: torch_run(to_bfloat16, ours()),
        "ours int8": lambda: torch_run(quantize, ours()),
        "ONNX Runtime float32": lambda: in_onnx_runtime(onnx_file(folder), threads),
        "ONNX Runtime int8": lambda: in_onnx_runtime(onnx_int8_file(folder), threads),
        "OpenVINO float32": lambda: in_openvino(onnx_file(folder), "f32", threads),
        "OpenVINO bfloat16": lambda: in_openvino(onnx_file(folder), "bf16", threads),
        "OpenVINO int8": lambda: in_openvino(openvino_int8_file(folder, calibration), "f32", threads),
        **{name: partial(_new, make, length) for name, make in FAMILIES.items()},
    }


def _new(make: Callable[[int], Any], length: int) -> Run:
    torch.manual_seed(0)
    return in_torch(same, make(length))
