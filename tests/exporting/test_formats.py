"""Files that other programs run give what the model gives, at every length and padding, or are refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import BertConfig, BertModel

from sparsebert import encode, export, export_embedder, load_model, patterns, quantize, sparsify
from sparsebert.errors import ConfigError, ModelError, PatternError
from sparsebert.exporting import Exported
from sparsebert.patterns import Pattern
from tests.model.cases import tiny
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder

# Per layer, in each of the two anchors, and with the border, which is computed densely.
BORDER = patterns.window_border(16, radius=2)
OWN = patterns.per_layer([BORDER, patterns.big_bird(16, 2)])
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.3,
}


def inputs_of(made: Exported, rows: int, n: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 20, (rows, n), generator=torch.Generator().manual_seed(n))
    real = torch.arange(n) < torch.tensor([[n], *[[max(1, n // 2)]] * (rows - 1)])
    found = {"input_ids": ids, "attention_mask": real.long(), "token_type_ids": (ids % 2) * real}
    return {name: found[name] for name in made.inputs}


@torch.no_grad()
def outputs_of(model: Any, made: Exported, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    found = model.eval()(**inputs)
    return [found[name] for name in made.outputs]


class InOnnxRuntime:
    def __init__(self, path: Path) -> None:
        runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = 1
        self.session = runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])

    def __call__(self, *given: torch.Tensor) -> list[torch.Tensor]:
        names = [one.name for one in self.session.get_inputs()]
        fed = {name: tensor.numpy() for name, tensor in zip(names, given, strict=True)}
        return [torch.from_numpy(array) for array in self.session.run(None, fed)]


@pytest.fixture(autouse=True)
def _with_the_extra(request: pytest.FixtureRequest) -> None:
    if "onnx" in request.node.name:
        pytest.importorskip("onnxscript", reason="the extra onnx is not installed")


@pytest.mark.parametrize("pattern", [OWN, BORDER.anchored("token"), None], ids=["by layer", "token", "dense"])
def test_onnx_runtime_gives_what_the_model_gives(pattern: Pattern | None, tmp_path: Path) -> None:
    model = tiny().set_pattern(pattern)
    made = export(model, tmp_path / "model.onnx", length=16)
    run = InOnnxRuntime(made.path)
    assert made.inputs == ("input_ids", "attention_mask", "token_type_ids")
    assert made.outputs == ("logits",)
    for rows, n in ((2, 16), (1, 7), (4, 2)):
        inputs = inputs_of(made, rows, n)
        for found, expected in zip(run(*inputs.values()), outputs_of(model, made, inputs), strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("Roberta", {"pad_token_id": 1}),
        ("DistilBert", {}),
        ("ModernBert", {"pad_token_id": 0, "global_attn_every_n_layers": 2, "local_attention": 8}),
        ("Albert", {"embedding_size": 16}),
    ],
)
def test_onnx_files_of_other_families_give_what_the_model_gives(
    family: str, more: dict[str, Any], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES, **more)
    model = sparsify(getattr(transformers, f"{family}Model")(config), BORDER)
    made = export(model, tmp_path / "model.onnx")
    run = InOnnxRuntime(made.path)
    for rows, n in ((2, 16), (3, 5)):
        inputs = inputs_of(made, rows, n)
        for found, expected in zip(run(*inputs.values()), outputs_of(model, made, inputs), strict=True):
            torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_an_onnx_file_holds_plain_operators_and_says_what_it_is(tmp_path: Path) -> None:
    import onnx

    made = export(tiny().set_pattern(OWN), tmp_path / "model.onnx")
    read = onnx.load(made.path)
    assert {node.domain for node in read.graph.node} <= {"", "ai.onnx"}
    told = {one.key: one.value for one in read.metadata_props}
    assert told["pattern"] == OWN.digest
    assert told["max_length"] == "16"


def test_onnx_runtime_refuses_padding_that_is_not_on_the_right(tmp_path: Path) -> None:
    made = export(tiny().set_pattern(OWN), tmp_path / "model.onnx")
    inputs = inputs_of(made, 2, 8)
    inputs["attention_mask"] = inputs["attention_mask"].flip(1)
    with pytest.raises(Exception, match="out of data bounds"):
        InOnnxRuntime(made.path)(*inputs.values())


def test_a_sentence_folder_becomes_an_onnx_file_that_gives_its_embeddings(tmp_path: Path) -> None:
    folder = tiny_sentence_folder(tmp_path / "model")
    made = export_embedder(folder, tmp_path / "model.onnx", pattern="star", length=40)
    assert made.outputs == ("last_hidden_state", "sentence_embedding")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = tokenizer(TEXTS, return_tensors="pt", padding=True, truncation=True, max_length=40)
    found = InOnnxRuntime(made.path)(*(read[name] for name in made.inputs))[1]
    np.testing.assert_allclose(found, encode(TEXTS, folder, pattern="star", length=40), atol=1e-5)


def test_a_torch_file_runs_the_kernel_in_another_process(tmp_path: Path) -> None:
    model = tiny().set_pattern(patterns.star(64))
    made = export(model, tmp_path / "model.pt2")
    inputs = inputs_of(made, 2, 40)
    torch.save((tuple(inputs.values()), outputs_of(model, made, inputs)), tmp_path / "expected.pt")
    lines = [
        "import torch, sparsebert.model",
        f"given, expected = torch.load({str(tmp_path / 'expected.pt')!r})",
        f"graph = torch.export.load({str(made.path)!r})",
        "assert 'sparsebert.attention' in str(graph.graph)",
        "torch.testing.assert_close(list(graph.module()(*given)), expected)",
    ]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.usefixtures("_a_compiler")
def test_a_compiled_file_runs_where_this_package_is_not_loaded(tmp_path: Path) -> None:
    model = tiny().set_pattern(OWN)
    made = export(model, tmp_path / "model.pt2", format="compiled")
    inputs = [inputs_of(made, rows, n) for rows, n in ((2, 16), (3, 5))]
    expected = [outputs_of(model, made, each) for each in inputs]
    torch.save([(tuple(each.values()), found) for each, found in zip(inputs, expected, strict=True)], tmp_path / "e.pt")
    lines = [
        "import sys, torch",
        f"run = torch._inductor.aoti_load_package({str(made.path)!r})",
        f"for given, expected in torch.load({str(tmp_path / 'e.pt')!r}):",
        "    torch.testing.assert_close(list(run(*given)), expected, atol=1e-5, rtol=1e-5)",
        "assert 'sparsebert' not in sys.modules",
        "given = list(given)",
        "given[1] = given[1].flip(1)",
        "try:",
        "    run(*given)",
        "except RuntimeError:",
        "    print('refused')",
    ]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.stdout.split() == ["refused"], done.stderr


@pytest.fixture
def _a_compiler() -> None:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        pytest.skip("there is no C++ compiler")


def test_a_longer_length_rebuilds_the_pattern_by_its_rule_and_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    model = tiny().set_pattern(BORDER).train()
    made = export(model, tmp_path / "model.pt2", length=30)
    assert (made.length, made.pattern) == (30, BORDER.at(30))
    assert model.pattern == BORDER
    assert model.sparse_plan.backend == "auto"
    assert model.training
    with pytest.raises(PatternError, match="rule"):
        export(tiny().set_pattern(patterns.from_keep(BORDER.keep())), tmp_path / "model.pt2", length=30)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"length": 1}, "length is 1; this model takes 2 to 512 tokens"),
        ({"length": 513}, "length is 513; this model takes 2 to 512 tokens"),
        ({"format": "tflite"}, "no format 'tflite'"),
        ({"path": "model.bin"}, "neither .onnx nor .pt2"),
        ({"path": "model.pt2", "format": "onnx"}, "a file of format 'onnx' ends in .onnx"),
    ],
)
def test_what_cannot_be_written_is_refused_before_work(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / given.pop("path", "model.onnx")
    with pytest.raises((ConfigError, ModelError), match=said):
        export(tiny().set_pattern(BORDER), path, **given)
    assert not path.exists()


def test_models_that_cannot_be_exported_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(ModelError, match="attention of its own"):
        export(BertModel(BertConfig(**SIZES)), path)
    with pytest.raises(ModelError, match="int8 layers"):
        export(quantize(load_model("scratch:tiny", vocab_size=50).set_pattern(BORDER).eval()), path)
    with pytest.raises(ModelError, match="needs float32"):
        export(tiny().set_pattern(BORDER).to(torch.bfloat16), path)
