"""The same bytes whatever happens on the way; nothing redone, nothing mixed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparsebert.errors import ConfigError, CorpusError, MissingExtraError, ModelError
from sparsebert.text import PrepareProgress, TokenStore, blocks, load_tokenizer, prepare_corpus
from tests.text.conftest import PLAIN, Prepare, documents, tree

SMALL_BLOCKS = 20_000  # bytes; the built-in text then has about a dozen

# Kills itself, as kill -9 would, when three shards are done.
KILLED = """
import os, signal, sys
from pathlib import Path
from sparsebert.text import blocks, prepare_corpus
if __name__ == "__main__":
    blocks.BLOCK_BYTES = int(sys.argv[3])
    die = lambda progress: progress.shards < 3 or os.kill(os.getpid(), signal.SIGKILL)
    prepare_corpus(["builtin:python-docs"], Path(sys.argv[1]), model=sys.argv[2], workers=2, progress=die)
"""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", SMALL_BLOCKS)


def _prepare(out: Path, model: str, **settings: object) -> TokenStore:
    return prepare_corpus(["builtin:python-docs"], out, model=model, **settings)  # type: ignore[arg-type]


def test_a_model_of_the_same_name_and_another_vocabulary_is_refused(tmp_path: Path) -> None:
    for name, words in (("one", 400), ("other", 500)):
        text = _prepare(tmp_path / f"corpus-{name}", "scratch:tiny", train_vocab=words, workers=1)
        (tmp_path / name / "model").mkdir(parents=True)
        shutil.copy(text.path / "tokenizer.json", tmp_path / name / "model")
    out = tmp_path / "out"
    _prepare(out, str(tmp_path / "one" / "model"), workers=1)
    with pytest.raises(ConfigError, match="another vocabulary"):
        _prepare(out, str(tmp_path / "other" / "model"), workers=1)
    (out / "manifest.json").unlink()  # not finished: the vocabulary is made anew
    assert _prepare(out, str(tmp_path / "other" / "model"), workers=1).vocab_size == 500


def test_a_run_folder_stands_for_the_model_in_it(tmp_path: Path, model_folder: str) -> None:
    shutil.copytree(model_folder, tmp_path / "run" / "model")
    (tmp_path / "run" / "model" / "config.json").touch()
    expected = load_tokenizer(model_folder).get_vocab()
    assert load_tokenizer(str(tmp_path / "run")).get_vocab() == expected


@pytest.mark.usefixtures("small_blocks")
def test_one_worker_two_workers_and_a_kill_give_the_same_bytes(tmp_path: Path, model_folder: str) -> None:
    _prepare(tmp_path / "one", model_folder, workers=1)
    _prepare(tmp_path / "two", model_folder, workers=2)
    expected = tree(tmp_path / "one")
    assert len(expected) > 10
    assert tree(tmp_path / "two") == expected

    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), model_folder, str(SMALL_BLOCKS)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left = sorted((tmp_path / "killed" / "shards").glob("*.safetensors"))
    assert 3 <= len(left) < len(expected) - 3
    with pytest.raises(CorpusError, match=r"not a finished corpus.*begun"):
        TokenStore.open(tmp_path / "killed")
    times = {path: path.stat().st_mtime_ns for path in left}

    seen: list[PrepareProgress] = []
    _prepare(tmp_path / "killed", model_folder, workers=1, progress=seen.append)
    assert tree(tmp_path / "killed") == expected
    assert seen[-1].reused >= 3
    assert {path: path.stat().st_mtime_ns for path in left[:3]} == {path: times[path] for path in left[:3]}


@pytest.mark.usefixtures("small_blocks")
def test_a_trained_vocabulary_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _prepare(tmp_path / name, "scratch:tiny", train_vocab=600, workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    store = TokenStore.open(tmp_path / "one")
    assert store.vocab_size == 600
    assert store.special.all() == (0, 1, 2, 3, 4)


@pytest.mark.usefixtures("small_blocks")
def test_a_damaged_shard_of_an_unfinished_run_is_made_again(tmp_path: Path, model_folder: str) -> None:
    out = tmp_path / "corpus"
    _prepare(out, model_folder, workers=1)
    expected = tree(out)
    (out / "manifest.json").unlink()
    shard = out / "shards" / "00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    (out / "shards" / ".00003.safetensors.x.part").write_bytes(b"half")
    seen: list[PrepareProgress] = []
    _prepare(out, model_folder, workers=1, progress=seen.append)
    assert tree(out) == expected
    assert seen[-1].reused == seen[-1].shards - 1


def test_a_finished_corpus_is_returned_and_a_changed_input_is_refused(prepare: Prepare, tmp_path: Path) -> None:
    prepare({"a.txt": PLAIN})
    before = tree(tmp_path / "corpus")
    prepare({"a.txt": PLAIN})
    with pytest.raises(CorpusError, match=r"made from other text \(a\.txt has changed\)"):
        prepare({"a.txt": PLAIN.replace(b"cat", b"dog")})  # the same size
    with pytest.raises(CorpusError, match=r"b\.txt is new"):
        prepare({"a.txt": PLAIN, "b.txt": PLAIN.upper()})
    with pytest.raises(ConfigError, match="made with another held_out"):
        prepare({"a.txt": PLAIN}, held_out=0.5)
    assert tree(tmp_path / "corpus") == before


def test_an_empty_text_trains_no_vocabulary(prepare: Prepare) -> None:
    with pytest.raises(CorpusError, match=r"a\.txt, line 1: no document"):
        prepare({"a.txt": b"\n"}, model="scratch:tiny", train_vocab=100)


def test_after_an_error_in_the_text_the_same_folder_can_be_used(prepare: Prepare, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a\.txt, line 7"):
        prepare({"a.txt": PLAIN + b"\n\xff\n"})
    prepare({"a.txt": PLAIN + b"\n\xff\n"}, skip_bad_lines=True)
    prepare({"a.txt": PLAIN + b"\n\xff\n"}, out="fresh", skip_bad_lines=True)
    assert tree(tmp_path / "corpus") == tree(tmp_path / "fresh")


def test_bad_lines_that_were_skipped_before_are_not_taken_over_silently(prepare: Prepare, tmp_path: Path) -> None:
    prepare({"a.txt": PLAIN + b"\n\xff\n"}, skip_bad_lines=True)
    (tmp_path / "corpus" / "manifest.json").unlink()
    with pytest.raises(CorpusError, match=r"a\.txt, line 7"):
        prepare({"a.txt": PLAIN + b"\n\xff\n"})


def test_a_folder_with_something_else_is_left_alone(prepare: Prepare, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "thesis.doc").write_bytes(b"years of work")
    with pytest.raises(CorpusError, match="holds something else"):
        prepare({"a.txt": PLAIN})
    assert tree(tmp_path / "corpus") == {"thesis.doc": b"years of work"}


def test_two_runs_cannot_write_to_one_folder(prepare: Prepare, tmp_path: Path, model_folder: str) -> None:
    def second(_: PrepareProgress) -> None:
        with pytest.raises(CorpusError, match="another run is writing"):
            _prepare(tmp_path / "corpus", model_folder)

    prepare({"a.txt": PLAIN}, progress=second)


def test_a_file_that_changes_while_it_is_read_is_refused(prepare: Prepare, tmp_path: Path) -> None:
    def append(_: PrepareProgress) -> None:
        (tmp_path / "a.txt").write_bytes(PLAIN + b"more\n")

    with pytest.raises(CorpusError, match="has changed while it was read"):
        prepare({"a.txt": PLAIN}, progress=append)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no text was given"),
        (["missing.txt"], "missing.txt does not exist"),
        (["builtin:nothing"], "not a built-in text"),
        (["hub:"], "names no data set"),
        (["builtin:python-docs", "builtin:python-docs"], "the same text; give it once"),
        (["a\0b.txt"], "cannot be a file name"),
    ],
)
def test_inputs_are_checked_before_any_work(tmp_path: Path, model_folder: str, given: list[str], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        prepare_corpus(given, tmp_path / "corpus", model=model_folder)
    assert not (tmp_path / "corpus").exists()


def test_a_folder_and_a_twin_name_are_refused(tmp_path: Path, model_folder: str) -> None:
    for name, text in (("one", PLAIN), ("two", PLAIN.upper())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_bytes(text)
    with pytest.raises(CorpusError, match="is a folder; name the text files"):
        prepare_corpus([str(tmp_path / "one")], tmp_path / "c", model=model_folder)
    with pytest.raises(CorpusError, match=r"two inputs are called a\.txt"):
        prepare_corpus([str(tmp_path / name / "a.txt") for name in ("one", "two")], tmp_path / "c", model=model_folder)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"workers": 0}, ConfigError, "0 workers"),
        ({"seed": -1}, ConfigError, "out of range"),
        ({"held_out": 1.5}, ConfigError, "is not a share"),
        ({"train_vocab": 3}, ConfigError, "too small"),
        ({"model": "scratch:tiny"}, ConfigError, "--train-vocab"),
        (
            {"model": "scratch:nope", "train_vocab": 400},
            ModelError,
            "expected scratch:tiny, scratch:mini or scratch:base",
        ),
        ({"model": "scratch:nope"}, ModelError, "expected scratch:tiny, scratch:mini or"),
        ({"model": "/nowhere/at/all"}, ModelError, "there is no model folder"),
    ],
)
def test_bad_settings_are_refused(
    tmp_path: Path, model_folder: str, settings: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        prepare_corpus(["builtin:python-docs"], tmp_path / "c", **{"model": model_folder, **settings})  # type: ignore[arg-type]


def test_a_hub_data_set_is_streamed_and_its_bad_rows_are_numbered(
    tmp_path: Path, model_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [{"text": "The cat sat. It ran."}, {"text": "A dog sat. It ran."}]

    def load_dataset(name: str, config: str | None, *, split: str, streaming: bool) -> list[dict[str, object]]:
        assert (name, config, split, streaming) == ("owner/name", "en", "test", True)
        return rows

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    given = ["hub:owner/name:en@test"]
    assert prepare_corpus(given, tmp_path / "good", model=model_folder).num_documents == 2
    rows.append({"text": None})
    with pytest.raises(CorpusError, match=re.escape("hub:owner/name:en@test, line 3: ")):
        prepare_corpus(given, tmp_path / "bad", model=model_folder)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"sparsebert\[datasets\]"):
        prepare_corpus(given, tmp_path / "none", model=model_folder)


def test_the_split_of_a_document_does_not_move_when_the_corpus_grows(prepare: Prepare) -> None:
    texts = [b"Title %d\nThe cat sat. It ran %d.\n\n" % (number, number) for number in range(300)]
    small = prepare({"a.txt": b"".join(texts[:100])}, out="small", held_out=0.2)
    large = prepare({"b.txt": b"".join(reversed(texts))}, out="large", held_out=0.2)
    held_out = {store.path.name: set(_held_out_texts(store)) for store in (small, large)}
    assert 5 < len(held_out["small"]) < 40
    assert held_out["small"] == held_out["large"] & set(_texts(small))
    other = prepare({"a.txt": b"".join(texts[:100])}, out="other", held_out=0.2, seed=1)
    assert set(_held_out_texts(other)) != held_out["small"]


def _texts(store: TokenStore) -> list[bytes]:
    return [b"/".join(sentence.tobytes() for sentence in document) for document in documents(store)]


def _held_out_texts(store: TokenStore) -> list[bytes]:
    chosen = {int(number) for number in store.shard(0).documents["held_out"]}
    return [text for number, text in enumerate(_texts(store)) if number in chosen]


@pytest.mark.shared
@pytest.mark.long
def test_real_text_is_read_without_a_complaint(shared_data: Path, tmp_path: Path) -> None:
    source = str(shared_data / "text" / "wikipedia.txt.gz")
    store = prepare_corpus([source], tmp_path / "corpus", model="minilm", workers=len(os.sched_getaffinity(0)))
    assert store.num_documents == 7463
    assert store.skipped == {}
    store.verify()
    assert load_tokenizer("minilm").get_vocab_size() == store.vocab_size
