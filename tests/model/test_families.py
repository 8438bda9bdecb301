"""A sparse model of any family is saved as such: it comes back as sparse and to the bit, or not at all."""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel, Trainer, TrainingArguments

from sparsebert import Pattern, attach, detach, gates, load_model, patterns, sparsify, unsparsify
from sparsebert.errors import ModelError
from sparsebert.files import read_json, write_json
from sparsebert.model import sparse_class
from sparsebert.model.families import HEADS
from tests.model.cases import snapshot

LENGTH, HEADS_OF_MODEL = 16, 4
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS_OF_MODEL,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
# The family as transformers calls it, its classes, and what its configuration needs beside the sizes.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SIZES),
    "roberta": ("Roberta", SIZES),
    "xlm-roberta": ("XLMRoberta", SIZES),
    "camembert": ("Camembert", SIZES),
    "electra": ("Electra", {**SIZES, "embedding_size": 16}),
    "albert": ("Albert", {**SIZES, "embedding_size": 16, "classifier_dropout_prob": 0.0}),
    "nomic_bert": ("NomicBert", SIZES),
    "modernbert": ("ModernBert", {**SIZES, "global_attn_every_n_layers": 2, "local_attention": 8}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 60, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "initializer_range": 0.3},
    ),
}
SHARED = patterns.star(LENGTH, HEADS_OF_MODEL)
OWN = patterns.per_layer([SHARED, patterns.window(LENGTH, radius=2)])
TOKENS = torch.randint(5, 60, (2, LENGTH), generator=torch.Generator().manual_seed(0))
_RELOAD = """
import hashlib, sys, torch, sparsebert
from pathlib import Path
from transformers import AutoModelForSequenceClassification
tokens = torch.randint(5, 60, (2, 16), generator=torch.Generator().manual_seed(0))
for folder in sorted(Path(sys.argv[1]).iterdir()):
    for load in (
        AutoModelForSequenceClassification.from_pretrained,
        lambda path: sparsebert.load_model(path, "sequence_classification"),
    ):
        model = load(folder).eval()
        with torch.no_grad():
            bits = model(input_ids=tokens).logits.numpy().tobytes()
        print("found", folder.name, type(model).__name__, model.pattern.digest, hashlib.sha256(bits).hexdigest())
"""
_WITHOUT_US = """
import sys, transformers
from pathlib import Path
for folder in sorted(Path(sys.argv[1]).iterdir()):
    name = folder.name.split("=")[1]
    for cls in ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification", f"{name}Model", f"{name}Config"):
        try:
            getattr(transformers, cls).from_pretrained(folder)
        except Exception as error:
            print("\\nrefused", folder.name, cls, " ".join(str(error).split()))
assert "sparsebert" not in sys.modules
"""


def dense(family: str, head: str = "ForSequenceClassification", **changes: Any) -> Any:
    name, sizes = FAMILIES[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**sizes, **changes})
    return getattr(transformers, f"{name}{head}")(config).eval()


def pattern_for(family: str) -> Pattern:
    return SHARED if family == "albert" else OWN


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=TOKENS).logits


def run(code: str, folder: Path) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder)]
    env = {**os.environ, "HF_HOME": str(folder.parent / "hub")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Every family's folder, and what the model in it computes."""
    folder, expected = tmp_path_factory.mktemp("saved") / "models", {}
    for family, (name, _) in FAMILIES.items():
        model = sparsify(dense(family), pattern_for(family))
        model.save_pretrained(folder / f"{family}={name}")
        expected[f"{family}={name}"] = logits(model).numpy().tobytes().hex()
    return folder, expected


@pytest.mark.long
def test_a_new_process_gets_the_same_bits_by_an_auto_class_and_by_load_model(
    saved: tuple[Path, dict[str, str]],
) -> None:
    folder, expected = saved
    found = [line.split()[1:] for line in run(_RELOAD, folder) if line.startswith("found")]
    assert len(found) == 2 * len(FAMILIES)
    for one, cls, digest, bits in found:
        family, name = one.split("=")
        assert cls == f"Sparse{name}ForSequenceClassification"
        assert digest == pattern_for(family).digest
        assert bits == hashlib.sha256(bytes.fromhex(expected[one])).hexdigest()


@pytest.mark.long
def test_transformers_alone_refuses_every_folder_and_names_the_package(saved: tuple[Path, dict[str, str]]) -> None:
    said = [line for line in run(_WITHOUT_US, saved[0]) if line.startswith("refused")]
    assert len(said) == 5 * len(FAMILIES)
    for line in said:
        assert "needs the package sparsebert: import sparsebert" in line


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_the_familys_own(family: str, saved: tuple[Path, dict[str, str]]) -> None:
    folder = saved[0] / f"{family}={FAMILIES[family][0]}"
    assert Pattern.load(folder / "pattern.safetensors") == pattern_for(family)
    model = dense(family)
    model.save_pretrained(folder.parent.parent / "dense" / family)
    plain = load_file(folder.parent.parent / "dense" / family / "model.safetensors")
    sparse = load_file(folder / "model.safetensors")
    assert plain.keys() == sparse.keys()
    assert all(torch.equal(plain[name], sparse[name]) for name in plain)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_made_sparse_is_of_its_sparse_class_and_its_own(family: str) -> None:
    model = dense(family)
    before, cls, name = snapshot(model), type(model), FAMILIES[family][0]
    sparse = sparsify(model, SHARED)
    assert sparse is model
    assert isinstance(model, cls)
    assert type(model) is sparse_class(cls)
    assert type(model).__name__ == f"Sparse{name}ForSequenceClassification"
    assert model.pattern == SHARED
    assert model.set_pattern(patterns.full(LENGTH)).pattern == patterns.full(LENGTH)
    assert type(unsparsify(model)) is cls
    assert snapshot(model) == before


@pytest.mark.parametrize("family", FAMILIES)
def test_a_dense_folder_of_any_family_is_loaded_with_any_head_that_it_has(family: str, tmp_path: Path) -> None:
    model = dense(family)
    model.save_pretrained(tmp_path)
    name = FAMILIES[family][0]
    loaded = load_model(tmp_path, "sequence_classification", pattern=SHARED).eval()
    assert torch.equal(logits(loaded), logits(sparsify(model, SHARED)))
    torch.testing.assert_close(logits(loaded.set_pattern(None)), logits(unsparsify(model)), atol=1e-4, rtol=1e-4)
    model.base_model.save_pretrained(tmp_path / "bare")
    for head, auto in HEADS.items():
        if type(model.config) in auto._model_mapping:
            other = load_model(tmp_path / "bare", head)
            assert other.pattern is None
            assert type(other).__name__.startswith(f"Sparse{name}")
    assert load_model(tmp_path, "pretraining").get_output_embeddings() is not None


def test_a_head_that_a_family_does_not_have_is_refused(tmp_path: Path) -> None:
    dense("nomic_bert").save_pretrained(tmp_path)
    missing = [head for head in HEADS if type(dense("nomic_bert").config) not in HEADS[head]._model_mapping]
    assert "multiple_choice" in missing
    with pytest.raises(ModelError, match="no nomic_bert model with the head 'multiple_choice'"):
        load_model(tmp_path, "multiple_choice")


def test_settings_go_by_the_names_of_the_family(tmp_path: Path) -> None:
    dense("distilbert").base_model.save_pretrained(tmp_path)
    config = load_model(tmp_path, "sequence_classification", dropout=0.25, num_labels=5).config
    assert (config.dropout, config.attention_dropout, config.num_labels) == (0.25, 0.25, 5)
    with pytest.raises(ModelError, match="no argument 'hidden_dropout_prob'"):
        load_model(tmp_path, hidden_dropout_prob=0.1)


def test_a_ranking_is_saved_with_the_model_and_another_sparsity_picked(tmp_path: Path) -> None:
    ranked = patterns.from_ranking(LENGTH, 1, 2, [(0, 0, 1), (1, 0, 0), (0, 0, 3)], sparsity=0.7)
    sparsify(dense("roberta"), ranked).save_pretrained(tmp_path)
    assert load_model(tmp_path).pattern == ranked
    assert load_model(tmp_path, sparsity=0.75).pattern == ranked.at_sparsity(0.75) != ranked


def test_shards_and_another_type_keep_the_pattern(tmp_path: Path) -> None:
    model = sparsify(dense("roberta"), OWN)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert torch.equal(logits(load_model(tmp_path, "sequence_classification").eval()), logits(model))
    half = AutoModelForSequenceClassification.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16
    assert half.pattern == OWN


def test_what_is_pushed_to_a_hub_holds_the_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def upload(self: Any, working_dir: str, *_: Any, **__: Any) -> None:
        sent.extend(path.name for path in Path(working_dir).iterdir())

    monkeypatch.setattr(PreTrainedModel, "_upload_modified_files", upload)
    monkeypatch.setattr("huggingface_hub.HfApi.create_repo", lambda *_, **__: type("Url", (), {"repo_id": "me/it"}))
    sparsify(dense("roberta"), SHARED).save_pretrained(str(tmp_path / "it"), push_to_hub=True)
    assert {"config.json", "model.safetensors", "pattern.safetensors"} <= set(sent)


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_a_sparse_model_is_copied_and_pickled(family: str) -> None:
    model = sparsify(dense(family), SHARED)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(twin) is type(model)
        assert twin.pattern == SHARED
        assert torch.equal(logits(twin), logits(model))
    twin.set_pattern(patterns.full(LENGTH))
    assert model.pattern == SHARED


def test_a_model_that_only_learns_a_gate_is_saved_as_its_own_class(tmp_path: Path) -> None:
    model = attach(dense("roberta"), gates.Soft(length=LENGTH, heads=HEADS_OF_MODEL))
    model.save_pretrained(tmp_path)
    assert type(AutoModelForSequenceClassification.from_pretrained(tmp_path)) is type(dense("roberta"))
    assert read_json(tmp_path / "config.json")["model_type"] == "roberta"
    logits(model)
    assert type(detach(model)) is type(dense("roberta"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "gpt2"}, "lacks|head|cannot"),
        ({"family": "no-such-thing"}, "no model type 'no-such-thing'"),
        ({"family": 7}, "expected an encoder"),
        ({"hidden_size": 8192, "vocab_size": 2**20}, "asks for"),
        ({"num_hidden_layers": 3}, "lacks"),
        ({"num_hidden_layers": 1}, "no place for"),
        ({"auto_map": {"AutoModel": "theirs.Model"}}, "code of its own"),
        ({"hidden_size": "many"}, "expected 1 to"),
    ],
)
def test_hostile_or_broken_folders_of_other_families_are_refused(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    sparsify(dense("roberta"), SHARED).save_pretrained(tmp_path)
    write_json(tmp_path / "config.json", {**read_json(tmp_path / "config.json"), **change})
    with pytest.raises(ModelError, match=words):
        load_model(tmp_path, "sequence_classification")


def test_a_family_whose_attention_does_more_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    config = transformers.DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["c2p"])
    transformers.DebertaV2ForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError):
        load_model(tmp_path, "sequence_classification")


def test_auto_config_reads_a_sparse_folder(tmp_path: Path) -> None:
    sparsify(dense("electra"), SHARED).save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    assert (type(config).__name__, config.family, config.pattern["digest"]) == (
        "SparseElectraConfig",
        "electra",
        SHARED.digest,
    )


class _LaxConfig(transformers.RobertaConfig):
    model_type = "lax"


def test_a_family_that_would_come_back_dense_runs_sparse_and_refuses_to_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparsebert.model.config._CAN_BE_MARKED", ())  # as if it checked none of these fields
    model = sparsify(transformers.RobertaModel(_LaxConfig(**SIZES)), SHARED)
    assert model.pattern == SHARED
    with pytest.raises(ModelError, match="would come back dense"):
        model.save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []


class _Rows(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, row: int) -> dict[str, Any]:
        words = torch.randint(5, 60, (LENGTH,), generator=torch.Generator().manual_seed(row))
        return {"input_ids": words, "labels": row % 2}


@pytest.mark.long
def test_a_trainer_saves_sparse_checkpoints_and_resumes_from_them(tmp_path: Path) -> None:
    def trainer(model: Any, folder: str) -> Trainer:
        args = TrainingArguments(
            output_dir=str(tmp_path / folder),
            per_device_train_batch_size=8,
            max_steps=4,
            save_steps=2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=1,
        )
        return Trainer(model=model, args=args, train_dataset=_Rows())

    straight = sparsify(dense("roberta"), OWN)
    trainer(straight, "a").train()
    checkpoint = tmp_path / "a" / "checkpoint-2"
    assert load_model(checkpoint, "sequence_classification").pattern == OWN
    resumed = sparsify(dense("roberta", initializer_range=0.1), OWN)
    trainer(resumed, "b").train(resume_from_checkpoint=str(checkpoint))
    assert resumed.pattern == OWN
    assert torch.equal(logits(resumed.eval()), logits(straight.eval()))
