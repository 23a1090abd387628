"""Draw the shapes of a picture as PNG by matplotlib: python -m hightide.compat._png < shapes.json.

A process of its own, since matplotlib takes more memory than many a program that is looked at.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict


def draw(picture: Dict[str, Any]) -> None:
    """Write it to its path. Raises ImportError where there is no matplotlib, OSError where it cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon, Rectangle

    wide, high = picture["wide"], picture["high"]
    figure = Figure(figsize=(wide / 100, high / 100), dpi=200)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, wide)
    axes.set_ylim(high, 0)
    axes.set_axis_off()
    for kind, points, colour, text, opacity, anchor, letters in picture["shapes"]:
        if kind == "text":
            place = {"start": "left", "middle": "center", "end": "right"}[anchor]
            axes.text(*points[0], text.replace("$", r"\$"), color=colour, fontsize=letters * 0.72, ha=place)
        elif kind == "rect":
            (left, top), (right, bottom) = points
            axes.add_patch(Rectangle((left, top), right - left, bottom - top, color=colour, alpha=opacity, lw=0))
        elif kind == "area":
            axes.add_patch(Polygon(points, closed=True, color=colour, alpha=opacity, lw=0))
        else:
            axes.plot([x for x, _ in points], [y for _, y in points], color=colour, lw=1.2)
    figure.savefig(picture["path"])


if __name__ == "__main__":
    from ._pictures import NO_MATPLOTLIB

    try:
        draw(json.load(sys.stdin))
    except ImportError:
        sys.exit(NO_MATPLOTLIB)
    except OSError as error:
        sys.exit(str(error.strerror or error))
