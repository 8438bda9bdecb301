"""Auto classes know `sparsebert` after `import sparsebert`, yet the import itself loads neither torch nor transformers.

The table of model types that AutoConfig looks into gets an entry that loads our classes when it is asked for, and not
before: transformers' own modules load that table half-way through, when nothing of theirs can be imported yet.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_CONFIGS = "transformers.models.auto.configuration_auto"
_MODEL_TYPE = "sparsebert"
_REGISTERS = "sparsebert.model"


def register_when_transformers_loads() -> None:
    if _CONFIGS in sys.modules:
        _register_later(sys.modules[_CONFIGS])
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def _register_later(configs: ModuleType) -> None:
    table = configs.CONFIG_MAPPING
    if not isinstance(table._extra_content, _LoadedWhenAsked):
        table._extra_content = _LoadedWhenAsked(table._extra_content)


class _LoadedWhenAsked(dict[str, Any]):
    """Model types beyond transformers' own; importing our classes enters them here."""

    def __contains__(self, key: object) -> bool:
        if key == _MODEL_TYPE and not super().__contains__(key):
            importlib.import_module(_REGISTERS)
        return super().__contains__(key)


class _Watch(MetaPathFinder):
    """Finds nothing itself; lets one module load as usual and acts once it has."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _CONFIGS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            _register_later(module)

        loader.exec_module = run_and_register
        return spec
