"""What names lead to, and which statements run, in every Python that is here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SOURCE
from test_start import PYTHONS, usable

EVERY = pytest.mark.parametrize("python", [p for p in PYTHONS if usable(p)], ids=lambda p: p.parts[-3])

# Each container has as many entries as no other.
KINDS = """
import asyncio, collections, contextvars, functools, queue, sys, threading, weakref
sys.path.insert(0, sys.argv[1])
from concurrent.futures import ThreadPoolExecutor
from hightide_agent.holders import Holders, newest_items
from hightide_agent.reach import walk
from hightide_agent.roots import roots

class Agent:
    channel, on_renew = None, []

class Slots:
    __slots__ = ("inner",)

class Private:
    def __init__(self): self.__seen = [0] * 11

class Sub(dict):
    def __len__(self): raise SystemExit("len")
    def __iter__(self): raise SystemExit("iter")
    def items(self): raise SystemExit("items")

def waits():
    local = [0] * 12
    yield local

async def task():
    of_a_task = [0] * 13
    await asyncio.sleep(3600)

@functools.lru_cache(maxsize=100)
def cached(i): return i

def enclosing():
    enclosed = [0] * 14
    return lambda: enclosed

simple = queue.SimpleQueue()
for i in range(33): simple.put([i])
simple.get()
jobs = queue.Queue(maxsize=99)
for i in range(16): jobs.put(i)
pool, busy = ThreadPoolExecutor(1), threading.Event()
pool.submit(busy.wait)
for i in range(17): pool.submit(int)
slots = Slots(); slots.inner = [0] * 18
private = Private()
sub = Sub((i, i) for i in range(19))
generator = waits(); next(generator)
local = threading.local(); local.rows = [0] * 21
of_another = threading.Thread(target=lambda: (setattr(local, "theirs", [0] * 22), elsewhere.set([0] * 35), busy.wait()))
elsewhere = contextvars.ContextVar("elsewhere"); elsewhere.set([0])
given = contextvars.ContextVar("given", default=[0] * 34); given.set([0])
of_another.start()
variable = contextvars.ContextVar("variable"); variable.set([0] * 23)
weak = weakref.WeakKeyDictionary()
keys = [type("Key", (), {})() for i in range(24)]
for key in keys: weak[key] = 1
partial = functools.partial(print, [0] * 25)
counts = collections.Counter(range(26))
recent = collections.deque(range(27), maxlen=30)
for i in range(28): cached(i)
function = enclosing()
__hidden = [0] * 29
nested = {"a": ({"b": [0] * 31},)}

async def main():
    asyncio.ensure_future(task())
    await asyncio.sleep(0)
    while not hasattr(of_another, "ident"): pass
    holders = Holders(Agent())
    for found in walk(roots([sys._getframe()]), {}, 1 << 62):
        for reading in holders._readings(found):
            if reading.items > 10: print(reading.items, reading.kind, found.name, reading.bound or found.bound)
        newest_items(found.thing, 4)

asyncio.run(main())
busy.set()
"""

WANT = {
    11: "list Private.__seen 0", 12: "list local 0", 13: "list of_a_task 0", 14: "list enclosed 0",
    16: "queue jobs 99", 17: "backlog of executor pool 0", 18: "list Slots.inner 0", 19: "Sub sub 0",
    21: "list local.rows 0", 22: "list local.theirs 0", 23: "list variable 0", 24: "WeakKeyDictionary weak 0",
    25: "list partial[…] 0", 26: "Counter counts 0", 27: "deque recent 30", 28: "lru_cache cached 100",
    29: "list __hidden 0", 31: "list nested['a'][…]['b'] 0", 32: "queue simple 0",
    34: "list given 0", 35: "list elsewhere 0",
}  # fmt: skip


@EVERY
def test_names_lead_to_every_kind(tmp_path: Path, python: Path) -> None:
    (tmp_path / "kinds.py").write_text(KINDS)
    done = run(python, tmp_path / "kinds.py")
    found = {int(line.split()[0]): line.partition(" ")[2] for line in done.stdout.splitlines()}
    assert done.returncode == 0, done.stderr
    missed = {items: want for items, want in WANT.items() if found.get(items) != want}
    assert not missed, found


RAN = """
import sys
sys.path.insert(0, sys.argv[1])
from hightide_agent import ran
from hightide_agent.growth_lines import Place

kept = []

def add(x, i):
    if i % 3:
        kept.append(x)
    else:
        kept.append(
            str(i)
        )

def step(i):
    if i == 2: assert window.begin(places, sys._getframe())
    if i == 8: window.end(sys._getframe())

window, first = ran.Window(), add.__code__.co_firstlineno
places = [Place(__file__, first + 2, "add", 12, last=first + 2), Place(__file__, first + 4, "add", 12, last=first + 6)]
lines = [n for n, line in enumerate(open(__file__), 1) if line.startswith("    kept.")]
places += [Place(__file__, n, "", 12, last=n) for n in lines]
places += [Place(__file__, 1, "", 12, last=1)]
for i in range(12):
    kept.append(step(i))
    add(i, i)
names = dict(zip(places, "abcd"))
print(*("".join(names[p] for p in window.order(some)) for some in (places[:2], places[2:])), end=" ")
print("".join(names[p] for p in window.ran(places)), sys.gettrace())
"""


@EVERY
def test_statements_are_seen_to_run(tmp_path: Path, python: Path) -> None:
    (tmp_path / "ran.py").write_text(RAN)
    done = run(python, tmp_path / "ran.py")
    # Begun in step 2 and ended in step 8, inside the statement c: six of each turn, and d never.
    assert done.stdout == "abaaba cccccc abc None\n", done.stdout + done.stderr


def run(python: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), str(file), str(SOURCE)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_another_tracer_is_left_alone() -> None:
    from hightide_agent.growth_lines import Place
    from hightide_agent.ran import Window

    window, theirs = Window(), lambda *_: None
    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        assert not window.begin([Place(__file__, 1, "", 12, last=1)], sys._getframe())
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
