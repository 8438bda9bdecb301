"""The published minilm under a pattern: sentence-transformers, encode and STS scores agree on it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from sparsebert import encode, patterns, sparsify
from sparsebert.embeddings import Encoder, read_similarity, similarity_scores
from sparsebert.model.sources import model_folder

TEXTS = ["Rivers run to the sea.", "", "A committee adjourned. " * 9, "Boats, sand and water go along. " * 100]


@pytest.fixture(scope="module")
def sparse_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minilm") / "sparse"
    model = SentenceTransformer(str(model_folder("minilm")), device="cpu")
    sparsify(model, patterns.longformer(128)).save_pretrained(str(folder))
    return folder


def test_a_sparse_folder_in_a_new_process_gives_the_embeddings_of_encode(sparse_folder: Path, tmp_path: Path) -> None:
    script = f"""
import sparsebert, numpy
from sentence_transformers import SentenceTransformer
model = SentenceTransformer({str(sparse_folder)!r}, device="cpu")
assert model.pattern.sparsity > 0.5 and model.max_seq_length == 256
numpy.save({str(tmp_path / "theirs.npy")!r}, model.encode({TEXTS!r}))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    theirs, dense = np.load(tmp_path / "theirs.npy"), encode(TEXTS, "minilm")
    np.testing.assert_allclose(encode(TEXTS, sparse_folder), theirs, atol=2e-6)
    assert np.abs(theirs - dense).max() > 1e-3


@pytest.mark.shared
def test_its_evaluator_gives_our_score(sparse_folder: Path, shared_data: Path) -> None:
    rows = read_similarity(shared_data / "glue/STS-B/dev.tsv")[:300]
    ours = similarity_scores(Encoder(str(sparse_folder)), {"STS-B dev": rows})["STS-B dev"]
    firsts, seconds, scores = ([getattr(one, name) for one in rows] for name in ("first", "second", "score"))
    evaluator = EmbeddingSimilarityEvaluator(firsts, seconds, scores, show_progress_bar=False, write_csv=False)
    theirs = evaluator(SentenceTransformer(str(sparse_folder), device="cpu"))["spearman_cosine"]
    assert 100 * theirs == pytest.approx(ours, abs=1e-3)
    assert ours > 50
