"""Levers as code: edits of the program's own file that a reader would have made, or why there are none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

torch = pytest.importorskip("torch")

PROGRAM = '''"""A training."""
from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.drop = nn.Linear(8, 8), nn.Dropout(0.5)
        NORM

    def forward(self, x, *, scale=1.0):
        return x + self.drop(self.mix(x)) * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        for block in self.h:
            x = block(x, scale=0.5)
        return x


torch.manual_seed(0)
MAKE
net.train()
for _ in range(3):
    loss = net(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    ZERO
    print(loss.item().hex())
'''

SOURCES = Path(__file__).resolve().parents[1] / "src"
RUN = """
import json, runpy, sys
sys.path.insert(0, "SOURCES")
import torch
from hightide_agent.levers import sites, written
from hightide_agent.levers.found import Found
sites.install(torch, lambda name, call: call(sys.modules[name]) if name in sys.modules else None)
out = runpy.run_path(sys.argv[1], run_name="__main__")
sys.modules["__main__"].__file__ = sys.argv[1]
found = Found(torch, None, out["net"])
print("CODE", json.dumps(written.Written(found, sites.seen).levers()))
""".replace("SOURCES", str(SOURCES))


def levers(folder: Path, make: str, zero: str = "optimizer.zero_grad()", norm: str = "") -> Dict[str, Any]:
    """What is said of a program that makes its model and its optimizer so."""
    file = folder / "train.py"
    file.write_text(PROGRAM.replace("MAKE", make).replace("ZERO", zero).replace("NORM", norm))
    done = subprocess.run([sys.executable, "-c", RUN, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.rpartition("CODE ")[2]))


def changed(folder: Path, edits: List[Dict[str, Any]]) -> str:
    """The program with edits, put in from the last to the first."""
    lines = (folder / "train.py").read_text().split("\n")
    starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
    text = "\n".join(lines)
    for e in reversed(sorted(edits, key=lambda e: (e["line"], e["column"]))):
        begin, end = starts[e["line"] - 1] + e["column"], starts[e["end_line"] - 1] + e["end_column"]
        comma = ", " if e.get("keyword") and not text[:begin].rstrip().endswith(("(", ",")) else ""
        text = text[:begin] + comma + e["text"] + text[end:]
    return text.replace("BLOCKS", '["h.0", "h.2"]').replace("VALUE", '"expandable_segments:True"')


def losses(folder: Path, text: str) -> List[str]:
    """What the program prints."""
    file = folder / "changed.py"
    file.write_text(text)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + text
    return done.stdout.split()


MAKES = {
    "plain": "net = Net()\noptimizer = torch.optim.AdamW(net.parameters())",
    "groups": "net = Net()\noptimizer = torch.optim.AdamW([{'params': (net.parameters())}], lr=(1e-3), )",
    "lines": """
net = Net()
optimizer = torch.optim.AdamW(
    net.parameters(),
    lr=(
        1e-3
    ),  # small
)
""",
    "function": """
def make(model):
    return torch.optim.AdamW(model.parameters(), foreach=None)

net = Net()
optimizer = make(net)
""",
    "object": """
class Task:
    def __init__(self):
        self.net = Net()
        self.o = torch.optim.AdamW(self.net.parameters())

task = Task()
net, optimizer = task.net, task.o
""",
    "inside": """
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Net()])

outer = Outer()
optimizer = torch.optim.AdamW(outer.parameters())
net = outer.parts[0]
""",
}


@pytest.mark.parametrize("name", MAKES)
def test_the_written_program_trains_with_the_same_losses(name: str, tmp_path: Path) -> None:
    said = levers(tmp_path, MAKES[name], zero="optimizer.zero_grad(set_to_none=False)")
    plain = losses(tmp_path, (tmp_path / "train.py").read_text())
    assert len(plain) == 3
    edits = [e for lever in ("allocator", "set_to_none", "foreach", "checkpoint") for e in said[lever]["edits"]]
    text = changed(tmp_path, edits)
    assert (
        "foreach=False" in text and "set_to_none=True" in text and text.index("import os") < text.index("import torch")
    )
    assert text.count("use_reentrant") == 1
    assert losses(tmp_path, text) == plain


def test_bf16_and_offload_run(tmp_path: Path) -> None:
    said = levers(tmp_path, MAKES["plain"])
    plain = losses(tmp_path, (tmp_path / "train.py").read_text())
    rounded = losses(tmp_path, changed(tmp_path, said["bf16"]["edits"]))
    assert rounded != plain and float.fromhex(rounded[0]) == pytest.approx(float.fromhex(plain[0]), rel=0.02)
    if torch.cuda.is_available():
        assert losses(tmp_path, changed(tmp_path, said["offload"]["edits"])) == plain
    else:
        assert "save_on_cpu" in changed(tmp_path, said["offload"]["edits"])


@pytest.mark.parametrize(
    "make, lever, why",
    [
        ("net = Net()\nkind = torch.optim.AdamW\noptimizer = kind(net.parameters())", "foreach", "by its name"),
        ("net = Net(); optimizer = torch.optim.AdamW(net.parameters())", "checkpoint", "more than one statement"),
        ("nets = [Net()]\noptimizer = torch.optim.AdamW(nets[0].parameters())\nnet = nets[0]",
         "checkpoint", "no variable"),
        ("net = Net()\noptimizer = None\nfor _ in range(2):\n    optimizer = torch.optim.AdamW(net.parameters())",
         "checkpoint", "several optimizers|has 2 optimizers"),
        ("net = Net()\noptimizer = torch.optim.AdamW(net.parameters())", "step_in_backward", "more than a change"),
        ("net = Net()\noptimizer = torch.optim.AdamW(net.parameters())", "set_to_none", "no call of zero_grad"),
        ("net = Net()\noptimizer = torch.optim.SGD(net.parameters())", "states_8bit", "SGD has no twin of 8 bits"),
        ("net = Net()\noptimizer = torch.optim.AdamW(net.parameters(), foreach=False)", "states_8bit",
         "AdamW8bit of bitsandbytes has no foreach"),
        ("net = Net()\nown = list(net.parameters())\noptimizer = torch.optim.AdamW(own)", "lora",
         "lists the parameters before it makes the optimizer"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_named(make: str, lever: str, why: str, tmp_path: Path) -> None:
    said = levers(tmp_path, make)[lever]
    assert "edits" not in said and re.search(why, said["why"]), said


def test_8_bits_and_adapters_are_written(tmp_path: Path) -> None:
    """Groups stay where they are, and both go together."""
    said = levers(tmp_path, MAKES["groups"] + "\ntorch.manual_seed(1)")
    text = changed(tmp_path, said["lora"]["edits"] + said["states_8bit"]["edits"])
    assert "bitsandbytes.optim.AdamW8bit([{'params': (net.parameters())}], lr=(1e-3), )" in text
    assert "import peft" in text and 'target_modules=r"h\\.\\d+\\.(mix)"), net\n' in text
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    before = losses(tmp_path, (tmp_path / "train.py").read_text())
    after = losses(tmp_path, text)
    assert after[0] == before[0] and after[1:] != before[1:], "adapters begin as nothing"


def test_running_statistics_are_not_checkpointed(tmp_path: Path) -> None:
    said = levers(tmp_path, MAKES["plain"], norm="self.norm = nn.BatchNorm1d(8)")
    assert "running statistics" in said["checkpoint"]["why"]


def test_trainer_arguments(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    file = tmp_path / "args.py"
    file.write_text(
        "import torch, transformers\n"
        "from torch.nn import Linear, Sequential\n"
        "net = Sequential(Sequential(*(Sequential(Linear(2, 2), Linear(2, 2)) for _ in range(2))))\n"
        "args = transformers.TrainingArguments(output_dir='out', use_cpu=True, bf16=False, report_to=[])\n"
        "trainer = transformers.Trainer(net, args)\n"
        "optimizer = trainer.create_optimizer()\n"
    )
    run = RUN.replace("import torch\n", "import torch, transformers\nimport transformers.trainer\n")
    done = subprocess.run([sys.executable, "-c", run, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.rpartition("CODE ")[2])
    assert [e["text"] for e in said["bf16"]["edits"]] == ["True"]
    assert [e["text"] for e in said["states_8bit"]["edits"]] == ['optim="adamw_bnb_8bit"']
    assert [e["text"] for e in said["lora"]["edits"]] == [
        "import peft\n",
        "net = peft.get_peft_model(  # adapters are trained in place of the weights\n    net,\n"
        '    peft.LoraConfig(r=8, lora_alpha=16, target_modules=r"0\\.\\d+\\.(0|1)"),\n)\n']  # fmt: skip
    assert [e["text"].partition("=")[0] for e in said["checkpoint"]["edits"]] == [
        "gradient_checkpointing", "gradient_checkpointing_kwargs"]  # fmt: skip
    assert "divide the batch size" in said["micro_batch"]["why"], "8 samples have no 16 parts"
    file.write_text(file.read_text().replace("bf16=False", "bf16=False, per_device_train_batch_size=32"))
    done = subprocess.run([sys.executable, "-c", run, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout.rpartition("CODE ")[2])["micro_batch"]["edits"]
    assert [e["text"] for e in parts] == ["PART_OF_32", "gradient_accumulation_steps=PARTS"]
