"""When ranks come to where they meet, of two real ranks on gloo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from ring import Ring

torch = pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

HEAD = """
import os, sys, tempfile, time
import torch
from torch import nn
import torch.distributed as dist
folder = tempfile.mkdtemp()
child = os.fork()
rank = 0 if child else 1
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://%s/meet" % folder, rank=rank, world_size=2)
model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
def step(model, optimizer, after=lambda: None):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).mean().backward()
    after()
    optimizer.step()
    if rank == 1:
        time.sleep(0.02)
"""
TAIL = """
dist.destroy_process_group()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def moments(ring: Ring) -> Dict[str, List[Tuple[int, int]]]:
    """By series: (steps completed, when)."""
    names = {j["id"]: j["name"] for j in ring.all("series")}
    found: Dict[str, List[Tuple[int, int]]] = {}
    for record in ring.records:
        if record["kind"] == "counters":
            for series, value in record["values"]:
                found.setdefault(names[series], []).append((value, record["time"]))
    return found


def late(of: List[Ring], gate: str) -> float:
    """By how much rank 1 comes later than rank 0: the median over steps, ms."""
    zero, one = (dict(moments(ring)[gate]) for ring in of)
    steps = sorted(set(zero) & set(one) - {0})
    assert len(steps) >= 10
    return sorted(one[s] - zero[s] for s in steps)[len(steps) // 2] / 1e6


def ranked(result: Any) -> List[Ring]:
    """The channels of both ranks, in their order."""
    found = [(ring.all("hello")[-1], ring) for ring in result.rings]
    assert [hello["role"] for hello, _ in found] == ["rank", "rank"]
    return [ring for _, ring in sorted(found, key=lambda pair: pair[0]["rank"])]


@pytest.mark.parametrize("buffers", [False, True])
def test_data_parallel(observe: Any, buffers: bool) -> None:
    """Ranks meet in the backward pass; where there are buffers they meet before the forward pass already."""
    result = observe(
        HEAD + "from torch.nn.parallel import DistributedDataParallel\n"
        "model = DistributedDataParallel(model, broadcast_buffers=%r)\n"
        "sgd = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for i in range(20):\n    step(model, sgd)\n" % buffers + TAIL
    )
    both = ranked(result)
    assert late(both, "entered.forward" if buffers else "entered.backward") > 15
    assert ("entered.forward" in moments(both[0])) == buffers


def test_collectives_that_python_calls(observe: Any) -> None:
    result = observe(
        HEAD + "sgd = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "def after():\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n"
        "for i in range(20):\n    step(model, sgd, after)\n" + TAIL
    )
    both = ranked(result)
    assert late(both, "entered.collective") > 15
    steps = [step for step, _ in moments(both[0])["entered.collective"]]
    assert steps == sorted(set(steps)), "the first of each step, and no other"
    assert "entered.backward" not in moments(both[0]), "nothing is summed in it"


def test_alone_nothing_is_noted(observe: Any) -> None:
    ring = observe(
        """
        import tempfile
        import torch
        import torch.distributed as dist
        before = dist.ProcessGroup.allreduce
        dist.init_process_group("gloo", init_method="file://%s/meet" % tempfile.mkdtemp(), rank=0, world_size=1)
        assert dist.ProcessGroup.allreduce is before
        dist.all_reduce(torch.ones(1))
        """
    ).main
    assert not moments(ring) and "rank" not in ring.all("hello")[-1]


COMPILED = """
import json, tempfile
import torch, torch._dynamo as dynamo
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo", init_method="file://%s/meet" % tempfile.mkdtemp(), rank=0, world_size=1)
if OBSERVED:
    import hightide_agent.pytorch.collectives as c, gc
    for found in [o for o in gc.get_objects() if type(o) is c.Collectives]:
        found._begun = True  # as in a world of two
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
run, sgd = torch.compile(model, backend="eager"), torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(5):
    run(torch.randn(4, 8)).mean().backward(); sgd.step(); sgd.zero_grad()
counts = dynamo.utils.counters
print(json.dumps([counts["frames"], sum(counts["graph_break"].values())]))
"""


def test_compiled_as_without(observe: Any, tmp_path: Path) -> None:
    """PyTorch makes the same graphs of a compiled model, and of what that calls, as without us."""
    file = tmp_path / "plain.py"
    file.write_text(COMPILED.replace("OBSERVED", "False"))
    plain = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True).stdout
    assert observe(COMPILED.replace("OBSERVED", "True")).out == plain
