"""Gates: shapes, symmetry, sharing along lines, densities, the target, files."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsebert import Pattern, gates, patterns
from sparsebert.attention import Relaxation, attend_checked, checked_inputs
from sparsebert.errors import FileError, GateError
from sparsebert.gates import Gate
from tests.gates.cases import KINDS, trained


def test_a_structured_gate_has_n_minus_2_values_a_head_and_keeps_its_border() -> None:
    gate = trained(gates.Structured)
    gate.resample(0, 0)
    values = gate.values()
    assert gate.alpha.shape == (3, 10)
    assert values.shape == (3, 12, 12)
    for edge in (values[:, 0], values[:, -1], values[:, :, 0], values[:, :, -1]):
        assert (edge == 1).all()


def test_a_structured_sample_is_shared_along_every_line_and_both_directions() -> None:
    gate = trained(gates.Structured)
    gate.resample(0, 0)
    inner = gate.values()[:, 1:-1, 1:-1]
    for distance in range(10):
        line = torch.diagonal(inner, distance, 1, 2)
        assert (line == line[:, :1]).all()
        assert torch.equal(line, torch.diagonal(inner, -distance, 1, 2))
    assert torch.equal(torch.diagonal(inner, 3, 1, 2)[:, 0], gate.units()[:, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_symmetric_in_the_unit_interval_and_drawn_apart_for_each_step(kind: type[Gate]) -> None:
    gate = trained(kind)
    gate.resample(0, 0)
    first = gate.values().detach()
    assert torch.equal(first, first.transpose(1, 2))
    assert ((first >= 0) & (first <= 1)).all()
    gate.resample(0, 1)
    assert torch.equal(first, gate.values().detach()) == (kind is gates.Soft)
    gate.resample(0, 0)
    assert torch.equal(first, gate.values().detach())


def test_a_free_unstructured_gate_has_a_value_for_each_direction() -> None:
    gate = trained(gates.Unstructured, symmetric=False)
    gate.resample(0, 0)
    assert gate.alpha.shape == (3, 144)
    assert not torch.equal(gate.values(), gate.values().transpose(1, 2))


def test_soft_values_are_the_sigmoid_of_alpha() -> None:
    gate = trained(gates.Soft)
    rows, columns = np.triu_indices(12)
    torch.testing.assert_close(gate.values()[:, rows, columns], torch.sigmoid(gate.alpha))


def test_pooled_entries_share_what_their_distance_and_positions_learn() -> None:
    gate = gates.Unstructured(length=6, heads=1, pooled=True)
    with torch.no_grad():
        gate.shared["distance"][0, 1] = 2.0
        gate.shared["position"][0, 0] = 0.5
    logits = torch.logit(gate.eval().values()[0])
    torch.testing.assert_close(torch.diagonal(logits, 1), torch.tensor([2.5, 2.0, 2.0, 2.0, 2.0]))
    assert float(logits[0, 0].detach()) == pytest.approx(1.0)


def test_pooled_entries_with_a_direction_share_an_offset_a_query_and_a_key() -> None:
    gate = gates.Unstructured(length=4, heads=1, pooled=True, symmetric=False, directed=True)
    with torch.no_grad():
        gate.shared["offset"][0, 4] = 2.0  # j - i = 1
        gate.shared["query"][0, 0] = 0.5
        gate.shared["key"][0, 3] = -1.0
    logits = torch.logit(gate.eval().values()[0])
    expected = [[0.5, 2.5, 0.5, -0.5], [0.0, 0.0, 2.0, -1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, -1.0]]
    torch.testing.assert_close(logits, torch.tensor(expected))


def test_pooled_entries_without_a_direction_share_a_distance() -> None:
    gate = gates.Unstructured(length=3, heads=2, pooled=True, symmetric=False, directed=False)
    with torch.no_grad():
        gate.shared["distance"][1] = torch.tensor([1.0, 2.0, 3.0])
        gate.alpha[1, 5] = 4.0  # of the second query and the third key
    logits = torch.logit(gate.eval().values())
    torch.testing.assert_close(logits[0], torch.zeros(3, 3))
    torch.testing.assert_close(logits[1], torch.tensor([[1.0, 2.0, 3.0], [2.0, 1.0, 6.0], [3.0, 2.0, 1.0]]))


def test_a_sample_is_that_of_its_seed_step_and_part_whatever_was_drawn_before() -> None:
    gate = trained(gates.Unstructured)
    places = [(0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 2, 1), (1, 2, 1), (0, 1, 0)]
    samples = []
    for place in places:
        gate.resample(*place)
        samples.append(gate.values().detach())
    assert torch.equal(samples[0], samples[1])
    assert torch.equal(samples[0], samples[-1])
    assert all(not torch.equal(samples[0], other) for other in samples[2:-1])


def test_values_are_made_once_until_something_changes() -> None:
    gate = trained(gates.Structured)
    gate.resample(0, 0)
    first = gate.values()
    assert gate.values() is first
    with torch.no_grad():
        gate.alpha += 1.0
    assert gate.values() is not first


@pytest.mark.parametrize("kind", [gates.Structured, gates.Unstructured])
def test_what_was_made_before_a_gate_moved_is_made_anew(kind: type[Gate]) -> None:
    gate = trained(kind)
    gate.expected_density()
    assert gate.double().expected_density().dtype == torch.float64


@pytest.mark.parametrize("kind", [gates.Structured, gates.Unstructured])
def test_the_expected_density_is_the_mean_of_many_hard_samples(kind: type[Gate]) -> None:
    gate = trained(kind, sampling="hard", temperature=1.0)
    shares = []
    for step in range(400):
        gate.resample(0, step)
        shares.append(float(gate.values().detach().mean()))
    assert np.mean(shares) == pytest.approx(float(gate.expected_density().detach()), abs=0.01)


def test_the_paper_penalty_is_lambda_times_the_sum_of_the_sample() -> None:
    gate = trained(gates.Structured, settings="paper", penalty=0.01)
    gate.resample(0, 0)
    torch.testing.assert_close(gate.penalty(), 0.01 * gate.values().sum())
    gate.penalty().backward()
    assert gate.alpha.grad is not None
    assert (gate.alpha.grad > 0).all()


def test_a_gate_without_penalty_or_target_has_penalty_zero() -> None:
    assert float(trained(gates.Soft).penalty().detach()) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_penalty_may_be_asked_for_again_after_its_backward(kind: type[Gate]) -> None:
    gate = trained(kind, sparsity=0.5)
    gate.resample(0, 0)
    gate.dual.fill_(2.0)
    (once,) = torch.autograd.grad(gate.penalty(), gate.alpha)
    (again,) = torch.autograd.grad(gate.penalty(), gate.alpha)
    assert once.any()
    assert torch.equal(once, again)


@pytest.mark.parametrize("kind", [gates.Structured, gates.Unstructured])
@pytest.mark.parametrize(("steps", "sparsity"), [(60, 0.8), (240, 0.9), (240, 0.95)])
def test_dual_ascent_leads_the_expected_density_to_the_target(kind: type[Gate], steps: int, sparsity: float) -> None:
    gate = kind(128, 2, sparsity=sparsity, steps=steps, rate=0.1)  # type: ignore[call-arg, arg-type]
    optimiser = torch.optim.Adam([{k: g[k] for k in ("params", "lr")} for g in gate.parameter_groups(1e-4)])
    wish = torch.randn(gate.logits().shape, generator=torch.Generator().manual_seed(0)) * gate.sizes / 1e5
    for step in range(steps):
        gate.resample(0, step)
        optimiser.zero_grad()
        (gate.penalty() - (wish * gate.units()).sum()).backward()
        optimiser.step()
        gate.after_step(step)
    assert float(gate.expected_density().detach()) == pytest.approx(1 - sparsity, abs=0.03)
    assert float(gate.dual) >= 0


def test_the_dual_variable_and_the_step_are_saved() -> None:
    gate = trained(gates.Structured, sparsity=0.65, steps=10)
    gate.after_step(6)
    assert {"alpha", "dual", "step"} == set(gate.state_dict())
    assert float(gate.state_dict()["dual"]) > 0
    assert int(gate.state_dict()["step"]) == 7


@settings(max_examples=50)
@given(st.sampled_from(KINDS), st.floats(1e-3, 10), st.floats(0, 1e4), st.sampled_from(["log", "additive"]))
def test_attention_and_every_gradient_stay_finite_at_any_temperature_and_alpha(
    kind: type[Gate], temperature: float, size: float, relaxation: Relaxation
) -> None:
    gate = trained(kind, heads=2, length=6, temperature=temperature, relaxation=relaxation, sparsity=0.3, steps=10)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.mul_(size)
    gate.resample(0, 4)
    q = torch.randn(2, 2, 6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    output = attend_checked(checked_inputs(q, q, q, gate.attention_arguments(None, 0)))
    (output.square().sum() + gate.penalty()).backward()
    assert output.isfinite().all()
    for parameter in (q, *gate.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


def test_without_a_rate_of_its_own_alpha_is_treated_as_the_weights_are() -> None:
    own, shared = (gates.Structured(length=8, heads=1, settings=name) for name in ("default", "official"))
    assert own.parameter_groups(1e-4)[0]["lr"] == 5e-2
    assert own.parameter_groups(1e-4)[0]["clip"] is False
    assert {"params", "lr", "weight_decay"} == set(shared.parameter_groups(1e-4)[0])
    assert shared.parameter_groups(1e-4)[0]["lr"] == 1e-4


# Settings and files


@pytest.mark.parametrize(
    "arguments",
    [
        {"length": 2},
        {"heads": 0},
        {"sparsity": 1.5},
        {"penalty": -1.0},
        {"sparsity": 0.9, "penalty": 0.1},
        {"settings": "best"},
        {"temprature": 1},
        {"temperature": 0.0},
        {"relaxation": "tanh"},
        {"initial_density": 1.0},
        {"explore": 2.0},
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(GateError):
        gates.Structured(**{"length": 16, "heads": 2, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_gate_comes_back_and_equal_gates_give_equal_bytes(kind: type[Gate], tmp_path: Path) -> None:
    gate = trained(kind, temperature=("exponential", 1.0, 0.3))
    gates.save(gate, tmp_path / "a")
    again = gates.load(tmp_path / "a")
    assert type(again) is kind
    assert again.settings == gate.settings
    assert again.freeze(sparsity=0.6) == gate.freeze(sparsity=0.6)
    gates.save(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_pattern_file_is_not_taken_for_a_gate(tmp_path: Path) -> None:
    patterns.star(8).save(tmp_path / "p")
    with pytest.raises(FileError, match="expected a gate"):
        gates.load(tmp_path / "p")
    assert isinstance(Pattern.load(tmp_path / "p"), Pattern)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_goes_on_from_a_file_of_one_that_was_made_alike(kind: type[Gate], tmp_path: Path) -> None:
    saved, gate = trained(kind, sparsity=0.5), trained(kind, sparsity=0.5, seed=1)
    saved.after_step(4)
    gates.save(saved, tmp_path / "gate.safetensors")
    gates.load_into(gate, tmp_path / "gate.safetensors")
    assert all(torch.equal(tensor, saved.state_dict()[name]) for name, tensor in gate.state_dict().items())
    other = trained(kind, sparsity=0.6)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(GateError, match=r"with sparsity 0\.5"):
        gates.load_into(other, tmp_path / "gate.safetensors")
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())


def test_a_gate_can_be_copied_between_a_forward_and_its_backward() -> None:
    gate = trained(gates.Soft)
    assert gate.values().requires_grad
    assert torch.equal(copy.deepcopy(gate).values(), gate.values())
