"""Sizes that no machine of this one's memory can hold are refused before work, not after it."""

import os

from sparsebert.errors import ConfigError, SparseBertError


def require_memory(needed: float, what: str, instead: str, error: type[SparseBertError] = ConfigError) -> None:
    """Refuse what needs more bytes than the machine has; `needed` is a lower bound, so nothing that fits is refused."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise error(
            f"{what} needs at least {needed / 2**30:,.0f} GiB of memory and this machine has {there / 2**30:,.0f}; "
            f"{instead}"
        )
