"""Pages of single runs, in the style of a study's page: what was learned, what was kept, what it cost.

importance, pattern, comparison (of a run folder, as sections) -> writing (one page a run, in it or beside it)
"""
