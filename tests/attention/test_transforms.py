"""What PyTorch does to an operation: transforms, graphs, traces, checkpoints, autocast. Each right, or a sentence."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from sparsebert import attend, load_model, patterns
from sparsebert.attention import choose
from sparsebert.attention.inputs import AttentionArguments, checked_inputs
from sparsebert.attention.sparse_library import is_built
from sparsebert.errors import AttentionError
from sparsebert.patterns import Anchor

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")

PATTERN = patterns.window(64, radius=2)
IDS = torch.randint(5, 200, (2, 40), generator=torch.Generator().manual_seed(1))


TENSORS = torch.randn(3, 1, 2, 64, 16, generator=torch.Generator().manual_seed(0))


def tensors() -> tuple[Tensor, ...]:
    return TENSORS.clone().unbind(0)


def score(backend: str = "auto", **settings: Any) -> Callable[[Tensor], Tensor]:
    _, key, value = tensors()

    def of(query: Tensor) -> Tensor:
        return attend(query, key, value, pattern=PATTERN, backend=backend, **settings).square().sum()

    return of


def model() -> nn.Module:
    torch.manual_seed(0)
    return load_model("scratch:tiny", vocab_size=200, pattern=PATTERN).eval()


# torch.func


def test_vmap_gives_the_gradient_of_each() -> None:
    query, key, value = tensors()
    mapped = torch.stack([query, 2 * query]).requires_grad_()
    torch.func.vmap(lambda each: attend(each, key, value, pattern=PATTERN))(mapped).square().sum().backward()
    expected = torch.stack([torch.func.grad(score("reference"))(factor * query) for factor in (1, 2)])
    assert mapped.grad is not None
    torch.testing.assert_close(mapped.grad, expected)


def test_grad_under_vmap_gives_each_bias_its_own_gradient() -> None:
    bias = torch.randn(2, PATTERN.kept, generator=torch.Generator().manual_seed(3))
    query = tensors()[0]

    def of(backend: str) -> Callable[[Tensor], Tensor]:
        return torch.func.grad(lambda each: score(backend, bias=each)(query))

    found = torch.func.vmap(of("sparse"))(bias)
    torch.testing.assert_close(found, torch.stack([of("reference")(each) for each in bias]))


def test_lengths_under_vmap_are_each_elements_own() -> None:
    query, key, value = tensors()
    lengths = torch.tensor([[64], [30]])
    found = torch.func.vmap(lambda each: attend(query, key, value, pattern=PATTERN, lengths=each))(lengths)
    expected = [attend(query, key, value, pattern=PATTERN, lengths=each) for each in lengths]
    torch.testing.assert_close(found, torch.stack(expected))
    with pytest.raises(AttentionError, match="lengths"):
        torch.func.vmap(lambda each: attend(query, key, value, pattern=PATTERN, lengths=each))(lengths + 5)


def test_forward_mode_is_right_or_refused() -> None:
    query, key, value = tensors()
    tangent = torch.ones_like(query)
    found, expected = (torch.func.jvp(score(backend), (query,), (tangent,))[1] for backend in ("auto", "reference"))
    assert expected.abs() > 0
    torch.testing.assert_close(found, expected)
    with pytest.raises(AttentionError, match="forward-mode"):
        torch.func.jvp(score("sparse"), (query,), (tangent,))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(query, tangent)
        assert choose(checked_inputs(dual, key, value, AttentionArguments(PATTERN))).backend == "reference"
        with pytest.raises(AttentionError, match="forward-mode"):
            score("sparse")(dual)


def test_a_gate_goes_through_torch_func_by_the_definition() -> None:
    query, key, value = tensors()
    gate = torch.rand(1, 64, 64, generator=torch.Generator().manual_seed(2))

    def of(values: Tensor, backend: str = "auto") -> Tensor:
        return attend(query, key, value, gate=values, backend=backend).square().sum()

    leaf = gate.clone().requires_grad_()
    torch.testing.assert_close(torch.func.grad(of)(gate), torch.autograd.grad(of(leaf), leaf)[0])
    with pytest.raises(AttentionError, match="reverse-mode"):
        torch.func.grad(lambda values: of(values, "gated"))(gate)


def test_a_second_derivative_is_refused_in_a_sentence() -> None:
    query = tensors()[0].requires_grad_()
    (gradient,) = torch.autograd.grad(score()(query), query, create_graph=True)
    with pytest.raises(AttentionError, match="second derivative"):
        gradient.sum().backward()
    with pytest.raises(AttentionError, match="second derivative"):
        torch.func.grad(lambda each: torch.func.grad(score())(each).sum())(query.detach())


# Graphs and traces


def gradients_of(run: Callable[..., Any], owner: nn.Module, **inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    output = run(**inputs)[0]
    owner.zero_grad()
    output.square().sum().backward()
    return output.detach(), {n: p.grad.clone() for n, p in owner.named_parameters() if p.grad is not None}


def assert_alike(found: tuple[Tensor, dict[str, Tensor]], expected: tuple[Tensor, dict[str, Tensor]]) -> None:
    # A graph gives zeros where the plain model gives none. Sums of thousands of terms run in another order.
    used = {name: found[1][name] for name in expected[1]}
    assert len(used) > 10
    torch.testing.assert_close((found[0], used), expected, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_model_compiles_into_one_graph(dynamic: bool) -> None:
    torch.compiler.reset()
    net = model()
    compiled = torch.compile(net, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for length in (40, 20, 33) if dynamic else (40,):
        for whole in (True, False):
            real = torch.arange(length) < torch.tensor([[length], [length if whole else length // 2]])
            inputs = {"input_ids": IDS[:, :length], "attention_mask": real.long()}
            assert_alike(gradients_of(compiled, net, **inputs), gradients_of(net, net, **inputs))


def test_a_compiled_call_sees_another_pattern() -> None:
    query, key, value = tensors()
    compiled = torch.compile(
        lambda pattern: attend(query, key, value, pattern=pattern), fullgraph=True, backend="aot_eager"
    )
    for pattern in (PATTERN, patterns.star(64), PATTERN):
        torch.testing.assert_close(compiled(pattern), attend(query, key, value, pattern=pattern))


def test_an_exported_model_learns_though_it_was_exported_without_gradients() -> None:
    net = model()
    with torch.no_grad():
        exported = torch.export.export(net, (), kwargs={"input_ids": IDS}).module()
    found, expected = gradients_of(exported, exported, input_ids=IDS), gradients_of(net, net, input_ids=IDS)
    assert_alike(found, expected)


def test_an_exported_model_takes_any_length_of_its_pattern() -> None:
    net, length = model(), torch.export.Dim("length", min=2, max=64)
    exported = torch.export.export(
        net, (), kwargs={"input_ids": IDS}, dynamic_shapes={"input_ids": {1: length}}
    ).module()
    for n in (40, 3, 64):
        ids = torch.arange(2 * n).view(2, n)
        torch.testing.assert_close(exported(input_ids=ids)[0], net(ids)[0])


@pytest.mark.parametrize("anchor", ["position", "token"])
def test_a_pattern_that_runs_dense_is_exported_and_compiled_too(anchor: Anchor) -> None:
    torch.compiler.reset()
    thick = patterns.random(64, 2, sparsity=0.1).anchored(anchor)
    net = load_model("scratch:tiny", vocab_size=200, pattern=thick).eval()
    with torch.no_grad():
        exported = torch.export.export(net, (), kwargs={"input_ids": IDS}).module()
        expected = net(IDS)[0]
        torch.testing.assert_close(exported(input_ids=IDS)[0], expected)
        compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(input_ids=IDS)[0], expected)


def test_a_saved_export_has_its_pattern_in_another_process(tmp_path: Path) -> None:
    net = model()
    with torch.no_grad():
        torch.export.save(torch.export.export(net, (), kwargs={"input_ids": IDS}), tmp_path / "model.pt2")
        torch.save((IDS, net(IDS)[0]), tmp_path / "expected.pt")
    lines = [
        "import torch, sparsebert.model",
        f"ids, expected = torch.load({str(tmp_path / 'expected.pt')!r})",
        f"net = torch.export.load({str(tmp_path / 'model.pt2')!r}).module()",
        "assert torch.equal(net(input_ids=ids)[0], expected)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*torch.jit.*")
def test_a_trace_made_without_gradients_learns_and_takes_shorter_inputs() -> None:
    net = model()
    with torch.no_grad():
        traced = torch.jit.trace(net, (IDS,), strict=False, check_trace=False)
    torch.testing.assert_close(traced(IDS[:, :20])["last_hidden_state"], net(IDS[:, :20])[0])
    traced(IDS)["last_hidden_state"].sum().backward()
    assert all(layer.attention.self.query.weight.grad.isfinite().all() for layer in net.encoder.layer)


# Memory and precision


def test_a_checkpointed_call_has_the_same_gradients() -> None:
    for kind in ({"pattern": PATTERN}, {"gate": torch.rand(1, 64, 64)}, {"pattern": PATTERN, "dropout": 0.3}):
        found = []
        for wrapped in (False, True):
            leaves = [tensor.clone().requires_grad_() for tensor in tensors()]
            torch.manual_seed(4)

            def run(*leaves: Tensor, kind: Any = kind) -> Tensor:
                return attend(*leaves, **kind)

            output = checkpoint(run, *leaves, use_reentrant=False) if wrapped else run(*leaves)
            found.append(torch.autograd.grad(output.square().sum(), leaves))
        assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_autocast_brings_all_three_to_its_type_as_torchs_attention_does(kind: torch.dtype) -> None:
    query, key, value = tensors()
    with torch.autocast("cpu", kind):
        found = attend(query.to(kind), key, value, pattern=PATTERN, backend="sparse")
        theirs = nn.functional.scaled_dot_product_attention(query.to(kind), key, value)
        exact = attend(query.double(), key.double(), value.double(), pattern=PATTERN, backend="sparse")
    assert found.dtype == theirs.dtype == kind
    assert exact.dtype == torch.float64
    torch.testing.assert_close(found.double(), exact, atol=2e-2, rtol=2e-2)


def test_float16_runs_sparse() -> None:
    query = tensors()[0].half()
    assert choose(checked_inputs(query, query, query, AttentionArguments(PATTERN))).backend == "sparse"
