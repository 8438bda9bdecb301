"""Auto classes know `sparsebert` after `import sparsebert`, yet the import itself loads neither torch nor transformers.

If transformers' Auto classes are already loaded, ours are registered at once; otherwise as soon as they are.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_CONFIGS = "transformers.models.auto.configuration_auto"
_MODELS = "transformers.models.auto.modeling_auto"
_REGISTERS = "sparsebert.model"


def register_when_transformers_loads() -> None:
    if _CONFIGS in sys.modules:
        importlib.import_module(_REGISTERS)
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Finds nothing itself; lets two modules load as usual and acts once they have."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in (_CONFIGS, _MODELS):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            # The models load the configurations first: while they are on their way, it is too early for ours.
            if fullname == _MODELS or _MODELS not in sys.modules:
                importlib.import_module(_REGISTERS)

        loader.exec_module = run_and_register
        return spec
