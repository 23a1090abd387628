"""Which statements of the program may make a container grow, and what bounds it: from its name and the source."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from . import growth_lines
from .growth_lines import NUMBER, SURE, Place, Sought
from .insides import copied, named
from .places import is_library, without_file
from .sources import names_one
from .sources import without_file as cells

if TYPE_CHECKING:
    from .reach import Found
    from .sizes import Reading

MOST_FILES = 400  # of a program, whose text is looked at
MOST_PARSED = 50  # of those, which name what is looked for
_NUMBERS = frozenset(("int", "float", "bool", "complex"))


def candidates(found: Found, reading: Reading) -> List[Place]:
    """Statements that may make it grow; of what only one way is known to grow, that one. Empty: none was found."""
    owner = found.owner
    files = _naming((found.leaf, *growth_lines.CALLED.get(found.leaf, ())), owner.file)
    if reading.contains in ("result", "program", "graph"):  # of a function
        defined = (growth_lines.defined(file, found.leaf) for file in _first(owner.file, files))
        return [place for place in defined if place is not None][:1]
    own = owner.file if owner.file in files or (owner.file and not is_library(owner.file)) else ""
    if owner.attribute or found.kind:
        for file in ([own] if own else []) + files:
            called = growth_lines.called(file, found.leaf)
            if called:
                return called
    sought = _sought(found, reading)
    best = growth_lines.statements(own, sought) if own else []
    if owner.inside is not None:
        if not _sure(best) and own:
            wider = growth_lines.statements(own, sought._replace(anywhere=True))
            best = wider if _sure(wider) or not best else best
        return best
    for file in files:
        if file != own and (owner.attribute or not own or _same_global(found.leaf, own, file)):
            best = _better(best, growth_lines.statements(file, sought))
    if not _sure(best) and not owner.attribute:  # as in state.kept.append(…)
        for file in files:
            best = _better(best, growth_lines.statements(file, sought._replace(attribute=True)))
    return best


def likely(places: List[Place], contains: str) -> List[Place]:
    """Those that add items of a type, as far as the text tells; all where it rules out each."""
    several = contains in _NUMBERS
    fit = [place for place in places if place.adds in ("", contains) or (several and place.adds in (NUMBER, *_NUMBERS))]
    return fit or places


def where(place: Place) -> Dict[str, Any]:
    """A place in words of the record."""
    return {"file": place.file, "line": place.line, "function": place.function}


def bound(found: Found, reading: Reading, places: List[Place]) -> Dict[str, Any]:
    """Entries that it has at most, and what says so, or what empties it, in words of the record; none: nothing does."""
    if reading.bound:
        return {"bound_items": reading.bound, "bound_by": reading.bound_by}
    if found.bound:
        return {"bound_items": found.bound, "bound_by": "maxsize=%d" % found.bound}
    if not _sure(places):
        return {}
    from .bounds import cut, emptied

    sought, files = _sought(found, reading), list(dict.fromkeys(place.file for place in places))
    for file in files if not reading.replaced else ():
        least = cut(file, sought, found.of)
        if least is not None:
            return {"bound_items": least.items, "bound_by": "cut at " + _line_name(file, least.line)}
    for file in files:
        line = emptied(file, sought)
        if line:
            return {"emptied_by": _line_name(file, line)}
    return {}


def _line_name(file: str, line: int) -> str:
    return "%s:%d" % (file.rpartition("/")[2], line)


def _sought(found: Found, reading: Reading) -> Sought:
    owner = found.owner
    klass = found.name.partition(".")[0] if owner.attribute else ""
    new_keys = named(type(found.thing)) == ("collections", "defaultdict")
    return Sought(found.leaf, owner.attribute, owner.inside, found.keys, reading.kind, klass, new_keys)


def _sure(places: List[Place]) -> bool:
    return bool(places) and places[0].score >= SURE


def _better(best: List[Place], more: List[Place]) -> List[Place]:
    """Both, where both are sure; else the one that is surer."""
    if _sure(best) and _sure(more):
        return best + more
    return more if _sure(more) or (more and not best) else best


def _first(file: str, files: List[str]) -> List[str]:
    return [file, *files] if file in files else files


def _same_global(name: str, own: str, file: str) -> bool:
    """Whether two files' modules have the same object by a name."""
    here, there = (_globals_of(f).get(name) for f in (own, file))
    return here is not None and here is there


def _globals_of(file: str) -> Dict[str, Any]:
    for _, module in copied(sys.modules):
        variables = getattr(type(module), "__dict__", None) and vars(module)
        if variables and variables.get("__file__") == file:
            return dict(variables)
    return {}


def _naming(words: Sequence[str], own: str) -> List[str]:
    """Source files of the program's modules that have one of some words in them, and the file of the owner."""
    named_there = (file for file in user_files() if file == own or names_one(file, words))
    return list(islice(named_there, MOST_PARSED))


def user_files() -> List[str]:
    """Source files of the program's modules."""
    files: Dict[str, None] = {}
    for _, module in copied(sys.modules):
        file: Optional[Any] = getattr(type(module), "__dict__", None) and vars(module).get("__file__")
        if type(file) is str and file.endswith(".py") and not is_library(file):
            files[file] = None
    found = list(files)
    if without_file(getattr(sys.modules.get("__main__"), "__dict__", None)):
        found = cells() + found
    return found[:MOST_FILES]
