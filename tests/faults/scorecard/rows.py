"""Every row, in the order of the page."""

from tests.faults.scorecard import bad_data, damage, disk, kills, numerics, ranks, resuming

_ALL = [row for module in (bad_data, damage, disk, kills, numerics, ranks, resuming) for row in module.ROWS]
ROWS = sorted(_ALL, key=lambda row: ("RDNSL".index(row.name[0]), int(row.name[1:])))
