import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sparsebert.model.sources import SCRATCH
from sparsebert.text.vocabulary import SCRATCH_SIZES
from sparsebert.training.operations import flops_per_token, product_speed
from tests.training.cases import LENGTH, ROWS, WORDS, MadeUpBatches, small_pretraining


def test_the_formula_counts_what_torch_counts() -> None:
    objective = small_pretraining(dropout=0.0)
    objective.model.set_pattern(None)
    predicted = len(MadeUpBatches(0, 1).batch(0).predicted_ids)
    with FlopCounterMode(display=False) as counter:
        objective(0, 0).total.backward()
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    head = 3 * 2 * (32**2 + 32 * WORDS)
    expected = ROWS * LENGTH * (flops_per_token(shape, WORDS, LENGTH) - 0.15 * head) + predicted * head
    # Left out on purpose: the pooler, and what attention computes twice in its backward pass.
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.08)


def test_a_pattern_saves_attention_only() -> None:
    full, half, none = (flops_per_token(SCRATCH["base"], 30000, 128, density) for density in (1.0, 0.5, 0.0))
    assert full - half == pytest.approx(half - none)
    assert 0.02 < (full - none) / full < 0.10


def test_this_machine_can_be_measured_and_keeps_its_number_of_threads() -> None:
    before = torch.get_num_threads()
    assert product_speed(1) > 1e8
    assert torch.get_num_threads() == before


def test_every_size_from_scratch_is_known_by_its_name_to_those_who_prepare_text() -> None:
    assert tuple(SCRATCH) == SCRATCH_SIZES
