from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForPreTraining, AutoTokenizer

from sparsebert.text import train_tokenizer
from sparsebert.training import fit
from sparsebert.training.fingerprint import fingerprint
from tests.training.cases import LENGTH, MadeUpBatches, short_fit, small_bert, small_pretraining

torch.set_num_threads(1)


def test_scores_at_predicted_positions_are_those_of_the_whole_model() -> None:
    objective = small_pretraining().eval()
    batch = MadeUpBatches(0, 1).batch(3)
    real = (torch.arange(LENGTH) < batch.lengths[:, None]).long()
    whole = objective.model(batch.input_ids, attention_mask=real, token_type_ids=batch.token_type_ids)
    words, order = objective.scores(batch)
    expected = whole.prediction_logits.flatten(0, 1)[batch.predicted_positions]
    assert torch.allclose(words, expected, atol=1e-6)
    assert torch.allclose(order, whole.seq_relationship_logits, atol=1e-6)


def test_the_loss_is_the_mean_over_predictions_plus_the_mean_over_rows() -> None:
    objective = small_pretraining(dropout=0.0)
    losses = objective(2, 0)
    batch = MadeUpBatches(0, 1).batch(2)
    words, order = objective.scores(batch)
    expected = cross_entropy(words, batch.predicted_ids) + cross_entropy(order, batch.next_sentence)
    assert torch.allclose(losses.total, expected)
    assert losses.tokens == int(batch.lengths.sum())


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_the_gradient_does_not_depend_on_how_the_batch_is_cut(parts: int) -> None:
    gradients = []
    for number in (1, parts):
        objective = small_pretraining(dropout=0.0)
        objective.micro_batches = number
        for micro in range(number):
            (objective(5, micro).total / number).backward()
        gradients.append([parameter.grad for parameter in objective.parameters()])
    for whole, cut in zip(*gradients, strict=True):
        assert torch.allclose(whole, cut, atol=1e-6)


def test_evaluation_is_the_same_each_time_and_learning_lowers_its_loss(tmp_path: Path) -> None:
    objective = small_pretraining().eval()
    before = objective.evaluate(0)
    assert before == objective.evaluate(7)
    assert set(before) == {"mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy"}
    result = fit(objective, short_fit(num_steps=40), tmp_path)
    assert result.fields["score"] == result.fields["metrics"]["mlm_loss"] < before["mlm_loss"]


def test_the_finished_folder_is_a_model_with_its_pattern_and_tokenizer(tmp_path: Path) -> None:
    objective = small_pretraining()
    objective.tokenizer = train_tokenizer(lambda: ["a few words to make a vocabulary of"] * 5, 100)
    fields = objective.finish(tmp_path)
    model = AutoModelForPreTraining.from_pretrained(tmp_path / "model")
    assert model.pattern == objective.model.pattern
    assert fields["sparsity"] == model.pattern.sparsity
    assert fingerprint(model) == fingerprint(objective.model)
    tokens = AutoTokenizer.from_pretrained(tmp_path / "model")("few words")["input_ids"]
    assert tokens == objective.tokenizer.encode("few words").ids


def test_a_fingerprint_tells_weights_apart_by_a_single_bit() -> None:
    model = small_bert()
    before = fingerprint(model)
    assert before == fingerprint(small_bert())
    with torch.no_grad():
        model.cls.predictions.bias[3] = 1e-30
    assert fingerprint(model) != before
