"""A gate beside the weights of any objective, on any family of encoders."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import RobertaForMaskedLM

from sparsebert import Pattern, gates, load_model, patterns
from sparsebert.errors import ModelError
from sparsebert.gates import Gate
from sparsebert.training import Objective, fit
from sparsebert.training.checkpoints import Checkpoints, RunState
from sparsebert.training.gated import Frozen, Gated, summary
from sparsebert.training.objective import Wrapper
from sparsebert.training.pretraining import PretrainingObjective
from sparsebert.training.recorded import Recorded
from tests.training.cases import LENGTH, MadeUpBatches, Regression, short_fit, small_pretraining
from tests.training.families import CONFIGS, small_model


def small_gate(**changes: float) -> Gate:
    return gates.Structured(LENGTH, 2, steps=12, **{"penalty": 1e-3, **changes})


def of_family(family: str) -> PretrainingObjective:
    return PretrainingObjective(small_model(family, "MaskedLM"), MadeUpBatches, MadeUpBatches(0, 1), num_held_out=1)


@pytest.mark.parametrize("family", CONFIGS)
def test_words_are_scored_as_the_whole_model_scores_them(family: str) -> None:
    objective = of_family(family).eval()
    batch = MadeUpBatches(0, 1).batch(3)
    real = (torch.arange(LENGTH) < batch.lengths[:, None]).long()
    whole = objective.model(input_ids=batch.input_ids, attention_mask=real).logits
    words, order = objective.scores(batch)
    torch.testing.assert_close(words, whole.flatten(0, 1)[batch.predicted_positions], atol=1e-5, rtol=1e-5)
    assert order is None


@pytest.mark.parametrize("family", CONFIGS)
def test_a_pattern_is_searched_for_in_any_family(family: str) -> None:
    gate = small_gate()
    search = Frozen(Gated(of_family(family), gate, seed=0)).train()
    losses = search(0, 0)
    losses.total.backward()
    assert float(gate.alpha.grad.abs().max()) > 0
    assert list(losses.parts) == ["mlm_loss", "penalty", "sparsity"]
    figures = search.eval().evaluate(1)
    assert set(figures) == {"mlm_loss", "mlm_accuracy", "frozen_sparsity"}


def test_a_finished_search_of_another_family_leaves_a_model_that_is_as_sparse(tmp_path: Path) -> None:
    search = Frozen(Gated(of_family("Roberta"), small_gate(), seed=0))
    fields = fit(search, short_fit(num_steps=2), tmp_path).fields
    pattern = Pattern.load(tmp_path / "pattern.safetensors")
    again = load_model(tmp_path / "model", "masked_lm").eval()
    assert isinstance(again, RobertaForMaskedLM)
    assert again.pattern == pattern
    ids = torch.arange(5, 5 + LENGTH)[None]
    assert torch.equal(again(ids).logits, search.model.eval()(ids).logits)
    assert fields["sparsity"] == pattern.sparsity > 0


def test_a_model_that_predicts_no_words_is_refused() -> None:
    with pytest.raises(ModelError, match="no head that predicts words"):
        PretrainingObjective(small_model("Roberta", "SequenceClassification"), MadeUpBatches, MadeUpBatches(0, 1))


def test_all_micro_batches_of_a_step_see_one_sample() -> None:
    search = Gated(small_pretraining(), small_gate(), seed=0).train()
    search.micro_batches = 2
    samples = []
    for step, micro in ((0, 0), (0, 1), (1, 0)):
        search(step, micro)
        samples.append(search.gate.units().detach().clone())
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_a_wrapper_forwards_what_it_does_not_change(tmp_path: Path) -> None:
    plain, wrapped = (fit(one, short_fit(), tmp_path / name) for name, one in _plain_and_wrapped())
    assert {**plain.fields, "about": "x"} == {**wrapped.fields, "task": "regression"}
    for name in ("metrics.jsonl", "checkpoints/step-00000012/objective.safetensors"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "wrapped" / name).read_bytes()


def _plain_and_wrapped() -> list[tuple[str, Objective]]:
    inside = Recorded(Regression(), {"about": "x"}, without=("task",))
    return [("plain", Regression()), ("wrapped", Recorded(inside, {}))]


def test_the_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its tensors were named after the objectives around them: pretraining.model..., inner.pretraining.model..."""

    class Earlier(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.pretraining = inner

    before, now = Regression(), Wrapper(Regression())
    optimiser = torch.optim.AdamW(before.parameters())
    before(0, 0).total.backward()
    optimiser.step()
    Checkpoints(tmp_path, 1).save(RunState(step=1), Earlier(before), optimiser)
    again = torch.optim.AdamW(now.parameters())
    assert Checkpoints(tmp_path, 1).load(1, now, again).step == 1
    for old, new in zip(before.parameters(), now.parameters(), strict=True):
        assert torch.equal(old, new)
        assert torch.equal(optimiser.state[old]["exp_avg"], again.state[new]["exp_avg"])


def test_a_summary_tells_of_every_head_of_every_layer() -> None:
    star, window = patterns.star(10), patterns.window(10, radius=0)
    assert summary(star)["sparsity_of_heads"] == [star.sparsity]
    told = summary(patterns.per_layer([star.with_heads(2), window.with_heads(2)]))
    assert told["sparsity_of_heads"] == [[star.sparsity] * 2, [window.sparsity] * 2]
    assert (told["heads_with_diagonal"], told["heads_with_neighbours"]) == (1.0, 0.5)
