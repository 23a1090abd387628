"""Lines that hold Python's memory, as tracemalloc tells them to the engine."""

from __future__ import annotations

import tracemalloc
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from hightide_agent import python_heap

ASKED = {"HIGHTIDE_TRACEMALLOC": "8"}
HELD = """
def make(n):
    return [bytearray(1 << 20) for _ in range(n)]
kept = make(20)
gone = make(5)
del gone
"""


class Told:
    """An agent that keeps what it is told."""

    def __init__(self) -> None:
        self.on_renew: List[Any] = []
        self.at_end: List[Any] = []
        self.records: List[Dict[str, Any]] = []
        self.facts: Dict[str, Any] = {}

    def record(self, fields: Dict[str, Any]) -> bool:
        self.records.append(fields)
        return True

    def fact(self, key: str, value: Any) -> None:
        self.facts[key] = value

    def log(self, text: str, error: Any = None) -> None:
        raise AssertionError(text)


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    assert not tracemalloc.is_tracing()
    monkeypatch.setenv("HIGHTIDE_TRACEMALLOC", "8")
    yield
    tracemalloc.stop()


def lines(record: Dict[str, Any]) -> Dict[Tuple[str, int], Tuple[int, int]]:
    """Bytes and blocks of each innermost line of a file of this test."""
    held: Dict[Tuple[str, int], Tuple[int, int]] = {}
    for row in record["sites"]:
        place = (record["files"][row[2]].rpartition("/")[2], row[3])
        size, count = held.get(place, (0, 0))
        held[place] = (size + row[0], count + row[1])
    return held


def test_what_lines_hold(observe: Any) -> None:
    """The last look has what is held at the end: to the byte what the objects take, and nothing of what is gone."""
    told = observe(HELD, env=ASKED).main.all("python_heap")
    size, count = lines(told[-1])["script.py", 3]
    assert 20 << 20 <= size < (20 << 20) + 8192 and count >= 20
    (row,) = [row for row in told[-1]["sites"] if row[0] >= 20 << 20]
    stack = [(told[-1]["files"][row[i]].rpartition("/")[2], row[i + 1]) for i in range(2, len(row), 2)]
    assert stack[0] == ("script.py", 3) and stack[-1] == ("script.py", 4)
    assert told[-1]["peak_bytes"] >= 25 << 20 and told[-1]["own_bytes"] > 0
    assert told[-1]["longest_ns"] <= told[-1]["looks_ns"]


def test_not_asked_for(observe: Any) -> None:
    result = observe("import sys; print('tracemalloc' in sys.modules)")
    assert result.out.strip() == "False" and not result.main.all("python_heap")


def test_stopped_by_the_program(observe: Any) -> None:
    ring = observe("import tracemalloc\ntracemalloc.stop()", env=ASKED).main
    assert {"type": "fact", "key": "tracemalloc", "value": "stopped by the program"} in ring.all("fact")


def test_looks_keep_to_their_share(tracing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a look none comes before it has been paid for, by the clock."""
    agent = Told()
    heap = python_heap.start(agent)  # type: ignore[arg-type]
    now, cost = [10**12], [0]
    monkeypatch.setattr(python_heap, "monotonic_ns", lambda: now[0])

    def spent() -> int:
        cost[0] += 10**9
        return cost[0]

    monkeypatch.setattr(python_heap, "thread_time_ns", spent)
    heap.renew()
    heap.tick()
    assert len(agent.records) == 1
    taken = cost[0] - 10**9
    now[0] += python_heap.SHARE * taken - 1
    heap.tick()
    assert len(agent.records) == 1
    now[0] += 1
    heap.tick()
    assert len(agent.records) == 2
    assert agent.records[1]["looks_ns"] > agent.records[1]["longest_ns"] > 0


def test_too_many_blocks(tracing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Told()
    heap = python_heap.start(agent)  # type: ignore[arg-type]
    monkeypatch.setattr(python_heap, "MOST_BLOCKS", 1)
    heap.tick()
    heap.last()
    assert not agent.records and agent.facts == {"tracemalloc": "too many blocks"}


def test_small_stacks_of_a_line_are_one() -> None:
    """What each stack holds little of is told by the line that is the program's; what is little then is the rest."""
    library = "/usr/lib/python3/dist-packages/lib.py"
    sums = {((library, at), ("/home/a/train.py", 7)): [1000, 2] for at in range(200)}
    sums[((library, 1000), ("/home/a/train.py", 8))] = [500, 1]
    sums[()] = [300, 3]
    sums[(("/home/a/train.py", 9),)] = [1 << 20, 1]
    shown, rest = python_heap._shown(sums)
    assert shown == [((("/home/a/train.py", 9),), [1 << 20, 1]), ((("/home/a/train.py", 7),), [200_000, 400])]
    assert rest == [800, 4]


def test_whose_line() -> None:
    """The program's, also where our import hook stands between; what only we asked for is ours."""
    library = ("/usr/lib/python3/dist-packages/lib.py", 3)
    ours, users = (python_heap._OURS + "imports.py", 9), ("/home/a/train.py", 1)
    assert python_heap._line((library, ours, users)) == (users,)
    ((file, _),) = python_heap._line((library, ours, library))
    assert file.startswith(python_heap._OURS)
    assert python_heap._line((library, library)) == (library,) and python_heap._line(()) == ()


def test_a_record_has_room(tracing: None) -> None:
    """Of many stacks with long names as many are told as a record has room for; the sum is the same."""
    agent = Told()
    heap = python_heap.start(agent)  # type: ignore[arg-type]
    sites = [((("/%s/%d.py" % ("x" * 400, at), 1),), [100_000, 1]) for at in range(300)]
    heap._record(sites, [7, 1], peak=1, own=1, began=0)
    (record,) = agent.records
    assert 0 < len(record["sites"]) < 300
    assert sum(row[0] for row in record["sites"]) + record["rest"][0] == 300 * 100_000 + 7
