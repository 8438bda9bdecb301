"""The token store: a folder that opens at once and is checked where it is touched.

manifest.json       what is inside: counts, sha256 of every shard, vocabulary, sources, what was skipped
tokenizer.json      the tokenizer that made the ids
shards/00000.safetensors ...
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from numpy import ndarray
from tokenizers import Tokenizer

from sparsebert.errors import CorpusError, FileError
from sparsebert.files import canonical_json, map_tensors, read_bytes, read_json, readable_json, sha256, write_json
from sparsebert.text.shards import SPLITS, Shard, Split, shard_from_tensors
from sparsebert.text.vocabulary import SpecialIds, read_tokenizer, tokens_by_id

FORMAT = "sparsebert-corpus"
VERSION = 1
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
SHARDS = "shards"
PLAN = "plan.json"  # what prepare was asked for: decides whether a second one goes on
_MAX_OPEN = 256  # shards; each holds a file descriptor, of which a process has 1,024 by default


def shard_path(folder: Path, number: int) -> Path:
    return folder / SHARDS / f"{number:05d}.safetensors"


@dataclass(frozen=True)
class ShardEntry:
    """A shard's row in the manifest."""

    sha256: str
    documents: int
    sentences: int
    tokens: int
    held_out_documents: int
    held_out_tokens: int

    def __post_init__(self) -> None:
        counts = [value for name, value in vars(self).items() if name != "sha256"]
        right = isinstance(self.sha256, str) and all(type(count) is int and count >= 0 for count in counts)
        if not right or self.held_out_documents > self.documents or self.held_out_tokens > self.tokens:
            raise ValueError("the row of a shard holds impossible counts")

    def documents_of(self, split: Split) -> int:
        return self.held_out_documents if split == "held_out" else self.documents - self.held_out_documents

    def tokens_of(self, split: Split) -> int:
        return self.held_out_tokens if split == "held_out" else self.tokens - self.held_out_tokens


class OpenShard:
    """A shard in memory-mapped form, with the documents of each split in order."""

    def __init__(self, shard: Shard, held_out_fraction: float) -> None:
        self.shard = shard
        held_out = shard.held_out(held_out_fraction)
        per_document = shard.tokens_per_document()
        self.documents: dict[Split, Int64[ndarray, " chosen"]] = {}
        self.token_starts: dict[Split, Int64[ndarray, " chosen_and_one"]] = {}  # in the tokens of the split alone
        for split in SPLITS:
            chosen = np.flatnonzero(held_out == (split == "held_out"))
            self.documents[split] = chosen
            self.token_starts[split] = np.concatenate([[0], np.cumsum(per_document[chosen])]).astype(np.int64)


class TokenStore:
    """Token ids on disk with their document and sentence index. Safe to use from several threads."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        try:
            vocabulary = manifest["vocabulary"]
            self.vocabulary_hash: str = str(vocabulary["sha256"])
            self.vocab_size = int(vocabulary["size"])
            self.special = SpecialIds(
                **{field.name: int(vocabulary["special"][field.name]) for field in fields(SpecialIds)}
            )
            self.held_out_fraction = float(manifest["split"]["held_out"])
            self.shards = [ShardEntry(**entry) for entry in manifest["shards"]]
            self._tokenizer_sha256 = str(manifest["tokenizer_sha256"])
            if not all(0 <= number < self.vocab_size for number in self.special.all()):
                raise ValueError("a special token lies outside the vocabulary")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorpusError(f"{path / MANIFEST} lacks something ({error!r}); prepare the corpus again") from error
        self._open: OrderedDict[int, OpenShard] = OrderedDict()
        self._verified: set[int] = set()
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | str) -> "TokenStore":
        """Reads the manifest only, whatever the size of the store."""
        path = Path(path)
        if not (path / MANIFEST).is_file():
            unfinished = " (it was begun; the same prepare command finishes it)" if (path / SHARDS).is_dir() else ""
            raise CorpusError(f"{path} is not a finished corpus{unfinished}; make one with sparsebert prepare")
        return cls(path, read_manifest(path))

    @property
    def num_documents(self) -> int:
        return sum(entry.documents for entry in self.shards)

    @property
    def num_sentences(self) -> int:
        return sum(entry.sentences for entry in self.shards)

    @property
    def num_tokens(self) -> int:
        return sum(entry.tokens for entry in self.shards)

    @property
    def skipped(self) -> dict[str, int]:
        """How many lines, documents or files were left out, by reason; empty when all text is in."""
        return dict(self.manifest["skipped"])

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER

    def tokenizer(self) -> Tokenizer:
        data = read_bytes(self.tokenizer_path)
        if sha256(data) != self._tokenizer_sha256:
            raise CorpusError(f"{self.tokenizer_path} is not the one this corpus was made with; restore it from a copy")
        return read_tokenizer(data, str(self.tokenizer_path))

    def tokens(self) -> list[str]:
        """Every token of the vocabulary in the order of its id."""
        tokens = tokens_by_id(self.tokenizer())
        if len(tokens) != self.vocab_size:
            raise CorpusError(f"{self.path} has {len(tokens)} tokens, not {self.vocab_size}; prepare the corpus again")
        return tokens

    def require_vocabulary(self, expected: str, owner: str = "the model") -> None:
        """Refuse ids that mean something else to the model."""
        if expected != self.vocabulary_hash:
            made_for = self.manifest["vocabulary"].get("model", "another model")
            raise CorpusError(
                f"the corpus {self.path} was made with the vocabulary of {made_for} ({self.vocab_size:,} tokens, "
                f"sha256 {self.vocabulary_hash[:12]}), but {owner} has another one ({expected[:12]}); prepare the text "
                "again with --model naming that model"
            )

    def shard(self, number: int) -> OpenShard:
        """A shard, checked against its sha256 and its index at the first touch in this process."""
        with self._lock:
            if number in self._open:
                self._open.move_to_end(number)
                return self._open[number]
            entry, path = self.shards[number], shard_path(self.path, number)
            try:
                tensors = map_tensors(path, None if number in self._verified else entry.sha256)
            except FileError as error:
                raise CorpusError(f"{error}, or delete the corpus and prepare it again") from error
            opened = OpenShard(self._checked(tensors, number, path), self.held_out_fraction)
            self._verified.add(number)
            self._open[number] = opened
            if len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
            return opened

    def _checked(self, tensors: dict[str, ndarray], number: int, path: Path) -> Shard:
        if number in self._verified:
            return Shard(**tensors)
        shard = shard_from_tensors(tensors, self.vocab_size, str(path))
        entry = self.shards[number]
        if any(getattr(entry, name) != count for name, count in shard.counts(self.held_out_fraction).items()):
            raise CorpusError(
                f"{path} holds other counts than the manifest says; delete the corpus and prepare it again"
            )
        return shard

    def verify(self) -> None:
        """Check every shard, the tokenizer and the plan now, instead of at first touch."""
        self.tokenizer()
        if sha256(read_bytes(self.path / PLAN)) != self.manifest.get("plan_sha256"):
            raise CorpusError(f"{self.path / PLAN} is not the plan this corpus was made by; restore it from a copy")
        for number in range(len(self.shards)):
            self.shard(number)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """The last file of a store to appear; sealed with a sha256 over its own content."""
    write_json(folder / MANIFEST, {**content, "sha256": sha256(canonical_json(content).encode())})


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CorpusError(f"{path} is not the manifest of a sparsebert corpus; make one with sparsebert prepare")
    if content.get("version") != VERSION:
        found = content.get("version")
        raise CorpusError(f"{path} is of version {found}, this program reads {VERSION}; prepare the corpus again")
    if not _is_as_written(content, read_bytes(path)):
        raise CorpusError(f"{path} is damaged: its sha256 differs from the one in it; prepare the corpus again")
    return content


def _is_as_written(content: dict[str, Any], data: bytes) -> bool:
    """Takes the seal out of the content. What JSON takes for the same (1e-3 and 1E-3) is damage all the same."""
    try:
        is_ours = readable_json(content) == data
        return is_ours and content.pop("sha256", None) == sha256(canonical_json(content).encode())
    except ValueError:  # a NaN, or half a character: nothing that was ever written
        return False
