"""The universality theorem without the diagonal, as code that constructs, checks and shows (Section 3.2, Appendix A).

    grid ──► shifts ──► identity          closed forms on integers: what the layers must compute, and how to undo it
      │         └─────► cases ──► claims ──► audit      every step of the proof, checked input by input
      ├──► pieces ──► exact ──► control   the same construction layer by layer, in exact arithmetic, on any pattern
      │         └───► network ──► approximation         and as torch modules through `attend`, hardmax or softmax
    reach                                 who can hear whom after how many layers, for any pattern

All values are integers in units of delta: a token is the level 0 .. delta^-d - 1 of its cell.
"""
