"""Figures as data, drawn twice: as SVG for the page, by matplotlib for papers.

shapes (what a figure is) <- charts, pictures (the paper's figures of a study) -> layout (page) | plots (files)
"""

from sparsebert.report.rendering.figures.paper_figures import all_figures
from sparsebert.report.rendering.figures.shapes import Chart, Figure, Gallery, Panel, Picture, Point, Series

__all__ = ["Chart", "Figure", "Gallery", "Panel", "Picture", "Point", "Series", "all_figures"]
