"""What of a dataset is told as many Python objects, before workers are forked."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

HEAD = """
import torch, numpy
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset
class Rows(Dataset):
    def __init__(self, rows):
        self.size = 8
        self.rows = rows
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return i
def read(dataset, workers=1, **options):
    for _ in DataLoader(dataset, batch_size=4, num_workers=workers, **options):
        pass
if __name__ == "__main__":
    strings = ["row %d" % i for i in range(30_000)]
"""


def told(observe: Any, body: str) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = observe(HEAD + "    " + body + "\n").main.all("dataset")
    return found


@pytest.mark.parametrize(
    ("data", "name", "kind", "contains"),
    [
        ("Rows(strings)", "Rows.rows", "list", "str"),
        ("Subset(Rows(strings), range(8))", "Subset.dataset.rows", "list", "str"),
        ("ConcatDataset([Rows([]), Rows(strings)])", "ConcatDataset.datasets[1].rows", "list", "str"),
        ("Rows({i: (i, str(i)) for i in range(20_000)})", "Rows.rows", "dict", "tuple"),
        ("strings", "the dataset", "list", "str"),
    ],
)
def test_named(observe: Any, data: str, name: str, kind: str, contains: str) -> None:
    (found,) = told(observe, "read(%s)" % data)
    assert (found["name"], found["kind"], found["contains"]) == (name, kind, contains)
    assert 20_000 * 50 < found["bytes"] < 30_000 * 400
    if name != "the dataset":
        assert found["line"] == 7 and found["file"].endswith("script.py")


@pytest.mark.parametrize(
    "body",
    [
        "read(Rows(strings), 0)",
        "read(Rows(strings), multiprocessing_context='spawn')",
        "read(Rows(torch.ones(30_000, 4)))",
        "read(Rows(numpy.array(strings)))",
        "read(Rows(strings[:1000]))",
        "read(Rows([None] * 30_000))",
    ],
    ids=["no workers", "not forked", "a tensor", "an array", "few", "one object"],
)
def test_not_named(observe: Any, body: str) -> None:
    assert not told(observe, body)
