"""The universality theorem without the diagonal, as code that constructs, checks and shows (Section 3.2, Appendix A).

    grid ──► shifts ──► identity                  closed forms on integers: what the layers compute, and how to undo it
      │         └─────► cases ──► claims, statements ──► audit      every step of the proof, checked input by input
      ├──► exact ──► control                      the attention layers one by one, in exact arithmetic, on any pattern
      ├──► token_layers ──► network ──► approximation ──► study     all layers as torch modules through `attend`; errors
    reach                                         who can hear whom after how many layers, for any pattern
    figures                                       the shifts, the audit, the errors

All values are integers in units of delta: a token is the level 0 .. delta^-d - 1 of its cell.
"""
