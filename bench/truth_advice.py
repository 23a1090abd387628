"""What happens to those who follow the advice? A program, the advice of its report, and the program changed as advised.

Each pair keeps something every step. It says the words that its advice has to have, and the lines that follow it. Both
programs run under hightide, one after the other; each says at its end what the kernel counts: how much anonymous memory
a step took. An advice holds if it has the words, and if the change saves what is promised ("That saves 1.95 MiB per
step"), or up to twice that, within the noise of a process. Steps take 5, 16 and 100 ms in turn.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import CACHE, PYTHON, MiB, Recordings, Row, must, run

LEAST, MOST = 0.75, 2.0  # of what is promised: with the objects go holes that malloc kept between them
NOISE = 0.12  # MiB a step that a process takes or gives back beside
BAR = 0.95  # of the pairs
SPEEDS = ((5, 400), (16, 250), (100, 70))  # ms a step, steps

FRAME = """
import json, os, sys, time
sys.path.insert(0, {package!r})
import hightide
{setup}

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024

WARM, STEPS = {steps} // 4, {steps}
def train():
    for step in range(STEPS):
        if step == WARM:
            before = anonymous()
{body}
        time.sleep({pause})
        {marks}
    print(json.dumps(dict(grew=(anonymous() - before) / (STEPS - WARM))), flush=True)
train()
"""


@dataclass
class Pair:
    """A program by what it does in a step, and what the advice makes of it."""

    name: str
    words: str
    """a regular expression that the advice holds"""
    setup: str
    body: str
    advised: str | tuple[str, str]
    """the body as advised; with another setup: (setup, body)"""
    python: Path = PYTHON
    own_steps: bool = False
    """an optimizer takes the steps"""
    env: dict[str, str] = field(default_factory=dict)
    """of the advised program, where the advice is of the environment"""

    def texts(self, place: int) -> tuple[str, str]:
        setup, body = self.advised if isinstance(self.advised, tuple) else (self.setup, self.advised)
        return self.text(place, self.setup, self.body), self.text(place, setup, body)

    def text(self, place: int, setup: str, body: str) -> str:
        pause, steps = SPEEDS[place % len(SPEEDS)]
        package = str(Path(__file__).resolve().parent.parent / "agent" / "python" / "src")
        lines = "\n".join("        " + line for line in body.splitlines())
        marks = "pass" if self.own_steps else "hightide.step()"
        return FRAME.format(package=package, setup=setup, steps=steps, body=lines, pause=pause / 1e3, marks=marks)


NUMPY = "import numpy as np\ndef make(n=131072): return np.full(n, 1.0)\n"
MODEL = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
batch = torch.randn(512, 64)
def step_of(out):
    loss = (out - batch).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss
"""
TORCH = "import torch\ntorch.manual_seed(0)\n"
RING = "import collections\n"
LARGE = {"MALLOC_MMAP_THRESHOLD_": "131072"}  # as is advised where small copies lie between large blocks


def numpy_pairs() -> list[Pair]:
    bound = r"Bound `{}`"
    last = "kept.append(make())"
    ring = RING + NUMPY + "kept = collections.deque(maxlen=8)\n"
    pairs = [
        Pair("list", bound.format("kept"), NUMPY + "kept = []", last, (ring, last)),
        Pair("deque", bound.format("kept"), NUMPY + RING + "kept = collections.deque()", last, (ring, last)),
        Pair("dict", "`kept`", NUMPY + "kept = {}", "kept[step] = make()", "kept[step] = make(); kept.pop(step - 8, None)"),
        Pair(
            "ordered dict", "`kept`", NUMPY + RING + "kept = collections.OrderedDict()", "kept[step] = make()",
            "kept[step] = make()\nif len(kept) > 8: kept.popitem(last=False)",
        ),
        Pair(
            "list in a dict", "history", NUMPY + "history = {'rows': []}", "history['rows'].append(make())",
            "history['rows'].append(make()); del history['rows'][:-8]",
        ),
        Pair(
            "defaultdict", "by_kind", NUMPY + RING + "by_kind = collections.defaultdict(list)", "by_kind['a'].append(make())",
            "by_kind['a'].append(make()); del by_kind['a'][:-8]",
        ),
        Pair(
            "attribute", "log", NUMPY + "class Trainer:\n    def __init__(self): self.log = []\ntrainer = Trainer()",
            "trainer.log.append(make())", "trainer.log.append(make()); del trainer.log[:-8]",
        ),
        Pair(
            "attribute of a class", "seen", NUMPY + "class Trainer:\n    seen = []", "Trainer.seen.append(make())",
            "Trainer.seen.append(make()); del Trainer.seen[:-8]",
        ),
        Pair(
            "default argument", "kept", NUMPY + "def collect(x, kept=[]):\n    kept.append(x)", "collect(make())",
            (NUMPY + "def collect(x, kept=[]):\n    kept.append(x)\n    del kept[:-8]", "collect(make())"),
        ),
        Pair(
            "closure", "rows", NUMPY + "def collector():\n    rows = []\n    def add(x):\n        rows.append(x)\n    return add\nadd = collector()",
            "add(make())",
            (NUMPY + "def collector():\n    rows = []\n    def add(x):\n        rows.append(x); del rows[:-8]\n    return add\nadd = collector()", "add(make())"),
        ),
        Pair(
            "set of bytes", "kept", "kept = set()", "kept.add(step.to_bytes(4, 'big') * 262144)",
            "kept.add(step.to_bytes(4, 'big') * 262144)\nif len(kept) > 8: kept.pop()",
        ),
        Pair(
            "queue", "pending", NUMPY + "import queue\npending = queue.Queue()", "pending.put(make())",
            "pending.put(make())\nif pending.qsize() > 8: pending.get()",
        ),
        Pair(
            "simple queue", "pending", NUMPY + "import queue\npending = queue.SimpleQueue()", "pending.put(make())",
            "pending.put(make())\nif pending.qsize() > 8: pending.get()",
        ),
        Pair(
            "tuples", "kept", NUMPY + "kept = []", "kept.append((step, make()))", "kept.append((step, make())); del kept[:-8]",
        ),
        Pair(
            "objects", "kept", NUMPY + "class Row:\n    def __init__(self): self.values = make()\nkept = []", "kept.append(Row())",
            "kept.append(Row()); del kept[:-8]",
        ),
        Pair(
            "lru_cache", r"cache of `\w*\.?features` a maxsize", NUMPY + "import functools\n@functools.lru_cache(maxsize=None)\ndef features(n): return make()",
            "features(step)", (NUMPY + "import functools\n@functools.lru_cache(maxsize=8)\ndef features(n): return make()", "features(step)"),
        ),
        Pair(
            "chain", "keeps the one before it", NUMPY + "class Node:\n    def __init__(self, before): self.before, self.values = before, make()\nlast = None",
            "global last\nlast = Node(last)", "global last\nlast = Node(None)",
        ),
    ]  # fmt: skip
    views = [
        ("numpy row", "images[0]", ".copy()"), ("numpy rows", "images[3:5]", ".copy()"), ("numpy transposed", "images.T[:4]", ".copy()"),
    ]  # fmt: skip
    many = "import numpy as np\nkept = []\ndef read(): return np.full((64, 2048), 1.0)\n"
    pairs += [
        Pair(name, r"is a view.*\.copy\(\)", many, f"images = read()\nx = {what}\nkept.append(x)", f"images = read()\nx = {what}\nkept.append(x{how})", env=LARGE)
        for name, what, how in views
    ]  # fmt: skip
    return pairs


def torch_pairs() -> list[Pair]:
    many = TORCH + "kept = []\ndef read(): return torch.full((64, 4096), 1.0)\n"
    views = [
        ("row", "images[0]"),
        ("rows", "images[3:5]"),
        ("narrow", "images.narrow(1, 0, 8)"),
        ("transposed", "images.t()[:4]"),
    ]
    pairs = [
        Pair(f"torch {name}", r"is a view.*\.clone\(\)", many, f"images = read()\nx = {what}\nkept.append(x)",
             f"images = read()\nx = {what}\nkept.append(x.clone())", env=LARGE) for name, what in views
    ]  # fmt: skip
    pairs += [
        Pair(
            "view in a dict", r"item\['first'\]\.clone\(\)", many, "images = read()\nkept.append({'first': images[0], 'n': step})",
            "images = read()\nkept.append({'first': images[0].clone(), 'n': step})", env=LARGE,
        ),
        Pair(
            "loss", r"`loss\.item\(\)`", MODEL + "history = []", "out = net(batch)\nloss = (out - batch).pow(2).mean()\nhistory.append(loss)",
            "out = net(batch)\nloss = (out - batch).pow(2).mean()\nhistory.append(loss.item())",
        ),
        Pair(
            "loss in a dict", r"item\['loss'\]\.item\(\)", MODEL + "history = []",
            "out = net(batch)\nloss = (out - batch).pow(2).mean()\nhistory.append({'loss': loss, 'step': step})",
            "out = net(batch)\nloss = (out - batch).pow(2).mean()\nhistory.append({'loss': loss.item(), 'step': step})",
        ),
        Pair(
            "losses by element", r"`losses\.detach\(\)`", MODEL + "history = []",
            "out = net(batch)\nlosses = (out - batch).pow(2).mean(1)\nhistory.append(losses)",
            "out = net(batch)\nlosses = (out - batch).pow(2).mean(1)\nhistory.append(losses.detach())",
        ),
        Pair(
            "outputs", r"`out\.detach\(\)`", MODEL + "outputs = []", "out = net(batch)\noutputs.append(out)", "out = net(batch)\noutputs.append(out.detach())",
        ),
        Pair(
            "loss and prediction", r"item\['loss'\]\.item\(\).*item\['prediction'\]\.detach\(\)|item\['prediction'\]\.detach\(\).*item\['loss'\]\.item\(\)",
            MODEL + "outputs = []", "out = net(batch)\nloss = (out - batch).pow(2).mean()\noutputs.append({'loss': loss, 'prediction': out})",
            "out = net(batch)\nloss = (out - batch).pow(2).mean()\noutputs.append({'loss': loss.item(), 'prediction': out.detach()})",
        ),
        Pair(
            "running total", r"\.item\(\)", MODEL + "total = 0.0", "global total\nout = net(batch)\ntotal = total + (out - batch).pow(2).mean()",
            "global total\nout = net(batch)\ntotal = total + (out - batch).pow(2).mean().item()",
        ),
        Pair(
            "attribute with graph", r"\.(item|detach)\(\)", MODEL + "class Meter:\n    def __init__(self): self.values = []\nmeter = Meter()",
            "loss = (net(batch) - batch).pow(2).mean()\nmeter.values.append(loss)", "loss = (net(batch) - batch).pow(2).mean()\nmeter.values.append(loss.item())",
        ),
        Pair(
            "after backward", r"holds nothing any more", MODEL + "batch = torch.randn(4096, 64)\noutputs = []", "out = net(batch)\nstep_of(out)\noutputs.append(out)",
            "out = net(batch)\nstep_of(out)\noutputs.append(out); del outputs[:-8]", own_steps=True,
        ),
        Pair(
            "state dicts", r"`snapshots`", MODEL + "big = torch.nn.Linear(512, 512)\nsnapshots = []",
            "step_of(net(batch))\nsnapshots.append({k: v.clone() for k, v in big.state_dict().items()})",
            "step_of(net(batch))\nsnapshots.append({k: v.clone() for k, v in big.state_dict().items()}); del snapshots[:-8]", own_steps=True,
        ),
        Pair(
            "models", r"`trials`", TORCH + "trials = []", "trials.append(torch.nn.Linear(512, 512))", "trials.append(torch.nn.Linear(512, 512)); del trials[:-8]",
        ),
        Pair(
            "hooks", r"remove\(\)", MODEL + "def hook_of(x): return lambda *_: x.sum()",
            "handle = net.register_forward_hook(hook_of(torch.full((262144,), 1.0)))",
            "handle = net.register_forward_hook(hook_of(torch.full((262144,), 1.0)))\nhandle.remove()",
        ),
        Pair(
            "concatenated", r"Drop of `history` what is no longer needed", TORCH + "history = torch.zeros(0)", "global history\nhistory = torch.cat([history, torch.full((131072,), 1.0)])",
            (TORCH + "history = torch.zeros(8 * 131072)", "history[(step % 8) * 131072:(step % 8 + 1) * 131072] = 1.0"),
        ),
        Pair(
            "metrics", r"\.(item|detach)\(\)", MODEL + "metrics = {'loss': [], 'step': []}",
            "loss = (net(batch) - batch).pow(2).mean()\nmetrics['loss'].append(loss)\nmetrics['step'].append(step)",
            "loss = (net(batch) - batch).pow(2).mean()\nmetrics['loss'].append(loss.item())\nmetrics['step'].append(step)",
        ),
        Pair(
            "view with graph", r"\.detach\(\)", MODEL + "kept = []", "out = net(batch)\nx = out[0]\nkept.append(x)", "out = net(batch)\nx = out[0]\nkept.append(x.detach().clone())",
        ),
    ]  # fmt: skip
    return pairs


def block_pairs() -> list[Pair]:
    """Text, buffers and arrays that are one block of memory, which gets larger."""
    file, numpy = "dump = open(os.devnull, 'w')", "import numpy as np\n"
    write = r"[Ww]rite .*to a file"
    return [
        Pair("str", write, f"log = ''\n{file}", "global log\nlog += chr(97 + step % 26) * 300000", "dump.write(chr(97 + step % 26) * 300000)"),
        Pair("str of a dict", write, f"state = {{'log': ''}}\n{file}", "state['log'] += chr(97 + step % 26) * 300000", "dump.write('a' * 300000)"),
        Pair("bytes", write, f"log = b''\n{file}", "global log\nlog = log + bytes([step % 256]) * 300000", "dump.write('a' * 300000)"),
        Pair("bytearray", r"del buffer\[:n\]", "received = bytearray()", "received.extend(bytes([step % 256]) * 400000)",
             "received.extend(bytes([step % 256]) * 400000); del received[:-800000]"),
        Pair("array.array", r"del values\[:n\]", "import array\nsamples = array.array('d')", "samples.extend([float(step)] * 50000)",
             "samples.extend([float(step)] * 50000); del samples[:-100000]"),
        Pair("BytesIO", r"truncate\(\)", "import io\nbuffer = io.BytesIO()", "buffer.write(bytes([step % 256]) * 400000)",
             "buffer.seek(0); buffer.truncate(); buffer.write(bytes([step % 256]) * 400000)"),
        Pair("StringIO", r"truncate\(\)", "import io\nlines = io.StringIO()", "print(chr(97 + step % 26) * 300000, file=lines)",
             "lines.seek(0); lines.truncate(); print(chr(97 + step % 26) * 300000, file=lines)"),
        Pair("np.append", r"Drop of `seen` what is no longer needed", numpy + "seen = np.zeros(0)", "global seen\nseen = np.append(seen, np.full(50000, 1.0))",
             "global seen\nseen = np.append(seen, np.full(50000, 1.0))[-200000:].copy()"),
    ]  # fmt: skip


def other_pairs() -> list[Pair]:
    frames = CACHE / "notebook" / "bin" / "python"
    return [
        Pair(
            "pandas", r"`kept`", "import numpy as np, pandas as pd\nkept = []", "kept.append(pd.DataFrame({'a': np.full(131072, 1.0)}))",
            "kept.append(pd.DataFrame({'a': np.full(131072, 1.0)})); del kept[:-8]", python=frames,
        ),
        Pair(
            "pandas appended", r"Drop of `kept` what is no longer needed", "import numpy as np, pandas as pd\nkept = pd.DataFrame({'a': np.zeros(0)})",
            "global kept\nkept = pd.concat([kept, pd.DataFrame({'a': np.full(131072, 1.0)})])",
            "global kept\nkept = pd.DataFrame({'a': np.full(131072, 1.0)})", python=frames,
        ),
        Pair("python strings", r"`lines`", "lines = []", "lines.append(str(step) * 300000)", "lines.append(str(step) * 300000); del lines[:-8]"),
        Pair("bytes by name", r"`by_name`", "by_name = {}", "by_name['n%d' % step] = b'x' * (1 << 20)", "by_name['n%d' % (step % 8)] = b'x' * (1 << 20)"),
    ]  # fmt: skip


def known() -> list[Pair]:
    return [*numpy_pairs(), *torch_pairs(), *block_pairs(), *other_pairs()]


@dataclass
class Followed:
    """What came of a pair; MiB a step."""

    pair: Pair
    said: str
    promised: float | None
    saved: float

    @property
    def ok(self) -> bool:
        if self.promised is None or re.search(self.pair.words, self.said, re.DOTALL) is None:
            return False
        return self.promised * LEAST - NOISE <= self.saved <= self.promised * MOST + NOISE

    def text(self) -> str:
        promised = "nothing" if self.promised is None else f"{self.promised:.2f}"
        return f"promised {promised}, saved {self.saved:.2f} MiB a step; {self.said[:200] or 'no advice'}"


UNITS = {"B": 1, "KiB": 1024, "MiB": MiB, "GiB": 1024 * MiB}


def follow(pair: Pair, place: int) -> Followed:
    with tempfile.TemporaryDirectory() as folder:
        grew = []
        said = ""
        for number, text in enumerate(pair.texts(place)):
            file = Path(folder) / "program.py"
            file.write_text(text)
            data = Recordings()
            command = [*data.command(), str(pair.python), str(file)]
            done = must(run(command, env={"OMP_NUM_THREADS": "1", **(pair.env if number else {})}))
            grew.append(json.loads(done.stdout.splitlines()[-1])["grew"] / MiB)
            if number == 0:
                said = advice(data.report()["findings"])
    promise = re.search(r"That saves ([\d.]+) (\w+) per step", said)
    promised = float(promise[1]) * UNITS[promise[2]] / MiB if promise else None
    found = Followed(pair, said, promised, grew[0] - grew[1])
    print(f"  {'ok ' if found.ok else 'BAD'} {pair.name}: {found.text()}", file=sys.stderr, flush=True)
    return found


def advice(findings: list[dict[str, Any]]) -> str:
    """Of the largest growth."""
    grows = [f for f in findings if f["kind"] in ("leak", "growth")]
    return str(max(grows, key=lambda f: f.get("bytes_per_step") or 0).get("advice") or "") if grows else ""


def rows(only: Sequence[str], jobs: int, quick: bool, folder: Path | None) -> tuple[list[Row], object]:
    pairs = [(n, p) for n, p in enumerate(known()) if not only or any(name in p.name for name in only)]
    if quick and not only:
        pairs = pairs[::10]
    with ThreadPoolExecutor(jobs) as pool:
        followed = list(pool.map(lambda pair: follow(pair[1], pair[0]), pairs))
    good = sum(f.ok for f in followed)
    found = [Row(f.pair.name, f.text(), f"{LEAST:g} to {MOST:g} of the promise", f.ok) for f in followed]
    whole = Row(
        "advice that saves what it promises", f"{good} of {len(followed)}", f"{BAR:.0%}", good >= BAR * len(followed)
    )
    return [*found, whole], [
        {"name": f.pair.name, "promised": f.promised, "saved": f.saved, "said": f.said} for f in followed
    ]
