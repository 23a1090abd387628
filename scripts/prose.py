"""Check that sentences of the project's Markdown stay short and use no private words.

    python3 scripts/prose.py [FILE...]

Prints each sentence of more than 30 words, and each word that only insiders would know, as FILE:LINE, and exits 1.
Code, tables, headings and links' targets are not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 30

# Words that were once used here with a meaning of their own, and what to say instead.
PRIVATE = {
    r"\bbooks?\b": "live heap, device state, accounts: whatever it is",
    r"\bnobody needs to own\b": "GPUs you do not have",
    r"\blaid at the door of\b": "attributed to",
    r"\bof no kind that hightide reads\b": "unknown file format",
    r"\b(foresight|echoes|gravity|glances?)\b": "a plain word",
}

SENTENCE_END = re.compile(r"(?<=[.!?;:])[\"')*`]*\s+(?=[A-Z`*\"(\[0-9])")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of each paragraph and list item that is neither code, table nor heading."""
    fenced, begin, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        stops = fence or fenced or not line.strip() or line.lstrip().startswith(("|", "#", "<"))
        item = re.match(r"\s*(?:[-*]|\d+\.)\s+", line)
        if (stops or item) and lines:
            yield begin, " ".join(lines)
            lines = []
        fenced ^= fence
        if not stops:
            begin = begin if lines else number
            lines.append(line[item.end() :] if item else line.strip())


def readable(paragraph: str) -> str:
    paragraph = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)  # a link counts as its text
    return re.sub(r"`[^`]*`", "`code`", paragraph)  # as does code, as one word


def sentences(paragraph: str) -> Iterator[str]:
    yield from SENTENCE_END.split(readable(paragraph))


def faults(text: str) -> Iterator[tuple[int, str]]:
    for line, paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if count > MOST_WORDS:
                yield line, f"a sentence of {count} words: {sentence[:70]}…"
        for pattern, instead in PRIVATE.items():
            for found in re.finditer(pattern, readable(paragraph), re.IGNORECASE):
                yield line, f'"{found[0]}" is a word of our own; say: {instead}'


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    files = sys.argv[1:] or [f for f in listed if "testdata" not in f]
    found = [(file, *fault) for file in files for fault in faults(Path(file).read_text("utf-8"))]
    for file, line, fault in found:
        print(f"{file}:{line}: {fault}")
    print(f"{len(files)} files, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
