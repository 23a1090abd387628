"""The page of all that `import hightide` has, from the package itself: signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parent.parent / "agent" / "python" / "src"
SECTION = re.compile(r"^(Args|Raises|Attributes|Returns|Yields):$", re.MULTILINE)
TITLES = {"Args": "Arguments", "Attributes": "Attributes", "Raises": "Errors"}
BEGIN = "What there is, in the order of the alphabet. [hightide from Python](../sdk.md) says how it is used."


def page() -> str:
    sys.path.insert(0, str(SOURCES))
    package = importlib.import_module("hightide")
    parts = ["# Python, by name", BEGIN]
    for name in sorted(package.__all__, key=str.lower):
        if not name.startswith("_"):
            parts += entry(name, getattr(package, name))
    return "\n\n".join(parts) + "\n"


def entry(name: str, what: Any) -> list[str]:
    """A name of the package: how it is called, what it says of itself, and of a class what its objects have."""
    title = f"class {name}" if inspect.isclass(what) else f"{name}()"
    out = [f"## {title}", f"```python\nhightide.{name}{signature(what)}\n```", *said(what)]
    if not inspect.isclass(what):
        return out
    for key, member in vars(what).items():
        if key.startswith("_") or not (isinstance(member, property) or inspect.isfunction(member)):
            continue
        called = "" if isinstance(member, property) else signature(member)
        out += [f"### {name}.{key}", *([f"```python\n{key}{called}\n```"] if called else []), *said(member)]
    return out


def signature(what: Any) -> str:
    """As it is called, annotations without quotes; of a method without its object."""
    shown = inspect.signature(what)
    parameters = [p for p in shown.parameters.values() if p.name != "self"]
    text = str(shown.replace(parameters=parameters)).replace("'", "")
    return text.removesuffix(" -> None") if inspect.isclass(what) else text


def said(what: Any) -> list[str]:
    """A docstring as Markdown: its sections become lists."""
    text = inspect.getdoc(what)
    if not text:
        raise ValueError(f"{what!r} says nothing of itself")
    body, *sections = SECTION.split(text)
    out = [prose(body)]
    for title, content in zip(sections[::2], sections[1::2]):
        out.append(f"**{TITLES.get(title, title)}**")
        out.append("\n".join(items(content)))
    return [part for part in out if part.strip()]


def prose(text: str) -> str:
    """Names in ``double quotes of this kind`` are code in Markdown too; an example is a block."""
    return re.sub(r"``([^`]+)``", r"`\1`", text).strip()


def items(content: str) -> list[str]:
    """Of an indented list `name: words`, with words over several lines, one item each."""
    found: list[str] = []
    for line in inspect.cleandoc(content).splitlines():
        new = re.match(r"([\w, ]+): (.*)", line)
        if new and not line.startswith(" "):
            found.append(f"- `{new[1]}`: {new[2]}")
        elif found:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found
