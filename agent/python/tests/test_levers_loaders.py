"""Levers of data loaders in real trainings: losses stay the same bit for bit, and workers take less memory."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="workers are looked at by /proc")

TRAIN = """
import random, sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Data(Dataset):
    def __init__(self):
        self.x = np.random.default_rng(0).standard_normal((1 << 19, 16), dtype=np.float32)  # 32 MiB
        self.parts = [self.x, np.asfortranarray(self.x[: 1 << 17])]

    def __len__(self):
        return 96

    def __getitem__(self, i):
        DRAW
        self.x[i] += self.x.sum() * 1e-6  # reads all of it, and writes what no other process may see
        info = get_worker_info()
        own = sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous"))
        return torch.from_numpy(self.x[i] + self.parts[1][i]), own, info.num_workers if info else 0, (
            info.dataset.parts[0] is info.dataset.x if info else True)

def main():
    torch.manual_seed(0)
    data = Data()
    model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=WORKERS, multiprocessing_context="START",
                        prefetch_factor=4)
    own, workers = 0, 0
    for epoch in range(2):
        for x, taken, count, same in loader:
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(loss.item().hex())
            own, workers = own if epoch else max(own, int(taken.max())), int(count[0])
            assert same.all(), "two names of one array"
        data.x[3] = 7 * epoch  # workers of the next epoch get this
    print(own, workers, loader.prefetch_factor, loader.pin_memory, file=sys.stderr)

if __name__ == "__main__":
    main()
"""


def script(start: str = "spawn", workers: int = 2, draw: str = "pass") -> str:
    return TRAIN.replace("START", start).replace("WORKERS", str(workers)).replace("DRAW", draw)


STREAM = (
    script("fork")
    .replace("__getitem__", "item")
    .replace("    def __len__", "    def __iter__(self):\n        return map(self.item, range(96))\n\n    def __len__")
    .replace("(Dataset)", "(torch.utils.data.IterableDataset)")
    .replace("shuffle=True, ", "")
)


def plan(**levers: Any) -> Dict[str, str]:
    return {"HIGHTIDE_PLAN": json.dumps({"levers": levers})}


def facts(result: Any) -> Dict[str, Any]:
    return {record["key"]: record["value"] for ring in result.rings for record in ring.all("fact")}


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_share_the_arrays_of_a_data_set(observe: Any, start: str) -> None:
    """Also where each writes to them, and the program does between two epochs."""
    plain = observe(script(start), fresh=True)
    changed = observe(script(start), env=plan(shared_data={}), fresh=True)
    assert facts(changed)["plan"] == "applied"
    assert "Data.x, Data.parts[0], Data.parts[1], " in facts(changed)["lever shared_data"]
    assert len(plain.out.split()) == 24 and changed.out == plain.out
    own, shared = (int(result.err.split()[0]) >> 10 for result in (plain, changed))
    assert shared < own - 20, "MiB of pages that are no file's"


def test_loaders_fetch_less_ahead(observe: Any) -> None:
    text = script("fork").replace("prefetch_factor=4", "prefetch_factor=4, pin_memory=True")
    plain, changed = observe(text), observe(text, env=plan(loader_ahead={}))
    assert facts(changed)["lever loader_ahead"] == "1 batch ahead in place of 4, no pinned memory"
    assert changed.out == plain.out
    assert changed.err.split()[-2:] == ["1", "False"] and plain.err.split()[-2:] == ["4", "True"]


def test_loaders_have_fewer_workers(observe: Any) -> None:
    text = script("fork", 4).replace("self.x[i] +=", "own =")  # each worker would see its own writes
    plain, changed = observe(text), observe(text, env=plan(loader_workers={"workers": 2}))
    assert facts(changed)["lever loader_workers"] == "2 workers in place of 4"
    assert changed.out == plain.out
    assert [result.err.split()[-3] for result in (plain, changed)] == ["4", "2"]


@pytest.mark.parametrize(
    ("draw", "named"), [("torch.rand(1)", "PyTorch"), ("random.random()", "Python"), ("np.random.rand()", "NumPy")]
)
def test_fewer_workers_are_refused_where_they_draw(observe: Any, draw: str, named: str) -> None:
    result = observe(script("fork", 4, draw), env=plan(loader_workers={"workers": 2}), ok=False)
    assert result.code != 0 and result.out == "", "it ends before its first step"
    assert "loader_workers: the data set draws numbers from %s's generator" % named in facts(result)["plan refused"]


@pytest.mark.parametrize(
    ("levers", "text", "why"),
    [
        ({"shared_data": {}}, script("fork"), "no array of 1 MiB or more of a data set is copied to a worker"),
        ({"loader_workers": {"workers": 2}}, script("fork"), "no DataLoader has more than 2 workers"),
        ({"loader_ahead": {}}, script("fork").replace("prefetch_factor=4", "prefetch_factor=1"),
         "no DataLoader fetches more than a batch ahead or pins memory"),
        ({"loader_workers": {"workers": 1}}, STREAM, "Data is a stream"),
    ],
)  # fmt: skip
def test_refused_where_there_is_nothing_to_change(observe: Any, levers: Dict[str, Any], text: str, why: str) -> None:
    result = observe(text, env=plan(**levers), ok=False)
    assert result.code == 3 and result.out == ""
    assert why in facts(result)["plan refused"]
