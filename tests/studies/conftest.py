"""A small text and a small study that several tests look at; made once."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparsebert import draws
from sparsebert.studies.graph import Graph
from sparsebert.studies.grids import make_graph, names_in, tasks_of
from sparsebert.studies.scales import find_scale
from sparsebert.studies.sources import Sources

if TYPE_CHECKING:
    from sparsebert.studies.study import StudyConfig

# Every study with everything that sets it apart, but few of each.
FEW: dict[str, Any] = {
    "sparsities": [0.5],
    "stage_sparsities": [0.9],
    "penalties": [1e-4, 1e-1],
    "random_drops": 1,
    "diagonal_tasks": ["rte", "squad1"],
    "pruning_tasks": ["rte"],
    "pattern_tasks": ["stsb"],
    "ablation_tasks": ["stsb"],
    "stage_tasks": ["rte"],
}
_WORDS = ["the", "old", "red", "boat", "tower", "lamp", "river", "finds", "builds", "sees", "near", "of", "and"]


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of a few words: the same on every machine, unlike the text that comes with Python."""
    draw = draws.generator(0, "tests/studies/text")
    documents = []
    for _ in range(40):
        sentences = [" ".join(draw.choice(_WORDS, 9)).capitalize() + "." for _ in range(12)]
        documents.append("\n".join(["Title", *(" ".join(sentences[k : k + 3]) for k in range(0, 12, 3))]))
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents) + "\n")
    return path


@pytest.fixture
def graph_of() -> Callable[..., Graph]:
    """A graph without any files: hashes are made up."""

    def make(name: str, scale: str = "smoke", threads: int = 1, protocol: str = "mlm", **sizes: Any) -> Graph:
        chosen = find_scale(scale, protocol).changed(sizes)
        names = names_in(name)
        shape = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
        tasks = {task: f"hash of {task}" for task in tasks_of(names, chosen)}
        sources = Sources("m", shape, Path("c"), Path("d"), 800, "hash of m", "hash of c", tasks)
        return make_graph(names, chosen, sources, threads)

    return make


@pytest.fixture(scope="session")
def small_study(tmp_path_factory: pytest.TempPathFactory, text_file: Path) -> Path:
    """All six studies, a few conditions of each, made in this process on the small text."""
    from sparsebert.progress import Lines
    from sparsebert.studies.study import planned, run_study
    from sparsebert.text import prepare_corpus

    folder = tmp_path_factory.mktemp("study")
    prepare_corpus([str(text_file)], folder / "text", model="scratch:tiny", train_vocab=150, held_out=0.2, workers=1)
    with planned(small_config(folder / "out", folder / "text")) as plan:
        run_study(plan, Lines("small study"))
    return folder / "out"


@pytest.fixture(scope="session")
def distilled_study(tmp_path_factory: pytest.TempPathFactory, text_file: Path) -> Path:
    """The smoke study of the protocol distill, whole, on the small text."""
    from sparsebert.progress import Lines
    from sparsebert.studies.study import planned, run_study
    from sparsebert.text import prepare_corpus

    folder = tmp_path_factory.mktemp("distilled")
    prepare_corpus([str(text_file)], folder / "text", model="scratch:tiny", train_vocab=150, held_out=0.2, workers=1)
    with planned(distilled_config(folder / "out", folder / "text")) as plan:
        run_study(plan, Lines("distilled study"))
    return folder / "out"


def distilled_config(out: Path, corpus: Path, **changes: Any) -> "StudyConfig":
    return small_config(out, corpus, **{"protocol": "distill", "sizes": {}, **changes})


def small_config(out: Path, corpus: Path, **changes: Any) -> "StudyConfig":
    from sparsebert.studies.study import StudyConfig

    given = {"name": "all", "workers": 1, "flops_per_second": 1e10, "sizes": FEW, **changes}
    return StudyConfig(out=out, corpus=corpus, **given)
