"""Every kind of run takes a model of every family: it trains, saves and opens it under its own class."""

from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

from sparsebert import Pattern, load_model, patterns
from sparsebert.errors import ConfigError
from sparsebert.runs import FinetuneRun, ImportanceRun, PretrainRun, SearchRun
from sparsebert.tasks.prediction import Predictor
from sparsebert.text import prepare_corpus
from sparsebert.text.vocabulary import read_tokenizer

LENGTH = 24
SMALL: dict[str, Any] = {"steps": 2, "length": LENGTH, "batch_size": 4, "num_held_out": 1}
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "Roberta": {**SIZES, "type_vocab_size": 1, "max_position_embeddings": 42},
    "DistilBert": {"dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 2, "max_position_embeddings": 40},
    "Electra": {**SIZES, "embedding_size": 16, "max_position_embeddings": 40},
    "ModernBert": {**SIZES, "local_attention": 8},
    "Albert": {**SIZES, "embedding_size": 16, "max_position_embeddings": 40},
    "NomicBert": SIZES,
}
TEXT = "The cat sat on the mat. A pattern says who may attend to whom.\n\n" * 40


def byte_level() -> Tokenizer:
    """A vocabulary as RoBERTa's: bytes, and special tokens of its own."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=names,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return read_tokenizer(tokenizer.to_str().encode(), "byte-level")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """A folder of each family, with a vocabulary, and a corpus that it reads."""
    found = {}
    for family, sizes in FAMILIES.items():
        root = tmp_path_factory.mktemp(family)
        tokenizer = byte_level()
        ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "vocab_size": tokenizer.get_vocab_size()}
        ids |= {"cls_token_id": 0, "sep_token_id": 2} if family == "ModernBert" else {}
        config = getattr(transformers, f"{family}Config")(**sizes, **ids)
        getattr(transformers, f"{family}Model")(config).save_pretrained(root / "dense")
        (root / "dense" / "tokenizer.json").write_text(tokenizer.to_str())
        documents = [root / f"{number}.txt" for number in range(12)]
        for number, path in enumerate(documents):
            path.write_text(f"This is document {number}. {TEXT}")
        prepare_corpus([*map(str, documents)], root / "corpus", model=str(root / "dense"), workers=1, held_out=0.4)
        found[family] = root / "dense", root / "corpus"
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_pre_trained_and_searched_in(
    family: str, made: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    model, corpus = made[family]
    given = {"model": str(model), "corpus": corpus, **SMALL}
    PretrainRun.read({**given, "pattern": "star"}).make(tmp_path / "trained")
    trained = load_model(tmp_path / "trained" / "model", "masked_lm")
    assert type(trained).__name__ == f"Sparse{family}ForMaskedLM"
    assert trained.pattern == patterns.star(LENGTH, 2)
    assert AutoTokenizer.from_pretrained(tmp_path / "trained" / "model")("a cat")["input_ids"]
    search = {"kind": "structured", "sparsity": 0.7, "objective": "mlm", "layers": "shared", "weights": "trained"}
    SearchRun.read({**given, **search}).make(tmp_path / "found")
    found = Pattern.load(tmp_path / "found" / "pattern.safetensors")
    assert load_model(tmp_path / "found" / "model", "masked_lm").pattern == found
    assert not (tmp_path / "found" / "weights").exists()


def test_importance_is_learned_in_a_roberta(made: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    model, corpus = made["Roberta"]
    result = ImportanceRun.read({"kind": "soft", "model": str(model), "corpus": corpus, **SMALL}).make(tmp_path)
    assert result.fields["method"] == "gate"
    assert type(load_model(tmp_path / "model", "masked_lm")).__name__ == "SparseRobertaForMaskedLM"


def test_longer_rows_extend_the_positions_that_a_roberta_has(
    made: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    model, corpus = made["Roberta"]
    PretrainRun.read({"model": str(model), "corpus": corpus, **SMALL, "length": 41}).make(tmp_path)
    assert load_model(tmp_path / "model").config.max_position_embeddings == 41 + 2


def test_a_task_longer_than_what_a_roberta_takes_is_refused_before_any_work(
    made: dict[str, tuple[Path, Path]], builtin_data: Path, tmp_path: Path
) -> None:
    """Two of its 42 positions stand before the first token."""
    run = FinetuneRun("rte", str(builtin_data), str(made["Roberta"][0]), length=41)
    with pytest.raises(ConfigError, match=r"length is 41 but .* has 40 positions"):
        run.make(tmp_path)
    given = {"model": str(made["Roberta"][0]), "corpus": made["Roberta"][1], "keys": 4}
    assert SearchRun.read({**given, "steps": 2, "kind": "structured"}).length == 40


@pytest.mark.parametrize("family", ["Roberta", "DistilBert"])
def test_a_task_is_fine_tuned_and_predicted(
    family: str, made: dict[str, tuple[Path, Path]], builtin_data: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"max_rows": 16, "max_dev_rows": 8, "length": LENGTH, "num_epochs": 1}
    run = FinetuneRun("rte", str(builtin_data), str(made[family][0]), pattern="star", **settings)
    run.make(tmp_path)
    predictor = Predictor(tmp_path)
    assert type(predictor.model).__name__ == f"Sparse{family}ForSequenceClassification"
    assert predictor.model.pattern == patterns.star(LENGTH, 2)
