"""What a figure is: panels of series, or pictures of square arrays."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Shaped


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


Figure = Chart | Gallery
