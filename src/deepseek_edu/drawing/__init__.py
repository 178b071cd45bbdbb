"""Pictures from Python: an SVG kit (`svg`) and charts that are static SVG and Plotly data at once (`chart`).

Standard library only, so that the same drawing runs at build time and in the browser.
"""

from .svg import NARROW, SMALL, WIDE, Canvas, Drawing, Picture, draw, element, escape

__all__ = ["NARROW", "SMALL", "WIDE", "Canvas", "Drawing", "Picture", "draw", "element", "escape"]
