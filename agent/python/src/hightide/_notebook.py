"""In a notebook: %load_ext hightide, then %%hightide before a cell, %hightide_snapshot, and %hightide for the report.

%%hightide ─▶ init(): an engine records the kernel ─▶ the cell in a span ─▶ report ─▶ a picture beneath the cell
"""

from __future__ import annotations

import html
from time import monotonic_ns
from typing import Any, Dict, List, Optional

from . import _engine, _session
from ._moments import Line, Peak, snapshot
from ._picture import size, svg, table
from ._runs import Report, report


def load_ipython_extension(shell: Any) -> None:
    """%load_ext hightide calls this."""
    magics = _Magics(shell)
    shell.register_magic_function(magics.cell, "cell", "hightide")
    shell.register_magic_function(magics.line, "line", "hightide")
    shell.register_magic_function(magics.snapshot, "line", "hightide_snapshot")


class _Magics:
    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._cells: Dict[str, int] = {}  # the number of each cell that was run here, by its code's file

    def line(self, line: str) -> Optional[Report]:
        """%hightide [RUN]: the report of this notebook's run so far, or of another."""
        try:
            return report(line.strip())
        except (RuntimeError, OSError) as error:
            _engine.say(str(error))
            return None

    def snapshot(self, line: str) -> None:
        """%hightide_snapshot [LABEL]: mark this moment in the recording, and say what is held."""
        _begin("")
        shot = snapshot(line.strip())
        figures = [("resident", shot.rss), ("allocated", shot.allocated), ("reserved", shot.reserved)]
        print("hightide:", ", ".join(f"{size(value)} {name}" for name, value in figures if value is not None))

    def cell(self, line: str, cell: str) -> None:
        """%%hightide [NAME]: run the cell, and show what memory did in it and which lines held it."""
        _begin(line.strip())
        peak = Peak(f"cell [{self._number()}]")
        known = set(self._files())
        start = monotonic_ns()
        with peak:
            result = self.shell.run_cell(cell, store_history=False)
        end = monotonic_ns()
        self._cells.update((file, self._number()) for file in set(self._files()) - known)
        self._show(peak, start, end)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:  # it was shown; the notebook must stop at it all the same
            error._render_traceback_ = list
            raise error

    def _show(self, peak: Peak, start: int, end: int) -> None:
        from IPython.display import HTML, display

        lines = peak.lines
        page = f"<p>{html.escape(_sentence(peak))}</p>"
        try:
            found = report()
        except (RuntimeError, OSError) as error:
            _engine.say(str(error))
        else:
            began = found.data["run"]["start_mono_ns"]
            page += svg(found.data, start - began, end - began)
            page += table(
                ("line", "function", "held", "±"),
                [(self._where(n), n.function, size(n.bytes), size(n.error)) for n in lines],
            )
            page += f"<p><small>run {html.escape(found.id)}: <code>%hightide</code> shows all of it</small></p>"
        display(HTML(f'<div class="hightide">{page}</div>'))

    def _number(self) -> int:
        """Of the cell that runs."""
        inputs = self.shell.user_ns.get("In") or []
        return max(len(inputs) - 1, 0)

    def _where(self, line: Line) -> str:
        """The line as the notebook calls it: "cell [3]:2"."""
        number = self._cells.get(line.file) or self._files().get(line.file)
        return f"{line.file if number is None else f'cell [{number}]'}:{line.line}"

    def _files(self) -> Dict[str, int]:
        """The numbers of cells by their code's file, as IPython knows them."""
        files: Dict[str, int] = getattr(self.shell.compile, "_filename_map", {})
        return files


def _begin(name: str) -> None:
    if not _session.recorded():
        _session.init(name or "notebook")


def _sentence(peak: Peak) -> str:
    words: List[str] = []
    for name, called in (("rss", "resident"), ("allocated", "allocated on the device"), ("reserved", "reserved on it")):
        value = getattr(peak, name)
        if value is not None:
            words.append(f"{'' if getattr(peak, name + '_exact') else 'at least '}{size(value)} {called}")
    return f"{peak.name}: " + ", ".join(words) + " at the highest"
