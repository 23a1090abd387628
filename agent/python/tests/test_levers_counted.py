"""How the passes of a step add up, as tune looks at it: a batch in parts by the program's own count of accumulation."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

torch = pytest.importorskip("torch")

SCRIPT = """
import torch
from torch import nn
torch.manual_seed(0)
SIZE, COUNT, HOW = %d, %d, %r

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 5))
        self.norm = nn.BatchNorm1d(5) if HOW == "norm" else nn.Identity()

    def forward(self, x):
        return self.norm(self.parts(x))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
data = [(torch.randn(16), torch.randint(0, 5, ())) for _ in range(80)]
loader = torch.utils.data.DataLoader(data, SIZE, shuffle=True, generator=torch.Generator().manual_seed(1))
count = 1 if HOW == "ignored" else COUNT
for i, (x, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(x), y, reduction="sum" if HOW.endswith("sum") else "mean")
    if HOW == "tensor":
        loss = loss / torch.tensor(float(count)).mul(1.0)
    elif HOW == "added":
        loss = (loss + 0.25 * model.parts[0].weight.square().mean()) * (1 / count)
    elif HOW not in ("undivided", "sum"):
        loss = loss / count
    loss.backward()
    if (i + 1) %% count == 0:
        print("norm", *(p.grad.norm().item() for p in model.parameters()))
        optimizer.step()
        optimizer.zero_grad()
    elif HOW == "zeroed":
        optimizer.zero_grad()
    if HOW == "rates" or (i + 1) %% count == 0:
        schedule.step()
print("norm", *(p.norm().item() for p in model.parameters()))
"""
COUNTED = {"HIGHTIDE_COUNTED": "1"}


def counted(result: Any) -> Dict[str, Any]:
    return [record["value"] for record in result.main.all("fact") if record["key"] == "counted"][-1]


def numbers(text: str) -> List[float]:
    return [float(n) for line in text.splitlines() if line.startswith("norm ") for n in line.split()[1:]]


def first(step: Dict[str, Any], key: str) -> Any:
    return step[key][0]["scale"] if key == "losses" else step[key]


@pytest.mark.parametrize(
    ("how", "losses"),
    [
        ("", [("mean", 1)]),
        ("tensor", [("mean", 1)]),
        ("added", [("mean", 1), ("mean", 0.25)]),
        ("sum", [("sum", None)]),
    ],
)
def test_a_loop_whose_parts_add_up(observe: Any, how: str, losses: Any) -> None:
    """Gradients of ten steps and weights are those of the whole batch but for rounding, and what is told says so."""
    whole, parts = (observe(SCRIPT % (*size, how), env=COUNTED) for size in ((8, 1), (2, 4)))
    assert len(numbers(whole.out)) == 44
    assert numbers(parts.out) == pytest.approx(numbers(whole.out), rel=2e-4, abs=2e-6)
    one, four = counted(whole), counted(parts)
    assert one["norm"] == four["norm"] == "" and len(one["steps"]) == len(four["steps"]) == 3
    for count, told in ((1, one), (4, four)):
        for step in told["steps"]:
            assert (step["passes"], step["inputs"], step["alike"], step["kept"]) == (count, 8 * 16, True, True)
            want = [{"kind": k, "scale": 1.0 if s is None else pytest.approx(s / count)} for k, s in losses]
            assert step["losses"] == want
    assert [s["rates"] for s in one["steps"]] == [s["rates"] for s in four["steps"]] != []
    assert observe(SCRIPT % (2, 4, how)).out == parts.out, "to look changes nothing, to the bit"


def test_loops_whose_parts_do_not(observe: Any) -> None:
    """Each of them trains otherwise in parts, and what is told differs where tune looks."""
    for how, differs in {"undivided": "losses", "divided sum": "losses", "ignored": "passes", "zeroed": "kept",
                         "rates": "rates"}.items():  # fmt: skip
        whole, parts = (observe(SCRIPT % (*size, how), env=COUNTED) for size in ((8, 1), (2, 4)))
        assert numbers(parts.out)[-4:] != pytest.approx(numbers(whole.out)[-4:], rel=1e-3), how
        seen = [[first(step, differs) for step in counted(result)["steps"]] for result in (whole, parts)]
        same = {"undivided": seen[0], "ignored": seen[0], "divided sum": [0.25] * 3, "zeroed": [False] * 3}.get(how)
        assert seen[1] == same if same is not None else seen[0] != seen[1], (how, seen)
    normed = observe(SCRIPT % (8, 1, "norm"), env=COUNTED)
    assert counted(normed)["norm"] == "norm"
