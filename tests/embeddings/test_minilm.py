"""The published minilm under a searched pattern: sentence-transformers, encode and STS scores agree on it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from sparsebert import Pattern, encode
from sparsebert.embeddings import Encoder, JudgedPair, read_similarity, similarity_scores
from sparsebert.model.sources import model_folder
from sparsebert.runs import SearchRun
from sparsebert.text import prepare_corpus
from sparsebert.text.builtin import python_docs

LONG = "Boats, sand and water go along. " * 100
TEXTS = ["Rivers run to the sea.", "", "A committee adjourned. " * 9, LONG]


@pytest.fixture(scope="module")
def sparse_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentenceTransformer, saved, then searched by distillation for a few steps: what lies in the run's model/."""
    folder = tmp_path_factory.mktemp("minilm")
    SentenceTransformer(str(model_folder("minilm")), device="cpu").save_pretrained(str(folder / "dense"))
    prepare_corpus(["builtin:python-docs"], folder / "corpus", model=str(folder / "dense"), workers=1)
    SearchRun(
        model=str(folder / "dense"),
        corpus=folder / "corpus",
        length=48,
        batch_size=4,
        steps=6,
        sparsity=0.6,
        num_held_out=1,
    ).make(folder / "found")
    return folder / "found" / "model"


@pytest.mark.long
def test_a_searched_folder_in_a_new_process_gives_the_embeddings_of_encode(sparse_folder: Path, tmp_path: Path) -> None:
    pattern = Pattern.load(sparse_folder.parent / "pattern.safetensors")
    assert (pattern.layers, pattern.heads) == (6, 12)
    assert abs(pattern.sparsity - 0.6) < 0.02
    script = f"""
import sparsebert, numpy
from sentence_transformers import SentenceTransformer
model = SentenceTransformer({str(sparse_folder)!r}, device="cpu")
assert model.pattern.digest == {pattern.digest!r} and model.max_seq_length == 256
numpy.save({str(tmp_path / "theirs.npy")!r}, model.encode({TEXTS!r}))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    theirs, dense = np.load(tmp_path / "theirs.npy"), encode(TEXTS, "minilm")
    np.testing.assert_allclose(encode(TEXTS, sparse_folder), theirs, atol=2e-6)
    assert np.abs(theirs - dense).max() > 1e-3


@pytest.mark.long
def test_a_long_text_is_cut_where_the_model_ends(sparse_folder: Path) -> None:
    model = SentenceTransformer(str(sparse_folder), device="cpu")
    for embedded in (model.encode([LONG, LONG + LONG]), encode([LONG, LONG + LONG], sparse_folder)):
        np.testing.assert_allclose(embedded[0], embedded[1], atol=2e-6)
        assert np.linalg.norm(embedded[0]) == pytest.approx(1.0, abs=1e-5)


def their_score(folder: Path, pairs: Sequence[JudgedPair]) -> float:
    """As sentence-transformers scores the folder, in points."""
    firsts, seconds, scores = ([getattr(one, name) for one in pairs] for name in ("first", "second", "score"))
    evaluator = EmbeddingSimilarityEvaluator(firsts, seconds, scores, show_progress_bar=False, write_csv=False)
    return 100 * float(evaluator(SentenceTransformer(str(folder), device="cpu"))["spearman_cosine"])


@pytest.mark.long
def test_its_evaluator_gives_our_score(sparse_folder: Path) -> None:
    lines = [line[:200] for line in python_docs().decode().split("\n") if len(line) > 60][:40]
    words = [set(line.lower().split()) for line in lines]
    judged = [
        JudgedPair(len(words[one] & words[one + 1]) / len(words[one] | words[one + 1]), lines[one], lines[one + 1])
        for one in range(39)
    ]
    ours = similarity_scores(Encoder(str(sparse_folder)), {"by words": judged})["by words"]
    assert their_score(sparse_folder, judged) == pytest.approx(ours, abs=1e-3)
    assert ours > 10  # texts that share words are nearer to each other


@pytest.mark.shared
def test_its_evaluator_gives_our_score_on_sts(sparse_folder: Path, shared_data: Path) -> None:
    rows = read_similarity(shared_data / "glue/STS-B/dev.tsv")[:300]
    ours = similarity_scores(Encoder(str(sparse_folder)), {"STS-B dev": rows})["STS-B dev"]
    assert their_score(sparse_folder, rows) == pytest.approx(ours, abs=1e-3)
    assert ours > 50
