"""SparseBERT: learn who needs to attend to whom, and run only that.

The names below load on first use, so that `import sparsebert` and `sparsebert --help` stay instant.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsebert import patterns as patterns
    from sparsebert.attention import attend as attend
    from sparsebert.errors import SparseBertError as SparseBertError
    from sparsebert.patterns import Pattern as Pattern

__version__ = "0.1.0"

_HOMES = {
    "Pattern": "sparsebert.patterns",
    "attend": "sparsebert.attention",
    "SparseBertError": "sparsebert.errors",
}
_PACKAGES = ("patterns",)

__all__ = ["Pattern", "SparseBertError", "__version__", "attend", "patterns"]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"sparsebert.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sparsebert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
