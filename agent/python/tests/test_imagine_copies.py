"""Forked copies, attention, and small numbers that stay known, with real torch on the imaginary device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from test_imagine_device import TRAIN, device, imagine, pytestmark  # noqa: F401  # fixture and marks

KNOWN = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
both = torch.ones(2, 2, dtype=torch.bool).cuda().all(dim=-1) & (1 == 2)  # a Python bool where a tensor is declared
assert not both.any().item()
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
sizes = torch.cat([torch.tensor([21]).cuda(), torch.tensor([16]).cuda()])
offset = 0
for size in sizes:
    offset += size
assert offset.item() == 37 and sizes.tolist() == [21, 16]
assert (40 - sizes).tolist() == [19, 24]  # the number comes first: a kernel of ours sees no tensor there
half = torch.ones((), device="cuda", dtype=torch.half)
assert {(1.5 - half).dtype, (1 - half).dtype, (half * 2.5).dtype} == {torch.half}, "a number does not widen"
query = torch.zeros(1, 4, 64, 64, device="cuda", dtype=torch.half)
torch.nn.functional.scaled_dot_product_attention(query, query, query)
"""


def test_what_is_known_stays_known_and_attention_is_named(imagine: Any) -> None:  # noqa: F811
    result = imagine(KNOWN)
    assert result.code == 0
    said = {r["name"]: r["value"] for r in result.main.all("condition")}
    assert said["attention"] in ("flash", "cudnn") and "compile cache" not in said
    asked = imagine(KNOWN, HIGHTIDE_IMAGINE_SWITCH="attention:math").main.one("condition")
    assert asked["value"] == "math" and asked["kernels"] == ["math"]


SPEC = "count=1;name=%s;slug=%s;memory=%d;context=300000000;cc=8.6;sms=72"
LAYERS = """
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
held = [model(torch.randn(8192, 1024, device="cuda")) for _ in range(2)]  # no backward: its threads may free later
expandable = any(segment["is_expandable"] for segment in torch.cuda.memory_snapshot())
print(torch.cuda.max_memory_allocated(), "expandable" if expandable else "")
"""


def copied(
    imagine: Any,  # noqa: F811
    folder: Path,
    script: str,
    own: str = "",
    needs: str = "",
    **copies: dict[str, str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Run a script that is forked for each copy. The facts of the process, and what each copy printed; one that was
    not made printed nothing."""
    wanted = []
    for name, env in copies.items():
        table, spec = str(folder / ("table-" + name)), SPEC % (name, name, 24 << 30)
        env = {"HIGHTIDE_DEVICE_TABLE": table, "HIGHTIDE_DEVICE_SPEC": spec, **env}
        wanted.append({"name": name, "output": str(folder / name), "env": env})
    request = json.dumps(
        {"gpus": 1, "at_once": 1 if needs else 2, "needs": needs, "imports": ["wave"], "copies": wanted}
    )
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if own:
        threads["HIGHTIDE_DEVICE_SPEC"] = own
    result = imagine(
        "import os, torch\n" + script, HIGHTIDE_IMAGINE_COPIES=request, HIGHTIDE_IMAGINE_STEPS="0", **threads
    )
    assert result.out == ""
    printed = {name: (folder / name).read_text() if (folder / name).exists() else "" for name in copies}
    return {r["key"]: r["value"] for r in result.main.all("fact")}, printed


def test_a_copy_ends_without_a_look_for_cycles(imagine: Any, tmp_path: Path) -> None:  # noqa: F811
    """What the program says at its end is said, and the collector is left nothing of all that it shares."""
    script = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 1000))\ntorch.ones(1).cuda()"
    _, printed = copied(imagine, tmp_path, script, one={}, other={})
    assert printed == {"one": "True\n", "other": "True\n"}


def test_a_start_is_forked_for_each_trial(imagine: Any, tmp_path: Path) -> None:  # noqa: F811
    """A smaller GPU, another setting of the allocator, a switch: each copy has its own, as where it is started so."""
    expandable = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    script = "assert torch.cuda.is_available()\n" + LAYERS + "raise SystemExit(3)"
    facts, printed = copied(
        imagine, tmp_path, script, plain={}, expandable=expandable, bf16={"HIGHTIDE_IMAGINE_SWITCH": "bf16"},
        small={"HIGHTIDE_DEVICE_SPEC": SPEC % ("small", "small", 400 << 20)},
    )  # fmt: skip
    assert "no copies" not in facts and (tmp_path / "table-plain").exists()
    assert [facts["copy " + name] for name in printed] == [3, 3, 3, 1]
    assert "OutOfMemoryError" in printed["small"]
    peak = {name: int(text.split()[0]) for name, text in printed.items() if name != "small"}
    assert peak["plain"] == peak["expandable"] > peak["bf16"]
    assert {name for name, text in printed.items() if text.endswith("expandable\n")} == {"expandable"}
    for name, env in (("expandable", expandable), ("bf16", {"HIGHTIDE_IMAGINE_SWITCH": "bf16"})):
        assert imagine("import torch\n" + LAYERS, HIGHTIDE_IMAGINE_STEPS="0", **env).out == printed[name], (
            "as one started"
        )


@pytest.mark.parametrize("code", [0, 3])
def test_no_copy_is_made_once_the_one_failed_that_all_need(imagine: Any, tmp_path: Path, code: int) -> None:  # noqa: F811
    script = "torch.ones(1).cuda()\nraise SystemExit(%d)" % code
    facts, _ = copied(imagine, tmp_path, script, needs="one", one={}, two={}, three={})
    assert [name for name in ("one", "two", "three") if "copy " + name in facts] == (
        ["one"] if code else ["one", "two", "three"]
    )


ASKED = "import ctypes\nassert ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2() == 0\n"


@pytest.mark.parametrize("same", [True, False])
def test_a_program_that_asked_about_its_gpu(imagine: Any, tmp_path: Path, same: bool) -> None:  # noqa: F811
    """Its copies have the same GPU, each in a table of its own; on another it would have been told something else."""
    spec = SPEC % ("asked", "asked", 24 << 30)
    other = {"HIGHTIDE_DEVICE_SPEC": spec if same else SPEC % ("other", "other", 24 << 30)}
    facts, printed = copied(imagine, tmp_path, ASKED + LAYERS, spec, one={"HIGHTIDE_DEVICE_SPEC": spec}, two=other)
    if not same:
        assert facts["no copies"] and not any(printed.values())
        return
    assert "no copies" not in facts and facts["copy one"] == facts["copy two"] == 0, facts
    assert printed["one"] == printed["two"] != ""
    tables = [(tmp_path / ("table-" + name)).read_bytes() for name in ("one", "two")]
    assert all(b"python" in table for table in tables), "each has the process that used its GPU"


def test_no_copy_has_another_setting_than_the_program_made(imagine: Any, tmp_path: Path) -> None:  # noqa: F811
    """It might hold against the one that a trial asks for, or not: such a trial is started by itself."""
    expandable = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    for n, made in enumerate((
        "os.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF', 'max_split_size_mb:64')",
        "torch.cuda.memory._set_allocator_settings('max_split_size_mb:64')",
    )):  # fmt: skip
        folder = tmp_path / str(n)
        folder.mkdir()
        script = made + LAYERS + "print('wave' in __import__('sys').modules)"
        facts, printed = copied(imagine, folder, script, plain={}, expandable=expandable)
        assert facts["copy plain"] == 0 and not printed["expandable"]
        assert printed["plain"].endswith("\nTrue\n"), "what is to be imported was, before the fork"
        assert "copy expandable" not in facts
