"""A model folder that is all AutoModel, AutoTokenizer and pipelines need: weights, pattern and tokenizer."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers.utils import logging as transformers_logging

from sparsebert.files import place_folder, write_atomic, write_json
from sparsebert.model.attachment import running
from sparsebert.model.conversion import has_sparse_form
from sparsebert.model.heads import pattern_of
from sparsebert.text import SPECIAL_TOKENS


def save_model(
    model: Any, folder: Path, tokenizer: Tokenizer | None = None, more: Callable[[Path], None] | None = None
) -> None:
    """Write a model folder, whole or not at all. more: writes what else belongs into it."""

    def fill(part: Path) -> None:
        with no_bar():
            model.save_pretrained(part)
        if tokenizer is not None:
            save_tokenizer(tokenizer, part, model.config.max_position_embeddings)
        if more is not None:
            more(part)

    place_folder(folder, fill)


def save_trained(
    model: Any, run: Path, tokenizer: Tokenizer | None = None, more: Callable[[Path], None] | None = None
) -> None:
    """What a run leaves of its model: model/, and the pattern by itself.

    A family that has no sparse form on disk would come back dense from a folder of that name: its weights go to
    weights/, for `sparsify(AutoModel.from_pretrained("weights"), Pattern.load("pattern.safetensors"))`.
    """
    pattern = pattern_of(model)
    if pattern is None or has_sparse_form(model):
        save_model(model, run / "model", tokenizer, more)
    else:
        with running(model, None):
            save_model(model, run / "weights", tokenizer, more)
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
    """Write tokenizer.json and tokenizer_config.json; max_length: positions the model has, or was trained on."""
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    normaliser: dict[str, Any] = json.loads(tokenizer.to_str()).get("normalizer") or {}
    settings = {
        # The class that tells the two texts of a pair apart; it normalises as it is told here, not in tokenizer.json.
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": bool(normaliser.get("lowercase", True)),
        "strip_accents": normaliser.get("strip_accents"),
        "tokenize_chinese_chars": bool(normaliser.get("handle_chinese_chars", True)),
        "model_max_length": max_length,
        **dict(zip(names, SPECIAL_TOKENS, strict=True)),
    }
    write_atomic(folder / "tokenizer.json", tokenizer.to_str().encode())
    write_json(folder / "tokenizer_config.json", settings)
