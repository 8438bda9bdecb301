"""STS: files are read by the names of their columns, and a score is the rank correlation of cosines."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from sparsebert.embeddings import (
    Encoder,
    JudgedPair,
    mean_similarity,
    read_similarity,
    similarity_files,
    similarity_scores,
)
from sparsebert.errors import ConfigError, FileError
from tests.model.sentence_cases import TEXTS, tiny_sentence_folder


def written(folder: Path, text: str, name: str = "STS12.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_found_by_name_and_quotes_are_text(tmp_path: Path) -> None:
    rows = 'index\tsentence1\tsentence2\tscore\n0\ta "b\tc\t4.5\n1\td\te" f\t0\r\n'
    assert read_similarity(written(tmp_path, rows)) == [JudgedPair(4.5, 'a "b', "c"), JudgedPair(0.0, "d", 'e" f')]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("score\tfirst\tsecond\n1\ta\tb\n", "no column sentence1"),
        ("score\tsentence1\tsentence2\n1\ta\tb\n2\ta\n", "line 3 has no score and two sentences"),
        ("score\tsentence1\tsentence2\nx\ta\tb\n", "line 2 has no score"),
        ("score\tsentence1\tsentence2\n1\ta\tb\n", "holds 1 pairs"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read_similarity(written(tmp_path, text))


def test_sets_are_the_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("STS13.tsv", "STS12.tsv", "notes.txt"):
        written(tmp_path, "", name)
    assert list(similarity_files(tmp_path)) == ["STS12", "STS13"]
    with pytest.raises(ConfigError, match="no folder"):
        similarity_files(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no \.tsv file"):
        similarity_files(tmp_path / "empty")


def test_a_score_is_the_rank_correlation_of_cosines_with_peoples_scores(tmp_path: Path) -> None:
    encoder = Encoder(tiny_sentence_folder(tmp_path))
    pairs = [JudgedPair(float(3 * k % 5), TEXTS[k], TEXTS[(k + 1) % len(TEXTS)]) for k in range(5)]
    vectors = [encoder.embeddings(encoder.tokens([text]))[0][0] for text in TEXTS]
    cosines = [float(np.dot(vectors[k], vectors[(k + 1) % len(TEXTS)])) for k in range(5)]
    wanted = 100 * spearmanr(cosines, [one.score for one in pairs]).statistic
    scores = similarity_scores(encoder, {"a": pairs, "same": [JudgedPair(1.0, "x", "x")] * 3})
    assert scores == {"a": pytest.approx(wanted), "same": 0.0}
    assert mean_similarity(scores) == pytest.approx(wanted / 2)
    assert similarity_scores(encoder, {}) == {}
