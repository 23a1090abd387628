"""Which code of a kernel is which line of which cell, as the reader of the notebook sees it.

A kernel compiles what is left of a cell: without the blank lines at its begin, and what a magic gets without the
magic's own line. %%hightide, %%capture and their like run their body as a cell in the cell; %%time, %time and %%timeit
compile it under a name of their own. Here all of it is compiled as the lines of the cell that they are.

run_cell ─▶ cache(): names a file, which the engine is told of ─▶ ast_parse() ─▶ __call__()
magic    ─▶ run_cell, or ast_parse() ─▶ __call__("<timed exec>") ─▶ the file of the cell that has the magic
"""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from . import _engine

UNNAMED = "<unknown>"  # what IPython's ast_parse calls code that no file was named for


class Cell(NamedTuple):
    name: str
    lines: List[str]  # as the reader sees them
    blank: int  # lines of the cell before the first that is compiled


class Place(NamedTuple):
    """Where the code that a magic got stands."""

    file: str
    before: int  # lines of the cell before it
    body: bool  # below the magic, not beside it


class Cells:
    """Tells of each file of the kernel's, before it runs, which cell it is."""

    def __init__(self, compiler: Any, tell: Callable[[str, str, str], bool]) -> None:
        self._files: Dict[str, str] = {}  # by the names of cells
        self._told: Set[str] = set()
        self._cells: Dict[str, Cell] = {}  # by file
        self._placed: Dict[int, str] = {}  # by the frame of a magic: the file of what it parsed
        self._compiler = compiler
        self._tell = tell
        if not isinstance(compiler, _Placing):
            compiler.__class__ = type("Placing", (_Placing, type(compiler)), {})
        compiler.cells = self

    def tell_all(self) -> None:
        """Of the cells that ran before the recording began."""
        known: Dict[str, int] = getattr(self._compiler, "_filename_map", {})
        for file, number in known.items():
            if file not in self._told:
                self._is(file, self._cells.get(file) or Cell(f"cell [{number}]", linecache.getlines(file), 0))

    def source(self, name: str, line: int) -> str:
        """The text of a line of a cell, or of a file."""
        lines = self._cells[self._files[name]].lines if name in self._files else []
        return (lines[line - 1] if 0 < line <= len(lines) else linecache.getline(name, line)).strip()

    def shown(self, transformed: str, raw: str) -> str:
        """What a traceback is to show of a cell: its code where the reader sees it, the lines before it as comments."""
        place = placed(raw, self._cells)
        if place is None:
            return "\n" * _blank(raw) + transformed
        return _commented(self._cells[place.file].lines[: place.before + _blank(raw)]) + transformed

    def cached(self, file: str, number: int, transformed: str, raw: str) -> None:
        """A file has the code of a cell, or of one in a cell."""
        place = placed(raw, self._cells)
        if place is None:
            self._placed.clear()
            cell = Cell(f"cell [{number}]", _seen(transformed, raw), _blank(raw))
        else:
            around = self._cells[place.file]
            cell = Cell(around.name, around.lines, place.before + _blank(raw))
        self._is(file, cell)

    def before(self, source: str, file: str) -> int:
        """How many lines of its cell stand before the source that is parsed."""
        if file in self._cells:
            return self._cells[file].blank
        frame = _magic()
        place = placed(source, self._cells) if file == UNNAMED else None
        if frame is None or place is None:
            if frame is not None:
                self._placed.pop(id(frame), None)
            return 0
        self._placed[id(frame)] = place.file
        if place.body:
            text = _commented(self._cells[place.file].lines[: place.before]) + source
            linecache.cache[place.file] = (len(text), None, text.splitlines(True), place.file)
        return place.before

    def file(self, named: str) -> str:
        """The file of code that is compiled; a magic's is that of its cell."""
        frame = _magic() if named.startswith("<") else None
        return named if frame is None else self._placed.get(id(frame), named)

    def _is(self, file: str, cell: Cell) -> None:
        self._cells[file] = cell
        self._files[cell.name] = file
        if self._tell(file, cell.name, "\n".join(line.rstrip("\n") for line in cell.lines)):
            self._told.add(file)


class _Placing:
    """Goes before the class of a kernel's compiler."""

    cells: Cells

    def cache(self, transformed_code: str, number: int = 0, raw_code: Optional[str] = None) -> str:
        """Names the code that is about to run."""
        raw = transformed_code if raw_code is None else raw_code
        shown = _or(lambda: self.cells.shown(transformed_code, raw), transformed_code)
        file: str = super().cache(shown, number, raw)  # type: ignore[misc]
        _or(lambda: self.cells.cached(file, number, transformed_code, raw), None)
        return file

    def ast_parse(self, source: str, filename: str = UNNAMED, symbol: str = "exec") -> Any:
        before = _or(lambda: self.cells.before(source, filename), 0)
        return super().ast_parse("\n" * before + source, filename, symbol)  # type: ignore[misc]

    def __call__(self, source: Any, filename: str, symbol: str, **options: Any) -> Any:
        file = _or(lambda: self.cells.file(filename), filename)
        return super().__call__(source, file, symbol, **options)  # type: ignore[misc]


def _or(found: Callable[[], Any], otherwise: Any) -> Any:
    """What is found; nothing of ours ends a cell."""
    try:
        return found()
    except Exception as error:
        _engine.say_once(f"cells are told by their files: {error}")
        return otherwise


def placed(source: str, cells: Dict[str, Cell]) -> Optional[Place]:
    """Where code stands that the magic that runs now got from a cell; None where it is of no magic, or another text."""
    frame = _magic()
    caller = frame.f_back if frame is not None else None
    if frame is None or caller is None or caller.f_code.co_filename not in cells:
        return None
    file, line, got = caller.f_code.co_filename, caller.f_lineno, frame.f_locals
    body = got.get("cell")
    if body is not None and _alike(source, body):
        return Place(file, line + (0 if source == body else _blank(body)), True)
    return Place(file, line - 1, False) if source.strip() and source.strip() in got.get("line", "") else None


def _magic() -> Optional[FrameType]:
    """The magic that runs now: the innermost call of it that a cell made."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and not (
        frame.f_code.co_name in ("run_cell_magic", "run_line_magic")
        and frame.f_globals.get("__name__") == "IPython.core.interactiveshell"
    ):
        frame = frame.f_back
    return frame


def _alike(source: str, body: str) -> bool:
    """Whether one is the other, or what IPython makes of it: the lines from the first that is not blank."""
    if source == body:
        return True
    return len(source.rstrip().splitlines()) == len(body.rstrip().splitlines()) - _blank(body)


def _seen(transformed: str, raw: str) -> List[str]:
    """The lines of a cell as they are numbered: the reader's, but where a magic of several lines was made one."""
    code = "\n" * _blank(raw) + transformed
    whole = transformed.startswith("get_ipython().run_cell_magic(")
    return (raw if whole or len(raw.rstrip().splitlines()) == len(code.rstrip().splitlines()) else code).splitlines()


def _blank(text: str) -> int:
    """How many blank lines a text begins with."""
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines) if line.strip()), 0)


def _commented(lines: List[str]) -> str:
    return "".join(f"# {line.rstrip()}".rstrip() + "\n" for line in lines)
