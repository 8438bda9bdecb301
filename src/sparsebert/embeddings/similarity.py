"""STS: how well the cosine of two embeddings follows what people say of two sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from sparsebert.embeddings.encoder import Encoder
from sparsebert.embeddings.encoding import encode_texts
from sparsebert.errors import ConfigError, FileError
from sparsebert.files import read_bytes

_COLUMNS = ("score", "sentence1", "sentence2")


@dataclass(frozen=True)
class JudgedPair:
    """Two sentences, and how alike people find them."""

    score: float
    first: str
    second: str


SimilaritySets = Mapping[str, Sequence[JudgedPair]]  # by name


def read_similarity(path: Path) -> list[JudgedPair]:
    """A file of tab-separated rows whose first line names score, sentence1 and sentence2; quotes are text."""
    try:
        head, *lines = read_bytes(path).decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    names = head.removesuffix("\r").split("\t")
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise FileError(f"{path} has no column {missing[0]}; expected a first line that names {', '.join(_COLUMNS)}")
    score, first, second = (names.index(name) for name in _COLUMNS)
    pairs = []
    for number, line in enumerate(lines, 2):
        cells = line.removesuffix("\r").split("\t")
        try:
            pairs.append(JudgedPair(float(cells[score]), cells[first], cells[second]))
        except (IndexError, ValueError) as error:
            raise FileError(f"{path}, line {number} has no score and two sentences; restore it from a copy") from error
    if len(pairs) < 2:
        raise FileError(f"{path} holds {len(pairs)} pairs; a correlation needs at least two")
    return pairs


def similarity_files(folder: Path) -> dict[str, Path]:
    """Every set of a folder, such as STS12.tsv, by its name without the ending."""
    if not Path(folder).is_dir():
        raise ConfigError(f"there is no folder {folder} of STS sets; expected one with files such as STS12.tsv")
    found = {path.stem: path for path in sorted(Path(folder).glob("*.tsv"))}
    if not found:
        raise ConfigError(f"{folder} holds no .tsv file; expected STS sets such as STS12.tsv")
    return found


def similarity_scores(encoder: Encoder, sets: SimilaritySets) -> dict[str, float]:
    """Of each set Spearman's correlation, in points, of the embeddings' cosine with people's scores."""
    return scores_of_embeddings(lambda texts: encode_texts(encoder, texts).embeddings, sets)


def texts_of(sets: SimilaritySets) -> list[str]:
    """Every text once."""
    return sorted({text for pairs in sets.values() for one in pairs for text in (one.first, one.second)})


def scores_of_embeddings(embed: Callable[[list[str]], np.ndarray], sets: SimilaritySets) -> dict[str, float]:
    """The same of whatever makes embeddings, a row a text."""
    from scipy.stats import spearmanr

    if not sets:
        return {}
    texts = texts_of(sets)
    vectors = embed(texts)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    place = {text: number for number, text in enumerate(texts)}
    scores = {}
    for name, pairs in sets.items():
        first, second = (unit[[place[text] for text in each]] for each in zip(*_texts(pairs), strict=True))
        cosines, judged = (first * second).sum(1), np.array([one.score for one in pairs])
        # Embeddings that are all alike, or scores that are, follow nothing.
        is_flat = np.ptp(cosines) == 0 or np.ptp(judged) == 0
        scores[name] = 0.0 if is_flat else 100 * float(spearmanr(cosines, judged).statistic)
    return scores


def _texts(pairs: Sequence[JudgedPair]) -> list[tuple[str, str]]:
    return [(one.first, one.second) for one in pairs]


def mean_similarity(scores: Mapping[str, float]) -> float:
    """Of the sets, however many pairs they have."""
    return fmean(scores.values())
