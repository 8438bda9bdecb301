"""Who may attend to whom: patterns, how they are built, saved and drawn.

builders, handmade -> Pattern (compressed rows + the rule) -> storage, pictures, figures
"""

from sparsebert.patterns.builders import border, from_keep, from_offsets, full, random, window
from sparsebert.patterns.handmade import big_bird, fixed, log_sparse, longformer, star, strided
from sparsebert.patterns.pattern import Anchor, Pattern
from sparsebert.patterns.pruning import prune
from sparsebert.patterns.rules import find, named, rebuild

__all__ = [
    "Anchor",
    "Pattern",
    "big_bird",
    "border",
    "find",
    "fixed",
    "from_keep",
    "from_offsets",
    "full",
    "log_sparse",
    "longformer",
    "named",
    "prune",
    "random",
    "star",
    "strided",
    "window",
]

Pattern.rebuilt = rebuild
