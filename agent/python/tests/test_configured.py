"""Files of settings: one value is changed, and all else stays as it was written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Optional

import pytest

from hightide_agent.levers import configured

SOURCES = Path(__file__).resolve().parents[1] / "src"
ACCELERATE = """# of the team
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2

  # layers
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: Block
  fsdp_activation_checkpointing: false  # slow
mixed_precision: 'no'
num_processes: 2
"""


def put(file: Path, text: str, keys: str, value: Any) -> str:
    """The text with a setting."""
    file.write_bytes(text.encode())
    lines = text.encode().split(b"\n")
    for edit in configured.put(str(file), tuple(keys.split(".")), value):
        begin = sum(len(line) + 1 for line in lines[: edit["line"] - 1]) + edit["column"]
        end = sum(len(line) + 1 for line in lines[: edit["end_line"] - 1]) + edit["end_column"]
        data = text.encode()
        return (data[:begin] + edit["text"].encode() + data[end:]).decode()
    return text


@pytest.mark.parametrize(
    "keys, value, before, after",
    [
        ("fsdp_config.fsdp_activation_checkpointing", True, "checkpointing: false  #", "checkpointing: true  #"),
        ("mixed_precision", "bf16", "'no'", '"bf16"'),
        ("fsdp_config.fsdp_offload_params", True, "  fsdp_version", "  fsdp_offload_params: true\n  fsdp_version"),
        ("debug", False, "compute_env", "debug: false\ncompute_env"),
        ("num_processes", 2, "2\n", "2\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_yaml(keys: str, value: Any, before: str, after: str, end: str, tmp_path: Path) -> None:
    text = "# Größe\n" + ACCELERATE.replace("\n", end)
    changed = put(tmp_path / "a.yaml", text, keys, value)
    assert changed.replace("\r", "") == text.replace("\r", "").replace(before, after, 1)


@pytest.mark.parametrize("text", ["fsdp_config: {a: 1}\nb: 1\n", "a: 1\n", "fsdp_config:\n- a\n", ""])
def test_other_yaml_is_left_alone(text: str, tmp_path: Path) -> None:
    with pytest.raises(configured.Unknown):
        put(tmp_path / "a.yaml", text, "fsdp_config.a", True)


@pytest.mark.parametrize(
    "text, keys",
    [
        ('{"bf16": {"enabled": "auto"}, "x": [1, {"bf16": 2}]}', "bf16.enabled"),
        ('{\n  "x": {"bf16": 1},\n  "bf16": {\n    "enabled": false\n  }\n}\n', "bf16.enabled"),
        ('{\n  "größe": "{",\n  "x": 1\n}\n', "bf16.enabled"),
        ("{}", "bf16.enabled"),
        ('{"bf16": {}}', "bf16.enabled"),
        ('{ "activation_checkpointing" : false }', "activation_checkpointing"),
    ],
)
def test_json(text: str, keys: str, tmp_path: Path) -> None:
    changed = put(tmp_path / "a.json", text, keys, True)
    expected = json.loads(text)
    inner = expected
    *path, last = keys.split(".")
    for key in path:
        inner = inner.setdefault(key, {})
    inner[last] = True
    assert json.loads(changed) == expected
    assert changed.count("\n") >= text.count("\n"), "lines stay"
    assert configured.value_of(str(tmp_path / "a.json"), ("none", "such")) is None


@pytest.mark.parametrize("text", ['{"bf16": 1}', "[]"])
def test_other_json_is_left_alone(text: str, tmp_path: Path) -> None:
    with pytest.raises(configured.Unknown):
        put(tmp_path / "a.json", text, "bf16.enabled", True)


RANK = """
import json, os, sys
sys.path.insert(0, "SOURCES")
import accelerate, torch
from hightide_agent.levers import sites, written
from hightide_agent.levers.found import Found
sites.install(torch, lambda name, call: call(sys.modules[name]) if name in sys.modules else None)
import train
said = written.Written(Found(torch, None, train.model), sites.seen).levers()
if os.environ["RANK"] == "0":
    print("CODE", json.dumps([said, sorted(os.path.basename(f) for f in sites.seen.files())]), flush=True)
torch.distributed.destroy_process_group()
"""

BLOCKS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + self.mix(x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""

LOOP = """
import accelerate
from torch.distributed.fsdp import fully_shard

accelerator = accelerate.Accelerator(cpu=True)
model = fully_shard(Net())  # Accelerate itself spreads models on GPUs alone
optimizer = torch.optim.AdamW(model.parameters())
"""

TRAINER = """
import importlib, json, os, sys
sys.path[:0] = ["SOURCES", os.getcwd()]
import torch, transformers.trainer
from hightide_agent.levers import sites, written
from hightide_agent.levers.found import Found
sites.install(torch, lambda name, call: call(sys.modules[name]) if name in sys.modules else None)
Found.sharded = True  # a GPU for each rank is what it takes
for name in sys.argv[1:]:
    program = importlib.import_module(name)
    program.args.fsdp = True
    print("CODE", json.dumps(written.Written(Found(torch, None, program.model), sites.seen).levers()["checkpoint"]))
    sites.seen.makers.clear()
"""

ARGUMENTS = """
import transformers

args = transformers.TrainingArguments(output_dir="out", use_cpu=True, report_to=[]MORE)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
"""


def said(folder: Path, program: str, config: Optional[str]) -> List[Any]:
    """What rank 0 says of a program that accelerate launch has started on the CPU."""
    (folder / "train.py").write_text(BLOCKS + program)
    (folder / "rank.py").write_text(RANK.replace("SOURCES", str(SOURCES)))
    command = [sys.executable, "-m", "accelerate.commands.launch"]
    if config is not None:
        (folder / "spread.yaml").write_text(config)
        command += ["--config_file", "spread.yaml"]
    else:
        command += ["--use_fsdp", "--fsdp_version", "2", "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
                    "--fsdp_transformer_layer_cls_to_wrap", "Block", "--num_processes", "2"]  # fmt: skip
    env = {**os.environ, "ACCELERATE_USE_CPU": "true", "HF_HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "rank.py"], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.rpartition("CODE ")[2].partition("\n")[0]))


def written(said: Any) -> List[Any]:
    """Where each edit stands, and its text."""
    return [(os.path.basename(e["file"]), e["line"], e["text"]) for e in said["edits"]]


def test_accelerate_launch(tmp_path: Path) -> None:
    """Its file has checkpointing and the precision."""
    pytest.importorskip("accelerate")
    levers, files = said(tmp_path, LOOP, ACCELERATE)
    assert files == ["rank.py", "spread.yaml", "train.py"]
    line = ACCELERATE.splitlines().index("mixed_precision: 'no'") + 1
    assert written(levers["checkpoint"]) == [("spread.yaml", line - 1, "true")]
    assert written(levers["bf16"]) == [("spread.yaml", line, '"bf16"')]


def test_accelerate_launch_without_a_file(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    levers, _ = said(tmp_path, LOOP.replace("cpu=True", "cpu=True, mixed_precision='no'"), None)
    assert levers["checkpoint"]["why"] == "give accelerate launch --fsdp_activation_checkpointing true"
    assert written(levers["bf16"])[-1][::2] == ("train.py", '"bf16"')


def test_arguments_of_the_trainer(tmp_path: Path) -> None:
    """FSDP's own checkpointing, wherever the program has the rest of its settings."""
    pytest.importorskip("transformers")
    cases = {
        "none": ("", 'fsdp_config={"activation_checkpointing": True}'),
        "some": (", fsdp_config={'version': 2}", '"activation_checkpointing": True, '),
        "off": (", fsdp_config={'activation_checkpointing': False}", "True"),
        "file": (", fsdp_config='fsdp.json'", "true"),
        "called": (", fsdp_config=dict(version=2)", "has fsdp_config from elsewhere"),
    }
    (tmp_path / "fsdp.json").write_text('{"activation_checkpointing": false}')
    (tmp_path / "run.py").write_text(TRAINER.replace("SOURCES", str(SOURCES)))
    for name, (more, _) in cases.items():
        (tmp_path / (name + ".py")).write_text(BLOCKS + ARGUMENTS.replace("MORE", more))
    done = subprocess.run([sys.executable, "run.py", *cases], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("CODE ")]
    assert len(lines) == len(cases)
    for (name, (_, text)), line in zip(cases.items(), lines):
        if name == "called":
            assert text in line["why"]
            continue
        (edit,) = line["edits"]
        assert (edit["text"], os.path.basename(edit["file"])) == (text, "fsdp.json" if name == "file" else name + ".py")
