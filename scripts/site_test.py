"""Build the site, see that it needs no network, and walk its tutorials: every command, with what it is said to print.

python3 scripts/site_test.py      (with the site environment's Python)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import inturn
from torchversions import NEWEST, ROOT, python

TUTORIALS = ROOT / "docs" / "tutorials"
NEEDS_TORCH = {"fit.md", "oom.md"}
FETCHES = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


def build(folder: Path) -> None:
    """As make docs does; a link that leads nowhere is an error."""
    done = subprocess.run(
        [Path(sys.executable).parent / "mkdocs", "--quiet", "build", "--strict", "-d", folder],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


class Fetched(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        place = of.get(FETCHES.get(tag, ""))
        if place and (tag != "link" or of.get("rel") in ("stylesheet", "icon", "preload")):
            self.places.append(place)


def fetches_nothing(site: Path) -> None:
    """Each page is shown from what lies beside it."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60, pages
    for page in pages:
        fetched = Fetched()
        fetched.feed(page.read_text("utf-8"))
        assert fetched.places, page
        folder = site if page.name == "404.html" else page.parent
        for place in fetched.places:
            if place.startswith("data:"):
                continue
            at = folder / unquote(place.partition("#")[0].partition("?")[0]).lstrip("/")
            assert "//" not in place and at.exists(), f"{page.relative_to(site)} fetches {place}"


def is_searched(site: Path) -> None:
    """The search knows the pages, those of the commands too."""
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in ("tutorials/leak.html", "explain.html", "reference/run.html", "reference/python.html"):
        assert page in found, sorted(found)


def steps(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of a tutorial's consoles, each with the lines that it is said to print, and hightide's of its jobs."""
    blocks = r"^```(console|yaml)\n(.*?)^```"
    for language, text in re.findall(blocks, page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "yaml":
            yield from ((command, []) for command in re.findall(r"^ +- run: (hightide .*)$", text, re.MULTILINE))
            continue
        for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            first, *printed = command.splitlines()
            yield first, printed


def missing(printed: list[str], said: str) -> list[str]:
    """Of lines that are to be printed those that are not; an ellipsis is anything. How grave a finding is (● or ■) is
    left open: a leak is graver where the machine's memory is soon used up.
    """
    patterns = {line: ".*".join(map(re.escape, line.rstrip().split("…"))) for line in printed if line.strip("… ")}
    patterns = {line: pattern.replace("●", "[●■]") for line, pattern in patterns.items()}
    return [line for line, pattern in patterns.items() if not re.search(f"^{pattern}", said, re.MULTILINE)]


def walk(page: Path, site: Path) -> None:
    """Run a tutorial's commands one after the other, in a folder with the programs that its page on the site links to."""
    commands = list(steps(page))
    assert len(commands) > 1, f"{page.name} has no commands"
    with tempfile.TemporaryDirectory() as name:
        shown = site / "tutorials" / f"{page.stem}.html"
        for program in set(re.findall(r'href="([^":]+\.py)"', shown.read_text("utf-8"))):
            shutil.copy(shown.parent / unquote(program), name)
        interpreter = python(NEWEST) if page.name in NEEDS_TORCH else Path(sys.executable)
        env = {key: value for key, value in os.environ.items() if not key.startswith(("HIGHTIDE", "PYTHON"))}
        env |= {"HIGHTIDE_DATA": f"{name}/data", "PATH": f"{ROOT / 'bin'}:{interpreter.parent}:{os.environ['PATH']}"}
        for command, printed in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=name, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            code = re.search(r"# ends with (\d+)$", command)
            assert done.returncode == int(code[1] if code else 0), f"{page.name}: {command}\n{done.stdout}"
            assert not missing(printed, done.stdout), f"{missing(printed, done.stdout)} after {command}:\n{done.stdout}"


def tests() -> Iterator[tuple[str, Callable[[Path], None]]]:
    yield "fetches_nothing", fetches_nothing
    yield "is_searched", is_searched
    for page in sorted(TUTORIALS.glob("*.md")):
        yield f"walk {page.stem}", partial(walk, page)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hightide-site-") as name:
        build(Path(name))
        return inturn.run((title, partial(test, Path(name))) for title, test in tests())


if __name__ == "__main__":
    sys.exit(main())
