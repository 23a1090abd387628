"""hightide's own commands on the card: info --calibrate, run, and ten programs here and on the imaginary twin.

    python probe_hightide.py calibrate|run|programs FIGURES FOLDER TWIN WORDS...

WORDS are what hightide is told before a program: run and its flags on a real card, imagine and its flags else."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from card import Figures

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fidelity")]
import fidelity  # noqa: E402

from common import HIGHTIDE  # noqa: E402

PYTHON = Path(sys.executable)
PROGRAMS = ["gan", "lstm", "attention", "unet", "recommender", "optimizers", "gradient_penalty", "graph_network", "accumulation",
            "cuda_graphs"]  # fmt: skip  # none needs more than PyTorch


def calibrate(figures: Figures, folder: Path, twin: str, words: list[str]) -> None:
    if words[0] == "imagine":
        why = "hightide is linked statically: no imaginary card can be preloaded into it"
        figures.say("info --calibrate", why, "not here", "the probe itself")
        return
    done = subprocess.run(
        [HIGHTIDE, "info", "--calibrate", "--json", "--python", PYTHON], capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(f"exit code {done.returncode}: {done.stderr.strip()}")
    for card in json.loads(done.stdout)["gpus"]:
        for name, value in card.items():
            unit = "bytes" if name.endswith("_bytes") else "text"
            figures.say(f"card {card['index']}: {name}", value, unit, "hightide info --calibrate")


def run(figures: Figures, folder: Path, twin: str, words: list[str]) -> None:
    """What hightide says of a program beside what the program says of itself."""
    own, data, recording = folder / "known.json", folder / "data", folder / "known.hightide"
    command = [HIGHTIDE, *words, "--quiet", f"--json={folder / 'known.result'}", "--data-dir", data, "-o", recording]
    done = subprocess.run([*command, "--", PYTHON, HERE / "known.py", own], capture_output=True, text=True)
    figures.say("exit code", done.returncode, "number", f"hightide {words[0]}")
    if not own.exists():
        raise OSError(f"the program did not come to its end: {(done.stderr.strip().splitlines() or [''])[-1]}")
    for name, value in json.loads(own.read_text()).items():
        figures.say(f"{name}, by the program", value, "bytes", "torch.cuda, in the program")
    report = subprocess.run(
        [HIGHTIDE, "report", recording, "--json", "--data-dir", data], capture_output=True, text=True
    )
    told = json.loads(report.stdout)
    for name, key in {
        "allocated": "allocated_bytes",
        "reserved": "reserved_bytes",
        "used": "device_used_bytes",
    }.items():
        figures.say(
            f"{name}, by hightide", told["headline"]["peak"].get(key), "bytes", f"hightide {words[0]}, its report"
        )
    for card in told["run"]["host"].get("gpus", []):
        figures.say(f"card {card['index']} in the report", card["name"], "text", f"hightide {words[0]}, its report")
    used = [series for series in told["series"] if str(series["name"]).startswith("device.")]
    figures.say(
        "series of the device", ", ".join(sorted({s["name"] for s in used})), "text", f"hightide {words[0]}, its report"
    )


def programs(figures: Figures, folder: Path, twin: str, words: list[str]) -> None:
    """Each here and on its twin, in processes of their own. Twins need no card, and go beside what runs here."""
    groups = [fidelity.Group([workload]) for name in PROGRAMS for workload in fidelity.workloads([name])]
    imagine = fidelity.imagine(twin, 1)
    with ThreadPoolExecutor(1) as here, ThreadPoolExecutor(2) as beside:
        kept = folder / "recordings"
        pairs = [
            (group.first, here.submit(group.run, words, PYTHON, True, kept),
             beside.submit(group.run, imagine, PYTHON, True) if twin else None)
            for group in groups
        ]  # fmt: skip
        for workload, one, other in pairs:
            name = workload.name
            real = one.result()[name]
            imagined = other.result()[name] if other else fidelity.Recording([], "no such GPU in the catalogue")
            figures.part(
                name, lambda name=name, real=real, imagined=imagined: beside_one(figures, name, real, imagined)
            )  # type: ignore[misc]


def beside_one(figures: Figures, name: str, real: fidelity.Recording, imagined: fidelity.Recording) -> None:
    if failed := real.failed or imagined.failed:
        last = (failed.strip().splitlines() or [""])[-1]
        raise OSError(f"{'here' if real.failed else 'on the twin'}: {last}")
    sense, found = fidelity.differences(real, imagined, completion=False)
    figures.say(
        f"{name}: verdict", sense or "; ".join(found)[:600], "text", "the allocator's history, here against the twin"
    )
    for side, recording in (("here", real), ("twin", imagined)):
        trace = recording.traces[0]
        for what, value in {"events": len(trace.events), "peak allocated": trace.peak_allocated,
                            "peak reserved": trace.peak_reserved, "used at its end": trace.used}.items():  # fmt: skip
            unit = "number" if what == "events" else "bytes"
            source = "the allocator's history" if what == "events" else "torch.cuda"
            figures.say(f"{name}: {what}", value, unit, source, side=side)


def main() -> None:
    what, path, folder, twin, *words = sys.argv[1:]
    figures = Figures(path)
    work = {"calibrate": calibrate, "run": run, "programs": programs}[what]
    figures.part(what, lambda: work(figures, Path(folder), twin, words))


if __name__ == "__main__":
    main()
