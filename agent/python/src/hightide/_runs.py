"""Recorded runs, and their reports: what `hightide ls`, `show` and `report` say, or a server (HIGHTIDE_SERVER)."""

from __future__ import annotations

import html
import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from . import _engine, _session

if TYPE_CHECKING:
    from ._server import Server


@dataclass(frozen=True)
class Run:
    """A run that was recorded, as runs() lists it.

    Attributes:
        id: what every command calls it by; a unique beginning of it will do.
        name: empty where it was given none.
        state: running, finished or cut off.
        start_wall_ns: when it began, in nanoseconds since 1970.
        duration_ns: how long it took, in nanoseconds; None: not known.
        steps: optimizer steps, or calls of step().
        peak_rss_bytes: the highest resident memory of all its processes together; None: not observed.
        command: the words it was started with.
        tags: each tag's value.
        data: all that `hightide ls --json` says of it.
    """

    id: str
    name: str
    state: str
    start_wall_ns: int
    duration_ns: Optional[int]
    steps: int
    peak_rss_bytes: Optional[int]
    command: List[str]
    tags: Dict[str, str]
    data: Dict[str, Any] = field(repr=False)

    def report(self) -> Report:
        """Its report; raises as hightide.report does."""
        return report(self.id)


@dataclass(frozen=True)
class Finding:
    """Something that a report found.

    Attributes:
        kind: leak, growth, oom, fragmentation, swap, faults, gap, drop or alert.
        severity: critical, warning or info.
        title: what it is, in a line.
        text: how that is known.
        advice: what to do; empty where nothing is known.
        file: where to look; empty where no line is known.
        line: the line of that file, 0 where none is known.
        bytes: how much it is about; None: of no size.
        bytes_per_step: how fast it grows; None: it does not, or not with the steps.
        data: all that `hightide report --json` says of it.
    """

    kind: str
    severity: str
    title: str
    text: str
    advice: str
    file: str
    line: int
    bytes: Optional[int]
    bytes_per_step: Optional[int]
    data: Dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.title} ({self.file}:{self.line})" if self.file else self.title


def runs(limit: int = 0) -> List[Run]:
    """The runs that were recorded, newest first; at most `limit`, 0: all.

    Raises:
        RuntimeError: they cannot be listed, or the server of HIGHTIDE_SERVER cannot be asked.
        FileNotFoundError: hightide's program is not installed with this package.
    """
    remote = _remote()
    rows = remote.runs(limit) if remote else _engine.ask_json("ls", "--limit", str(limit))["runs"]
    return [
        Run(
            row["id"], row.get("name") or "", row.get("state") or "", row["start_wall_ns"],
            row.get("duration_ns"), row.get("steps") or 0, row.get("peak_host_rss_bytes"), row.get("command") or [],
            row.get("tags") or {}, row,
        )
        for row in rows
    ]  # fmt: skip


def _remote() -> Optional[Server]:
    if not os.environ.get("HIGHTIDE_SERVER"):
        return None
    from ._server import server  # what HTTP needs is imported where a server is asked

    return server()


def report(run: str = "") -> Report:
    """The report of a run: of the one that records this process, as far as it has come, else of the newest.

    With HIGHTIDE_SERVER that server is asked, but for this process's own run and for paths, which are here.

    Args:
        run: an id, a unique beginning of one, a name, "last", or the path of a recording.
    Raises:
        RuntimeError: there is no such run, it cannot be read, or the server cannot be asked.
        FileNotFoundError: hightide's program is not installed with this package.
    """
    here = _session.here()
    if here and run in ("", here["run"]):
        _session.wait_until_kept()
        return Report(here["run"], here["data"])
    run = run or _session.latest
    ours = (run and run == _session.latest) or (os.sep in run and os.path.exists(run))
    return Report(run or "last", _session.folder_of(run) if run else "", server=None if ours else _remote())


class Report:
    """What a run's recording says, as `hightide report` does. report() and Run.report() make it.

    Attributes:
        data: the whole report, as docs/formats/json.md describes it. Bytes and nanoseconds are integers.
    """

    def __init__(self, run: str, data: str = "", server: Optional[Server] = None) -> None:
        self._data_dir, self._server = data, server
        self.data: Dict[str, Any] = server.report(run) if server else _engine.ask_json("report", run, data=data)
        self._run = run

    @property
    def id(self) -> str:
        """The run's id."""
        return str(self.data["run"]["id"])

    @property
    def verdict(self) -> str:
        """The report's headline: the peak, when it was, and what grows, in a sentence or two."""
        return str(self.data["headline"]["verdict"])

    @property
    def peak(self) -> Dict[str, Any]:
        """Bytes at the peak, with their error where they are estimated, and when and in which process it was."""
        found: Dict[str, Any] = self.data["headline"]["peak"]
        return found

    @property
    def findings(self) -> List[Finding]:
        """What was found, worst first."""
        return [
            Finding(
                f["kind"], f["severity"], f["title"], f.get("text") or "", f.get("advice") or "", f.get("file") or "",
                f.get("line") or 0, f.get("bytes"), f.get("bytes_per_step"), f,
            )
            for f in self.data["findings"]
        ]  # fmt: skip

    @property
    def tables(self) -> List[str]:
        """Names of the tables that it has, in their order: what rows() and to_pandas() take."""
        return list(dict.fromkeys(table["name"] for table in self.data["tables"]))

    def rows(self, table: str) -> List[Dict[str, Any]]:
        """The rows of a table, each by the names of its columns; a cell that was not observed is left out.

        Sizes are integers of bytes, times of nanoseconds.

        Raises:
            KeyError: the report has no such table. It has none that would be empty: `tables` names those it has.
        """
        if table not in self.tables:
            raise KeyError(f"the report has no table {table!r}; it has {', '.join(self.tables)}")
        return rows(self.data, table)

    @property
    def spans(self) -> List[Dict[str, Any]]:
        """What the program's own spans took: a row each, times in nanoseconds, sizes in bytes; without spans none."""
        return rows(self.data, "spans")

    @property
    def text(self) -> str:
        """The report as `hightide show` prints it."""
        if self._server:
            return self._server.text(self.id)
        return _engine.ask("show", self._run, data=self._data_dir)

    @property
    def html(self) -> str:
        """The report as one page of HTML, which loads nothing from elsewhere."""
        if self._server:
            return self._server.html(self.id)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            _engine.ask("report", self._run, "--html", path, data=self._data_dir)
            with open(path, encoding="utf-8") as page:
                return page.read()

    def to_pandas(self, table: str = "") -> Any:
        """A table as a DataFrame, or without a name the curves: one column each, seconds since the run began as index.

        A cell or a moment that was not observed is NaN.

        Raises:
            ImportError: pandas is not installed.
            KeyError: the report has no such table.
        """
        import pandas

        if not table:
            return pandas.DataFrame(
                {name: pandas.Series(y, [at / 1e9 for at in x]) for name, x, y in _curves(self.data)}
            )
        return pandas.DataFrame(self.rows(table))

    def _repr_html_(self) -> str:
        """In a notebook: the page, framed, with nothing fetched from anywhere."""
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" title="hightide: {html.escape(self.id)}" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        return f"<hightide.Report {self.id}: {self.verdict}>"


def rows(report: Dict[str, Any], table: str) -> List[Dict[str, Any]]:
    """The rows of all tables of a name, each by the names of its columns; of none there are none."""
    found = []
    for one in report["tables"]:
        if one["name"] == table:
            names = [column["name"] for column in one["columns"]]
            found += [{k: v for k, v in zip(names, row) if v is not None} for row in one["rows"]]
    return found


def _curves(report: Dict[str, Any]) -> Iterator[Any]:
    for series in report["series"]:
        if series.get("x_unit") == "ns":
            of = series.get("of")
            yield series["name"] + (f" of {of}" if of else ""), series["x"], series["y"]
