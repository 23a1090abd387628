"""Figures of a card beside those of its twin: joined by name, and as tables of docs/fidelity.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import ROOT

FIDELITY = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- scripts/gpu -->", "<!-- end of scripts/gpu -->"


def key(figure: dict[str, Any]) -> str:
    """By what two figures are of the same thing: the name, and conditions that the probe chose."""
    chosen = {
        name: figure["conditions"][name] for name in ("CUDA_MODULE_LOADING", "round") if name in figure["conditions"]
    }
    return json.dumps([figure["name"], chosen])


def joined(here: list[dict[str, Any]], twin: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One figure with both values. A section that ran both sides itself says so by the condition side."""
    sides = {key(figure): figure for figure in [*twin, *(f for f in here if f["conditions"].get("side") == "twin")]}
    found = []
    for figure in here:
        if figure["conditions"].get("side") == "twin":
            continue
        conditions = {name: value for name, value in figure["conditions"].items() if name != "side"}
        row = {"name": figure["name"], "unit": figure["unit"], "here": figure["value"]}
        other = sides.get(key(figure))
        if other is not None and other["unit"] == figure["unit"]:
            row["twin"] = other["value"]
        found.append({**row, "source": figure["source"], "conditions": conditions})
    return found


def pairs(section: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Figures in bytes that both sides have."""
    for figure in section["figures"]:
        here, twin = figure["here"], figure.get("twin")
        if figure["unit"] == "bytes" and isinstance(here, int) and isinstance(twin, int):
            yield figure["name"], here, twin


def of_sections(told: dict[str, Any]) -> Iterator[str]:
    yield "| section | state | figures in bytes | equal | largest difference, twin less card |"
    yield "|---|---|---|---|---|"
    for name, section in told["sections"].items():
        both = list(pairs(section))
        equal = sum(here == twin for _, here, twin in both)
        what, here, twin = max(both, key=lambda pair: abs(pair[2] - pair[1]), default=("", 0, 0))
        far = f"{twin - here:+,} B: {what}" if here != twin else ""
        yield f"| {name} | {section['state']} | {len(both)} | {equal} | {far} |"


def of_programs(told: dict[str, Any]) -> Iterator[str]:
    figures = {figure["name"]: figure for figure in told["sections"].get("programs", {}).get("figures", [])}
    names = [name.partition(": ")[0] for name in figures if name.endswith(": peak allocated")]
    if not names:
        return
    yield ""
    yield "| program | events | peak allocated, card / twin | peak reserved, card / twin | used at its end, card / twin |"
    yield "|---|---|---|---|---|"
    for name in names:
        of_it = [figures[f"{name}: {what}"] for what in ("peak allocated", "peak reserved", "used at its end")]
        cells = [f"{f['here']:,} / {f['twin']:,}" if "twin" in f else f"{f['here']:,} /" for f in of_it]
        events = (
            f"{figures[f'{name}: events']['here']:,}, " + str(figures[f"{name}: verdict"]["here"]).splitlines()[0][:120]
        )
        yield f"| {name} | {events} | {' | '.join(cells)} |"


def text(told: dict[str, Any]) -> str:
    where = f"{told['gpu']}, {told['label']} on {told['began'][:10]}, hightide {told['hightide'].split()[1]}"
    return "\n".join([where + ":", "", *of_sections(told), *of_programs(told)])


def write(paths: list[Path]) -> int:
    """Put measurements between the marks of the page; what was imagined is refused."""
    measured = []
    for path in paths:
        told = json.loads(path.read_text())
        if told.get("label") != "measured":
            print(
                f"scripts/gpu: {path} is {told.get('label')}: only what a card has shown goes into the table",
                file=sys.stderr,
            )
            return 2
        measured.append(text(told))
    page = FIDELITY.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    FIDELITY.write_text(before + BEGIN + "\n\n" + "\n\n".join(measured) + "\n\n" + END + after)
    return 0
