"""Every row, in the order of the page."""

from tests.faults.scorecard import (
    bad_data,
    damage,
    disk,
    hostile_files,
    hostile_models,
    kills,
    numerics,
    ranks,
    resuming,
)
from tests.faults.scorecard.row import Row

_MODULES = (bad_data, damage, disk, hostile_files, hostile_models, kills, numerics, ranks, resuming)
_ALL: list[Row] = [row for module in _MODULES for row in module.ROWS]
ROWS = sorted(_ALL, key=lambda row: ("RDNSL".index(row.name[0]), int(row.name[1:])))
