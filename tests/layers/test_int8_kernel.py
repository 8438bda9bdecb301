"""The int8 kernel against float64, on every instruction set of this processor."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings

from sparsebert.errors import LayerError
from sparsebert.layers import Codes, Int8Linear, Norm, int8_library, linear
from tests.layers.cases import GELU_ERROR, ISAS, Case, allowed, cases, finished, quantised, read, weights

PLAIN = Case(30, 40, 37, None, False, False, 0, 1.0, 0)


def run(case: Case, isa: int, rows: torch.Tensor | Codes, **more: bool) -> tuple[torch.Tensor, Codes]:
    residual, norm = case.more()
    result = linear(
        rows, case.layer().packed, activation=case.activation, residual=residual, norm=norm, isa=isa, **more
    )
    assert result.values is not None
    return result.values, result.codes


@pytest.mark.parametrize("isa", ISAS)
@given(cases())
@settings(max_examples=60, deadline=None)
def test_codes_are_multiplied_exactly_and_finished_as_in_float64(isa: int, case: Case) -> None:
    codes, layer, (residual, norm) = case.codes(), case.layer(), case.more()
    products = read(codes) @ weights(layer).t()
    expected = finished(products, case, layer, residual, norm)
    values, _ = run(case, isa, codes)
    # A norm of one or two outputs divides by next to nothing.
    assume(norm is None or case.outputs > 4)
    assert bool(((values.double() - expected).abs() <= allowed(products, case, layer, residual, norm)).all())


@pytest.mark.parametrize("isa", ISAS)
@given(cases())
@settings(max_examples=60, deadline=None)
def test_values_are_quantised_row_by_row(isa: int, case: Case) -> None:
    """A number that lies between two codes may fall to either: as much is allowed for."""
    assume(not case.norm and case.rows)
    values, layer, (residual, norm) = case.values(), case.layer(), case.more()
    rounded, step = quantised(values)
    products = rounded @ weights(layer).t()
    expected = finished(products, case, layer, residual, norm)
    found, _ = run(case, isa, values)
    flips = step * weights(layer).abs().amax(1)
    slack = allowed(products, case, layer, residual, norm)
    assert bool(((found.double() - expected).abs() <= 2.01 * flips + slack).all())


@pytest.mark.parametrize("isa", ISAS)
@given(cases())
@settings(max_examples=40, deadline=None)
def test_codes_that_are_left_stand_for_the_values(isa: int, case: Case) -> None:
    assume(case.rows)
    values, codes = run(case, isa, case.values(), codes=True)
    _, step = quantised(values)
    assert bool(((read(codes) - values.double()).abs() <= 0.5001 * step + 1e-30).all())


@pytest.mark.parametrize("isa", ISAS)
@given(cases())
@settings(max_examples=40, deadline=None)
def test_rows_of_bfloat16_come_in_and_go_out_as_those_of_float32_rounded(isa: int, case: Case) -> None:
    """What comes in is widened first; what goes out is rounded last, as torch rounds it."""
    layer, (residual, norm) = case.layer().packed, case.more()
    more: dict[str, Any] = {"activation": case.activation, "residual": residual, "norm": norm, "isa": isa}
    wide = torch.randn(case.rows, case.inputs + case.gap, generator=case.generator()).mul(case.size).bfloat16()
    rows = wide[:, : case.inputs]
    for codes in (False, True):
        expected = linear(rows.float(), layer, codes=codes, **more)
        found = linear(rows, layer, codes=codes, dtype=torch.bfloat16, **more)
        assert torch.equal(found.values, expected.values.bfloat16())
        assert all(torch.equal(one, other) for one, other in zip(found.codes, expected.codes, strict=True))


def test_rows_of_another_type_are_refused() -> None:
    with pytest.raises(LayerError, match="it takes rows of"):
        linear(torch.ones(2, 40, dtype=torch.float16), PLAIN.layer().packed)
    with pytest.raises(LayerError, match="it takes rows of"):
        linear(torch.ones(2, 40), PLAIN.layer().packed, dtype=torch.float64)


@pytest.mark.parametrize("isa", ISAS)
def test_nan_of_any_bits_stays_nan_in_bfloat16(isa: int) -> None:
    payloads = torch.tensor([0x7FFFFFFF, -1, 0x7FC00000, 0x7F800001], dtype=torch.int32).view(torch.float32)
    codes = Codes(torch.ones(4, 40, dtype=torch.uint8), torch.stack([payloads, torch.zeros(4)], dim=1))
    assert linear(codes, PLAIN.layer().packed, isa=isa, dtype=torch.bfloat16).values.isnan().all()


@given(cases())
@settings(max_examples=30, deadline=None)
def test_two_threads_give_the_bits_of_one(case: Case) -> None:
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            values, codes = run(case, ISAS[-1], case.values(), codes=True)
            found.append((values, *codes))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_instruction_sets_agree_to_the_bit_on_sums() -> None:
    """Without bias and activation only one product of floats is left, whose order is fixed."""
    codes, packed = PLAIN.codes(), PLAIN.layer().packed
    first, *others = [linear(codes, packed, isa=isa).values for isa in ISAS]
    assert all(torch.allclose(first, other, rtol=1e-6, atol=1e-6) for other in others)


@pytest.mark.parametrize("isa", ISAS)
def test_the_largest_codes_do_not_overflow(isa: int) -> None:
    """255 times 127 as often as a layer may be wide: sums of 16 bits would have saturated after two."""
    layer = Int8Linear.of(torch.nn.Linear(32_768, 3, bias=False))
    layer.weight.fill_(127)
    layer.sums.fill_(127 * 32_768)
    layer.scale.fill_(1.0)
    codes = Codes(torch.full((2, 32_768), 255, dtype=torch.uint8), torch.tensor([[1.0, 0.0], [1.0, 255.0]]))
    values = linear(codes, layer.packed, isa=isa).values
    assert values.tolist() == [[float(255 * 127 * 32_768)] * 3, [0.0] * 3]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_row_that_is_not_finite_becomes_nan_and_no_other_row_does(isa: int, bad: float) -> None:
    rows = torch.randn(20, 37)
    rows[3, 36] = rows[7, 0] = bad
    packed = Int8Linear.of(torch.nn.Linear(37, 50)).packed
    inner = linear(rows, packed, activation="gelu", values=False, codes=True, isa=isa).codes
    values = linear(inner, Int8Linear.of(torch.nn.Linear(50, 9)).packed, isa=isa).values
    assert values.isnan().all(1).nonzero().flatten().tolist() == [3, 7]
    assert not values[[0, 1, 2, 4, 5, 6]].isnan().any()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [0.0, 1e-38, 3e38])
def test_numbers_at_the_ends_of_float32_are_taken(isa: int, size: float) -> None:
    layer = torch.nn.Linear(8, 5)
    rows = torch.tensor([[1.0, -1.0, 0.5, 0, 0, 0, 0, 1.0]]) * size
    values = linear(rows, Int8Linear.of(layer).packed, isa=isa).values
    expected = layer.double()(rows.double())
    assert torch.allclose(values.double(), expected, rtol=0.1, atol=0.02 * max(size, 1e-30))


@pytest.mark.parametrize("isa", ISAS)
def test_gelu_is_that_of_float64_within_a_fraction_of_a_code(isa: int) -> None:
    layer = Int8Linear(1, 1)
    layer.scale.fill_(1.0)
    x = torch.linspace(-20, 20, 4001)
    found = torch.empty(len(x))
    for k in range(0, len(x), 16):
        some = x[k : k + 16]
        wide = Int8Linear(1, len(some))
        wide.bias[: len(some)] = some
        values = linear(torch.zeros(1, 1), wide.packed, activation="gelu", isa=isa).values
        found[k : k + 16] = values[0]
    error = (found.double() - torch.nn.functional.gelu(x.double())).abs()
    assert float((error - 2e-5 * x.abs()).max()) < GELU_ERROR


def test_any_layout_of_rows_gives_the_same() -> None:
    packed, rows = PLAIN.layer().packed, PLAIN.values()
    expected = linear(rows.contiguous(), packed).values
    for other in (rows.t().contiguous().t(), torch.stack([rows, rows], -1)[..., 0]):
        found = linear(other, packed).values
        assert torch.equal(found, expected)
    same = linear(rows[:1].expand(4, -1), packed).values
    assert torch.equal(same[3], expected[0])


def test_what_does_not_fit_is_refused_in_a_sentence() -> None:
    packed, rows = PLAIN.layer().packed, PLAIN.values()
    with pytest.raises(LayerError, match="rows of 39"):
        linear(rows[:, 1:], packed)
    with pytest.raises(LayerError, match="float64"):
        linear(rows.double(), packed)
    with pytest.raises(LayerError, match="on meta"):
        linear(rows.to("meta"), packed)
    with pytest.raises(LayerError, match="residual"):
        linear(rows, packed, residual=rows)
    with pytest.raises(LayerError, match="a norm that is not"):
        linear(rows, packed, norm=Norm(torch.ones(36), torch.zeros(36), 1e-5))
    with pytest.raises(LayerError, match="rows \\[rows, numbers\\]"):
        linear(rows[0], packed)


def test_a_library_without_the_kernel_is_told_of_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_library, "library", lambda: object())
    with pytest.raises(LayerError, match="reinstall sparsebert"):
        int8_library.require_kernel()
