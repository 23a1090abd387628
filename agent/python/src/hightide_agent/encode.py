"""JSON text without the json module, whose import costs more than all the rest of the start-up."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any


try:
    from _json import encode_basestring_ascii as _quote
except ImportError:  # not CPython
    from json.encoder import py_encode_basestring_ascii as _quote

MAX_TEXT = 8192  # characters of one string; the middle of a longer one is left out


def encode(value: Any) -> str:
    """Write None, bool, int, float, str, dict, list and tuple as ASCII JSON; others as their type's name.

    No method of a value is called, so that none of the script's own code runs.
    """
    kind = type(value)
    if kind is str:
        return str(_quote(value if len(value) <= MAX_TEXT else _shorten(value)))
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return "%d" % value
    if kind is float:
        return repr(value) if value - value == 0.0 else "null"  # infinities and nan have no JSON
    if kind is dict:
        return "{%s}" % ",".join("%s:%s" % (encode(str(k)), encode(v)) for k, v in value.items())
    if kind is list or kind is tuple:
        return "[%s]" % ",".join(map(encode, value))
    return encode(kind.__name__)


def _shorten(text: str) -> str:
    half = MAX_TEXT // 2
    return text[:half] + " … " + text[-half:]
