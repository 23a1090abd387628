"""Hold the lengths of lines and functions: what is longer is named as file:line, and this ends with 1.

    python3 scripts/limits.py

Lines are those of TypeScript and Go (ruff holds Python's), functions those of TypeScript, Python, C and Go. Of Go's
lines a few in a thousand may be longer, where breaking one makes it harder to read. Fields with a tag are not counted:
Go has no way to break a tag.
A function's length is what an editor shows: from its first line to its last, with the functions inside it. A table of
data at the top of a file is no function and may be as long as it has rows. Tests are not held to a length of functions,
as a group of tests is a function for the language and a list for its reader. Needs web/node_modules.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
PYTHON = ("agent", "bench", "device", "heap", "packaging", "scripts")
C = ("common", "device", "heap", "internal")
GO = ("agent", "cmd", "device", "heap", "internal", "web")

LINE = {".ts": 100, ".go": 120}  # characters, by the files' suffix
LONG_GO = 0.003  # of Go's lines may be longer
FUNCTION = 80  # lines
TAGGED = re.compile(r'`json:"[^`]*`(?: *//.*)?$')  # a field of Go


def sources(folder: Path, suffix: str) -> list[Path]:
    made = {"node_modules", "build"}
    files = sorted(file for file in folder.rglob(f"*{suffix}") if not made.intersection(file.parts))
    if not files:
        raise SystemExit(f"limits: no {suffix} files in {folder.relative_to(ROOT)}")
    return files


def production(folders: Iterable[str], suffix: str) -> list[Path]:
    files = (file for folder in folders for file in sources(ROOT / folder, suffix))
    return [file for file in files if "tests" not in file.parts]


def long_lines(files: list[Path], most: int) -> Iterator[str]:
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if len(line) > most and not TAGGED.search(line):
                yield f"{file.relative_to(ROOT)}:{number}: a line of {len(line)} columns; at most {most}"


def typescript_functions(files: list[Path]) -> Iterator[tuple[str, int, str]]:
    """Where each function begins (file:line), how many lines it has, its name."""
    if not (WEB / "node_modules").is_dir():
        raise SystemExit("limits: web/node_modules is not there; `make web` installs it")
    names = [str(file.relative_to(WEB)) for file in files if not file.name.endswith(".test.ts")]
    listed = subprocess.run(["node", "functions.mjs", *names], cwd=WEB, check=True, capture_output=True, text=True)
    for row in listed.stdout.splitlines():
        place, lines, name = row.split("\t")
        yield f"web/{place}", int(lines), name


def python_functions(files: list[Path]) -> Iterator[tuple[str, int, str]]:
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                yield f"{file.relative_to(ROOT)}:{node.lineno}", lines, node.name


# From the line that a function begins on to the brace, alone on its line, that ends it.
C_FUNCTION = re.compile(r"^[A-Za-z_][^;{}=#]*?(\w+)\s*\([^;{}=#]*\)\s*\{[^}\n]*\n.*?^\}$", re.MULTILINE | re.DOTALL)


def c_functions(files: list[Path]) -> Iterator[tuple[str, int, str]]:
    for file in files:
        text = file.read_text("utf-8")
        for found in C_FUNCTION.finditer(text):
            begin = text.count("\n", 0, found.start()) + 1
            yield f"{file.relative_to(ROOT)}:{begin}", found[0].count("\n") + 1, found[1]


# A function of Go begins with func on the left edge and ends with the next brace there, as gofmt writes it.
GO_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?(\w+).*?^\}$", re.MULTILINE | re.DOTALL)
GO_SHORT = re.compile(r"^func .*\}$", re.MULTILINE)  # all of it on one line


def go_functions(files: list[Path]) -> Iterator[tuple[str, int, str]]:
    for file in files:
        text = GO_SHORT.sub("", file.read_text("utf-8"))
        for found in GO_FUNCTION.finditer(text):
            begin = text.count("\n", 0, found.start()) + 1
            yield f"{file.relative_to(ROOT)}:{begin}", found[0].count("\n") + 1, found[1]


def long_go_lines(files: list[Path]) -> Iterator[str]:
    lines = sum(file.read_text("utf-8").count("\n") for file in files)
    long = list(long_lines(files, LINE[".go"]))
    if len(long) > LONG_GO * lines:
        yield from long
        yield f"{len(long)} of {lines} lines of Go are longer; at most {LONG_GO:.1%} may be"


def long_functions(found: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    for place, lines, name in found:
        if lines > FUNCTION:
            yield f"{place}: {name} has {lines} lines; at most {FUNCTION}"


def main() -> int:
    typescript = sources(WEB, ".ts")
    go = [file for folder in GO for file in sources(ROOT / folder, ".go") if not file.name.endswith("_test.go")]
    functions = chain(
        typescript_functions(typescript),
        python_functions(production(PYTHON, ".py")),
        c_functions(production(C, ".c")),
        go_functions(go),
    )
    faults = [*long_lines(typescript, LINE[".ts"]), *long_go_lines(go), *long_functions(functions)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
