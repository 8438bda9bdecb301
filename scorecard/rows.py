"""Every row, in the order of the page."""

from scorecard import (
    bad_data,
    damage,
    disk,
    fuzz,
    hostile_files,
    hostile_models,
    kills,
    markup,
    network,
    numerics,
    operator,
    ranks,
    resuming,
    soak,
)
from scorecard.row import Row

_RUNS = (kills, ranks, disk, damage, resuming)
_INPUTS = (bad_data, numerics, hostile_models, hostile_files, fuzz, operator, markup, network, soak)
_ALL: list[Row] = [row for module in (*_RUNS, *_INPUTS) for row in module.ROWS]
ROWS = sorted(_ALL, key=lambda row: ("RDNSL".index(row.name[0]), int(row.name[1:])))
