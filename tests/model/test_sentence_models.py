"""A SentenceTransformer is made sparse, saved, opened and trained as any encoder is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.modules import Pooling

import sparsebert
from sparsebert import attach, detach, gates, load_model, patterns, sparsify, unsparsify
from sparsebert.errors import ModelError
from sparsebert.files import read_json
from sparsebert.model.trainer_callback import GateCallback
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder

EXPLICIT = patterns.from_keep(patterns.star(16).keep())


@pytest.fixture(scope="module")
def dense_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sentence_folder(tmp_path_factory.mktemp("dense"))


def opened(folder: Path) -> Any:
    return SentenceTransformer(str(folder), device="cpu")


def test_a_pattern_is_given_to_the_encoder_inside_and_taken_back(dense_folder: Path) -> None:
    model = opened(dense_folder)
    dense, kind = model.encode(TEXTS), type(model[0].auto_model)
    assert sparsify(model, patterns.star(16)) is model
    assert model.pattern == patterns.star(16)
    assert not np.allclose(model.encode(TEXTS), dense)
    assert unsparsify(model) is model
    assert model.pattern is None
    assert type(model[0].auto_model) is kind
    assert np.array_equal(model.encode(TEXTS), dense)


def test_max_seq_length_says_what_the_model_takes(dense_folder: Path) -> None:
    model = opened(dense_folder)
    assert sparsify(model, patterns.star(16)).max_seq_length == 40
    assert sparsify(model, EXPLICIT).max_seq_length == 16
    assert model.encode(["water " * 100]).shape == (1, 16)
    assert sparsify(model, patterns.star(16)).max_seq_length == 40
    assert attach(model, gates.Structured(length=24, heads=2), inside=False).max_seq_length == 24
    assert detach(model).max_seq_length == 40
    sparsify(model, EXPLICIT)
    assert unsparsify(model).max_seq_length == 40


def test_a_saved_folder_opens_alone_in_a_new_process_with_the_same_embeddings(
    dense_folder: Path, tmp_path: Path
) -> None:
    model = sparsify(opened(dense_folder), EXPLICIT)
    model.save_pretrained(str(tmp_path / "sparse"))
    np.save(tmp_path / "expected.npy", model.encode(TEXTS))
    script = f"""
import sparsebert, numpy
from sentence_transformers import SentenceTransformer
model = SentenceTransformer({str(tmp_path / "sparse")!r}, device="cpu")
assert model.pattern.digest == {EXPLICIT.digest!r}
assert [type(one).__name__ for one in model] == ["Transformer", "Pooling", "Normalize"]
assert model.max_seq_length == 16
assert numpy.array_equal(model.encode({TEXTS!r}), numpy.load({str(tmp_path / "expected.npy")!r}))
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_this_package_a_sparse_folder_is_refused_by_name(dense_folder: Path, tmp_path: Path) -> None:
    sparsify(opened(dense_folder), EXPLICIT).save_pretrained(str(tmp_path / "sparse"))
    script = f"from sentence_transformers import SentenceTransformer; SentenceTransformer({str(tmp_path / 'sparse')!r})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "needs the package sparsebert" in found.stderr


def test_a_saved_folder_requires_this_package_and_a_dense_one_does_not(
    dense_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sparsify(opened(dense_folder), EXPLICIT)
    model.save_pretrained(str(tmp_path / "sparse"))
    unsparsify(model).save_pretrained(str(tmp_path / "dense"))
    about = "config_sentence_transformers.json"
    assert "requirements" not in read_json(tmp_path / "dense" / about)
    told = read_json(tmp_path / "sparse" / about)
    assert told["prompts"] == model.prompts
    assert told["requirements"]["sparsebert"]["specifier"] == f">={sparsebert.__version__}"
    monkeypatch.setattr("sentence_transformers.util.environment.get_installed_version", lambda name: None)
    with pytest.raises(ImportError, match="sparsebert"):
        opened(tmp_path / "sparse")


def test_a_sparse_folder_that_lost_its_pattern_is_refused(dense_folder: Path, tmp_path: Path) -> None:
    sparsify(opened(dense_folder), EXPLICIT).save_pretrained(str(tmp_path / "sparse"))
    (tmp_path / "sparse" / "pattern.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no pattern"):
        opened(tmp_path / "sparse")


def test_load_model_reads_such_a_folder(dense_folder: Path, tmp_path: Path) -> None:
    model = sparsify(opened(dense_folder), EXPLICIT)
    model.save_pretrained(str(tmp_path / "sparse"))
    again = load_model(tmp_path / "sparse")
    assert again.pattern == EXPLICIT
    weights = dict(model[0].auto_model.named_parameters())
    assert all(torch.equal(tensor, weights[name]) for name, tensor in again.named_parameters())


def trained(model: Any, folder: Path, resume: str | None = None, **more: Any) -> Any:
    rows = Dataset.from_dict({"one": TEXTS[:4], "other": TEXTS[2:6], "score": [0.1, 0.9, 0.4, 0.6]})
    arguments = SentenceTransformerTrainingArguments(
        str(folder),
        max_steps=4,
        per_device_train_batch_size=2,
        save_steps=2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        learning_rate=1e-3,
    )
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=rows, loss=losses.CosineSimilarityLoss(model), **more
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def test_its_trainer_trains_a_sparse_model_and_its_checkpoints_are_sparse(dense_folder: Path, tmp_path: Path) -> None:
    model = sparsify(opened(dense_folder), EXPLICIT)
    before = model.encode(TEXTS)
    trained(model, tmp_path)
    assert not np.allclose(model.encode(TEXTS), before)
    assert model.pattern == EXPLICIT
    last = opened(tmp_path / "checkpoint-4")
    assert last.pattern == EXPLICIT
    assert np.array_equal(last.encode(TEXTS), model.encode(TEXTS))


def test_its_trainer_goes_on_under_the_pattern_of_a_checkpoint_or_not_at_all(
    dense_folder: Path, tmp_path: Path
) -> None:
    straight = sparsify(opened(dense_folder), EXPLICIT)
    trained(straight, tmp_path)
    checkpoint = str(tmp_path / "checkpoint-2")
    resumed = sparsify(opened(dense_folder), EXPLICIT)
    trained(resumed, tmp_path / "again", resume=checkpoint)
    assert np.array_equal(resumed.encode(TEXTS), straight.encode(TEXTS))
    with pytest.raises(ModelError, match="step 2 was trained under the pattern"):
        trained(sparsify(opened(dense_folder), patterns.window(16, radius=2)), tmp_path / "other", resume=checkpoint)


def test_a_gate_is_learned_inside_its_trainer_and_resumed_to_the_bit(dense_folder: Path, tmp_path: Path) -> None:
    model, gate = opened(dense_folder), gates.Structured(length=40, heads=2, sparsity=0.5)
    before = gate.alpha.detach().clone()
    trained(model, tmp_path, callbacks=[GateCallback(gate)])
    assert not torch.equal(gate.alpha, before)
    resumed = gates.Structured(length=40, heads=2, sparsity=0.5)
    callbacks = [GateCallback(resumed, resume_from=tmp_path / "checkpoint-2")]
    trained(opened(dense_folder), tmp_path / "again", str(tmp_path / "checkpoint-2"), callbacks=callbacks)
    assert torch.equal(resumed.alpha, gate.alpha)
    sparsify(detach(model), gate.freeze(sparsity=0.5))
    assert abs(model.pattern.sparsity - 0.5) < 0.1


def test_its_evaluator_scores_a_sparse_model_as_its_embeddings_say(dense_folder: Path) -> None:
    model, wanted = sparsify(opened(dense_folder), EXPLICIT), [0.1, 0.9, 0.4, 0.6]
    score = EmbeddingSimilarityEvaluator(TEXTS[:4], TEXTS[2:6], wanted, show_progress_bar=False)(model)
    one, other = model.encode(TEXTS[:4]), model.encode(TEXTS[2:6])
    expected = spearmanr((one * other).sum(1), wanted).statistic
    assert score["spearman_cosine"] == pytest.approx(expected, abs=1e-6)


def test_a_model_without_an_encoder_of_transformers_is_refused() -> None:
    model = SentenceTransformer(modules=[Pooling(16, "mean")], device="cpu")
    with pytest.raises(ModelError, match="holds 0 encoders"):
        sparsify(model, EXPLICIT)
