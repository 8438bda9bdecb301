"""What every kind of run shares: settings that are read by name, and the one call from them to a run folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from sparsebert.progress import Watcher
from sparsebert.settings import Declared, check, declared, refuse_unknown
from sparsebert.training import FitConfig, Objective, Result, fit, is_main


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to be fitted."""

    objective: Objective
    config: FitConfig
    settings: dict[str, Any]  # what run.json holds a resumed run to; `where` may change


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run. A kind of run declares its own as fields, and says how they make an objective."""

    fit: dict[str, Any] = field(default_factory=dict)  # settings that differ from the loop's defaults

    # Fields that hold settings of another owner, which are read by their own names.
    PARTS: ClassVar[Mapping[str, type]] = {"fit": FitConfig}
    # Fields that no one sets by name.
    UNNAMED: ClassVar[frozenset[str]] = frozenset()
    FIGURES: ClassVar[tuple[str, ...]] = ()  # files that draw() makes

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def known(cls) -> dict[str, Declared]:
        """Every setting that can be given by name: the run's own, and those of its parts."""
        owner: Callable[..., Any] = cls
        own = {name: one for name, one in declared(owner).items() if name not in {*cls.PARTS, *cls.UNNAMED}}
        return {name: one for part in cls.PARTS.values() for name, one in declared(part).items()} | own

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """From settings by name, each put where it belongs; unknown ones are refused."""
        values: dict[str, Any] = {}
        names = {one.name for one in fields(cls)}
        for name, value in given.items():
            if name in names:
                values[name] = value
                continue
            refuse_unknown(name, cls.known())
            part = next(part for part, owner in cls.PARTS.items() if name in declared(owner))
            values.setdefault(part, {})[name] = value
        return cls(**values)

    def prepare(self, out: Path) -> Prepared:
        """Everything but the training. out: the run folder, where something has to be written first."""
        raise NotImplementedError

    def draw(self, out: Path) -> None:
        """The figures of a finished run."""

    def make(self, out: Path, progress: Watcher | None = None) -> Result:
        """Train in a run folder, or go on there, and draw what came of it."""
        prepared = self.prepare(out)
        result = fit(prepared.objective, prepared.config, out, settings=prepared.settings, progress=progress)
        # The figures come after result.json: a kill in between must not leave a finished run without them.
        if is_main() and not all((out / name).exists() for name in self.FIGURES):
            self.draw(out)
        return result
