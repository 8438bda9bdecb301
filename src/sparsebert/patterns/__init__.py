"""Who may attend to whom: patterns, how they are built, saved and drawn.

builders, handmade -> Pattern (compressed rows, the rule, a ranking) -> layers, storage, pictures, figures
"""

from sparsebert.patterns.builders import (
    border,
    from_keep,
    from_offsets,
    from_ranking,
    full,
    random,
    window,
    window_border,
)
from sparsebert.patterns.handmade import big_bird, fixed, log_sparse, longformer, star, strided
from sparsebert.patterns.layers import per_layer
from sparsebert.patterns.pattern import Anchor, Pattern
from sparsebert.patterns.pruning import prune
from sparsebert.patterns.ranking import Ranking
from sparsebert.patterns.rules import find, named, rebuild

__all__ = [
    "Anchor",
    "Pattern",
    "Ranking",
    "big_bird",
    "border",
    "find",
    "fixed",
    "from_keep",
    "from_offsets",
    "from_ranking",
    "full",
    "log_sparse",
    "longformer",
    "named",
    "per_layer",
    "prune",
    "random",
    "star",
    "strided",
    "window",
    "window_border",
]

Pattern.rebuilt = rebuild
