"""Spans and steps of the program's own, as the channel gets them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List

SOURCE = str(Path(__file__).resolve().parents[1] / "src")
HEAD = "import sys; sys.path.insert(0, %r); import hightide\n" % SOURCE


def stays(ring: Any) -> List[Dict[str, Any]]:
    """Entering and leaving paired by the number of the stay, in order of entering."""
    names = {span["id"]: span["name"] for record in ring.all("spans") for span in record["spans"]}
    open_stays: Dict[int, Dict[str, Any]] = {}
    found = []
    for edge in ring.edges:
        if edge["phase"] != "user":
            continue
        if not edge["leave"]:
            assert edge["stay"] not in open_stays
            stay = {"name": names[edge["module"]], "start": edge["time"], "tid": edge["tid"], "rss": edge["rss"]}
            open_stays[edge["stay"]] = stay
            found.append(stay)
        else:
            stay = open_stays.pop(edge["stay"])
            assert stay["name"] == names[edge["module"]]
            stay.update(end=edge["time"], rss_end=edge["rss"])
    return found


def test_spans_nest_and_carry_the_resident_set(observe: Any) -> None:
    ring = observe(
        HEAD
        + """
import time
with hightide.span("outer"):
    with hightide.span("inner") as twice:
        with twice:
            held = bytearray(b"x") * (40 << 20)
            time.sleep(0.01)
try:
    with hightide.span("fails"):
        raise KeyError
except KeyError:
    pass
hightide.span("left open").__enter__()
"""
    ).main
    outer, inner, again, fails, left = stays(ring)
    assert [s["name"] for s in (outer, inner, again, fails, left)] == ["outer", "inner", "inner", "fails", "left open"]
    assert outer["start"] < inner["start"] < again["start"] < again["end"] < inner["end"] < outer["end"]
    assert 39 << 20 < outer["rss_end"] - outer["rss"] < 45 << 20
    assert "end" in fails and "end" not in left


def test_tasks_and_threads_overlap(observe: Any) -> None:
    ring = observe(
        HEAD
        + """
import asyncio, threading
async def main():
    gates = [asyncio.Event() for _ in range(3)]
    async def task(n):
        with hightide.span("task"):
            await gates[n].wait()
    @hightide.profile
    async def decorated():
        await asyncio.sleep(0)
    tasks = [asyncio.create_task(task(n)) for n in range(3)]
    await asyncio.sleep(0)
    for gate in gates:          # the first to come is the first to go
        gate.set()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, decorated())
asyncio.run(main())
@hightide.span("generated")
def numbers():
    got = yield 1
    return got
g = numbers(); next(g)
try: g.send(7)
except StopIteration as end: assert end.value == 7
inside, out = threading.Event(), threading.Event()
def work():
    with hightide.span("thread"):
        inside.set(); out.wait()
t = threading.Thread(target=work)
with hightide.span("main"):
    t.start(); inside.wait()
out.set(); t.join()
"""
    ).main
    found = stays(ring)
    assert [s["name"] for s in found] == [
        "task",
        "task",
        "task",
        "main.<locals>.decorated"[-9:],
        "generated",
        "main",
        "thread",
    ]
    tasks = found[:3]
    assert tasks[0]["end"] < tasks[1]["end"] < tasks[2]["end"] and tasks[2]["start"] < tasks[0]["end"]
    main, thread = found[-2:]
    assert main["tid"] == ring.pid != thread["tid"] and main["end"] < thread["end"]


def test_too_many_are_counted_exactly(observe: Any) -> None:
    ring = observe(
        HEAD
        + """
import threading
def work():
    for _ in range(2000):
        with hightide.span("tight"):
            pass
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
    ).main
    (name,) = [span["id"] for record in ring.all("spans") for span in record["spans"] if span["name"] == "tight"]
    counted = [span for record in ring.all("counted") for span in record["spans"]]
    assert all(span["id"] == name and 0 < span["max_ns"] <= span["total_ns"] for span in counted)
    full = [s for s in stays(ring) if "end" in s]
    assert len(full) + sum(span["count"] for span in counted) == 8000
    assert len(full) < 4000 and not ring.dropped


def test_what_is_only_counted_and_left_open_is_counted_too(observe: Any) -> None:
    """Up to the end of the process. So many are left open that there cannot be edges for all, however long it waits."""
    ring = observe(
        HEAD
        + """
from time import sleep
left = [hightide.span("tight") for _ in range(5000)]
for span in left:
    span.__enter__()
sleep(0.05)
""",
        logs=True,
    ).main
    counted = [span for record in ring.all("counted") for span in record["spans"]]
    edges = stays(ring)  # whose ends the engine adds
    assert not [s for s in edges if "end" in s]
    assert len(edges) + sum(span["count"] for span in counted) == 5000
    assert max(span["max_ns"] for span in counted) >= 50_000_000
    (log,) = ring.all("log")
    assert log["text"] == "spans still open as the process ended, counted up to there: tight"


def test_a_child_has_spans_of_its_own(observe: Any) -> None:
    result = observe(
        HEAD
        + """
import os
with hightide.span("parent's"):
    pid = os.fork()
    if pid == 0:
        with hightide.span("child's"):
            pass
if pid:
    os.waitpid(pid, 0)
"""
    )
    parent, child = result.rings
    (whole,) = stays(parent)
    assert whole["name"] == "parent's" and "end" in whole
    (only,) = stays(child)
    assert only["name"] == "child's" and "end" in only


def test_names_are_bounded(observe: Any) -> None:
    result = observe(
        HEAD
        + """
for n in range(1500):
    with hightide.span("epoch %d" % n):
        pass
for _ in range(3): hightide.span("x" * 5000).__enter__()
from hightide_agent import start
start.agent._logged.clear()
""",
        logs=True,
    )
    names = [span["name"] for record in result.main.all("spans") for span in record["spans"]]
    assert len(names) <= 1001 and names[-1] == "(other spans)" and max(map(len, names)) <= 200


def test_steps_are_marked_where_nothing_else_does(observe: Any) -> None:
    ring = observe(
        HEAD
        + """
for n in range(30):
    held = bytearray(n)
    hightide.step()
"""
    ).main
    assert [s["step"] for s in ring.steps] == list(range(1, 31))
    assert ring.steps[0]["duration"] == 0 and all(s["duration"] > 0 for s in ring.steps[1:])
    assert ring.steps[3]["rss"] > 0


def test_an_optimizer_s_steps_are_the_steps(observe: Any) -> None:
    result = observe(
        HEAD
        + """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters())
for _ in range(12):
    model(torch.ones(4)).sum().backward()
    optimizer.step()
    hightide.step()
"""
    )
    assert [s["step"] for s in result.main.steps] == list(range(1, 13))
    assert result.err.count("step() is ignored: an optimizer's steps are the steps of this run") == 1


def test_without_an_engine_all_goes_on() -> None:
    import os
    import subprocess

    code = (
        HEAD
        + """
@hightide.profile
def f(): return 3
with hightide.span("a"), hightide.peak() as p: assert f() == 3
hightide.step()
assert p.rss > 0 and p.allocated is None and p.lines == []
assert hightide.snapshot().rss > 0
assert hightide.alert("rss > 1GiB") is False
assert not [m for m in sys.modules if m.startswith("hightide_agent")]
for call in (
    lambda: hightide.init(tags=["bert"]), lambda: hightide.init(interval="x"), lambda: hightide.profile(3),
    lambda: hightide.imagine(3), lambda: hightide.fit(3), lambda: hightide.alert("rss > 1GiB", 3),
):
    try: call()
    except TypeError as error: assert "not supported" not in str(error) and "attribute" not in str(error), error
    else: raise AssertionError("taken")
try: hightide.runs()
except FileNotFoundError: print("no program")
"""
    )
    env = {"HIGHTIDE_BINARY": "/nonexistent/hightide", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no program\n"
    assert done.stderr.splitlines() == [
        "hightide: snapshot() marks nothing: this program is not recorded",
        "hightide: alert rss > 1GiB is not watched: this program is not recorded",
    ]
