"""What a figure is: panels of series, or pictures of square arrays."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Shaped

_MANY = 24  # points beyond which a line goes without dots


@dataclass(frozen=True)
class Point:
    """A mean over seeds, with its interval where there are enough of them, and each seed's own value."""

    x: float
    y: float
    interval: tuple[float, float] | None = None
    each: tuple[float, ...] = ()
    runs: tuple[str, ...] = ()
    name: str = ""  # told when pointed at, and written beside it where a series says so


@dataclass(frozen=True)
class Series:
    """Points of one kind; joined by a line or not."""

    name: str
    points: tuple[Point, ...]
    colour: int  # place in the palette, the same in all figures for the same thing
    joined: bool = True
    labelled: bool = False  # write each point's name beside it
    dashed: bool = False

    @property
    def has_dots(self) -> bool:
        return not self.dashed and not (self.joined and len(self.points) > _MANY)

    @property
    def has_band(self) -> bool:
        """Intervals are a band along a line, and bars at single points."""
        return self.joined and sum(point.interval is not None for point in self.points) > 1


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...] = ()  # of x, where it is not a number
    log_x: bool = False


@dataclass(frozen=True)
class Chart:
    """Panels that share a legend."""

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    number: str = ""  # of the paper's figure that it answers to

    @property
    def is_empty(self) -> bool:
        return not self.panels

    @property
    def legend(self) -> list[Series]:
        """One series of each name."""
        found: dict[str, Series] = {}
        for series in (series for panel in self.panels for series in panel.series):
            found.setdefault(series.name, series)
        return list(found.values())


@dataclass(frozen=True)
class Picture:
    """A square array: True and False (kept or not), or numbers."""

    title: str
    array: Shaped[np.ndarray, "n n"]
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side; one of numbers has its own scale of colours, told below it."""

    key: str
    title: str
    caption: str
    pictures: tuple[Picture, ...]
    scale: Literal["kept", "heat"] = "kept"
    number: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.pictures


Figure = Chart | Gallery
