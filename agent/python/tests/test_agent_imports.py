"""Which module of the agent imports which: none leads back to itself, also not by an import within a function."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Set

SOURCE = Path(__file__).resolve().parent.parent / "src"


def modules() -> Dict[str, Path]:
    """The agent's modules by their full names."""
    found = {}
    for path in SOURCE.glob("hightide_agent/**/*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, package: List[str], known: Dict[str, Path]) -> Iterator[str]:
    """The agent's own modules that a tree imports, but for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level] + (node.module.split(".") if node.module else [])
            for name in (".".join([*base, alias.name]) for alias in node.names):
                yield name if name in known else ".".join(base)
        yield from imported(node, package, known)


def arrows() -> Dict[str, Set[str]]:
    known = modules()
    found = {}
    for name, path in known.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        found[name] = set(imported(ast.parse(path.read_text("utf-8")), package, known)) - {name}
    return found


def circles(graph: Dict[str, Set[str]]) -> List[str]:
    """Modules from which a way of imports leads back to them."""

    def reached(begin: str) -> Set[str]:
        seen: Set[str] = set()
        pending = [begin]
        while pending:
            for other in graph.get(pending.pop(), set()) - seen:
                seen.add(other)
                pending.append(other)
        return seen

    return sorted(name for name in graph if name in reached(name))


def test_no_circle() -> None:
    graph = arrows()
    assert "hightide_agent.imagine" in graph["hightide_agent.start"]  # imports within functions are seen
    assert "hightide_agent.imagine.source" in graph["hightide_agent.imagine.undecided.uses"]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circles(graph) == []


def test_undecided_has_one_interface() -> None:
    """The rest of imagine takes what the room offers, and the room takes nothing of its users."""
    room = "hightide_agent.imagine.undecided"
    for name, others in arrows().items():
        inside = {other for other in others if other.startswith(room + ".")}
        if not name.startswith(room):
            assert not inside, name
    below = {other for name, others in arrows().items() if name.startswith(room) for other in others}
    imagine = {other for other in below if other.startswith("hightide_agent.imagine.") and not other.startswith(room)}
    assert imagine == {"hightide_agent.imagine.ledger", "hightide_agent.imagine.source"}
