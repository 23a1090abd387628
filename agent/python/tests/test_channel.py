"""The ring's bytes, its limits, and its vector in testdata that the Go reader reads too."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hightide_agent import channel as channels
from hightide_agent.agent import Agent
from hightide_agent.encode import MAX_TEXT, encode
from hightide_agent.masking import mask, mask_arguments
from ring import Ring


@pytest.fixture(autouse=True, params=[channels.Channel, channels.Ordered])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every processor's kind of channel, whichever this one's is."""
    monkeypatch.setattr(channels, "_KIND", request.param)


VECTORS = Path(__file__).resolve().parents[3] / "testdata" / "channel"


def test_vector_is_what_the_writer_writes(tmp_path: Path) -> None:
    recipe = VECTORS / "agent.py"
    subprocess.run([sys.executable, str(recipe), str(tmp_path)], check=True)
    assert (tmp_path / "agent.ring").read_bytes() == (VECTORS / "agent.ring").read_bytes()
    expected = json.loads((VECTORS / "agent.json").read_text())
    assert Ring(VECTORS / "agent.ring").records == expected["records"]


def test_create_leaves_no_descriptor_and_ignores_umask(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    old = os.umask(0o777)
    try:
        made = channels.create(str(tmp_path))
    finally:
        os.umask(old)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert os.stat(made.path).st_mode & 0o777 == 0o600
    second = channels.create(str(tmp_path))  # as after an exec: same process, same start
    assert second.path == made.path.replace(".ring", "-2.ring")
    assert Ring(Path(made.path)).pid == os.getpid()


def test_full_ring_drops_and_counts_and_goes_on_when_read(tmp_path: Path) -> None:
    made = channels.create(str(tmp_path), 65536)
    for i in range(2000):
        made.edge(1, 0, 0, 1, i, 2, 3, 4, 5)
    fits = 65536 // 56
    assert made.head == fits * 56 and made.words[9] == 2000 - fits and made.words[10] == 56 * (2000 - fits)
    made.words[16] = made.head  # the engine has read it all
    made.edge(1, 0, 0, 1, 7, 2, 3, 4, 5)
    left = 65536 - fits * 56
    assert struct.unpack_from("<IHH", made.ring, fits * 56) == (left, 0, 0)
    assert made.head == 65536 + 56
    assert struct.unpack_from("<IH", made.ring, 0) == (56, channels.EDGE)


def test_a_fact_without_room_is_told_once_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stated once: lost, it would be missing for good, as what each block of a model keeps."""
    agent = Agent(str(tmp_path))
    agent.open()
    made = agent.channel
    assert made is not None
    with monkeypatch.context() as full:
        full.setattr(type(made), "_reserve", lambda *_: -1)
        agent.fact("blocks", "some")
        agent.fact("blocks", "many")
    assert agent.record({"type": "mark", "text": "next"})
    records = [record for record in Ring(Path(made.path)).json if record["type"] in ("fact", "mark")]
    assert records == [{"type": "fact", "key": "blocks", "value": "many"}, {"type": "mark", "text": "next"}]


def test_a_tail_beyond_the_head_is_not_believed(tmp_path: Path) -> None:
    made = channels.create(str(tmp_path), 65536)
    made.words[16] = 1 << 60
    for i in range(2000):
        made.edge(1, 0, 0, 1, i, 2, 3, 4, 5)
    assert made.head - made._tail <= 65536


def test_signal_handler_that_writes_while_we_write(tmp_path: Path) -> None:
    made = channels.create(str(tmp_path))
    written = 0

    def handler(*_: object) -> None:
        nonlocal written
        written += 1
        made.edge(9, 0, 0, 1, written, 0, 0, 0, 0)

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        ours = 0
        while ours < 3000 or (written < 4 and ours < 15000):  # a fast machine writes 3000 before the fourth signal
            made.edge(1, 0, 0, 1, ours, 0, 0, 0, 0)
            ours += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    ring = Ring(Path(made.path))
    assert written > 3
    assert len(ring.records) + ring.dropped == ours + written
    assert [r["step"] for r in ring.edges if r["phase"] == "step"] == list(range(ours))


def test_lock_left_behind_by_an_exception_heals(tmp_path: Path) -> None:
    made = channels.create(str(tmp_path))
    assert made._reserve(56) >= 0  # and never released
    for i in range(channels.MAX_REENTERED + 1):
        made.edge(1, 0, 0, 1, i, 0, 0, 0, 0)
    assert len(Ring(Path(made.path)).edges) >= 1


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    made = channels.create(str(tmp_path), 1 << 20)
    threads = [threading.Thread(target=lambda: [made.json(b'{"type":"x"}', 1) for _ in range(500)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ring = Ring(Path(made.path))
    assert len(ring.json) + ring.dropped == 3000 and ring.dropped < 300


@pytest.mark.parametrize("value", [None, True, 3, -1.5, 'a"\\\n\u20ac\udcff', [1, [2]], {"k": {"n": []}}, (1, "x")])
def test_json_is_read_back(value: object) -> None:
    assert json.loads(encode(value)) == json.loads(json.dumps(value))


def test_json_of_what_json_has_not() -> None:
    assert encode(float("nan")) == encode(float("inf")) == "null"
    assert encode(object()) == '"object"'
    assert len(json.loads(encode("x" * 100000))) < MAX_TEXT + 10


@pytest.mark.parametrize(
    "text, masked",
    [
        ("--token=abc123", "--token=***"),
        ("--api-key=k --lr=0.1", "--api-key=*** --lr=0.1"),
        ("MY_PASSWORD='a b c' x", "MY_PASSWORD=*** x"),
        ("postgres://me:pw@db/x", "postgres://***@db/x"),
        ("key AKIAIOSFODNN7EXAMPLE end", "key *** end"),
        ("use hf_abcdefghijKLMN now", "use *** now"),
        ("Authorization: Bearer abc.def-123456", "Authorization: ***"),
        ("--max-tokens-per-batch 4096 --tokenizer gpt2", "--max-tokens-per-batch 4096 --tokenizer gpt2"),
        ("--lr=0.1 --epochs 3", "--lr=0.1 --epochs 3"),
    ],
)
def test_mask(text: str, masked: str) -> None:
    assert mask(text) == masked


def test_mask_arguments() -> None:
    assert mask_arguments(["train.py", "--hf-token", "abc", "--lr", "3"]) == [
        "train.py",
        "--hf-token",
        "***",
        "--lr",
        "3",
    ]
