"""A model folder that is all AutoModel, AutoTokenizer and pipelines need: weights, pattern and tokenizer."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers.utils import logging as transformers_logging

from sparsebert.files import write_atomic, write_json
from sparsebert.text import SPECIAL_TOKENS


def save_model(model: Any, folder: Path, tokenizer: Tokenizer | None = None) -> None:
    """Write the model and, where there is one, its tokenizer; without transformers' own progress bar."""
    had_bar = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        model.save_pretrained(folder)
    finally:
        if had_bar:
            transformers_logging.enable_progress_bar()
    if tokenizer is not None:
        save_tokenizer(tokenizer, folder, model.config.max_position_embeddings)


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json; max_length: positions the model has."""
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special = dict(zip(names, SPECIAL_TOKENS, strict=True))
    write_atomic(folder / "tokenizer.json", tokenizer.to_str().encode())
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **special},
    )
