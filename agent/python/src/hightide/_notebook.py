"""In a notebook: %load_ext hightide, then %%hightide before a cell, %hightide_snapshot, and %hightide for the report.

%%hightide ─▶ init(): an engine records the kernel ─▶ the cell in a span ─▶ report ─▶ a picture beneath the cell
each cell  ─▶ which file of the kernel's it is, for the engine: lines are told as "cell [3]:5"
"""

from __future__ import annotations

import html
from time import monotonic_ns
from typing import Any, List, Optional, Tuple

from . import _engine, _session
from ._cells import Cells
from ._moments import Line, Peak, snapshot
from ._picture import card, size, svg, table
from ._runs import Finding, Report, report


def load_ipython_extension(shell: Any) -> None:
    """%load_ext hightide calls this."""
    magics = _Magics(shell)
    shell.register_magic_function(magics.cell, "cell", "hightide")
    shell.register_magic_function(magics.line, "line", "hightide")
    shell.register_magic_function(magics.snapshot, "line", "hightide_snapshot")


class _Magics:
    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.cells = Cells(shell.compile, _tell)

    def line(self, line: str) -> Optional[Report]:
        """%hightide [RUN]: the report of this notebook's run so far, or of another."""
        try:
            return report(line.strip())
        except (RuntimeError, OSError) as error:
            _engine.say(str(error))
            return None

    def snapshot(self, line: str) -> None:
        """%hightide_snapshot [LABEL]: mark this moment in the recording, and say what is held."""
        self._begin("")
        shot = snapshot(line.strip())
        figures = [("resident", shot.rss), ("allocated", shot.allocated), ("reserved", shot.reserved)]
        print("hightide:", ", ".join(f"{size(value)} {name}" for name, value in figures if value is not None))

    def cell(self, line: str, cell: str) -> None:
        """%%hightide [NAME]: run the cell, and show what memory did in it and which lines held it."""
        self._begin(line.strip())
        number = self._number()
        peak = Peak(f"cell [{number}]")
        start = monotonic_ns()
        with peak:
            result = self._run(cell, number)
        end = monotonic_ns()
        self._show(peak, start, end)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:  # it was shown; the notebook must stop at it all the same
            error._render_traceback_ = list
            raise error

    def _run(self, cell: str, number: int) -> Any:
        """Run the cell as the one of that number."""
        after, self.shell.execution_count = self.shell.execution_count, number
        try:
            return self.shell.run_cell(cell, store_history=False)
        finally:
            self.shell.execution_count = after

    def _begin(self, name: str) -> None:
        if not _session.recorded():
            _session.init(name or "notebook")
        self.cells.tell_all()

    def _show(self, peak: Peak, start: int, end: int) -> None:
        from IPython.display import HTML, display

        rows = [
            (f"{n.file}:{n.line}" if n.line else n.file, n.function, self._source(n), size(n.bytes), size(n.error))
            for n in peak.lines[:12]
        ]
        picture, verdict, about = "", "", ""
        try:
            found = report()
        except (RuntimeError, OSError) as error:
            _engine.say(str(error))
        else:
            began = found.data["run"]["start_mono_ns"]
            picture = svg(found.data, start - began, end - began, peak.rss)
            verdict = _verdict(found, peak.name)
            about = f"run {html.escape(found.id)} · <code>%hightide</code> shows all of it"
        lines = table(("line", "function", "source", "held", "±"), rows, figures=2)
        display(HTML(card(peak.name, _figures(peak), picture, verdict, lines, about)))

    def _source(self, line: Line) -> str:
        """The text of a line, as far as a table has room for it."""
        text = self.cells.source(line.file, line.line)
        return text if len(text) <= 60 else text[:59] + "…"

    def _number(self) -> int:
        """Of the cell that runs."""
        inputs = self.shell.user_ns.get("In") or []
        return max(len(inputs) - 1, 0)


def _tell(file: str, name: str, text: str) -> bool:
    """Whether the engine was told; before the recording begins it is not."""
    agent = _engine.agent()
    if agent is None or not _session.recorded():
        return False
    agent.cell(file, name, text)
    return True


def _figures(peak: Peak) -> List[Tuple[str, str]]:
    """The peaks in the cell, and what each is of; the first is what the picture draws."""
    found = []
    for name, called in (("rss", "peak RSS"), ("allocated", "allocated on the device"), ("reserved", "reserved on it")):
        value = getattr(peak, name)
        if value is not None:
            found.append((f"{'' if getattr(peak, name + '_exact') else 'at least '}{size(value)}", called))
    return found


def _verdict(found: Report, cell: str) -> str:
    """What the report finds at lines of this cell; else from when on growth is told."""
    here: List[Finding] = [f for f in found.findings if (f.file or "") == cell]
    if here:
        return "<br>".join(f"<b>{_marked(f.title)}</b> {_marked(f.advice)}" for f in here[:3])
    why = found.data["headline"].get("not_looked_for")
    return html.escape(why) if why else "No steady growth is seen at its lines so far."


def _marked(text: str) -> str:
    """Text with its `code` shown as such."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 and n < len(parts) - 1 else part for n, part in enumerate(parts))
