"""Growing containers: named with their line, and innocents left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any, Dict, List

import pytest

from conftest import SOURCE, observer
from ring import Ring

pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

LOOP = """
import torch
from collections import deque
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
def train(x):
    sgd.zero_grad(); loss = model(x).pow(2).mean(); loss.backward(); sgd.step()
    return loss
def fresh():
    return torch.randn(64, 16)
"""


# Bytes a step of what is one block of memory, or characters.
BLOCKS = {"text": 20000, "bytes of an entry": 20000, "bytearray": 20000, "array of numbers": 24000, "buffer": 20000,
          "buffer that is printed to": 20001}  # fmt: skip


def holders(ring: Ring) -> Dict[str, Dict[str, Any]]:
    """The last word on each holder."""
    return {h["name"]: h for h in ring.all("holder")}


def line_of(text: str, mark: str) -> int:
    lines = (LOOP + textwrap.dedent(text)).splitlines()
    (number,) = [i + 1 for i, line in enumerate(lines) if mark in line]
    return number


LEAKS = {
    "global list": ("history", "list", False, """
        history = []
        def main():
            for i in range(120):
                x = fresh(); train(x)
                history.append(x)  # HERE
        main()
        """),
    "local dict": ("seen", "dict", False, """
        def main():
            seen = {}
            for i in range(120):
                x = fresh(); train(x)
                seen[i] = x  # HERE
        main()
        """),
    "attribute deque": ("Trainer.log", "deque", False, """
        class Trainer:
            def __init__(self):
                self.log = deque()
            def run(self):
                for i in range(120):
                    x = fresh(); train(x)
                    self.log.append({"x": x})  # HERE
        Trainer().run()
        """),
    "closure": ("kept", "list", False, """
        def make():
            kept = []
            def keep(x):
                kept.append(x)  # HERE
            return keep
        keep = make()
        for i in range(120):
            x = fresh(); train(x); keep(x)
        """),
    "losses with graphs": ("losses", "list", True, """
        losses = []
        for i in range(120):
            losses.append(train(fresh()))  # HERE
        """),
    "graph chain": ("total", "autograd graph", True, """
        def main():
            total = 0.0
            for i in range(120):
                total = total + train(fresh())  # HERE
        main()
        """),
    "default argument": ("collect(into=…)", "list", False, """
        def collect(x, into=[]):
            into.append(x)  # HERE
        for i in range(120):
            x = fresh(); train(x); collect(x)
        """),
    "nested": ("stats['x']", "list", False, """
        stats = {"x": [], "y": 1}
        for i in range(120):
            x = fresh(); train(x)
            stats["x"].append(x)  # HERE
        """),
    "class attribute": ("Net.cache", "list", False, """
        class Net:
            cache = []
            def __call__(self, x):
                Net.cache.append(x)  # HERE
                return train(x)
        net = Net()
        for i in range(120):
            net(fresh())
        """),
    "module attribute": ("Block.seen", "list", False, """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.seen = nn.Linear(16, 16), []
            def forward(self, x):
                self.seen.append(x)  # HERE
                return self.inner(x)
        model = nn.Sequential(Block(), nn.Linear(16, 1))
        sgd = torch.optim.SGD(model.parameters(), lr=0.01)
        for i in range(120):
            train(fresh())
        """),
    "numpy in a set's place": ("arrays", "list", False, """
        import numpy as np
        arrays = []
        for i in range(120):
            train(fresh())
            arrays += [np.ones(1000)]  # HERE
        """),
    "hooks": ("Linear._forward_hooks", "hooks", False, """
        probe = nn.Linear(4, 4)
        def watch(seen):
            probe.register_forward_hook(lambda module, inputs, output: None if seen is None else output)  # HERE
        for i in range(120):
            x = fresh(); train(x); watch(x)
        """),
    "hooks on a gradient": ("weight._backward_hooks", "hooks", False, """
        weight = nn.Parameter(torch.ones(4))
        def mask(by):
            weight.register_hook(lambda grad: grad * by)  # HERE
        for i in range(120):
            x = fresh(); train(x); mask(x)
        """),
    "handed to a library": ("Keep.seen", "list", False, """
        import argparse
        class Keep(argparse.Action):  # stands for a callback: a library's variable alone leads to it
            def __init__(self, *options, **more):
                super().__init__(*options, **more)
                self.seen = []
            def __call__(self, parser, namespace, values, option=None):
                for i in range(120):
                    x = fresh(); self.note(x); train(x)
            def note(self, x):
                self.seen.append(x)  # HERE
        parser = argparse.ArgumentParser()
        parser.add_argument("--go", action=Keep)
        parser.parse_args(["--go", "1"])
        """),
    "lru_cache": ("features", "lru_cache", False, """
        from functools import lru_cache
        @lru_cache(maxsize=None)  # HERE
        def features(i):
            return fresh()
        for i in range(120):
            train(fresh()); features(i)
        """),
    "exceptions": ("errors", "list", False, """
        errors = []
        def check():
            x = fresh(); train(x)
            raise ValueError("out of range")
        for i in range(120):
            try:
                check()
            except ValueError as error:
                errors.append(error)  # HERE
        """),
    "generators": ("streams", "list", False, """
        streams = []
        def rows():
            x = fresh(); train(x)
            yield from x
        for i in range(120):
            stream = rows(); next(stream)
            streams.append(stream)  # HERE
        """),
    "partial": ("later", "list", False, """
        from functools import partial
        later = []
        for i in range(120):
            x = fresh(); train(x)
            later.append(partial(torch.sum, x))  # HERE
        """),
    "queue": ("jobs", "queue", False, """
        import queue
        jobs = queue.Queue()
        for i in range(120):
            x = fresh(); train(x)
            jobs.put(x)  # HERE
        """),
    "simple queue": ("Feeder.jobs", "queue", False, """
        import queue
        class Feeder:
            def __init__(self):
                self.jobs = queue.SimpleQueue()
            def feed(self, x):
                self.jobs.put(x)  # HERE
        feeder = Feeder()
        for i in range(120):
            x = fresh(); train(x); feeder.feed(x)
        """),
    "backlog of an executor": ("pool", "backlog of executor", False, """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        busy = threading.Event()
        pool = ThreadPoolExecutor(max_workers=1)
        pool.submit(busy.wait)
        for i in range(120):
            x = fresh(); train(x)
            pool.submit(torch.sum, x)  # HERE
        pool._work_queue = None  # or its thread would wait for them all
        busy.set()
        """),
    "asyncio's queue, in a task that waits": ("jobs", "queue", False, """
        import asyncio
        async def feed():
            jobs = asyncio.Queue()
            for i in range(120):
                x = fresh(); await asyncio.sleep(0); kept(jobs, x)
                await asyncio.sleep(0)
        def kept(jobs, x):
            jobs.put_nowait(x)  # HERE
        async def main():
            task = asyncio.ensure_future(feed())
            while not task.done():
                train(fresh())
                await asyncio.sleep(0); await asyncio.sleep(0)
        asyncio.run(main())
        """),
    "a generator that waits": ("seen", "list", False, """
        def batches():
            seen = []
            while True:
                x = fresh()
                seen.append(x)  # HERE
                yield x
        stream = batches()
        for i in range(120):
            train(next(stream))
        """),
    "private attribute": ("Net.__seen", "list", False, """
        class Net:
            def __init__(self):
                self.__seen = []
            def __call__(self, x):
                self.__seen.append(x)  # HERE
                return train(x)
        net = Net()
        for i in range(120):
            net(fresh())
        """),
    "a thread's own": ("local.rows", "list", False, """
        import threading
        local = threading.local()
        local.rows = []
        for i in range(120):
            x = fresh(); train(x)
            local.rows.append(x)  # HERE
        """),
    "context variable": ("state", "list", False, """
        import contextvars
        state = contextvars.ContextVar("state")
        state.set([])
        for i in range(120):
            x = fresh(); train(x)
            state.get().append(x)  # HERE
        """),
    "dictionary with weak keys": ("table", "WeakKeyDictionary", False, """
        import weakref
        class Key: pass
        table, keys = weakref.WeakKeyDictionary(), []
        for i in range(120):
            x = fresh(); train(x)
            keys.append(Key()); table[keys[-1]] = x  # HERE
        """),
    "subclass of a dictionary": ("cache", "Cache", False, """
        class Cache(dict):
            def __len__(self): raise SystemExit("len")
            def __iter__(self): raise SystemExit("iter")
        cache = Cache()
        for i in range(120):
            x = fresh(); train(x)
            cache[i] = x  # HERE
        """),
    "items in slots": ("kept", "list", False, """
        class Slots:
            __slots__ = ("inner",)
        kept = []
        for i in range(120):
            x = fresh(); train(x)
            one = Slots(); one.inner = [(x,)]
            kept.append(one)  # HERE
        """),
    "a cache keyed by its object": ("Model.features", "lru_cache", False, """
        from functools import lru_cache
        class Model:
            def __init__(self):
                self.weights = fresh()
            @lru_cache(maxsize=None)  # HERE
            def features(self):
                return 1
        for i in range(120):
            train(fresh()); Model().features()
        """),
    "text": ("log", "str", False, """
        log = ""
        for i in range(120):
            train(fresh())
            log += chr(97 + i % 26) * 20000  # HERE
        """),
    "bytes of an entry": ("state['log']", "bytes", False, """
        state = {"log": b"", "step": 0}
        for i in range(120):
            train(fresh())
            state["step"] += 1
            state["log"] = state["log"] + bytes([i]) * 20000  # HERE
        """),
    "bytearray": ("Log.raw", "bytearray", False, """
        class Log:
            def __init__(self):
                self.raw = bytearray()
            def write(self, part):
                self.raw += part  # HERE
        log = Log()
        for i in range(120):
            train(fresh()); log.write(bytes([i]) * 20000)
        """),
    "array of numbers": ("samples", "array.array", False, """
        from array import array
        samples = array("d")
        for i in range(120):
            train(fresh()); samples.frombytes(bytes([i]) * 24000)  # HERE
        """),
    "buffer": ("buffer", "BytesIO", False, """
        import io
        buffer = io.BytesIO()
        for i in range(120):
            train(fresh()); buffer.write(bytes([i]) * 20000)  # HERE
        """),
    "buffer that is printed to": ("lines", "StringIO", False, """
        import io
        def main():
            lines = io.StringIO()
            for i in range(120):
                train(fresh()); print(chr(97 + i % 26) * 20000, file=lines)  # HERE
        main()
        """),
    "the branch that ran": ("kept", "list", False, """
        kept = []
        for i in range(120):
            x = fresh(); train(x)
            if i >= 0:
                kept.append(x)  # HERE
            else:
                kept.append(x.sum())
        """),
    "the branch that adds the bytes": ("kept", "list", False, """
        kept = []
        def keep(x, i):
            if i % 4 == 0:
                kept.append(i)
            else:
                kept.append(x)  # HERE
        for i in range(120):
            x = fresh(); train(x); keep(x, i)
        """),
    "another key": ("history['states']", "dict", False, """
        history = {"loss": [], "states": {}}
        for i in range(120):
            x = fresh(); loss = train(x)
            history["loss"].append(loss.item())
            history["states"][i] = x  # HERE
            history["last"] = x
        """),
    "plain numbers": ("vocabulary", "dict", False, """
        vocabulary = {}
        def main():
            for i in range(120):
                train(fresh())
                for n in range(50):
                    vocabulary["token %d of %d" % (n, i)] = 1000 * i + n  # HERE
        main()
        """),
    "array made of itself": ("predictions", "array", False, """
        predictions = torch.empty(0, 16)
        for i in range(120):
            x = fresh(); train(x)
            predictions = torch.cat([predictions, x])  # HERE
        """),
    "NumPy array made of itself": ("history", "array", False, """
        import numpy as np
        history = np.empty(0)
        for i in range(120):
            train(fresh())
            history = np.concatenate([history, np.ones(1000)])  # HERE
        """),
}  # fmt: skip


# PyTorch is imported once, with what its optimizers import at their first step; each program then runs in a fork of
# its own, which has a channel of its own.
EACH = """
import atexit, os, runpy, sys, torch, torch._dynamo
from hightide_agent import holders
holders.BUDGET_NS *= 20  # what is named is looked at, not how far a scan comes while the processor is shared
for path in sys.argv[1:]:
    if os.fork() == 0:
        runpy.run_path(path, run_name="__main__")
        atexit._run_exitfuncs()
        os._exit(0)
    assert os.wait()[1] == 0, path
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Ring]:
    """The channel of each program of LEAKS and INNOCENTS."""
    home, texts = tmp_path_factory.mktemp("programs"), {}
    texts.update({case: text for case, (_, _, _, text) in LEAKS.items()}, **INNOCENTS)
    files = [home / str(number) / "script.py" for number in range(len(texts))]
    for file, text in zip(files, texts.values()):
        file.parent.mkdir()
        file.write_text(LOOP + textwrap.dedent(text))
    children = observer(home)(EACH, *map(str, files), fresh=True).rings[1:]
    assert len(children) == len(texts)
    return dict(zip(texts, children))


@pytest.mark.parametrize("case", LEAKS)
def test_leak_is_named_with_its_line(programs: Dict[str, Ring], case: str) -> None:
    name, kind, graph, text = LEAKS[case]
    found = holders(programs[case])
    assert name in found, found
    holder = found.pop(name)
    assert not found, "nothing else grows"
    assert (holder["kind"], holder["graph"]) == (kind, graph)
    assert holder["line"] == line_of(text, "# HERE"), holder
    assert holder["file"].endswith("script.py")
    if case in BLOCKS:  # its items are bytes or characters; of a buffer with what is kept to grow into
        assert holder["items_per_step"] == pytest.approx(BLOCKS[case], rel=0.2)
        assert holder.get("tensor_bytes", holder["items"]) == holder["items"]
        return
    if case == "plain numbers":  # key, value and what the table has for them
        assert holder["items_per_step"] == pytest.approx(50)
        assert 28 + 60 + 16 < holder["tensor_bytes"] / holder["items"] < 28 + 70 + 120
        return
    if kind == "array":  # its items are bytes
        assert holder["items"] == holder["tensor_bytes"]
        assert holder["items_per_step"] == pytest.approx(8000 if case.startswith("NumPy") else 4096)
    elif kind != "autograd graph":
        assert holder["items_per_step"] == pytest.approx(1.0, abs=0.05)
        assert holder["items"] == pytest.approx(holder["step"], abs=2)
    if case == "the branch that adds the bytes":
        return
    if kind not in ("autograd graph", "array") and not graph:
        assert holder["tensor_bytes"] / holder["items"] == pytest.approx(8000 if case.startswith("numpy") else 4096)


INNOCENTS = {
    "full deque": "recent = deque(maxlen=5)\nfor i in range(120):\n    x = fresh(); train(x); recent.append(x)\n",
    "cleared": (
        "saw = []\nfor i in range(120):\n    x = fresh(); train(x); saw.append(x)\n    if len(saw) == 10: saw.clear()\n"
    ),
    "cache that stops": "c = {}\nfor i in range(120):\n    x = fresh(); train(x)\n    if i < 15: c[i] = x\n",
    "numbers": "losses = []\nfor i in range(120):\n    losses.append(train(fresh()).item())\n",
    "data set": "data = [fresh() for _ in range(120)]\nfor x in data:\n    train(x)\n",
    "longer each step": "for i in range(1, 121):\n    x = fresh(); train(x); y = x.repeat(i, 1)\n",
    "a new list each step": "for i in range(120):\n    xs = [fresh() for _ in range(9)]; train(xs[0])\n",
}


@pytest.mark.parametrize("case", INNOCENTS)
def test_innocents_are_not_accused(programs: Dict[str, Ring], case: str) -> None:
    assert len(programs[case].steps) == 120
    assert holders(programs[case]) == {}


def test_a_statement_on_the_line_of_its_test_is_not_said_to_run(observe: Any) -> None:
    text = (
        "kept = []\nfor i in range(120):\n    x = fresh(); train(x)\n    if i < 0: kept.append(x)\n    kept.append(x)\n"
    )
    holder = holders(observe(LOOP + text).main)["kept"]
    assert holder["others"] and "ran" not in holder


TEETH = {
    "clear": ("outputs", "outputs = []", "outputs.append(y)", "outputs.clear()"),
    "a new one": ("Metric.seen", "class Metric:\n    def __init__(self): self.seen = []\n"
                  "    def reset(self): self.seen = []\nmetric = Metric()", "metric.seen.append(y)", "metric.reset()"),
    "local": ("kept", "", "kept[i] = y", "kept = {}"),
}  # fmt: skip


@pytest.mark.parametrize("case", TEETH)
def test_what_is_emptied_each_epoch_is_told_as_that(observe: Any, case: str) -> None:
    name, setup, adds, empties = TEETH[case]
    ring: Ring = observe(
        LOOP
        + setup
        + f"""
def main():
    i = 0
    for epoch in range(40):
        {empties if case == "local" else "pass"}
        for step in range(25):
            y = torch.zeros(64, 1024); train(fresh()); i += 1
            {adds}
        {empties if case != "local" else "pass"}
main()
"""
    ).main
    told = [holder for holder in ring.all("holder") if holder["name"] == name]
    assert told and told[-1]["items_per_step"] == 0
    assert told[-1]["falls"] >= 1 and 12 <= told[-1]["highest_items"] <= 25
    assert told[-1]["emptied_by"].startswith("script.py:")
    assert told[-1]["tensor_bytes"] == told[-1]["items"] * 64 * 1024 * 4


def test_what_stops_is_taken_back(observe: Any) -> None:
    text = "kept = []\nfor i in range(220):\n    x = fresh(); train(x)\n    if i < 60: kept.append(x)\n"
    assert holders(observe(LOOP + text).main)["kept"]["items_per_step"] == 0.0


def test_the_programs_code_is_not_run_and_nothing_is_kept(observe: Any) -> None:
    result = observe(
        LOOP
        + """
import gc, weakref
class Trap(list):
    def __len__(self): raise SystemExit("len")
    def __iter__(self): raise SystemExit("iter")
    def __getattribute__(self, name): raise SystemExit(name)
class Lazy:
    @property
    def value(self): raise SystemExit("property")
    def __getattr__(self, name): raise SystemExit("getattr " + name)
    def __eq__(self, other): raise SystemExit("eq")
    def __hash__(self): raise SystemExit("hash")
    def __bool__(self): raise SystemExit("bool")
class Slots:
    __slots__ = ("a",)
class Odd:
    @property
    def __dict__(self): raise SystemExit("dict")
class Meta(type):
    def __getattribute__(cls, name): raise SystemExit("meta " + name)
def main():
    trap, lazy, slots, odd = Trap(), Lazy(), Slots(), Odd()
    traps = [Trap(), Lazy(), Slots(), Odd()]
    alive = []
    for i in range(60):
        x = fresh()
        big = torch.randn(1000)
        alive.append(weakref.ref(big))
        train(x)
        locals_now = locals()
        del big, locals_now
    gc.collect()
    print(sum(r() is not None for r in alive))
main()
"""
    )
    assert result.out.strip() in ("0", "1"), result.out  # locals() itself keeps the last one before 3.13


def test_rates() -> None:
    from hightide_agent.holders import steady_rate

    each = [(6, 0), (10, 0), (16, 0), (26, 1), (42, 1), (68, 2), (109, 4), (175, 7)]
    assert steady_rate(each) == pytest.approx(0.04, abs=0.006), "once in 25 steps"
    assert steady_rate([(t, t // 10 * 5) for t in range(0, 80, 10)]) == 0.5
    assert steady_rate([(0, 0), (10, 0), (20, 0), (30, 0), (40, 10), (50, 20), (60, 30), (70, 40)]) == 1.0, "late"
    assert steady_rate([(t, 9) for t in range(8)]) == 0
    bursts = [(t, t // 40 * 20) for t in (1, 39, 79, 119, 159, 161, 201, 241)]
    assert steady_rate(bursts) == pytest.approx(0.5, abs=0.01), "twenty at once, each forty steps"
    faster = [(t, t) for t in range(0, 40, 10)] + [(t, 3 * t - 60) for t in range(40, 80, 10)]
    assert steady_rate(faster) == 3, "three times as fast as at first"
    fills = [(0, 0), (10, 100), (20, 130), (30, 150), (40, 155), (50, 155), (60, 155), (70, 155)]
    assert steady_rate(fills) == 0, "full"


def test_steps_may_begin_again() -> None:
    """A program that counts its steps anew, as for each of its models, has another trail, not a rate by no steps."""
    from hightide_agent.holders import Holders

    class Agent:
        channel, on_renew, at_end, at_frameworks = None, [], [], []  # type: ignore[var-annotated]

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: None

    kept: List[int] = []
    counts = Holders(Agent())
    for steps in ((0, 1, 2, 3, 4, 5), (0, 2, 4, 5, 5, 6), (0, 0, 1, 1, 2, 3, 4)):
        for step in steps:
            kept.append(step)
            counts.scan(step, [sys._getframe()], 1.0)


def test_programs_without_a_file_are_looked_into() -> None:
    script = """
import sys
from hightide_agent.placing import candidates
from hightide_agent.reach import walk
from hightide_agent.roots import roots
from hightide_agent.sizes import Reading
kept = []
class Trainer:
    def __init__(self):
        self.log = []
    def note(self, x):
        self.log.append(x)
def make():
    inside = []
    def keep(x):
        inside.append(x)
    return keep
keep, trainer = make(), Trainer()
def main():
    mine = []
    mine.append(1)
    for found in walk(roots([sys._getframe()]), {}, 1 << 62):
        if type(found.thing) is list:
            for place in candidates(found, Reading("list", 1, "")):
                print(found.name, (place.file, place.line, place.function))
kept.append(1)
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(done.stdout.splitlines()) == [
        "Trainer.log ('<string>', 12, 'Trainer.note')",
        "inside ('<string>', 16, 'make.keep')",
        "kept ('<string>', 26, '')",
        "mine ('<string>', 21, 'main')",
    ], done.stderr


def test_what_a_library_keeps_unseen_is_no_small_thing() -> None:
    import datetime
    import zlib

    from hightide_agent.measure import Measure

    class Model:
        def __init__(self, inner: Any) -> None:
            self.parts = [{"name": "a part", "inner": inner}]

    def opaque(inner: Any) -> bool:
        measure = Measure({})
        measure.add(Model(inner))
        return measure.opaque

    assert opaque(zlib.compressobj()), "256 KiB that nothing tells of"
    # whose type says that it is of builtins, as any does whose name in C has no module: an image of PIL
    assert opaque(datetime.datetime_CAPI)
    assert not opaque([1.5, "text", None, int, {}, range(3), ..., ValueError()])


def test_plain_numbers_and_text_are_counted() -> None:
    """A list of numbers takes what sys.getsizeof says of it and of them; what the interpreter shares is nobody's."""
    from hightide_agent.measure import Measure

    def bytes_of(*item: Any) -> float:
        measure = Measure({})
        measure.add(*item)
        assert not measure.rough
        return measure.total()

    rows = [i + 0.5 for i in range(5000)]
    assert bytes_of(rows) == pytest.approx(sys.getsizeof(rows) + 5000 * 24)
    assert bytes_of([7] * 10) == sys.getsizeof([7] * 10)
    assert bytes_of(1 << 40, "a key of a dict") == pytest.approx(
        sys.getsizeof(1 << 40) + sys.getsizeof("a key of a dict"), abs=2
    )
    nested = {"row": [1.5, 2.5]}
    assert bytes_of(nested) == pytest.approx(
        sys.getsizeof(nested) + sys.getsizeof("row") + sys.getsizeof([1, 2]) + 48, abs=20
    )
    for item in (object(), [object()], ["text"] * 300):
        rough = Measure({})
        rough.add(item)
        assert rough.rough, item


def test_nothing_waits_for_the_collector_after_a_measure() -> None:
    import gc

    from hightide_agent.measure import Measure

    def waiting() -> Any:
        data = bytearray(4096)
        yield 1
        yield data

    def measured() -> float:
        measure = Measure({})
        for generator in generators:
            measure.add(generator)
        return measure.data()

    generators = [waiting() for _ in range(4)]
    for generator in generators:
        next(generator)
    gc.collect()
    assert {measured() for _ in range(3)} == {4096 + 50}, "a frame is not taken for one that ran and is gone"
    assert gc.collect() == 0, "a frame that keeps itself keeps the program's tensors, too"


def test_what_other_threads_change_is_no_error() -> None:
    from hightide_agent.insides import copied

    class Changing(Dict[int, int]):
        failures = 0

        def items(self) -> Any:
            self.failures += 1
            raise RuntimeError("dictionary changed size during iteration")

    assert copied({1: 2}) == [(1, 2)]
    busy = Changing()
    assert copied(busy) == []
    assert busy.failures == 3


def test_compiled_code_is_not_the_users_own() -> None:
    from hightide_agent.places import is_library

    assert is_library("/tmp/torchinductor_me/gw/cgwz76v3vs2zwlqypalqtdcgb5tx7y2ytl2tvkwxltzryd5jkjhn.py")
    assert is_library("/tmp/__autograph_generated_fileueh_rsdk.py")
    assert not is_library("/home/me/cgwz76v3.py")


def test_whose_files_are_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    from hightide_agent import places

    monkeypatch.setattr(places, "_WINDOWS", True)
    monkeypatch.setattr(places, "_PYTHONS", places._folders({"C:\\Python311", "C:\\work\\venv"}, True))
    for library in (r"C:\Python311\Lib\json\encoder.py", r"C:\Python311\python311.zip\json\encoder.pyc",
                    r"C:\work\venv\Lib\site-packages\torch\optim\adam.py", r"C:\work\venv\Scripts\train-script.py",
                    r"D:\hightide_agent\watcher.py", r"C:\Temp\__autograph_generated_fileueh_rsdk.py"):  # fmt: skip
        assert places.is_library(library), library
    assert not places.is_library(r"C:\work\train.py") and not places.is_library(r"C:\work\venv\train.py")
    assert places._package(r"C:\work\venv\Lib\site-packages\torch\optim\adam.py") == "torch"
