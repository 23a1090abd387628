"""Forked copies, attention, and small numbers that stay known, with real torch on the imaginary device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    assert imagine(KNOWN, HIGHTIDE_IMAGINE_SWITCH="attention:math").main.one("condition")["value"] == "math"


def test_a_start_is_forked_for_each_gpu(imagine: Any, tmp_path: Path) -> None:  # noqa: F811
    spec = "count=1;name=%s;slug=%s;memory=%d;context=300000000;cc=8.6;sms=72"
    copies = [
        {"name": name, "table": str(tmp_path / ("table-" + name)), "spec": spec % (name, name, size),
         "output": str(tmp_path / ("out-" + name))}
        for name, size in (("large", 24 << 30), ("small", 400 << 20))
    ]  # fmt: skip
    request = json.dumps({"gpus": 1, "at_once": 2, "copies": copies})
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    script = "import torch\nassert torch.cuda.is_available()\n" + TRAIN + "raise SystemExit(3)"
    result = imagine(script, HIGHTIDE_IMAGINE_COPIES=request, **threads)
    facts = {r["key"]: r["value"] for r in result.main.all("fact")}
    assert facts["copy large"] == 0, "it ended as it was steady"
    assert facts["copy small"] == 1 and "OutOfMemoryError" in (tmp_path / "out-small").read_text()
    assert "no copies" not in facts and result.out == "" and (tmp_path / "table-large").exists()
