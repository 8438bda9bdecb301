"""Figures as data, drawn twice: as SVG for the page, by matplotlib for papers.

shapes (what a figure is) <- charts, pictures (the paper's figures of a study) -> layout (page) | plots (files)
"""
