"""transformers knows us after `import sparsebert`, yet the import itself loads neither torch nor transformers.

The table of model types that AutoConfig looks into gets an entry that loads our classes when it is asked for, and not
before: transformers' own modules load that table half-way through, when nothing of theirs can be imported yet. The
Trainer gets a callback that compares patterns, once it is loaded.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_CONFIGS = "transformers.models.auto.configuration_auto"
_MODEL_TYPE = "sparsebert"
_REGISTERS = "sparsebert.model"
_TRAINER = "transformers.trainer"
_GUARD = "sparsebert.model.trainer_guard"


def register_when_transformers_loads() -> None:
    _when_loaded(_CONFIGS, _register_later)
    _when_loaded(_TRAINER, _guard)


def _when_loaded(name: str, act: Callable[[ModuleType], None]) -> None:
    """Act on a module once it is loaded: now, or as soon as somebody imports it."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, act))


def _register_later(configs: ModuleType) -> None:
    table = configs.CONFIG_MAPPING
    if not isinstance(table._extra_content, _LoadedWhenAsked):
        table._extra_content = _LoadedWhenAsked(table._extra_content)


def _guard(trainer: ModuleType) -> None:
    importlib.import_module(_GUARD).guard(trainer)


class _LoadedWhenAsked(dict[str, Any]):
    """Model types beyond transformers' own; importing our classes enters them here."""

    def __contains__(self, key: object) -> bool:
        if key == _MODEL_TYPE and not super().__contains__(key):
            importlib.import_module(_REGISTERS)
        return super().__contains__(key)


class _Watch(MetaPathFinder):
    """Finds nothing itself; lets one module load as usual and acts once it has."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self.name, self.act = name, act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_act(module: ModuleType) -> None:
            run(module)
            self.act(module)

        loader.exec_module = run_and_act
        return spec
