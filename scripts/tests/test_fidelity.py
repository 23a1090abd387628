"""The imaginary GPU against recordings of real ones, and against itself. bench/fidelity.py is the whole of it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
HIGHTIDE = Path(os.environ.get("HIGHTIDE_TEST_BINARY", ROOT / "bin" / "hightide"))
REAL = ROOT / "testdata" / "real"
FIDELITY = ROOT / "bench" / "fidelity"
OLD = CACHE / "torch-2.6.0" / "bin" / "python"  # the version that the recordings were made with

sys.path.insert(0, str(FIDELITY))
from traces import Trace, compare, load, same_places  # noqa: E402

H100 = [
    ("h100-lm-ctx256-forward-bf16.pickle", ["forward:128:bf16", "forward:256:bf16"], 6587),
    ("h100-lm-ctx128-train-step.pickle", ["forward:512", "step:128"], 19770),
]


@pytest.mark.skipif(not OLD.exists(), reason="PyTorch 2.6 is not installed: scripts/setup torches")
def test_every_event_of_the_h100(tmp_path: Path) -> None:
    """Both recorded runs, in one process that ran what theirs had run before: all events, their bytes, in order."""
    words = [word for _, profiles, _ in H100 for word in profiles]
    for name, profiles, _ in H100:
        words[words.index(profiles[-1])] += f"={tmp_path / name}"
    command = [HIGHTIDE, "imagine", "--gpu", "h100-sxm", "--steps", "0", "--no-suggest", "--quiet", "--json"]
    command += ["--data-dir", tmp_path, "--", OLD, FIDELITY / "h100_lm.py", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["conditions"]["torch"].startswith("2.6.0"), "the verdict names the version it is of"
    for name, _, events in H100:
        (real,), (imagined,) = load(REAL / name), load(tmp_path / name)
        difference = compare(real, imagined)
        assert difference.same, name + ": " + difference.text()
        assert difference.events == (events, events)
        assert same_places(real, imagined) > 0.95 * events, "segments are placed from the top down"


# Cycles that hold a tensor, and ever other numbers of objects: Python's own collector would free them at other places.
CHANCE = """
import os, torch
weight = torch.ones(8, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight])
for step in range(6):
    cycle = [torch.zeros(1 << 20, device="cuda")]
    cycle.append(cycle)
    objects = [[] for _ in range(int.from_bytes(os.urandom(2), "little"))]
    for size in range(1, 20):
        torch.zeros(size << 12, device="cuda")
    weight.grad = torch.ones_like(weight)
    optimizer.step()
"""


def test_small_workloads_twice(tmp_path: Path) -> None:
    """A few of the suite, small, in one process: none fails. Some again in another process: the same events both times.

    Those left out the second time take longest; bench/fidelity.py runs all of them twice."""
    again = ["amp_fp16", "checkpointing", "cuda_graphs", "graph_network", "lstm", "chance"]
    # In both processes the same come before each: something is left of them.
    names = [*again, "gan", "moe", "streams"]
    (tmp_path / "chance.py").write_text(CHANCE)
    one, two = (tmp_path / "one", tmp_path / "two")
    for folder, recorded in ((one, names), (two, again)):
        folder.mkdir()
        scripts = [tmp_path / "chance.py" if n == "chance" else FIDELITY / "workloads" / f"{n}.py" for n in recorded]
        # The order of the LSTM's sequences is read back from a scatter into fresh memory. With an answer to it, no other
        # order is tried: that is a test of imagine.txtar.
        options: list[object] = [
            "--gpu",
            "a10",
            "--steps",
            "0",
            "--no-suggest",
            "--read-value",
            "0",
            "--quiet",
            "--json",
        ]
        options += ["--data-dir", tmp_path / "runs"]
        command = [HIGHTIDE, "imagine", *options, "--", sys.executable, FIDELITY / "record.py", folder, *scripts]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, env={**os.environ, "FIDELITY_SMALL": "1"}
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        (first,) = load(one / f"{name}.json")
        assert not first.about["failed"], name + ": " + first.about["failed"]
        assert first.events and first.peak_allocated and first.used
        if name in again:
            (second,) = load(two / f"{name}.json")
            difference = compare(first, second, order=False)  # autocast's cache is emptied in an order of its own
            assert difference.same, name + ": " + difference.text()
    (chance,) = load(one / "chance.json")
    freed = [event for event in chance.events if event[:2] == ("free_requested", 4 << 20)]
    assert len(freed) == 5, "each step of an optimizer is followed by a collection; what the script leaves is held"


def test_differences_are_found() -> None:
    """An event more, an event less, another size, another order, another peak: each is seen and placed."""
    (real,) = load(REAL / H100[0][0])
    assert compare(real, real).same
    events = real.events
    cases = {
        1000: events[:1000] + events[1001:],
        2000: events[:2000] + [("alloc", 512, 0)] + events[2000:],
        3000: events[:3000] + [(events[3000][0], events[3000][1] + 512, 0)] + events[3001:],
        len(events): [*events, ("free_requested", 512, 0)],
    }
    for place, changed in cases.items():
        difference = compare(real, Trace(changed))
        assert not difference.same
        assert (
            difference.first is not None and abs(difference.first - place) <= 3
        )  # of equal neighbours any may be gone
        assert difference.equal >= len(events) - 1
    a, b = Trace(events, peak_reserved=100), Trace(events, peak_reserved=102)
    assert not compare(a, b).same and "+2.000 %" in compare(a, b).text()


def test_hardware_may_complete_frees_later() -> None:
    """On hardware a block that two streams used is free once both got there, so that its place is not compared."""
    at_once: list[tuple[str, int, int]] = [
        ("alloc", 512, 0),
        ("free_requested", 512, 0),
        ("free_completed", 512, 0),
        ("alloc", 1024, 0),
    ]
    later = [at_once[0], at_once[1], at_once[3], at_once[2]]
    assert not compare(Trace(at_once), Trace(later)).same
    assert compare(Trace(at_once), Trace(later), completion=False).same


def test_neighbouring_frees_may_change_places() -> None:
    """Without anything between them; an allocation between them is a difference."""
    a: list[tuple[str, int, int]] = [
        ("alloc", 512, 0),
        ("free_requested", 512, 0),
        ("free_requested", 1024, 0),
        ("alloc", 512, 0),
    ]
    swapped, moved = [a[0], a[2], a[1], a[3]], [a[0], a[1], a[3], a[2]]
    assert not compare(Trace(a), Trace(swapped)).same
    assert compare(Trace(a), Trace(swapped), order=False).same
    assert not compare(Trace(a), Trace(moved), order=False).same


def test_recordings_are_read_back(tmp_path: Path) -> None:
    """What record.py writes, plain and gzipped; two devices of one process."""
    device = {
        "name": "G", "total_bytes": 1 << 30, "compute_capability": "9.0", "multiprocessors": 132, "peak_allocated_bytes": 5,
        "peak_reserved_bytes": 6, "used_at_end_bytes": 7, "events": [["alloc", 512, 0]],
    }  # fmt: skip
    about = {"torch": "2.6.0", "cuda": "12.4", "cudnn": 90100, "failed": "", "seconds": 1.5}
    whole = json.dumps({"version": 1, **about, "devices": [{"device": 0, **device}, {"device": 1, **device}]})
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_text(whole)
    packed.write_bytes(gzip.compress(whole.encode()))
    for path in (plain, packed):
        one, two = load(path)
        assert (one.device, two.device) == (0, 1)
        assert one.events == [("alloc", 512, 0)] and one.used == 7 and one.about["multiprocessors"] == 132
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "fidelity.py", "--compare", plain, packed], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.count("all 1 events equal") == 2, done.stdout + done.stderr
