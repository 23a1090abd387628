"""Pictures of memory: a list of shapes, drawn as SVG or in a page without any package, as PNG by matplotlib.

timeline, bars, heat_map, stacked ─▶ Picture ─▶ .svg, .html, save("x.svg" | "x.html" | "x.png")
"""

from __future__ import annotations

import html
import json
import math
import os
import sys
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from .. import _engine
from .._picture import COLOURS, size

Point = Tuple[float, float]

WIDTH, LEFT, RIGHT, TOP = 860, 150, 16, 34
INK, FAINT, GRID = "#333333", "#767676", "#e4e4e4"
ROWS = 24  # of bars and heat maps; what is beyond is said to be


class Shape(NamedTuple):
    """One thing to draw, in pixels from the upper left corner."""

    kind: str
    """line, area, rect or text"""
    points: Sequence[Point]
    """of a rectangle two opposite corners, of a text where it stands"""
    colour: str
    text: str = ""
    """what stands there; of other shapes: what the pointer shows"""
    opacity: float = 1.0
    anchor: str = "start"
    points_high: float = 11
    """height of the letters"""


class Curve(NamedTuple):
    """Bytes over seconds."""

    name: str
    points: List[Point]


class Picture:
    """A picture that was drawn. In a notebook it shows itself."""

    def __init__(self, title: str, height: float, shapes: List[Shape], curves: Optional[List[Curve]] = None) -> None:
        self.title, self.height, self.shapes = title, height, shapes
        self.curves = curves or []

    @property
    def svg(self) -> str:
        """One SVG that needs nothing else."""
        body = "".join(_svg(shape) for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:.0f}" width="{WIDTH}" '
            f'role="img" aria-label="{html.escape(self.title)}" font-family="system-ui,sans-serif" '
            f'style="max-width:100%;height:auto">'
            f'<rect width="{WIDTH}" height="{self.height:.0f}" fill="#ffffff"/>{body}</svg>'
        )

    @property
    def html(self) -> str:
        """One page that needs nothing else; of a timeline, the pointer shows when and how much."""
        title = html.escape(self.title)
        script = f"<p id='at'>&nbsp;</p><script>{_POINTER % _data(self.curves)}</script>" if self.curves else ""
        return f"<!doctype html><meta charset=utf-8><title>{title}</title><body>{self.svg}{script}</body>"

    def save(self, to: Any) -> str:
        """Write it as the end of the name says: .svg, .html or .png, which needs matplotlib; the path.

        Raises:
            ValueError: the name ends otherwise.
            RuntimeError: a PNG is wanted, and matplotlib is not installed.
        """
        path = str(os.fspath(to))
        kind = os.path.splitext(path)[1].lower()
        if kind == ".png":
            _png(self, path)
            return path
        if kind not in (".svg", ".html", ".htm"):
            raise ValueError(f"{path}: a picture is saved as .svg, .html or .png")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if kind == ".svg" else self.html)
        return path

    def show(self) -> None:
        """Where nothing can be shown, say how it can be kept."""
        _engine.say_once(
            "a picture shows itself in a notebook; elsewhere save it: save_path='memory.svg' (or .html, .png)"
        )

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<hightide picture: {self.title}>"


# Shows the value of each curve under the pointer. %s: title and points of each.
_POINTER = """
const curves = %s, at = document.getElementById("at"), svg = document.querySelector("svg");
svg.addEventListener("pointermove", e => {
  const x = (e.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width;
  at.textContent = curves.map(c => {
    const t = c.from + (x - c.left) / (1 - c.left - c.right) * (c.to - c.from);
    let i = c.points.findIndex(p => p[0] > t);
    const p = c.points[Math.max(0, (i < 0 ? c.points.length : i) - 1)];
    return `${c.name}: ${(p[1] / 1048576).toFixed(1)} MiB at ${p[0].toFixed(2)} s`;
  }).join("   ");
});
"""


def _data(curves: Sequence[Curve]) -> str:
    start, end = _ends(curves)
    rows = [
        {"name": c.name, "points": c.points, "from": start, "to": end, "left": LEFT / WIDTH, "right": RIGHT / WIDTH}
        for c in curves
    ]
    return json.dumps(rows).replace("<", "\\u003c")


def _ends(curves: Sequence[Curve]) -> Tuple[float, float]:
    times = [at for curve in curves for at, _ in curve.points] or [0.0]
    return min(times), max(times)


def _svg(shape: Shape) -> str:
    points, colour = shape.points, shape.colour
    title = f"<title>{html.escape(shape.text)}</title>" if shape.text else ""
    if shape.kind == "text":
        (x, y), words = points[0], html.escape(shape.text)
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{shape.points_high:g}" '
            f'text-anchor="{shape.anchor}">{words}</text>'
        )
    if shape.kind == "rect":
        (left, top), (right, bottom) = points
        return (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(right - left, 0.5):.1f}" height="{bottom - top:.1f}" '
            f'fill="{colour}" fill-opacity="{shape.opacity:.3g}">{title}</rect>'
        )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    if shape.kind == "area":
        return f'<polygon points="{line}" fill="{colour}" fill-opacity="{shape.opacity:.3g}">{title}</polygon>'
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5">{title}</polyline>'


def _png(picture: Picture, path: str) -> None:
    """Draw it by matplotlib, in a process of its own: what that takes is not the program's memory."""
    where = os.path.abspath(path)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = os.pathsep.join([place for place in [os.environ.get("PYTHONPATH", ""), package] if place])
    given = json.dumps({"wide": WIDTH, "high": picture.height, "shapes": picture.shapes, "path": where})
    command = [sys.executable, "-m", "hightide.compat._png"]
    code, _, err = _engine.apart(command, {"PYTHONPATH": places, "MPLBACKEND": "agg"}, given)
    if code == NO_MATPLOTLIB:
        raise RuntimeError(f"{path}: a PNG needs matplotlib, which is not installed (pip install matplotlib)")
    if code:
        raise OSError(f"{path}: {err.strip().rpartition(chr(10))[2] or f'the picture could not be drawn ({code})'}")


NO_MATPLOTLIB = 3  # the exit code of that process where there is none


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = INK, high: float = 11) -> Shape:
    return Shape("text", [(x, y)], colour, words, 1.0, anchor, high)


def _head(title: str) -> Shape:
    return _text(LEFT, 20, title, high=14)


def timeline(
    title: str, curves: List[Curve], stays: Sequence[Tuple[str, float, float]] = (), marks: Sequence[Point] = ()
) -> Picture:
    """Curves of bytes over seconds; beneath them named stays (name, from, to), and marks at a time and a height."""
    start, end = from_zero(_ends(curves))
    high = max((value for curve in curves for _, value in curve.points), default=0) or 1.0
    long, top, bottom = max(end - start, 1e-9), TOP + 18.0, 278.0

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max((at - start) / long, 0.0), 1.0)

    def y(count: float) -> float:
        return top + (bottom - top) * (1 - count / high)

    shapes = [_head(title), *_legend([curve.name for curve in curves])]
    for value in _ticks(0, high, 1024):
        shapes.append(Shape("line", [(LEFT, y(value)), (WIDTH - RIGHT, y(value))], GRID))
        shapes.append(_text(LEFT - 6, y(value) + 4, size(value) if value else "0", "end"))
    shapes += _times(start, end, x, bottom)
    for n, curve in enumerate(curves):
        colour, line = COLOURS[n % len(COLOURS)], [(x(at), y(value)) for at, value in curve.points]
        if n == 0 and line:
            shapes.append(Shape("area", [(line[0][0], bottom), *line, (line[-1][0], bottom)], colour, opacity=0.2))
        shapes.append(Shape("line", line, colour, curve.name))
    for at, value in marks:
        shapes.append(Shape("line", [(x(at), top), (x(at), bottom)], COLOURS[4], f"{size(value)} at {at:.2f} s"))
    strip, rows = _strip(stays, x, bottom + 22)
    return Picture(title, bottom + 28 + 16 * rows, shapes + strip, curves)


def from_zero(span: Point) -> Point:
    """From the beginning of the run, if the first reading was made a moment after it."""
    start, end = span
    return (0.0 if 0 < start < (end - start) / 20 else start), end


def _legend(names: Sequence[str]) -> List[Shape]:
    """A square and a name for each curve, in a row beneath the title."""
    shapes, left = [], float(LEFT)
    for n, name in enumerate(names):
        shapes.append(Shape("rect", [(left, TOP - 7), (left + 9, TOP + 2)], COLOURS[n % len(COLOURS)], name))
        shapes.append(_text(left + 13, TOP + 2, name[:40]))
        left += 13 + 7 * len(name[:40]) + 16
    return shapes


def _times(start: float, end: float, x: Any, bottom: float) -> List[Shape]:
    """The axis of seconds."""
    return [_text(x(at), bottom + 14, f"{at:g} s", "middle") for at in _ticks(start, end, 10)]


def _ticks(start: float, end: float, base: int) -> List[float]:
    """Three to six round values between two, 1, 2 or 5 times a power of ten, of bytes powers of two."""
    least = max((end - start) / 6, 1e-9)
    unit = float(base) ** math.floor(math.log(least, base))
    steps = (1, 2, 5, 10) if base == 10 else [2**n for n in range(11)]
    step = next(unit * n for n in steps if unit * n >= least * (1 - 1e-9))
    return [round(n * step, 9) for n in range(math.ceil(start / step), math.floor(end / step + 1e-9) + 1)]


def _strip(stays: Sequence[Tuple[str, float, float]], x: Any, top: float) -> Tuple[List[Shape], int]:
    """The longest stays in as few rows as they need, six at most; and how many rows."""
    longest = sorted(sorted(stays, key=lambda s: s[1] - s[2])[:200], key=lambda s: s[1])
    names = list(dict.fromkeys(name for name, _, _ in longest))
    free: List[float] = []  # when each row is free again
    shapes: List[Shape] = []
    for name, begin, end in longest:
        row = next((n for n, until in enumerate(free) if until <= begin), len(free))
        if row >= 6:
            continue
        free[row:] = [end, *free[row + 1 :]]
        left, right, above = x(begin), x(end), top + 16 * row
        colour = COLOURS[names.index(name) % len(COLOURS)]
        shapes.append(Shape("rect", [(left, above), (max(right, left + 1), above + 14)], colour, name))
        if right - left > 7 * len(name):
            shapes.append(_text(left + 3, above + 11, name, colour="#ffffff", high=9))
    return shapes, len(free)


def bars(title: str, rows: Sequence[Tuple[str, float, str]]) -> Picture:
    """One bar a row: name, bytes, and what stands beside it; the longest first."""
    shown = sorted(rows, key=lambda row: -abs(row[1]))[:ROWS]
    most = max((abs(value) for _, value, _ in shown), default=0) or 1.0
    shapes = [_head(title)]
    for n, (name, value, words) in enumerate(shown):
        top = TOP + 22 * n
        right = LEFT + (WIDTH - LEFT - RIGHT - 130) * abs(value) / most
        shapes.append(_text(LEFT - 6, top + 13, name[-24:], "end"))
        shapes.append(
            Shape("rect", [(LEFT, top), (right, top + 16)], COLOURS[0 if value >= 0 else 2], f"{name}: {words}")
        )
        shapes.append(_text(right + 5, top + 13, words, colour=FAINT))
    return Picture(title, TOP + 22 * max(len(shown), 1) + 10 + _rest(shapes, rows, TOP + 22 * len(shown)), shapes)


def _rest(shapes: List[Shape], rows: Sequence[Any], top: float) -> int:
    """Say how many rows are not shown; the height of that."""
    if len(rows) <= ROWS:
        return 0
    shapes.append(_text(LEFT, top + 13, f"and {len(rows) - ROWS} more", colour=FAINT))
    return 20


def heat_map(title: str, names: Sequence[str], cells: Sequence[Sequence[Optional[float]]], span: Point) -> Picture:
    """A row for each name, a column for each part of the time span; white: nothing was there."""
    high = max((cell for row in cells for cell in row if cell is not None), default=0) or 1.0
    columns = max((len(row) for row in cells), default=1)
    wide, shapes = (WIDTH - LEFT - RIGHT) / columns, [_head(title)]
    for n, (name, row) in enumerate(list(zip(names, cells))[:ROWS]):
        top = TOP + 20 * n
        shapes.append(_text(LEFT - 6, top + 13, name[-24:], "end"))
        for m, cell in enumerate(row):
            if cell is not None:
                corners = [(LEFT + wide * m, top), (LEFT + wide * (m + 1), top + 18)]
                shapes.append(Shape("rect", corners, COLOURS[4], f"{name}: {size(cell)}", _shade(cell / high)))
    bottom = TOP + 20.0 * min(len(names), ROWS)
    bottom += _rest(shapes, names, bottom)
    start, end = span
    shapes += _times(
        start, end, lambda at: LEFT + (WIDTH - LEFT - RIGHT) * (at - start) / max(end - start, 1e-9), bottom
    )
    return Picture(title, bottom + 60, shapes + _scale(high, bottom + 28))


def _scale(high: float, top: float) -> List[Shape]:
    """What the colours of a heat map stand for: from 0 to the highest."""
    parts, wide = 40, 5.0
    shapes = [
        Shape(
            "rect", [(LEFT + wide * n, top), (LEFT + wide * (n + 1), top + 10)], COLOURS[4], "", _shade(n / (parts - 1))
        )
        for n in range(parts)
    ]
    ends = [
        (LEFT, "0", "start"),
        (LEFT + wide * parts / 2, size(high / 2), "middle"),
        (LEFT + wide * parts, size(high), "end"),
    ]
    return shapes + [_text(at, top + 24, words, anchor) for at, words, anchor in ends]


def _shade(share: float) -> float:
    """How opaque a cell is that has a share of the highest."""
    return min(0.08 + 0.92 * share, 1.0)


def stacked(title: str, pictures: Sequence[Picture]) -> Picture:
    """Several pictures, one beneath the other."""
    shapes: List[Shape] = []
    down = 0.0
    for picture in pictures:
        shapes += [s._replace(points=[(x, y + down) for x, y in s.points]) for s in picture.shapes]
        down += picture.height
    return Picture(title, down, shapes, pictures[0].curves if pictures else [])
