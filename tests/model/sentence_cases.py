"""A sentence-transformers folder of a few kilobytes, and texts in its vocabulary."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from sparsebert.files import write_json
from sparsebert.model.saving import save_model
from sparsebert.text import train_tokenizer
from tests.model.cases import TINY

SENTENCE = "rivers run to the sea and carry sand boats long short water stone hill rain"
WORDS = SENTENCE.split()
TEXTS = [" ".join(WORDS[(3 * row + place) % len(WORDS)] for place in range(4 + 5 * row)) for row in range(6)]
_KINDS = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}


def tiny_sentence_folder(folder: Path, pooling: str = "mean", length: int = 40, normalised: bool = True) -> Path:
    """Random weights and 64 positions, in the files that sentence-transformers has written for years."""
    tokenizer = train_tokenizer(lambda: TEXTS, 100)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64, **TINY)
    save_model(BertModel(config), folder, tokenizer)
    return add_sentence_files(folder, 16, pooling, length, normalised)


def add_sentence_files(
    folder: Path, width: int, pooling: str = "mean", length: int = 40, normalised: bool = True
) -> Path:
    """Make a folder of transformers one of sentence-transformers."""
    kinds = {path: kind for path, kind in _KINDS.items() if normalised or kind != "Normalize"}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(kinds.items())
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})
    flags = {"pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_cls_token": pooling == "cls"}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **flags})
    return folder
