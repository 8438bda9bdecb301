"""The Triton kernels against the float64 oracle, forward and backward: in the interpreter, or on a GPU."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from sparsebert import attend, patterns
from sparsebert.attention import choose, triton_index
from sparsebert.attention.inputs import Inputs
from sparsebert.attention.reference import attention_weights
from sparsebert.attention.sparse_library import is_built
from sparsebert.attention.triton import INTERPRETER_VARIABLE
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern
from tests.attention.cases import Case, random_patterns, rounding
from tests.attention.interpreter import DEVICE, interpreted, needs_triton, number_of_cases, short_pieces

__all__ = ["interpreted", "short_pieces"]  # fixtures
pytestmark = needs_triton
needs_kernel = pytest.mark.skipif(not is_built(), reason="the C++ kernel, whose draws these are, was not built")


@dataclass(frozen=True)
class Whole:
    """A case with everything that attend() takes beside it."""

    case: Case
    bias: str  # none, shared, or one a head
    dropout: float
    dtype: torch.dtype

    @property
    def lengths(self) -> Tensor | None:
        return self.case.length_tensor()

    def bias_tensor(self) -> Tensor | None:
        pattern = self.case.pattern
        if self.bias == "none" or pattern is None:
            return None
        per_head = self.bias == "own" and pattern.heads == 1
        shape = (self.case.heads, pattern.kept) if per_head else (pattern.kept,)
        return torch.randn(shape, generator=torch.Generator().manual_seed(self.case.seed), dtype=torch.float64)


@st.composite
def offset_patterns(draw: st.DrawFn, length: int, heads: int) -> Pattern:
    """Any offsets, none too, one list or one a head, with or without the border."""
    offset = st.integers(-length - 1, length + 1)
    lists = draw(st.lists(st.lists(offset, max_size=6, unique=True), min_size=1, max_size=1))
    if draw(st.booleans()):
        lists = draw(st.lists(st.lists(offset, max_size=6, unique=True), min_size=heads, max_size=heads))
    return patterns.from_offsets(length, lists, border=draw(st.booleans())).anchored(
        draw(st.sampled_from(["position", "token"]))
    )


@st.composite
def sparse_lists(draw: st.DrawFn, length: int, heads: int) -> Pattern:
    """A few explicit entries a row, with or without the border."""
    pattern = patterns.random(length, heads, sparsity=max(0.0, 1 - 4 / length), seed=draw(st.integers(0, 999)))
    pattern = pattern | patterns.border(length) if draw(st.booleans()) else pattern
    return pattern.anchored(draw(st.sampled_from(["position", "token"])))


@st.composite
def whole_cases(draw: st.DrawFn) -> Whole:
    """n 1 to 200 and 1 to 12 heads, few at once where they are long: the interpreter walks program by program."""
    length = draw(st.one_of(st.integers(1, 12), st.integers(1, 40), st.integers(1, 200)))
    heads = draw(st.integers(1, 12 if length <= 12 else 3 if length <= 40 else 1))
    batch = draw(st.integers(1, 2 if heads <= 4 else 1))
    longer = length + draw(st.sampled_from([0, 0, 1, 7]))
    offsets = offset_patterns(longer, heads)
    lists = random_patterns(longer, heads) if length <= 16 else sparse_lists(longer, heads)
    pattern = draw(st.one_of(offsets, lists, st.none()) if length <= 16 else st.one_of(offsets, lists))
    lengths = draw(st.none() | st.tuples(*[st.integers(0, length)] * batch))
    layout = draw(st.sampled_from(["plain", "bert", "gaps"]))
    width = draw(st.sampled_from([8, 5, 16, 1]))
    case = Case(batch, heads, length, width, pattern, lengths, layout, draw(st.integers(0, 999)))
    bias = draw(st.sampled_from(["none", "shared", "own"]))
    dropout = draw(st.sampled_from([0.0, 0.0, 0.3]))
    return Whole(case, bias, dropout, draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16])))


def dropped(whole: Whole, backend: str, device: torch.device) -> Tensor:
    """Which weights survive, [batch, heads, n, n]: equal scores over values that are the unit vectors."""
    case = whole.case
    shape = (case.batch, case.heads, case.length, case.length)
    nothing, units = torch.zeros(shape, device=device), torch.eye(case.length, device=device).expand(shape)
    torch.manual_seed(case.seed)
    output = attend(
        nothing,
        nothing,
        units,
        pattern=case.pattern,
        lengths=whole.lengths,
        dropout=whole.dropout,
        backend=backend,
    )
    return output != 0


def oracle(whole: Whole) -> list[Tensor]:
    """Output and gradients in float64, with the entries dropped that the C++ kernel drops."""
    case = whole.case
    *leaves, grad = case.tensors(torch.float64)
    bias = whole.bias_tensor()
    leaves = [leaf.requires_grad_() for leaf in (leaves if bias is None else (*leaves, bias))]
    query, key, value = leaves[:3]
    given = None if bias is None else leaves[3]
    weights = attention_weights(
        Inputs(query, key, value, case.pattern, whole.lengths, 0.0, case.width**-0.5, given, None)
    )
    if whole.dropout:
        weights = weights * dropped(whole, "sparse", torch.device("cpu")) / (1 - whole.dropout)
    output = weights @ value
    return [output.detach(), *torch.autograd.grad(output, leaves, grad, materialize_grads=True)]


def found(whole: Whole) -> list[Tensor]:
    case, bias = whole.case, whole.bias_tensor()
    *leaves, grad = (tensor.to(DEVICE) for tensor in case.tensors(whole.dtype))
    leaves = [leaf.requires_grad_() for leaf in (leaves if bias is None else (*leaves, bias.float().to(DEVICE)))]
    torch.manual_seed(case.seed)
    output = attend(
        *leaves[:3],
        bias=None if bias is None else leaves[3],
        pattern=case.pattern,
        lengths=whole.lengths,
        dropout=whole.dropout,
        backend="triton",
    )
    gradients = torch.autograd.grad(output, leaves, grad, materialize_grads=True)
    return [answer.detach().double().cpu() for answer in (output, *gradients)]


def assert_equals_the_oracle(whole: Whole) -> None:
    terms = whole.case.length * whole.case.batch * (whole.case.heads if whole.bias != "none" else 1)
    for name, right, answer in zip(
        ("output", "query", "key", "value", "bias"), oracle(whole), found(whole), strict=False
    ):
        assert answer.isfinite().all(), name
        if right.numel():
            assert (right - answer).abs().max() <= rounding(right, whole.dtype, terms), name


@needs_kernel
@pytest.mark.long
@pytest.mark.usefixtures("interpreted", "short_pieces")
@settings(max_examples=number_of_cases(5), suppress_health_check=list(HealthCheck))
@given(whole_cases())
def test_triton_equals_the_oracle_forward_and_backward(whole: Whole) -> None:
    assert_equals_the_oracle(whole)


BORDERED = patterns.from_offsets(30, [[-7, 0, 2], [1]], border=True)
LISTED = patterns.random(30, 2, sparsity=0.9, seed=1) | patterns.border(30)


@needs_kernel
@pytest.mark.usefixtures("interpreted", "short_pieces")
@pytest.mark.parametrize("pattern", [BORDERED, LISTED.anchored("token")], ids=["offsets", "lists"])
def test_padding_a_bias_and_dropout_together_equal_the_oracle(pattern: Pattern) -> None:
    case = Case(2, 2, 29, 8, pattern, (29, 13), "bert", 3)
    assert_equals_the_oracle(Whole(case, "shared", 0.2, torch.float32))


@needs_kernel
@pytest.mark.usefixtures("interpreted", "short_pieces")
@pytest.mark.parametrize("pattern", [BORDERED.anchored("token"), LISTED], ids=["offsets", "lists"])
def test_the_same_entries_are_dropped_as_on_the_cpu(pattern: Pattern) -> None:
    case = Case(3, 2, 30, 1, pattern, (30, 17, 0), "plain", 5)
    whole = Whole(case, "none", 0.4, torch.float32)
    on_cpu = dropped(whole, "sparse", torch.device("cpu"))
    assert torch.equal(dropped(whole, "triton", DEVICE).cpu(), on_cpu)
    assert 0 < int(on_cpu.sum()) < 3 * pattern.kept


@pytest.mark.usefixtures("interpreted", "short_pieces")
def test_the_same_call_gives_the_same_bits() -> None:
    whole = Whole(Case(2, 2, 30, 8, LISTED, (30, 11), "bert", 4), "shared", 0.1, torch.float32)
    assert all(torch.equal(one, two) for one, two in zip(found(whole), found(whole), strict=True))


@pytest.mark.usefixtures("interpreted")
def test_garbage_in_the_padding_never_leaks() -> None:
    case = Case(2, 2, 24, 8, patterns.longformer(24), (24, 9), "bert", 1)
    tensors = [tensor.to(DEVICE) for tensor in case.tensors(torch.float32)]
    for tensor in tensors:
        tensor[1, :, 9:] = torch.nan
    leaves = [tensor.requires_grad_() for tensor in tensors[:3]]
    output = attend(*leaves, pattern=case.pattern, lengths=case.length_tensor(), backend="triton")
    for answer in (output, *torch.autograd.grad(output, leaves, tensors[3])):
        assert answer.isfinite().all()
        assert (answer[1, :, 9:] == 0).all()


@pytest.mark.usefixtures("interpreted")
def test_nan_in_a_real_token_is_not_hidden() -> None:
    key = torch.zeros(1, 1, 4, 8, device=DEVICE)
    key[0, 0, 2] = torch.nan
    query = torch.ones_like(key)
    output = attend(query, key, query, pattern=patterns.window(4), backend="triton")
    assert output[0, 0, 1:].isnan().all()
    assert output[0, 0, 0].isfinite().all()


@pytest.mark.usefixtures("interpreted")
def test_the_operator_keeps_torchs_rules() -> None:
    query, key, value = (torch.randn(1, 1, 4, 4, device=DEVICE, requires_grad=True) for _ in range(3))
    pattern = patterns.from_offsets(5, [[-1, 0]], border=True).anchored("token")
    bias = torch.randn(pattern.kept, device=DEVICE, requires_grad=True)
    lengths, seed = torch.tensor([3], device=DEVICE), torch.tensor([5], device=DEVICE)
    arguments = (query, key, value, bias, lengths, seed, triton_index.name_of(pattern, 4, DEVICE), 0.5, 0.1)
    torch.library.opcheck(torch.ops.sparsebert.triton_attention.default, arguments)


@pytest.mark.usefixtures("interpreted")
def test_a_checkpointed_layer_drops_the_same_entries_again() -> None:
    leaves = [torch.randn(1, 2, 9, 4, device=DEVICE, requires_grad=True) for _ in range(3)]

    def layer(*tensors: Tensor) -> Tensor:
        return attend(*tensors, pattern=patterns.window(9), dropout=0.5, backend="triton").square()

    grads = []
    for run in (layer, lambda *tensors: checkpoint(layer, *tensors, use_reentrant=False)):
        torch.manual_seed(3)
        grads.append(torch.autograd.grad(run(*leaves).sum(), leaves))
    assert all(torch.equal(one, two) for one, two in zip(*grads, strict=True))


@pytest.mark.usefixtures("interpreted")
def test_autocast_runs_in_its_own_type() -> None:
    query = torch.randn(1, 2, 9, 4, device=DEVICE)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        output = attend(query, query, query, pattern=patterns.window(9), backend="triton")
    assert output.dtype == torch.bfloat16


@pytest.mark.long
def test_the_kernels_compile_without_a_gpu_and_the_forward_spills_nothing() -> None:
    code = (
        "import gpu_kernels as g\n"
        "for launch in g.launches(g.kinds()['offsets'], 64, g.TYPES['float16'], everything=True):\n"
        "    print(launch[0].__name__, g.usage(g.compiled(launch, 80))['stack'])\n"
    )
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_VARIABLE}
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder, env=environment
    ).stdout
    stacks = dict(line.split() for line in told.splitlines())
    assert len(stacks) == 8
    assert stacks["tile_forward"] == stacks["piece_forward"] == "0"


@pytest.mark.usefixtures("interpreted")
def test_compiles_into_one_graph() -> None:
    *tensors, _ = (tensor.to(DEVICE) for tensor in Case(2, 2, 6, 4, None, None, "bert", 0).tensors(torch.float32))
    leaves = [tensor.requires_grad_() for tensor in tensors]
    pattern, lengths = patterns.star(8), torch.tensor([6, 4], device=DEVICE)

    def run(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attend(query + 1, key, value, pattern=pattern, lengths=lengths, backend="triton").sin()

    torch.compiler.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    outputs = compiled(*leaves), run(*leaves)
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*(torch.autograd.grad(output.sum(), leaves) for output in outputs))


def test_what_the_kernels_cannot_serve_is_refused_in_a_sentence() -> None:
    query = torch.zeros(1, 1, 4, 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(INTERPRETER_VARIABLE)
        with pytest.raises(AttentionError, match=r"query is on cpu.*sparsebert\[gpu\]"):
            attend(query, query, query, pattern=patterns.window(4), backend="triton")
    with pytest.raises(AttentionError, match=r"float64.*float32, float16 and bfloat16"):
        attend(query.double(), query.double(), query.double(), pattern=patterns.window(4), backend="triton")
    wide = torch.zeros(1, 1, 4, 129)
    with pytest.raises(AttentionError, match="head size is 129"):
        attend(wide, wide, wide, pattern=patterns.window(4), backend="triton")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(query, query)
        with pytest.raises(AttentionError, match="no forward-mode derivative"):
            attend(dual, query, query, pattern=patterns.window(4), backend="triton")
    with pytest.raises(AttentionError, match="no gate"):
        attend(query, query, query, gate=torch.ones(1, 4, 4), backend="triton")


def test_nothing_imports_triton_before_it_is_used() -> None:
    # torch's own compiler imports triton where it is installed; hidden, as on a machine that does not have it.
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import torch, sparsebert\n"
        "from sparsebert import attend, patterns\n"
        "query = torch.zeros(1, 1, 4, 8, requires_grad=True)\n"
        "attend(query, query, query, pattern=patterns.window(4)).sum().backward()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestAuto:
    """What "auto" takes for tensors on a GPU, told by tensors that say they are there."""

    class OnGpu(Tensor):
        is_cuda = True  # type: ignore[assignment]
        device = torch.device("cuda", 0)  # type: ignore[assignment]

    def inputs(self, pattern: Pattern | None, size: int = 8, bias: Tensor | None = None) -> Inputs:
        query = torch.zeros(1, 2, 4, size).as_subclass(self.OnGpu)
        return Inputs(query, query, query, pattern, None, 0.1, 1.0, bias, None)

    def test_a_pattern_goes_to_triton_dropout_and_bias_too(self) -> None:
        choice = choose(self.inputs(patterns.window(4)))
        assert (choice.backend, "what the pattern keeps" in choice.reason) == ("triton", True)
        assert choose(self.inputs(patterns.window(4), bias=torch.zeros(10))).backend == "triton"

    def test_what_triton_cannot_serve_goes_to_sdpa_and_says_why(self) -> None:
        choice = choose(self.inputs(patterns.window(4), size=200))
        assert (choice.backend, "head size is 200" in choice.reason) == ("sdpa", True)

    def test_without_the_triton_package_the_reason_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sparsebert.attention.triton.IS_INSTALLED", False)
        choice = choose(self.inputs(patterns.window(4)))
        assert (choice.backend, "not installed" in choice.reason) == ("sdpa", True)

    def test_where_nothing_is_excluded_dense_runs(self) -> None:
        assert choose(self.inputs(None)).backend == "sdpa"
        assert choose(self.inputs(patterns.full(4))).backend == "sdpa"
