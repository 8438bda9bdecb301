"""Text -> token store: one process reads and cuts, the others tokenise, every shard appears whole or not at all.

    sources -> blocks (this process) -> shards (workers, each writes its own file) -> manifest (this process, last)

What a shard holds depends on its block and on the plan alone, so the number of workers, their order, and a kill in
the middle leave no trace. A shard records the key of its block; the same key on disk means that it is done.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from sparsebert.errors import ConfigError, CorpusError
from sparsebert.files import canonical_json, file_errors, read_json, sha256, sha256_of_file, write_atomic, write_json
from sparsebert.locks import locked
from sparsebert.text.blocks import BLOCK_BYTES, Block, cut
from sparsebert.text.documents import Complaints, documents
from sparsebert.text.sources import Source, find_sources
from sparsebert.text.store import (
    FORMAT,
    MANIFEST,
    PLAN,
    SHARDS,
    TOKENIZER,
    VERSION,
    TokenStore,
    shard_path,
    write_manifest,
)
from sparsebert.text.vocabulary import (
    MIN_VOCABULARY,
    check_scratch,
    load_tokenizer,
    read_tokenizer,
    special_ids,
    tokens_by_id,
    train_tokenizer,
    vocabulary_hash,
)
from sparsebert.text.workers import BlockToEncode, ShardReport, make_shards

HELD_OUT = 0.01
HELD_OUT_BUILTIN = 0.1  # the built-in text is so small that a hundredth of its documents is one


@dataclass(frozen=True)
class PrepareProgress:
    """How far a run has come; `position` and `total` count stored bytes of the inputs (total None: not known)."""

    position: int
    total: int | None
    shards: int
    reused: int  # shards that an earlier, interrupted run had finished
    tokens: int


def prepare_corpus(
    sources: Sequence[str],
    out: Path,
    *,
    model: str,
    train_vocab: int | None = None,
    workers: int | None = None,  # processes that tokenise; all cores by default
    skip_bad_lines: bool = False,
    held_out: float | None = None,  # share of the documents; HELD_OUT, or HELD_OUT_BUILTIN for built-in text
    seed: int = 0,  # of the split
    progress: Callable[[PrepareProgress], None] | None = None,
) -> TokenStore:
    """Make a token store from text, or finish one that was begun; a finished one with the same plan is returned.

    With more than one block of text the work is done in spawned processes, so a script that calls this needs the
    usual `if __name__ == "__main__":`.
    """
    out = Path(out)
    found = find_sources(sources)
    plan = _plan(found, model, train_vocab, skip_bad_lines, _share(held_out, found), seed)
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed {seed} is out of range; expected 0 <= seed < 2**63")
    own = _own_tokenizer(model, train_vocab)
    num_workers = _num_workers(workers)
    with file_errors("write", out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out, CorpusError(f"another run is writing to {out}; wait for it, or choose another --out")):
        if _is_finished(out, plan):
            return _of_same_vocabulary(TokenStore.open(out), model, own)
        _begin(out, plan)
        tokenizer = _tokenizer(out, found, own, train_vocab, skip_bad_lines)
        return _run(out, found, plan, tokenizer, num_workers, progress or (lambda _: None))


def _share(held_out: float | None, sources: Sequence[Source]) -> float:
    if held_out is None:
        built_in = all(source.given.startswith("builtin:") for source in sources)
        return HELD_OUT_BUILTIN if built_in else HELD_OUT
    if not 0 <= held_out < 1:
        raise ConfigError(f"held-out share {held_out} is not a share; expected 0 <= share < 1, such as 0.01")
    return float(held_out)


def _num_workers(workers: int | None) -> int:
    if workers is None:
        return len(os.sched_getaffinity(0))
    if workers < 1:
        raise ConfigError(f"{workers} workers cannot tokenise anything; expected at least 1")
    return workers


def _plan(
    sources: Sequence[Source], model: str, train_vocab: int | None, skip_bad: bool, held_out: float, seed: int
) -> dict[str, Any]:
    """Everything that decides the bytes of the store, before the tokenizer is known."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "sources": [source.identity() for source in sources],
        "model": Path(model).name if Path(model).is_dir() else model,
        "train_vocab": train_vocab,
        "skip_bad_lines": skip_bad,
        "held_out": held_out,
        "seed": seed,
        "block_bytes": BLOCK_BYTES,
    }


def _own_tokenizer(model: str, train_vocab: int | None) -> Tokenizer | None:
    """The model's own; None: it is to be trained. A bad choice is refused before a folder is made."""
    if train_vocab is None:
        return load_tokenizer(model)
    if train_vocab < MIN_VOCABULARY:
        raise ConfigError(f"a vocabulary of {train_vocab} tokens is too small; ask for at least {MIN_VOCABULARY}")
    if not model.startswith("scratch:"):
        raise ConfigError(
            f"{model} has a vocabulary of its own and could not read a corpus with a trained one; "
            "leave train_vocab out, or prepare for scratch:tiny, scratch:mini or scratch:base"
        )
    check_scratch(model)
    return None


def _is_finished(out: Path, plan: dict[str, Any]) -> bool:
    """Whether the store is there already; a finished store that was made in another way is never touched."""
    if not (out / PLAN).exists() and any(out.iterdir()):
        raise CorpusError(f"{out} holds something else; choose a new or empty folder for --out")
    if not (out / MANIFEST).exists():
        return False
    made = read_json(out / PLAN)
    differ = [key for key in plan if not isinstance(made, dict) or made.get(key) != plan[key]]
    if "sources" in differ:
        changed = _changed(made, plan)
        raise CorpusError(f"{out} was made from other text ({changed}); choose another --out, or delete it")
    if differ:
        raise ConfigError(f"{out} was made with another {', '.join(differ)}; use the same options, or another --out")
    return True


def _of_same_vocabulary(store: TokenStore, model: str, own: Tokenizer | None) -> TokenStore:
    """The plan knows a folder by its last name, which many models share."""
    if own is not None and vocabulary_hash(own) != store.vocabulary_hash:
        raise ConfigError(f"{store.path} was made with another vocabulary than that of {model}; choose another --out")
    return store


def _begin(out: Path, plan: dict[str, Any]) -> None:
    """Start a folder, or go on with one that was begun.

    After an error the text or the options may have changed. The plan is replaced then, and the tokenizer made anew;
    shards need no rule, since each is taken over only where its text and tokenizer are still the same.
    """
    for part in [*out.glob(".*.part"), *(out / SHARDS).glob(".*.part")]:
        part.unlink(missing_ok=True)  # what a killed run was writing
    if (out / PLAN).exists():
        if read_json(out / PLAN) == plan:
            return
        (out / TOKENIZER).unlink(missing_ok=True)
    write_json(out / PLAN, plan)


def _changed(begun: Any, plan: dict[str, Any]) -> str:
    """Which inputs are new, gone or changed since the folder was begun."""
    try:
        old = {source["name"]: source for source in begun["sources"]}
    except (KeyError, TypeError):
        return "its plan cannot be read"
    new = {source["name"]: source for source in plan["sources"]}
    notes = [f"{name} is new" for name in new if name not in old]
    notes += [f"{name} is missing now" for name in old if name not in new]
    notes += [f"{name} has changed" for name in new if name in old and new[name] != old[name]]
    return ", ".join(notes) or "in another order"


def _tokenizer(
    out: Path, sources: Sequence[Source], own: Tokenizer | None, train_vocab: int | None, skip_bad: bool
) -> Tokenizer:
    """The tokenizer of the store, which is written before any shard; a resumed run takes the one that is there."""
    path = out / TOKENIZER
    if path.exists():
        begun = read_tokenizer(path.read_bytes(), str(path))
        if own is None or vocabulary_hash(begun) == vocabulary_hash(own):
            return begun
    if train_vocab is not None:
        own = train_tokenizer(lambda: _paragraphs(sources, skip_bad), train_vocab)
    assert own is not None
    write_atomic(path, own.to_str().encode())
    return read_tokenizer(path.read_bytes(), str(path))


def _paragraphs(sources: Iterable[Source], skip_bad: bool) -> Iterator[str]:
    for source in sources:
        for block in cut(source, skip_bad=skip_bad, skipped=Counter()):
            for document in documents(block, Complaints(block.source, skip_bad=skip_bad)):
                yield from document.paragraphs


def _run(
    out: Path,
    sources: Sequence[Source],
    plan: dict[str, Any],
    tokenizer: Tokenizer,
    workers: int,
    progress: Callable[[PrepareProgress], None],
) -> TokenStore:
    skipped: Counter[str] = Counter()
    blocks = _blocks(sources, plan, sha256_of_file(out / TOKENIZER), skipped)
    reports: list[ShardReport] = []
    reused = tokens = 0
    total = None if any(source.num_bytes is None for source in sources) else sum(s.num_bytes or 0 for s in sources)
    for report in make_shards(blocks, out, workers):
        reports.append(report)
        skipped.update(report.skipped)
        reused += report.reused
        tokens += report.entry.tokens
        progress(PrepareProgress(report.position, total, len(reports), reused, tokens))
    _require_text(reports, sources, skipped)
    _remove_shards_from(out, len(reports))
    for source in sources:
        _require_unchanged(source)
    write_manifest(out, _manifest(out, plan, tokenizer, reports, skipped))
    return TokenStore.open(out)


def _blocks(
    sources: Sequence[Source], plan: dict[str, Any], tokenizer: str, skipped: Counter[str]
) -> Iterator[BlockToEncode]:
    number = before = 0
    for source in sources:
        for block in cut(source, skip_bad=plan["skip_bad_lines"], skipped=skipped):
            yield BlockToEncode(
                number=number,
                block=block,
                key=_block_key(block, tokenizer, plan["seed"]),
                seed=plan["seed"],
                held_out=plan["held_out"],
                skip_bad=plan["skip_bad_lines"],
                position=before + block.position,
            )
            number += 1
        before += source.num_bytes or 0


def _block_key(block: Block, tokenizer: str, seed: int) -> str:
    """All that decides the bytes of a shard."""
    made_of = {"version": VERSION, "layout": block.layout, "text": sha256(block.data), "first": block.first_line == 1}
    return sha256(canonical_json({**made_of, "tokenizer": tokenizer, "seed": seed}).encode())


def _require_text(reports: Sequence[ShardReport], sources: Sequence[Source], skipped: Counter[str]) -> None:
    names = ", ".join(source.name for source in sources)
    for source in sources:
        if not any(report.source == source.name and report.entry.documents for report in reports):
            shown = ", ".join(f"{count} {reason}" for reason, count in sorted(skipped.items()) if count)
            why = f"; skipped: {shown}" if shown else ""
            raise CorpusError(f"{source.name}, line 1: no document was found in it{why}; check {names} and try again")


def _remove_shards_from(out: Path, number: int) -> None:
    """Shards of an earlier attempt on longer text."""
    while shard_path(out, number).exists():
        shard_path(out, number).unlink()
        number += 1


def _require_unchanged(source: Source) -> None:
    """The plan's sha256 was taken before the text was read; a file that was written meanwhile is not that text."""
    if source.given.startswith(("builtin:", "hub:")):
        return
    if find_sources([source.given])[0].sha256 != source.sha256:
        raise CorpusError(f"{source.given} has changed while it was read; prepare it again into another --out")


def _manifest(
    out: Path, plan: dict[str, Any], tokenizer: Tokenizer, reports: Sequence[ShardReport], skipped: Counter[str]
) -> dict[str, Any]:
    hashes = np.concatenate([report.hashes for report in reports])
    counts = {name: sum(getattr(one.entry, name) for one in reports) for name in ("documents", "sentences", "tokens")}
    return {
        "format": FORMAT,
        "version": VERSION,
        "plan_sha256": sha256_of_file(out / PLAN),
        "sources": plan["sources"],
        "counts": {**counts, "repeated_documents": len(hashes) - len(np.unique(hashes))},
        "skipped": {reason: count for reason, count in sorted(skipped.items()) if count},
        "split": {"held_out": plan["held_out"], "seed": plan["seed"]},
        "tokenizer_sha256": sha256_of_file(out / TOKENIZER),
        "vocabulary": {
            "model": plan["model"],
            "sha256": vocabulary_hash(tokenizer),
            "size": len(tokens_by_id(tokenizer)),
            "special": vars(special_ids(tokenizer)),
        },
        "shards": [vars(report.entry) for report in reports],
    }
