"""Check that sentences of the project's Markdown stay short, and that nothing uses private words.

    python3 scripts/prose.py [FILE...]

Prints each sentence of more than 30 words, and each word that only insiders would know, as FILE:LINE, and exits 1.
Code, tables, headings and links' targets are not counted in Markdown; all other text is only searched for the words.
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
    r"\bbooks?\b": "live heap, device table, to count: whatever it is",
    r"\bowed\b": "pending",
    r"\bhunts?\b": "scan",
    r"\bwish(es)?\b": "request",
    r"\bnobody needs to own\b": "GPUs you do not have",
    r"\blaid at the door of\b": "attributed to",
    r"\bof no kind that hightide reads\b": "unknown file format",
    r"\b(foresight|echoes|gravity|glances?)\b": "a plain word",
}
ANY_PRIVATE = re.compile("|".join(PRIVATE), re.IGNORECASE)
CODE = ("*.go", "*.c", "*.h", "*.py", "*.ts", "*.svelte", "*.txtar", "*.toml", "Makefile", "scripts/*")

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


def private(line: int, text: str) -> Iterator[tuple[int, str]]:
    for pattern, instead in PRIVATE.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            yield line, f'"{found[0]}" is a word of our own; say: {instead}'


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Of Markdown, by line: its long sentences and private words."""
    for line, paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if count > MOST_WORDS:
                yield line, f"a sentence of {count} words: {sentence[:70]}…"
        yield from private(line, readable(paragraph))


def words(text: str) -> Iterator[tuple[int, str]]:
    """Of code, by line: its private words."""
    if ANY_PRIVATE.search(text):
        for number, line in enumerate(text.splitlines(), 1):
            yield from private(number, line)


def ours(file: str) -> bool:
    """Neither a sample of what others write, nor this list of words."""
    return ("testdata" not in Path(file).parts or file.endswith(".txtar")) and not file.endswith("scripts/prose.py")


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md", *CODE], stdout=subprocess.PIPE, text=True, check=True).stdout
    files = sys.argv[1:] or [f for f in listed.split() if ours(f)]
    found = [
        (file, *fault)
        for file in files
        for fault in (faults if file.endswith(".md") else words)(Path(file).read_text("utf-8"))
    ]
    for file, line, fault in found:
        print(f"{file}:{line}: {fault}")
    print(f"{len(files)} files, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
