"""Every row, in the order of the page."""

from tests.faults.scorecard import kills

_ALL = [*kills.ROWS]
ROWS = sorted(_ALL, key=lambda row: ("RDNSL".index(row.name[0]), int(row.name[1:])))
