"""Check that every relative link, heading, Go test and file that the project's Markdown names exists.

    python3 scripts/links.py [FOLDER]

Prints each broken link as FILE:LINE and exits 1. Links to the web are not followed.
"""

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(
    r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$|<img[^>]+src=\"([^\"]+)\"", re.MULTILINE
)
GO_TEST = re.compile(r"go test\b[^`\n]*?-(?:run|bench|fuzz) ['\"]?([A-Za-z]\w{2,})[^`\n]*")  # `-run xx` names none
NAMED = re.compile(r"`([\w.-]+/[\w./-]+)`")  # a file in code, which readers look for from the project's folder
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def lines_outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines that are not inside a fenced block."""
    fence: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
        else:
            yield number, line


def anchors(path: Path) -> set[str]:
    """The ids that a Markdown file's headings get, by the rule that code hosts share."""
    seen: dict[str, int] = {}
    found = set()
    for _, line in lines_outside_code(path.read_text(encoding="utf-8")):
        if heading := HEADING.match(line):
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            base = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            count = seen.get(base, 0)
            seen[base] = count + 1
            found.add(f"{base}-{count}" if count else base)
    return found


def broken(path: Path, root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, target, reason) for each link of the file that leads nowhere."""
    lines = [(n, re.sub(r"`[^`]*`", "", line)) for n, line in lines_outside_code(path.read_text(encoding="utf-8"))]
    for (number, line), (_, more) in zip(
        lines, [*lines[1:], (0, "")], strict=True
    ):  # a link may go over the line's end
        for match in LINK.finditer(f"{line}\n{more}"):
            if match.start() > len(line):
                break
            target = unquote(next(group for group in match.groups() if group))
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                yield number, target, "no such file"
            elif root not in (file, *file.parents):
                yield number, target, "leads out of the project"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield number, target, "no such heading"


def untested(path: Path, root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, reason) for each `go test` whose packages have no test of that name, code blocks included."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for match in GO_TEST.finditer(line):
            folders = re.findall(r"\./([\w/]+)", match[0])
            sources = [
                file.read_text(encoding="utf-8") for folder in folders for file in (root / folder).glob("*_test.go")
            ]
            if not any(re.search(rf"^func \w*{match[1]}", text, re.MULTILINE) for text in sources):
                yield number, match[1], "no such test"


def unnamed(path: Path, root: Path, folders: set[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, reason) for each file in code, below one of the project's folders, that there is not."""
    for number, line in lines_outside_code(path.read_text(encoding="utf-8")):
        for match in NAMED.finditer(line):
            file = root / match[1]
            if match[1].split("/")[0] in folders and not file.exists() and not ignored(file, root):
                yield number, match[1], "no such file"


def ignored(file: Path, root: Path) -> bool:
    """Whether the file is one that a command leaves, which git does not keep."""
    return subprocess.run(["git", "-C", root, "check-ignore", "-q", file], check=False).returncode == 0


def main(root: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [root / name for name in listed.stdout.split("\0") if name and (root / name).exists()]
    folders = {folder.name for folder in root.iterdir() if folder.is_dir()}
    bad = 0
    for file in sorted(files):
        for number, target, reason in itertools.chain(
            broken(file, root), untested(file, root), unnamed(file, root, folders)
        ):
            print(f"{file.relative_to(root)}:{number}: {target}: {reason}")
            bad += 1
    print(f"{len(files)} files, {bad} broken links")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
