"""A model folder that is all AutoModel, AutoTokenizer and pipelines need: weights, pattern and tokenizer."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers.utils import logging as transformers_logging

from sparsebert.files import place_folder, write_atomic, write_json
from sparsebert.model.heads import pattern_of
from sparsebert.model.lengths import longest_input
from sparsebert.model.sentence_folder import keep_sentence_files
from sparsebert.text import special_tokens


def save_model(
    model: Any, folder: Path, tokenizer: Tokenizer | None = None, more: Callable[[Path], None] | None = None
) -> None:
    """Write a model folder, whole or not at all. more: writes what else belongs into it."""

    def fill(part: Path) -> None:
        with no_bar():
            model.save_pretrained(part)
        if tokenizer is not None:
            save_tokenizer(tokenizer, part, longest_input(model))
        keep_sentence_files(model, part)
        if more is not None:
            more(part)

    place_folder(folder, fill)


def save_trained(
    model: Any, run: Path, tokenizer: Tokenizer | None = None, more: Callable[[Path], None] | None = None
) -> None:
    """What a run leaves of its model: model/, and the pattern by itself."""
    save_model(model, run / "model", tokenizer, more)
    pattern = pattern_of(model)
    if pattern is not None:
        pattern.save(run / "pattern.safetensors")


@contextlib.contextmanager
def no_bar() -> Iterator[None]:
    """transformers draws a bar for every file it writes, on terminals and in logs alike."""
    had_bar = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if had_bar:
            transformers_logging.enable_progress_bar()


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json; max_length: what the model takes, or was trained on."""
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    known = {"model_max_length": max_length, **dict(zip(names, special_tokens(tokenizer), strict=True))}
    write_atomic(folder / "tokenizer.json", tokenizer.to_str().encode())
    write_json(folder / "tokenizer_config.json", {**_class_of(tokenizer), **known})


def _class_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The class that reads tokenizer.json. BERT's own tells the two texts of a pair apart, and normalises as it is told
    here; other families have the general one, which does what tokenizer.json says."""
    told = json.loads(tokenizer.to_str())
    if told["model"].get("type") != "WordPiece":
        return {"tokenizer_class": "PreTrainedTokenizerFast"}
    normaliser: dict[str, Any] = told.get("normalizer") or {}
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": bool(normaliser.get("lowercase", True)),
        "strip_accents": normaliser.get("strip_accents"),
        "tokenize_chinese_chars": bool(normaliser.get("handle_chinese_chars", True)),
    }
