"""Products at full speed stay float32, and torch's setting is left as it was found."""

import threading

import pytest
import torch

from sparsebert.layers import float32
from sparsebert.layers.float32 import full_speed_products, is_held_back


@pytest.fixture
def held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this machine had a faster way."""
    monkeypatch.setattr(float32, "is_held_back", lambda: True)


def _setting() -> str:
    return str(torch.backends.mkldnn.matmul.fp32_precision)


def test_products_are_as_near_to_float64_as_before() -> None:
    generator = torch.Generator().manual_seed(0)
    rows, weights = torch.randn(200, 384, generator=generator), torch.randn(384, 500, generator=generator)
    exact = rows.double() @ weights.double()
    with full_speed_products():
        forward, backward = rows @ weights, (rows.T @ (rows @ weights))
    assert float((forward - exact).abs().max()) <= 1e-4  # bfloat16 would be off by 0.1
    torch.testing.assert_close(backward.double(), rows.double().T @ exact, rtol=1e-4, atol=2e-2)


def test_products_are_the_same_bits_each_time() -> None:
    generator = torch.Generator().manual_seed(1)
    rows, weights = torch.randn(130, 384, generator=generator), torch.randn(384, 384, generator=generator)
    with full_speed_products():
        made = [rows @ weights for _ in range(3)]
    assert all(torch.equal(made[0], other) for other in made[1:])


def test_a_way_that_rounds_to_bfloat16_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "full", lambda shape, value: torch.ones(shape))  # what rounding would leave of it
    assert not float32._stays_exact()
    assert _setting() == "none"


def test_a_processor_with_a_unit_for_bfloat16_keeps_torchs_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not is_held_back.__wrapped__()


@pytest.mark.usefixtures("held_back")
def test_the_setting_is_on_inside_and_off_after_the_last_one_left() -> None:
    with full_speed_products():
        with pytest.raises(ZeroDivisionError), full_speed_products():
            _ = 1 / 0
        assert _setting() == "bf16"
    assert _setting() == "none"


@pytest.mark.usefixtures("held_back")
def test_the_setting_stays_on_while_another_thread_is_inside() -> None:
    entered, may_leave = threading.Event(), threading.Event()

    def work() -> None:
        with full_speed_products():
            entered.set()
            may_leave.wait(10)

    thread = threading.Thread(target=work)
    with full_speed_products():
        thread.start()
        assert entered.wait(10)
    inside = _setting()
    may_leave.set()
    thread.join()
    assert (inside, _setting()) == ("bf16", "none")


@pytest.mark.usefixtures("held_back")
@pytest.mark.parametrize("precision", ["ieee", "bf16"])
def test_a_precision_that_the_caller_chose_is_left_alone(precision: str) -> None:
    torch.backends.mkldnn.matmul.fp32_precision = precision
    try:
        with full_speed_products():
            assert _setting() == precision
        assert _setting() == precision
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = "none"
