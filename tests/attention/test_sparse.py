"""The C++ kernel against the float64 oracle, forward and backward, in every type and on every instruction set."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sparsebert import attend, patterns
from sparsebert.attention.inputs import Inputs
from sparsebert.attention.reference import attention_weights
from sparsebert.attention.sparse_indices import rows_of
from sparsebert.attention.sparse_library import ISA_VARIABLE, ISAS, is_built, library
from sparsebert.errors import AttentionError
from sparsebert.patterns import Pattern
from tests.attention.cases import Case, answers, attention_cases, rounding
from tests.attention.dropout import survivors

pytestmark = pytest.mark.skipif(not is_built(), reason="the C++ kernel was not built: no C++ compiler")

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def runnable() -> list[str]:
    return list(ISAS[: library().sb_best_isa() + 1]) if is_built() else []


def assert_close(expected: list[Tensor], found: list[Tensor], dtype: torch.dtype, terms: int) -> None:
    for name, right, answer in zip(("output", "query", "key", "value", "bias"), expected, found, strict=False):
        assert answer.isfinite().all(), name
        if right.numel():
            assert (right - answer).abs().max() <= rounding(right, dtype, terms), name


@pytest.mark.long
@settings(max_examples=1000)
@given(
    attention_cases(longest=100, widths=(8, 5, 16, 64, 40, 1)),
    st.sampled_from(DTYPES),
    st.sampled_from(runnable() or list(ISAS)),
)
def test_sparse_equals_the_oracle_forward_and_backward(case: Case, dtype: torch.dtype, isa: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ISA_VARIABLE, isa)
        oracle = answers(case, "reference", torch.float64)
        assert_close(oracle, answers(case, "sparse", dtype), dtype, case.length * case.batch)


@settings(max_examples=40)
@given(attention_cases(longest=24, widths=(8, 3)), st.sampled_from([0.1, 0.5]), st.integers(0, 99))
def test_dropout_equals_the_oracle_with_the_same_entries_dropped(case: Case, rate: float, seed: int) -> None:
    torch.manual_seed(seed)
    drawn = int(torch.randint(-(2**63), 2**63 - 1, (1,)))
    factors = survivors(drawn, case.batch, case.heads, case.length, rate).double() / (1 - rate)
    *leaves, grad = case.tensors(torch.float64)
    leaves = [leaf.requires_grad_() for leaf in leaves]
    scale = case.width**-0.5
    weights = attention_weights(Inputs(*leaves, case.pattern, case.length_tensor(), 0.0, scale, None, None))
    expected = (weights * factors) @ leaves[2]
    oracle = [expected.detach(), *torch.autograd.grad(expected, leaves, grad)]
    torch.manual_seed(seed)
    assert_close(oracle, answers(case, "sparse", torch.float64, dropout=rate), torch.float64, case.length * case.batch)


@settings(max_examples=60)
@given(attention_cases(longest=40), st.booleans(), st.integers(0, 99))
def test_a_bias_per_kept_entry_has_the_oracles_gradient(case: Case, per_head: bool, seed: int) -> None:
    if case.pattern is None:
        return
    generator = torch.Generator().manual_seed(seed)
    shape = (case.heads, case.pattern.kept) if per_head and case.pattern.heads == 1 else (case.pattern.kept,)
    bias = torch.randn(shape, generator=generator, dtype=torch.float64)
    for dtype in (torch.float64, torch.float32):
        found = []
        for backend, kind in (("reference", torch.float64), ("sparse", dtype)):
            *leaves, grad = case.tensors(kind)
            leaves = [leaf.requires_grad_() for leaf in (*leaves, bias.to(kind))]
            output = attend(
                *leaves[:3], bias=leaves[3], pattern=case.pattern, lengths=case.length_tensor(), backend=backend
            )
            grads = torch.autograd.grad(output, leaves, grad, materialize_grads=True)
            found.append([answer.detach().double() for answer in (output, *grads)])
        assert_close(*found, dtype, case.length * case.batch * case.heads)


def long_case(anchor: str, heads: int = 2, lengths: tuple[int, ...] | None = None) -> Case:
    """Long enough for border rows to be worked on in pieces."""
    offsets = [[-40, -7, 0, 9, 33], [-3, 1, 250]][:heads]
    pattern = patterns.from_offsets(length=700, offsets=offsets, border=True).anchored(anchor)  # type: ignore[arg-type]
    return Case(2, heads, 700, 16, pattern, lengths, "bert", 5)


@pytest.mark.parametrize("isa", runnable())
@pytest.mark.parametrize("anchor", ["position", "token"])
@pytest.mark.parametrize("lengths", [None, (700, 613), (1, 0), (513, 30)])
def test_long_rows_and_columns_taken_apart_equal_the_oracle(
    anchor: str, lengths: tuple[int, ...] | None, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ISA_VARIABLE, isa)
    case = long_case(anchor, lengths=lengths)
    oracle = answers(case, "reference", torch.float64)
    assert_close(oracle, answers(case, "sparse", torch.float32), torch.float32, 1400)
    *leaves, _ = case.tensors(torch.float32)
    with torch.no_grad():  # no weights are saved here: another way through the kernel
        output = attend(*leaves, pattern=case.pattern, lengths=case.length_tensor(), backend="sparse")
    assert_close(oracle[:1], [output.double()], torch.float32, 1400)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("lengths", [None, (4, 300, 3, 2, 5)])
def test_one_thread_and_two_give_the_same_bits(heads: int, dropout: float, lengths: tuple[int, ...] | None) -> None:
    batch = 1 if heads == 1 else 5
    case = replace(long_case("token", heads), batch=batch, lengths=lengths and lengths[:batch])
    assert case.pattern is not None
    *leaves, grad = case.tensors(torch.float32)
    leaves = [leaf.requires_grad_() for leaf in (*leaves, torch.randn(case.pattern.kept))]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for biased in (True, False):
                torch.manual_seed(1)
                used = leaves if biased else leaves[:3]
                output = attend(
                    *leaves[:3],
                    pattern=case.pattern,
                    lengths=case.length_tensor(),
                    bias=leaves[3] if biased else None,
                    dropout=dropout,
                    backend="sparse",
                )
                found.append([output, *torch.autograd.grad(output, used, grad)])
    finally:
        torch.set_num_threads(before)
    for one, two in ((found[0], found[2]), (found[1], found[3])):
        assert all(torch.equal(left, right) for left, right in zip(one, two, strict=True))


def small(dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], Pattern, Tensor]:
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(2, 3, 6, 4, generator=generator, dtype=dtype).requires_grad_() for _ in range(3)]
    return tensors, patterns.random(7, 3, sparsity=0.5, seed=2).anchored("token"), torch.tensor([6, 4])


def test_gradients_match_finite_differences() -> None:
    tensors, pattern, lengths = small()
    bias = torch.randn(pattern.kept, dtype=torch.float64, requires_grad=True)

    def run(*leaves: Tensor) -> Tensor:
        torch.manual_seed(3)  # the same entries are dropped at every call
        return attend(*leaves[:3], bias=leaves[3], pattern=pattern, lengths=lengths, dropout=0.3, backend="sparse")

    assert torch.autograd.gradcheck(run, (*tensors, bias))


@pytest.mark.parametrize("with_bias", [False, True])
def test_the_operator_keeps_torchs_rules(with_bias: bool) -> None:
    tensors, pattern, lengths = small(torch.float32)
    bias = torch.randn(pattern.kept, requires_grad=True) if with_bias else None
    rows, flags = rows_of(pattern), (False, True)  # not packed; weights are saved
    arguments = (*tensors, bias, lengths, torch.tensor([5]), *rows, pattern.digest, True, 0.5, 0.1, *flags)
    torch.library.opcheck(torch.ops.sparsebert.attention.default, arguments)


@pytest.mark.parametrize("isa", runnable())
def test_the_exponential_is_within_two_units_in_the_last_place(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ISA_VARIABLE, isa)
    scores = torch.linspace(-87.0, -18.0, 60_001)
    # Each query sees a score of 0 and one of x <= -18, so its weights are 1 and exp(x) to the last bit.
    pattern = patterns.from_offsets(length=2, offsets=[[0, 1]], border=False)
    value = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1).expand(len(scores), 1, 2, 1)
    query = torch.stack([scores, torch.zeros_like(scores)], -1).view(-1, 1, 2, 1)
    with torch.no_grad():
        found = attend(query, value, value, pattern=pattern, scale=1.0, backend="sparse")[:, 0, 0, 0]
    exact = scores.double().exp()
    unit = torch.nextafter(exact.float(), torch.tensor(1.0)).double() - exact.float().double()
    assert ((found.double() - exact).abs() / unit).max() <= 2.0


def test_garbage_in_the_padding_never_leaks() -> None:
    case = Case(2, 2, 40, 8, patterns.longformer(40), (40, 17), "bert", 1)
    tensors = case.tensors(torch.float32)
    for tensor in tensors:
        tensor[1, :, 17:] = torch.nan
    leaves = [tensor.requires_grad_() for tensor in tensors[:3]]
    output = attend(*leaves, pattern=case.pattern, lengths=case.length_tensor(), backend="sparse")
    grads = torch.autograd.grad(output, leaves, tensors[3])
    for answer in (output, *grads):
        assert answer.isfinite().all()
        assert (answer[1, :, 17:] == 0).all()


def test_nan_in_a_real_token_is_not_hidden() -> None:
    query = torch.zeros(1, 1, 4, 8)
    query[0, 0, 2, 0] = torch.nan
    output = attend(query, query, torch.ones_like(query), pattern=patterns.window(4), backend="sparse")
    assert output[0, 0, 2].isnan().all()
    assert output[0, 0, 0].isfinite().all()


def test_dropout_falls_at_its_rate_and_apart_for_each_row_head_and_example() -> None:
    nothing, units = torch.zeros(4, 6, 64, 64), torch.eye(64).expand(4, 6, 64, 64)
    drawn = []
    for seed in (11, 12):
        torch.manual_seed(seed)
        drawn.append(
            attend(nothing, nothing, units, dropout=0.25, backend="sparse") != 0
        )  # equal weights, but for these
    flags = drawn[0].double()
    assert abs(flags.mean() - 0.75) < 0.005
    rows = flags.reshape(-1, 64)  # example, head and query, each row its own draw
    correlation = torch.corrcoef(rows)
    correlation.fill_diagonal_(0)
    assert correlation.abs().mean() < 0.12  # 64 fair draws: 0.1 by chance
    assert correlation.abs().max() < 0.75
    assert (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtype": torch.float8_e4m3fn}, "float8"),
        ({"device": "meta"}, "runs on the CPU"),
    ],
)
def test_what_it_cannot_do_it_refuses(change: dict[str, object], words: str) -> None:
    query = torch.zeros(1, 1, 4, 8, **change)  # type: ignore[call-overload]
    with pytest.raises(AttentionError, match=words):
        attend(query, query, query, pattern=patterns.window(4), backend="sparse")


def test_an_instruction_set_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ISA_VARIABLE, "mmx")
    query = torch.zeros(1, 1, 4, 8)
    with pytest.raises(AttentionError, match="portable"):
        attend(query, query, query, pattern=patterns.window(4), backend="sparse")
