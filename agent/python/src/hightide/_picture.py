"""A small picture of a stretch of a run, as one SVG that needs nothing else."""

from __future__ import annotations

import html
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

WIDTH, HEIGHT, LEFT, TOP, STRIP = 720, 180, 64, 8, 14
LEADS = ("allocator.allocated", "tree.pss", "tree.rss", "host.rss")  # what is drawn: the first of them that there is
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2")


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:{'.0f' if abs(count) >= 999.5 * unit else '.3g'}} {name}"
    return f"{count:.0f} B"


def svg(report: Dict[str, Any], start: int, end: int, peak: Optional[int] = None) -> str:
    """The curve of memory between two times since the run began, and the spans beneath it; "": nothing was read.

    With a peak of this process's RSS it is that curve, up to the peak, which may lie between two readings.
    """
    curve = _own(report, start, end) if peak is not None else _curve(report, start, end)
    if curve is None:
        return ""
    title, points = curve
    high = max([y for _, y in points] + [peak or 0]) or 1
    long = max(end - start, 1)

    def x(at: int) -> float:
        return LEFT + (WIDTH - LEFT) * min(max((at - start) / long, 0), 1)

    def y(count: float) -> float:
        return TOP + (HEIGHT - TOP) * (1 - count / high)

    line = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
    parts = [
        f'<polygon points="{LEFT},{HEIGHT} {line} {WIDTH},{HEIGHT}" fill="#4c78a8" fill-opacity="0.25"/>',
        f'<polyline points="{line}" fill="none" stroke="#4c78a8" stroke-width="1.5"/>',
        _text(LEFT - 6, TOP + 10, size(high), "end"),
        _text(LEFT - 6, HEIGHT, "0", "end"),
        _text(LEFT, HEIGHT + 14, "0 s"),
        _text(WIDTH, HEIGHT + 14, f"{long / 1e9:.3g} s", "end"),
        _text((LEFT + WIDTH) / 2, HEIGHT + 14, title, "middle"),
    ]
    strip, rows = _spans(report, start, end, x)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 22 + rows * STRIP}" width="{WIDTH}" '
        f'role="img" aria-label="{html.escape(title)}, at most {size(high)}" style="max-width:100%;height:auto" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">{"".join(parts + strip)}</svg>'
    )


def _curve(report: Dict[str, Any], start: int, end: int) -> Optional[Tuple[str, List[Tuple[int, int]]]]:
    for lead in LEADS:
        for series in report["series"]:
            points = _between(series, start, end) if series["name"] == lead else []
            if points:
                return f"{series['title']} ({series.get('label') or 'measured'})", points
    return None


def _own(report: Dict[str, Any], start: int, end: int) -> Optional[Tuple[str, List[Tuple[int, int]]]]:
    """RSS of this very process."""
    mine = {p["id"] for p in report["processes"] if p["pid"] == os.getpid()}
    for series in report["series"]:
        if series["name"] == "host.rss" and series.get("process") in mine:
            points = _between(series, start, end)
            if points:
                return "RSS (measured)", points
    return None


def _between(series: Dict[str, Any], start: int, end: int) -> List[Tuple[int, int]]:
    if series.get("x_unit") != "ns":
        return []
    every = list(zip(series["x"], series["y"]))
    before = [value for at, value in every if at < start][-1:]
    points = [(start, value) for value in before] + [p for p in every if start <= p[0] <= end]
    return [*points, (end, points[-1][1])] if points else []


def _spans(report: Dict[str, Any], start: int, end: int, x: Any) -> Tuple[List[str], int]:
    """The longest of the program's own spans in this stretch, in as few rows as they need; and how many rows."""
    bars = [
        b for b in report["phases"]
        if b["phase"] == "user" and b["end_ns"] > start and b["start_ns"] < end and not b["name"].startswith("cell [")
    ]  # fmt: skip
    bars = sorted(sorted(bars, key=lambda b: b["start_ns"] - b["end_ns"])[:200], key=lambda b: b["start_ns"])
    free: List[int] = []  # when each row is free again
    parts, names = [], list(dict.fromkeys(b["name"] for b in bars))
    for bar in bars:
        row = next((n for n, until in enumerate(free) if until <= bar["start_ns"]), len(free))
        if row >= 6:
            continue
        free[row:] = [bar["end_ns"], *free[row + 1 :]]
        left, right, top = x(bar["start_ns"]), x(bar["end_ns"]), HEIGHT + 20 + row * STRIP
        colour = COLOURS[names.index(bar["name"]) % len(COLOURS)]
        name = html.escape(bar["name"])
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{STRIP - 2}" fill="{colour}">'
            f"<title>{name}</title></rect>"
        )
        if right - left > 7 * len(bar["name"]):
            parts.append(f'<text x="{left + 3:.1f}" y="{top + 9}" font-size="9" fill="#fff">{name}</text>')
    return parts, len(free)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], figures: int = 0) -> str:
    """A plain table, whose last columns are figures; "": it has no rows."""
    first = len(head) - figures

    def row(cells: Sequence[str], tag: str) -> str:
        of = (
            f'<{tag} style="text-align:{"left" if n < first else "right"};padding:1px 8px">' for n in range(len(cells))
        )
        return "".join(f"{begin}{html.escape(cell)}</{tag}>" for begin, cell in zip(of, cells))

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>" if rows else ""


def card(title: str, figures: Sequence[Tuple[str, str]], picture: str, verdict: str, lines: str, about: str) -> str:
    """What a notebook shows beneath a cell: the figures first, the picture, the verdict, the lines."""
    shown = "".join(
        f'<span style="margin-right:1.5em"><b style="font-size:{1.5 if n == 0 else 1.1}em">{html.escape(value)}</b> '
        f"{html.escape(called)}</span>"
        for n, (value, called) in enumerate(figures)
    )
    parts = [
        f'<div style="opacity:.7">{html.escape(title)}</div>',
        f'<div style="margin:2px 0 8px">{shown}</div>',
        picture,
        f'<div style="margin:8px 0">{verdict}</div>' if verdict else "",
        f'<div style="overflow-x:auto">{lines}</div>' if lines else "",
        f'<div style="opacity:.7;font-size:.85em;margin-top:6px">{about}</div>' if about else "",
    ]
    style = "border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:10px 14px;max-width:780px"
    return f'<div class="hightide" style="{style};font-family:system-ui,sans-serif">{"".join(parts)}</div>'
