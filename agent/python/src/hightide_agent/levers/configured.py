"""Files of settings that a training is started with: Accelerate's YAML or JSON, and the JSON of TrainingArguments.

    accelerate launch --config_file X ─▶ launched(): X, by the command of an ancestor ─▶ put(X, keys, value): an edit

What is not asked for stays as it is, comments and order too. Only what a line by line look understands is edited: block
mappings of YAML, and JSON.
"""

from __future__ import annotations

import json
import os
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Dict, List, Optional, Tuple

OPTION = "--config_file"
ANCESTORS = 3  # are looked at
KEY = r"^(%s%s\s*:)[ \t]*((?:'[^']*'|\"[^\"]*\"|[^#'\"\n]*?)?)([ \t]+#.*|[ \t]*)\r?$"  # of a line of YAML
WHITE = re.compile(r"\s*")
Edit = Dict[str, Any]


class Unknown(ValueError):
    """A file that is not read here; the text says why."""


def launched() -> Optional[str]:
    """The file that accelerate launch was given; None where it was given none, or did not start this process."""
    if "ACCELERATE_MIXED_PRECISION" not in os.environ:  # which it sets
        return None
    process = os.getppid()
    for _ in range(ANCESTORS):
        try:
            with open("/proc/%d/cmdline" % process, "rb") as file:
                words = os.fsdecode(file.read()).split("\0")
            with open("/proc/%d/stat" % process, "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
            folder = os.readlink("/proc/%d/cwd" % process)
        except OSError:
            return None
        for word, following in zip(words, words[1:]):
            if any("accelerate" in w for w in words) and word.startswith(OPTION):
                return os.path.join(folder, word[len(OPTION) + 1 :] or following)
        process = parent
    return None


def put(path: str, keys: Tuple[str, ...], value: Any) -> List[Edit]:
    """Give a setting a value; one that has it already needs no edit."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    begin, end, written = (_json if path.endswith(".json") else _yaml)(text, keys, json.dumps(value))
    if text[begin:end] == written:
        return []
    (line, column), (end_line, end_column) = _place(text, begin), _place(text, end)
    return [{"file": path, "line": line, "column": column, "end_line": end_line, "end_column": end_column,
             "text": written}]  # fmt: skip


def value_of(path: str, keys: Tuple[str, ...]) -> Any:
    """What a file of JSON has for a setting; None: nothing."""
    with open(path, encoding="utf-8") as file:
        value = json.load(file)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _place(text: str, offset: int) -> Tuple[int, int]:
    """A line from 1 and a column from 0, in bytes."""
    before = text[:offset].encode()
    return before.count(b"\n") + 1, len(before) - before.rfind(b"\n") - 1


def _json(text: str, keys: Tuple[str, ...], value: str) -> Tuple[int, int, str]:
    """The range of a value in an object, or an empty one in front of the first key, and what stands there."""
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    for depth, key in enumerate(keys):
        if text[at : at + 1] != "{":
            raise Unknown("%s is no object" % ".".join(keys[:depth]))
        first = at = _skip(text, at + 1)
        while text[at : at + 1] == '"':
            name, at = scanstring(text, at + 1)
            at = _skip(text, _skip(text, at) + 1)  # behind the colon
            end = decoder.raw_decode(text, at)[1]
            if name == key:
                break
            at = _skip(text, end)
            at = _skip(text, at + (text[at : at + 1] == ","))
        else:
            for inner in reversed(keys[depth + 1 :]):
                value = "{%s: %s}" % (json.dumps(inner), value)
            more = text[first : first + 1] == '"'
            return first, first, "%s: %s%s" % (json.dumps(key), value, _between(text, first) if more else "")
        if depth == len(keys) - 1:
            return at, end, value
    raise Unknown("no setting is named")


def _between(text: str, first: int) -> str:
    """What stands between two members of an object: a comma, and where each has a line the next line's beginning."""
    line = text[text.rfind("\n", 0, first) + 1 : first]
    return ",\n" + line if "\n" in text[:first] and not line.strip() else ", "


def _skip(text: str, at: int) -> int:
    white = WHITE.match(text, at)
    return white.end() if white else at


def _yaml(text: str, keys: Tuple[str, ...], value: str) -> Tuple[int, int, str]:
    """The same in block mappings, of one level or two."""
    if len(keys) == 1:
        have = re.search(KEY % ("", re.escape(keys[0])), text, re.M)
        if have:
            return have.start(2), have.end(2), value if text[have.start(2) - 1].isspace() else " " + value
        first = re.search(r"^[A-Za-z_]\w*\s*:", text, re.M)
        if not first:
            raise Unknown("it has no settings")
        return first.start(), first.start(), "%s: %s\n" % (keys[0], value)
    section = re.search(KEY % ("", re.escape(keys[0])), text, re.M)
    if not section or section[2]:
        raise Unknown("%s does not stand there on lines of its own" % keys[0])
    after = section.end() + 1
    block = re.compile(r"(?:[ \t]+.*(?:\n|$)|[ \t]*(?:#.*)?\r?\n)*").match(text, after)
    end = block.end() if block else after
    have = re.compile(KEY % (r"[ \t]+", re.escape(keys[1])), re.M).search(text, after, end)
    if have:
        return have.start(2), have.end(2), value if text[have.start(2) - 1].isspace() else " " + value
    first = re.compile(r"^[ \t]+(?=[A-Za-z_])", re.M).search(text, after, end)
    if not first:
        raise Unknown("%s does not stand there on lines of its own" % keys[0])
    return first.start(), first.start(), "%s%s: %s\n" % (first[0], keys[1], value)
