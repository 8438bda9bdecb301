"""Places for the names of points: the first of a few candidates that runs into nothing."""

from collections.abc import Sequence

_LETTER, _HEIGHT = 5.4, 9.0  # of the chart's small type
_GAP = 6.0

Box = tuple[float, float, float, float]  # left, top, right, bottom


def place_labels(
    named: Sequence[tuple[float, float, str]], dots: Sequence[tuple[float, float]], frame: Box
) -> list[tuple[float, float, str]]:
    """Left end and baseline of each name, in their order; one that fits nowhere goes where it covers least."""
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    placed = []
    for x, y, name in named:
        width = _LETTER * len(name)
        candidates = [
            (x + _GAP, y + 3),
            (x - _GAP - width, y + 3),
            (x - width / 2, y - _GAP),
            (x - width / 2, y + _GAP + _HEIGHT),
            (x + 2, y + _GAP + _HEIGHT),
            (x - width - 2, y - _GAP),
            (x - width / 2, y - _GAP - _HEIGHT),
            (x - width / 2, y + _GAP + 2 * _HEIGHT),
            (x - _GAP - width, y + 3 + _HEIGHT),
            (x - _GAP - width, y + 3 - _HEIGHT),
        ]
        inside = [one for one in candidates if _within(_box(one, width), frame)] or candidates[:1]
        covered = [_hits(_box(one, width), taken) for one in inside]
        left, base = inside[covered.index(min(covered))]
        taken.append(_box((left, base), width))
        placed.append((round(left, 1), round(base, 1), name))
    return placed


def _box(place: tuple[float, float], width: float) -> Box:
    left, base = place
    return left, base - _HEIGHT + 1, left + width, base + 1


def _within(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _hits(box: Box, taken: Sequence[Box]) -> int:
    return sum(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in taken)
