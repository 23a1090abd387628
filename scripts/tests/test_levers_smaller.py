"""States of 8 bits and adapters as levers of a plan, with real bitsandbytes and PEFT: on the CPU, and on an imaginary GPU."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

PYTHON = Path.home() / ".cache/hightide/libraries/bin/python"
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=f"no {PYTHON}: scripts/setup libraries makes it")

TRAIN = """
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(1024, 2048), nn.Linear(2048, 1024)) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x

model = Net().cuda()
if "own" in sys.argv:
    import bitsandbytes
    optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
else:
    optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    model(torch.randn(8, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
print("states", sum(t.nbytes for t in states if t.is_cuda))
"""

PLAIN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(1024, 4096, device="cuda"), nn.Linear(4096, 1024, device="cuda")) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x

model = Net()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    model(torch.randn(8, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def imagined(folder: Path, *arguments: str, **levers: str) -> tuple[int, int]:
    """The peak of what the allocator gave, and the bytes of the states."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "plan.toml").write_text("version = 1\n" + "".join(f"[levers.{name}]\n" for name in levers))
    done = subprocess.run(
        [ROOT / "bin/hightide", "imagine", "-q", "--no-suggest", "--gpu", "a10", "--json=verdict.json",
         "--plan", "plan.toml", "--", PYTHON, "train.py", *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "HIGHTIDE_DATA": str(folder / "data")})  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict = json.loads((folder / "verdict.json").read_text())
    return verdict["peak_allocated_bytes"], int(done.stdout.split("states ")[1])


def test_their_bytes_on_an_imaginary_gpu(tmp_path: Path) -> None:
    """Those of a program that makes bitsandbytes' optimizer itself, to the byte; adapters alone have gradients and states."""
    own = imagined(tmp_path, "own")
    assert imagined(tmp_path, states_8bit="") == own
    weights = 4 * 1024 * 2048
    assert 2 * weights < own[1] < 2.1 * weights, "a byte for each number and state"
    peak, states = imagined(tmp_path, lora="")
    assert states == 2 * 4 * 4 * 8 * (1024 + 2048)
    assert peak < own[0] - 5 * weights, "neither gradients of 4 bytes nor states are there"


def hightide(folder: Path, command: str, *arguments: str) -> None:
    done = subprocess.run(
        [ROOT / "bin/hightide", command, "-q", "--gpu", "a10", *arguments, "--", PYTHON, "train.py"],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "HIGHTIDE_DATA": str(folder / "data")})  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("lever", "memory", "written"),
    [
        ("states_8bit", "1000MiB", "+optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())"),
        ("lora", "850MiB", '+    peft.LoraConfig(r=8, lora_alpha=16, target_modules=r"blocks\\.\\d+\\.(0|1)"), model'),
    ],
)
def test_as_code(lever: str, memory: str, written: str, tmp_path: Path) -> None:
    """The program with the patch has the peak of the plan, to the byte."""
    (tmp_path / "train.py").write_text(PLAIN)
    hightide(tmp_path, "tune", "--memory", memory, "--allow", lever, "--patch", "--json=tuned.json")
    patch = json.loads((tmp_path / "tuned.json").read_text())["patch"]
    assert list(patch["plan"]["levers"]) == [lever] and patch["as_planned"], patch["says"]
    assert written in patch["text"].splitlines()
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=patch["text"], text=True, check=True, capture_output=True)
    hightide(tmp_path, "imagine", "--no-suggest", "--json=once.json")
    planned = patch["plan"]["planned"]["peak_allocated_bytes"]
    assert json.loads((tmp_path / "once.json").read_text())["peak_allocated_bytes"] == planned


def test_trainings_on_the_cpu() -> None:
    """The agent's own tests of both, in the one environment that has the packages."""
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "agent/python/tests/test_levers_smaller.py"],
        cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
