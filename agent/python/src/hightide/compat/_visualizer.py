"""Pictures of a recording: curves over time, parts of the program against each other, a heat map, a page that follows.

MemoryVisualizer ─▶ Found (what the recording says) ─▶ _pictures
create_interactive_dashboard ─▶ the engine's own report
"""

from __future__ import annotations

import csv
import json
import os
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import _engine
from .._picture import size
from ._pictures import Curve, Picture, bars, from_zero, heat_map, stacked, timeline
from ._profiler import Profile, Profiler
from ._recording import Found, ask

COLUMNS = 40  # of a heat map

# Loads a served page anew once the recording has grown and somebody looks at it. %s: the state that it shows.
_FOLLOW = """<script>
const shown = %s;
setInterval(() => {
  if (document.hidden) return;
  fetch("/state").then(answer => answer.text()).then(now => { if (now !== shown) location.reload(); }, () => {});
}, 5000);
</script>"""


class MemoryVisualizer:
    """Draws what the recording of this program says, or another one: a run's id, a file, a tracker's events.

    Pictures are returned; save_path keeps one, as .svg, .html or .png (which needs matplotlib).
    """

    def __init__(self, profiler: Optional[Profiler] = None, style: str = "", figure_size: Any = None) -> None:
        self.profiler = profiler

    def plot_memory_timeline(self, results: Any = None, interactive: bool = False, save_path: Any = None) -> Picture:
        """Bytes over time, with the named parts of the program beneath; interactive: the pointer shows values."""
        return _kept(self._timeline(results), save_path, interactive)

    def plot_function_comparison(
        self, function_profiles: Any = None, metric: str = "memory", save_path: Any = None
    ) -> Picture:
        """One bar for each named part of the program: how far memory rose in it, or with metric="time" its time.

        Raises:
            ValueError: there is no such metric.
        """
        return _kept(self._comparison(function_profiles, metric), save_path)

    def create_memory_heatmap(self, results: Any = None, save_path: Any = None) -> Picture:
        """A row for each named part, a column for each part of the time: the highest reading while it ran."""
        return _kept(self._heat_map(results), save_path)

    def _timeline(self, results: Any) -> Picture:
        found = ask(_about(results))
        if found is None:
            return timeline("Memory over time (both ends of each call)", self._ends(results))
        label = found.data["headline"].get("peak", {}).get("label") or "measured"
        marks = [(at, float(held or 0)) for at, _, held in found.alerts()]
        stays = [(bar.name, bar.start, bar.end) for bar in found.bars()]
        return timeline(f"Memory over time ({label})", found.curves(), stays, marks)

    def _comparison(self, given: Any, metric: str = "memory") -> Picture:
        if metric not in ("memory", "time"):
            raise ValueError(f"there is no metric {metric!r}; there are memory and time")
        rows = _given(given, metric) or self._compared(ask(_about(given)), metric)
        return bars("Rise of memory above each call's beginning" if metric == "memory" else "Time in all calls", rows)

    def _heat_map(self, results: Any) -> Picture:
        found = ask(_about(results))
        curves = found.curves() if found is not None else []
        if found is None or not curves:
            return heat_map("Memory while each part ran", [], [], (0.0, 0.0))
        start, end = from_zero((curves[0].points[0][0], curves[0].points[-1][0]))
        names, cells = _cells(found, curves[0], start, end)
        return heat_map(f"{curves[0].name} while each part ran", names, cells, (start, end))

    plot_memory_heatmap = create_memory_heatmap

    def create_interactive_dashboard(
        self, results: Any = None, port: Optional[int] = None, save_path: Any = None
    ) -> Dashboard:
        """The engine's report: curves, lines, stacks, spans. With a port, this machine's browsers see it as it grows.

        A save_path ending in .html keeps the report's page; .svg and .png a picture with timeline, bars and heat map.
        """
        found = ask(_about(results))
        board = Dashboard(self, results, found)
        if save_path:
            board.save(save_path)
        if port is not None:
            board.serve(port)
        return board

    create_dashboard = create_interactive_dashboard

    def export_data(
        self, results: Any = None, format: str = "json", save_path: Any = None, output_path: Any = None
    ) -> str:
        """Write the curves as JSON or CSV; the path.

        Raises:
            ValueError: the format is neither.
        """
        if format not in ("json", "csv"):
            raise ValueError(f"data is written as json or csv, not {format}")
        path = str(os.fspath(save_path or output_path or "memory"))
        path = path if path.endswith("." + format) else f"{path}.{format}"
        found = ask(_about(results))
        curves = found.curves() if found is not None else self._ends(results)
        with open(path, "w", encoding="utf-8", newline="") as file:
            if format == "json":
                json.dump(
                    {curve.name: [{"seconds": x, "bytes": int(y)} for x, y in curve.points] for curve in curves}, file
                )
            else:
                writer = csv.writer(file)
                writer.writerow(("curve", "seconds", "bytes"))
                writer.writerows((curve.name, x, int(y)) for curve in curves for x, y in curve.points)
        return path

    def save_plots(self, results: Any = None, output_dir: Any = "plots") -> List[str]:
        """All pictures as SVG in a folder; their paths."""
        folder = os.fspath(output_dir)
        os.makedirs(folder, exist_ok=True)
        made = {
            "timeline": self._timeline(results), "functions": self._comparison(results),
            "heatmap": self._heat_map(results),
        }  # fmt: skip
        return [picture.save(os.path.join(folder, f"{name}.svg")) for name, picture in made.items()]

    def _profiles(self, results: Any) -> List[Profile]:
        if isinstance(results, (list, tuple)) and results and isinstance(results[0], Profile):
            return list(results)
        return self.profiler.results if self.profiler is not None else []

    def _ends(self, results: Any) -> List[Curve]:
        """Where nothing is recorded: what both ends of each call showed."""
        readings = sorted((r for p in self._profiles(results) for r in (p.before, p.after)), key=lambda r: r.at_ns)
        return (
            [Curve("both ends", [((r.at_ns - readings[0].at_ns) / 1e9, float(r.held)) for r in readings])]
            if readings
            else []
        )

    def _compared(self, found: Optional[Found], metric: str) -> List[Tuple[str, float, str]]:
        rows = found.rows("spans") if found is not None else []
        if metric == "time":
            return [(r["span"], float(r["total"]), f"{r['total'] / 1e9:.3g} s, {r['count']} times") for r in rows]
        on_device = any(p.after.on_device for p in self._profiles(None))
        told = [
            (r["span"], float(r["rss_rise"]), f"{size(r['rss_rise'])} on the host")
            for r in rows
            if r.get("rss_rise") is not None
        ]
        if told and not on_device:
            return told
        rises: Dict[str, float] = {}
        for profile in self._profiles(None):
            rises[profile.function_name] = max(
                rises.get(profile.function_name, 0.0), profile.peak_memory - profile.before.held
            )
        return [(name, rise, size(rise)) for name, rise in rises.items()] or told


class Dashboard:
    """The report of a recording, as a page that needs nothing else."""

    def __init__(self, visualizer: MemoryVisualizer, results: Any, found: Optional[Found]) -> None:
        self._visualizer, self._results, self._found = visualizer, results, found
        self._server: Any = None
        self.url = ""
        """where it is served; empty: it is not"""

    @property
    def html(self) -> str:
        """The page now: of a run that goes on, as far as it has come."""
        found = ask(_about(self._results)) or self._found
        return self.picture.html if found is None or found.page is None else found.page.html

    @property
    def picture(self) -> Picture:
        """Timeline, bars and heat map, one beneath the other."""
        draw, about = self._visualizer, self._results
        return stacked("Memory", [draw._timeline(about), draw._comparison(about), draw._heat_map(about)])

    @property
    def state(self) -> str:
        """Changes whenever the recording of this program does."""
        try:
            return str(os.stat(os.path.join(os.environ.get("HIGHTIDE_OUT", ""), "run.hightide")).st_size)
        except OSError:
            return "complete"

    def save(self, to: Any) -> str:
        """Write it: .html the whole report, .svg and .png the picture; the path."""
        path = str(os.fspath(to))
        if not path.lower().endswith((".html", ".htm")):
            return self.picture.save(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)
        return path

    def serve(self, port: int = 8050) -> str:
        """Serve it to this machine alone, on a thread, as the recording is then; its address. An open page follows it.

        Where the port is taken it is another one.

        Raises:
            ValueError: it is not a port.
        """
        if not 0 <= port < 65536:
            raise ValueError(f"{port} is not a port: they are from 1 to 65535, and 0 is a free one")
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        board = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Host", "").rpartition(":")[0] not in ("localhost", "127.0.0.1"):
                    self.send_error(403)  # a page of somebody else's that reaches for ours
                    return
                state = self.path == "/state"
                body = (board.state if state else board.html + _FOLLOW % json.dumps(board.state)).encode()
                self.send_response(200)
                self.send_header("Content-Type", f"text/{'plain' if state else 'html'}; charset=utf-8")
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Page)
        except OSError as error:
            _engine.say(f"port {port} cannot be used ({error.strerror}): another one is")
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="hightide dashboard", daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        _engine.say(f"the dashboard is at {self.url} while this program runs; the page follows it")
        return self.url

    def close(self) -> None:
        """Serve it no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server, self.url = None, ""

    def _repr_html_(self) -> str:
        return self.picture.svg


def _about(results: Any) -> Any:
    """What to ask the engine of: results that this program's own profilers made are of this program's recording."""
    if isinstance(results, (list, tuple)) and results and isinstance(results[0], Profile):
        return None
    return None if isinstance(results, Profiler) else results


def _given(profiles: Any, metric: str) -> List[Tuple[str, float, str]]:
    """Bars of sums by name, as get_summary() and get_results() have them."""
    if not isinstance(profiles, dict) or not all(isinstance(sums, dict) for sums in profiles.values()):
        return []
    if metric == "time":
        return [
            (name, float(s.get("total_time", 0)), f"{s.get('total_time', 0):.3g} s") for name, s in profiles.items()
        ]
    rises = {name: sums.get("memory_rise") or sums.get("peak_memory") or 0 for name, sums in profiles.items()}
    return [(name, float(rise), size(rise)) for name, rise in rises.items()]


def _cells(found: Found, curve: Curve, start: float, end: float) -> Tuple[List[str], List[List[Optional[float]]]]:
    bars_of = found.bars()
    names = list(dict.fromkeys(bar.name for bar in bars_of))
    wide = max(end - start, 1e-9) / COLUMNS
    cells: Dict[str, List[Optional[float]]] = {name: [None] * COLUMNS for name in names}
    for bar in bars_of:
        first, last = int((bar.start - start) / wide), int((bar.end - start) / wide)
        for n in range(max(first, 0), min(last, COLUMNS - 1) + 1):
            high = _highest(curve.points, max(bar.start, start + n * wide), min(bar.end, start + (n + 1) * wide))
            if high is not None:
                cells[bar.name][n] = max(high, cells[bar.name][n] or 0.0)
    return names, [cells[name] for name in names]


def _highest(points: Sequence[Tuple[float, float]], start: float, end: float) -> Optional[float]:
    """Of the readings between two times, or the last one before."""
    before = [y for x, y in points if x <= start][-1:]
    return max(before + [y for x, y in points if start <= x <= end], default=None)


def _kept(picture: Picture, save_path: Any, interactive: bool = False) -> Picture:
    if save_path:
        path = os.fspath(save_path)
        _save(picture, path if os.path.splitext(path)[1] else path + (".html" if interactive else ".svg"))
    else:
        picture.show()
    return picture


def _save(picture: Picture, path: str) -> None:
    """Save it; as SVG where a PNG is wanted and cannot be made, which one line says: the program goes on."""
    try:
        picture.save(path)
    except RuntimeError as error:
        _engine.say(f"{error}: saved as {picture.save(os.path.splitext(path)[0] + '.svg')}")
