"""Addresses survive growth: a setting that is added later changes none of them until it is used."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparsebert.gates.schedules import Schedule
from sparsebert.gates.settings import Settings
from sparsebert.studies import graph
from sparsebert.studies.addresses import FOUNDING, addressed
from sparsebert.studies.folder import runs_to_make
from sparsebert.studies.grids import make_graph, names_in
from sparsebert.studies.jobs import StudyPaths
from sparsebert.studies.record_store import RecordFile
from sparsebert.studies.scales import Scale
from sparsebert.studies.sources import Sources
from sparsebert.tasks.config import FinetuneConfig
from sparsebert.training.config import FitConfig

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "results" / "runs.jsonl.zst"


@dataclass(frozen=True)
class GrownFit(FitConfig):
    ahead: int = 0  # a setting of the years to come


@dataclass(frozen=True)
class GrownFinetune(FinetuneConfig):
    ahead: int = 0


@dataclass(frozen=True)
class GrownSchedule(Schedule):
    ahead: int = 0


@dataclass(frozen=True)
class GrownSettings(Settings):
    temperature: Schedule = field(default_factory=lambda: GrownSchedule("linear", 1.0, 0.4))
    ahead: tuple[int, ...] = ()


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """What study.json said of the recorded study."""
    return dict(RecordFile(RECORDS).study())


def graph_of(described: dict[str, Any]) -> graph.Graph:
    """The recorded study, its runs addressed as they are now."""
    base = described["base"]
    hashes = base["model_sha256"], base["corpus_sha256"], base["tasks_sha256"]
    sources = Sources(base["model"], base["shape"], None, None, 0, *hashes)
    sizes = {name: tuple(value) if isinstance(value, list) else value for name, value in base["sizes"].items()}
    return make_graph(names_in(described["name"]), Scale(**sizes), sources, base["threads"])


def grow(monkeypatch: pytest.MonkeyPatch, ahead: int = 0) -> None:
    """A new field in every group of settings; ahead: its value in the training loop."""
    monkeypatch.setattr(graph, "FitConfig", GrownFit)
    monkeypatch.setattr(graph, "FinetuneConfig", GrownFinetune)
    monkeypatch.setattr(graph, "Settings", GrownSettings)
    monkeypatch.setattr(graph, "preset", lambda _: GrownSettings())
    if ahead:
        monkeypatch.setattr(graph, "_loop", lambda **chosen: loop(GrownFit(1, ahead=ahead, **chosen)))


def loop(config: FitConfig) -> dict[str, Any]:
    return addressed(config, GrownFit(1), graph._APART)


def test_every_recorded_run_keeps_its_id_when_settings_grow(
    described: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = [run["id"] for run in described["runs"]]
    assert len(recorded) == 763
    assert list(graph_of(described).runs) == recorded
    grow(monkeypatch)
    assert list(graph_of(described).runs) == recorded


def test_every_recorded_run_still_counts_as_finished_when_settings_grow(
    described: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    grow(monkeypatch)
    assert runs_to_make(graph_of(described), StudyPaths(tmp_path, "m", None, None, finished=RECORDS)) == []


def test_a_new_setting_that_is_used_gives_other_ids(described: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(graph_of(described).runs)
    grow(monkeypatch, ahead=3)
    # Patterns that are drawn at random are not trained.
    assert len(before & set(graph_of(described).runs)) == sum(
        run["stage"] == "prune" and not run["depends"] for run in described["runs"]
    )


def test_a_later_field_enters_an_address_only_where_it_differs_from_its_default() -> None:
    plain = GrownSettings()
    assert addressed(plain, GrownSettings()) == addressed(Settings(), Settings())
    used = replace(plain, ahead=(1, 2), temperature=GrownSchedule("linear", 1.0, 0.4, ahead=5))
    more = addressed(used, GrownSettings())
    assert more["ahead"] == [1, 2]
    assert more["temperature"] == {"kind": "linear", "start": 1.0, "end": 0.4, "share": 1.0, "ahead": 5}


def test_a_founding_field_enters_an_address_at_its_default_too() -> None:
    assert set(addressed(Settings(), Settings())) == FOUNDING[Settings]
    assert set(addressed(FitConfig(1), FitConfig(1), {"seed"})) == FOUNDING[FitConfig] - {"seed"}
