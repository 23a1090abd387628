"""The imagined process with real torch on the imaginary device."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torchversions  # after conftest, which names its folder

from conftest import SOURCE, forkserver, observed_environment

LIBRARY = Path(os.environ.get("HIGHTIDE_TEST_DEVICE", str(SOURCE.parents[2] / "device" / "lib")))
torch = pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
pytestmark = [
    pytest.mark.skipif(torch.version.cuda is None, reason="needs a CUDA build of torch; it needs no GPU"),
    pytest.mark.skipif(not (LIBRARY / "libhightide_device.so").exists(), reason="device/lib is not built: make device"),
]
MIB = 1 << 20


@pytest.fixture
def imagine(observe: Any, tmp_path: Path) -> Any:
    """imagine(script, gpus=1, **variables): observe on imaginary H100s."""

    def run(script: str, gpus: int = 1, **variables: str) -> Any:
        return observe(script, env={**device(tmp_path, gpus), "HIGHTIDE_IMAGINE_STEPS": "auto", **variables})

    return run


def device(folder: Path, gpus: int) -> Dict[str, str]:
    table = folder / ("table%d" % len(list(folder.glob("table*"))))
    spec = "count=%d;name=NVIDIA H100;slug=h100;memory=85029158912;context=500000000;cc=9.0;sms=132" % gpus
    return {"HIGHTIDE_IMAGINE": "1", "HIGHTIDE_DEVICE_TABLE": str(table), "HIGHTIDE_DEVICE_SPEC": spec,
            "LD_PRELOAD": str(LIBRARY / "libhightide_device.so"), "LD_LIBRARY_PATH": str(LIBRARY)}  # fmt: skip


TRAIN = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
adam = torch.optim.AdamW(net.parameters())
for i in range(50):
    net(torch.randn(256, 1024, device="cuda")).pow(2).mean().backward()
    adam.step()
    adam.zero_grad()
print("never")
"""


def test_a_steady_training_ends_by_itself(imagine: Any) -> None:
    result = imagine(TRAIN)
    assert result.out == "" and result.code == 0
    stop = result.main.one("stop")
    assert stop["reason"] == "steady" and stop["step"] <= 60 and len(result.main.steps) == stop["step"]
    peak, parts = result.main.all("peak")[-1], result.main.one("categories")
    parameters = 2 * 1024 * 4096 * 4 + 5 * 1024 * 4
    assert parts["allocated_bytes"] == peak["allocated_bytes"] and parts["reserved_bytes"] == peak["reserved_bytes"]
    assert parts["parameters"] == pytest.approx(parameters, rel=0.001)
    assert parts["optimizer"] == pytest.approx(2 * parameters, rel=0.001)
    names = ("parameters", "gradients", "optimizer", "activations", "temporaries", "inputs", "workspaces", "other")
    assert sum(parts.get(n, 0) for n in names) == peak["allocated_bytes"]
    assert parts["file"].endswith("script.py") and parts["line"] in (6, 7, 8)
    assert not result.main.all("not_reached"), "it has neither evaluation nor checkpoint"
    path = Path(result.main.one("snapshot")["path"])
    owners = json.loads(path.with_name(path.name + ".owners.json").read_text())
    live = {b["address"]: b["size"] for s in pickle.loads(path.read_bytes())["segments"] for b in s["blocks"]
            if b["state"] == "active_allocated"}  # fmt: skip
    last = len(owners["times_us"]) - 1
    now = [o for o in owners["owners"] if last in o["seen"]]
    assert {(o["category"], o["name"]) for o in now} >= {("parameters", "0.weight"), ("optimizer", "2.bias.exp_avg")}
    assert all(live[o["address"]] >= o["bytes"] for o in now)


OWN = """
import pickle, torch
before = [torch.zeros(1 << 20, device="cuda") for _ in range(50)]
memory = torch.cuda.memory
memory._record_memory_history(max_entries=%d)
its_own = [torch.zeros(1 << 21, device="cuda") for _ in range(5)]
memory._dump_snapshot("own.pickle")
for trace in memory._snapshot(), pickle.load(open("own.pickle", "rb")):
    print(sum(e["action"] == "alloc" for e in trace["device_traces"][0]), end=" ")
    assert trace["hightide_label"] == "imagined"
memory._record_memory_history(enabled=None)
print(sum(map(len, memory._snapshot()["device_traces"])))
after = [torch.zeros(1 << 22, device="cuda") for _ in range(3)]
"""


@pytest.mark.parametrize("most", [2, 1000, 100_000_000])
def test_the_programs_own_history_is_its_own_and_does_not_end_ours(imagine: Any, most: int) -> None:
    result = imagine(OWN % most)
    assert result.out == ("1 1 0\n" if most == 2 else "5 5 0\n")
    ours = pickle.loads(Path(result.main.all("snapshot")[-1]["path"]).read_bytes())
    lines = [next((f["line"] for f in b["frames"] if f["filename"].endswith("script.py")), 0)
             for s in ours["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]  # fmt: skip
    assert {line: lines.count(line) for line in lines} == {3: 50, 6: 5, 13: 3}
    assert len({r["path"] for r in result.main.all("snapshot")}) == (2 if most > 1e6 else 1)


PINNED = """
import torch
memory = torch.cuda.memory
memory._record_memory_history(max_entries=1000)  # before CUDA has started
def keep(n):
    return torch.empty(n << 20, dtype=torch.uint8).pin_memory()
here = [torch.zeros(1 << 20, device="cuda") for _ in range(2)]
early = [keep(8) for _ in range(3)]
def told():
    s = memory._snapshot()
    events = sum(e["action"] == "alloc" for e in s["device_traces"][0])
    print(events, len(s["host_segments"]), sum(e["action"] == "alloc" for e in s["host_traces"]))
told()
memory._record_memory_history(max_entries=1000, record_pinned_host_memory=True, record_cuda=False)
late = keep(4)
unseen = [torch.zeros(1 << 21, device="cuda") for _ in range(5)]
told()
try:
    memory._record_memory_history(None, record_pinned_host_memory=True)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


def test_pinned_memory_is_recorded_whatever_the_program_records(imagine: Any) -> None:
    result = imagine(PINNED)
    first, second, refused = result.out.splitlines()
    assert first == "2 0 0" and second.startswith("0 4 ") and "requires memory history" in refused
    ours = pickle.loads(Path(result.main.all("snapshot")[-1]["path"]).read_bytes())
    assert sum(e["action"] == "alloc" for e in ours["device_traces"][0]) == 7, "record_cuda=False does not blind ours"
    lines = [(b["size"] >> 20, next((f["line"] for f in b["frames"] if f["filename"].endswith("script.py")), 0))
             for s in ours["host_segments"] for b in s["blocks"] if b["state"] == "active_allocated"]  # fmt: skip
    assert sorted(lines) == [(4, 6), (8, 6), (8, 6), (8, 6)]


KEPT = """
import torch
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1 << 20))
        self.project = torch.nn.Linear(512, 512, bias=False)
    def grow_kv_cache(self, batch):
        return torch.zeros(batch, 1 << 16, device="cuda")
    def dequantize_weight(self):
        return self.project.weight * 2
    def forward(self, x):
        kept, weight = self.grow_kv_cache(64), self.dequantize_weight()
        return self.project(x), kept, weight
net = Attention().cuda().eval()
with torch.no_grad():
    kept = [net(torch.ones(8, 512, device="cuda")) for _ in range(3)]
"""


def test_keys_and_values_that_are_kept_are_no_activations(imagine: Any) -> None:
    parts = imagine(KEPT).main.all("categories")[-1]
    assert parts["kv_cache"] == 4 * (1 << 20) + 3 * 64 * (1 << 18)
    assert parts["parameters"] == MIB and parts["temporaries"] == 3 * MIB and "buffers" not in parts


def test_what_was_not_reached_is_what_the_program_has(imagine: Any) -> None:
    result = imagine(TRAIN + "net.eval()\ntorch.save(net.state_dict(), 'never')\n")
    assert {r["what"] for r in result.main.all("not_reached")} == {"evaluation", "checkpoint"}
    built = imagine(TRAIN.replace("range(50)", "range(0)"))
    assert built.main.one("not_reached")["what"] == "training"


def test_an_evaluation_in_training_mode_is_not_called_missing(imagine: Any) -> None:
    result = imagine(TRAIN + "with torch.no_grad():\n    net(torch.ones(1, 1))\n")
    assert [r["perhaps"] for r in result.main.all("not_reached") if r["what"] == "evaluation"] == [True]


def test_a_permutation_that_is_turned_around_is_known(imagine: Any) -> None:
    result = imagine("""
        import torch
        order = torch.tensor([2, 0, 1, 4, 3], device="cuda")
        back = torch.empty_like(order).scatter_(0, order, torch.arange(5, device="cuda"))
        print(back.tolist())
        some = torch.empty_like(order).scatter_(0, order[:3], torch.arange(3, device="cuda"))
        print(x if (x := some.tolist()) == [7] else "not known")
    """)
    assert result.out == "[1, 2, 0, 4, 3]\nnot known\n"
    assert {r["line"] for r in result.main.all("readback")} == {7}


def test_data_dependent_sizes(imagine: Any) -> None:
    script = """
        import torch
        noise = torch.randn(100, device="cuda")
        x = torch.tensor([1.0, 0, 2, 0, 3], device="cuda").nonzero()
        print(x.flatten().tolist(), *[len(t) for t in (
            noise.nonzero(), noise[noise > 0], torch.masked_select(noise, noise > 0), torch.where(noise > 0)[0],
            noise.unique(), torch.unique(noise.view(10, 10), dim=0), torch.unique_consecutive(noise),
            torch.unique(noise > 0), torch.repeat_interleave(torch.tensor([2, 3], device="cuda")),
            torch.multinomial(noise.softmax(0), 5))])
        print(torch.bincount(torch.tensor([1, 5], device="cuda")).tolist())
        lengths = torch.tensor([3, 9, 4], device="cuda")
        print(lengths.max().item(), bool((lengths > 8).any()), lengths.tolist())
        w = torch.randn(8, requires_grad=True, device="cuda")
        w[w > 0].sum().backward()
        print(w.grad.shape[0], len(torch.compile(lambda t: t[t > 0] * 2, backend="eager")(noise)))
        scaler = torch.amp.GradScaler()
        scaler.scale(noise.sum())
        sparse = [torch.sparse_coo_tensor(places, noise[:4], (9,)).coalesce() for places in (
            torch.tensor([[3, 1, 3, 7]], device="cuda"), noise[None, :4].long())]
        print(scaler.get_scale(), [each._nnz() for each in sparse], sparse[0].indices().tolist())
    """
    known = "[0, 2, 4] %s 5 5\n[0, 1, 0, 0, 0, 1]\n9 True [3, 9, 4]\n"
    upper = imagine(script)
    assert (
        upper.out
        == known.replace(" 5 5\n", " 2 5 5\n") % "100 100 100 100 100 10 100" + "8 100\n65536.0 [3, 4] [[1, 3, 7]]\n"
    )
    told = upper.main.all("policy")
    assert {t["op"] for t in told} >= {"nonzero", "unique", "unique_dim", "unique_consecutive"}
    assert all(t["file"].endswith("script.py") for t in told if t["line"])
    quarter = imagine(script, HIGHTIDE_IMAGINE_SIZES="0.25")
    assert quarter.out.startswith("[0, 2, 4] 25 25 25 25 25 2 25 2 5 5\n")


def test_optimizers_of_sparse_gradients_run(imagine: Any) -> None:
    """Tensors of other layouts have no storage to look for."""
    result = imagine("""
        import torch
        table = torch.nn.Embedding(100, 8, sparse=True, device="cuda")
        optimizer = torch.optim.SparseAdam(table.parameters())
        for _ in range(2):
            table(torch.tensor([3, 5, 3], device="cuda")).sum().backward()
            optimizer.step()
        rows = torch.eye(10).to_sparse_csr().cuda()
        times = rows * 2 @ torch.randn(10, 2, device="cuda")
        print(table.weight.grad.is_sparse, table.weight.grad._nnz(), len(times))
    """)
    assert result.out == "True 6 10\n"


def test_what_marks_a_parameter_as_unwritten_goes_as_it_is_written(imagine: Any) -> None:
    """Filled through `data`, a parameter counts its versions anew: it has as many after the next write."""
    result = imagine("""
        import torch
        def unwritten(kind):
            weight = torch.nn.Parameter(torch.empty(64, 32, device="cuda", dtype=kind), requires_grad=False)
            weight.data.fill_(float("nan"))
            assert torch.isnan(weight.float()).any()
            return weight
        eight, given, drawn, even = (unwritten(k) for k in (torch.float8_e4m3fn, *3 * [torch.float32]))
        eight.copy_(torch.empty_like(eight, dtype=torch.float16).uniform_(-1, 1))
        given.copy_(torch.rand(64, 32))
        drawn.bernoulli_(0.5)
        even.uniform_(-1, 1)
        print([torch.isnan(weight.float()).any().item() for weight in (eight, given, drawn, even)])
    """)
    assert result.out == "[False, False, False, False]\n"


def test_whole_numbers_are_true_where_the_host_decides_them(imagine: Any) -> None:
    result = imagine("""
        import torch
        ones, noise = torch.ones(64, 4096, dtype=torch.long).cuda(), torch.randn(100, 100, device="cuda")
        torch.nn.Embedding(10, 2).cuda()(ones)  # a kernel was given it, and only read it
        causal = torch.tril(torch.ones(128, 128, dtype=torch.bool, device="cuda"))
        print(ones.all().item(), bool((ones[:1, :128].bool() & causal).all()), ones.sum().item())
        print(torch.allclose(noise, noise), torch.equal(noise, noise), torch.isnan(noise).any().item(),
              torch.isfinite(noise).all().item())
        position = torch.arange(128, device="cuda")[None].expand(4, -1)
        jumps = torch.diff(position, prepend=position[:, :1] - 1, dim=-1) != 1
        print((jumps.cumsum(-1)[:, -1] == 0).all().item(), torch.where(position > 3, position, -1).min().item())
        ones[:, 7] = 3
        ones.add_(1)
        order = torch.tensor([[2, 0, 1]], device="cuda")
        print(ones[0, 6:9].tolist(), torch.argsort(order).tolist(), order.gather(1, order).cpu().tolist())
        print(torch.nn.functional.one_hot(order).sum((0, 1)).tolist(), 7 - order[0, 0].item(), (7 - order).tolist())
        graph, still = torch.cuda.CUDAGraph(), torch.zeros(4, dtype=torch.long, device="cuda")
        with torch.cuda.graph(graph):
            still.add_(1)
        large = torch.tensor([2**63 + 5, 2**64 - 1], dtype=torch.uint64, device="cuda")
        assert (large[0].item(), large.cpu()[1].item()) == (2**63 + 5, 2**64 - 1)
        with torch.inference_mode():
            print((torch.ones(3, dtype=torch.long, device="cuda") * 2).sum().item())
    """)
    assert result.out.splitlines() == [
        "True False 262144", "True True False True", "True -1", "[2, 4, 2] [[1, 2, 0]] [[1, 2, 0]]",
        "[1, 1, 1] 5 [[5, 7, 6]]", "6",
    ]  # fmt: skip
    assert not result.main.all("readback")


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_numbers_in_a_part_of_a_buffer_are_known(imagine: Any, mode: str) -> None:
    """As servers keep a buffer for the largest batch and write the first of it: what is written is known, and goes
    through what counts, sorts and looks it up."""
    result = imagine(
        """
        import torch
        with torch.%s():
            buffer = torch.empty(64, dtype=torch.long, device="cuda")
            part = buffer[:6]
            part.copy_(torch.tensor([3, 1, 3, 0, 1, 3]).cuda())
            ids, counts = torch.unique(part, sorted=True, return_counts=True)
            print(ids.tolist(), counts.tolist(), torch.bincount(part).tolist())
            values, places = torch.sort(part, stable=True)
            print(values.tolist(), places.tolist(), torch.searchsorted(values, torch.tensor([1, 3]).cuda()).tolist())
            starts = torch.zeros(9, dtype=torch.int32, device="cuda")
            starts[1 : 1 + len(counts)].copy_(counts.cumsum(0))
            print(starts[:5].tolist(), torch.unique_consecutive(values).tolist())
            buffer[6:8].fill_(9)
            print(buffer[4:8].tolist(), bool((buffer[:8] == 9).any()), len(buffer[:8].nonzero()))
            buffer[2:4].add_(1)
            print(buffer[:8].max().item(), part.tolist())
            print(len(torch.unique(buffer)), len(torch.unique(buffer[7:9])))  # nobody wrote the rest
            buffer[:2].copy_(torch.randint(9, (2,), device="cuda"))
            print(len(torch.unique(part)))
        """
        % mode
    )
    assert result.out.splitlines() == [
        "[0, 1, 3] [1, 2, 3] [1, 2, 0, 3]", "[0, 1, 1, 3, 3, 3] [3, 1, 4, 0, 2, 5] [1, 3]",
        "[0, 1, 3, 6, 0] [0, 1, 3]", "[1, 3, 9, 9] True 7", "9 [3, 1, 4, 1, 1, 3]", "64 2", "6",
    ]  # fmt: skip


def test_a_number_that_nobody_knows_is_followed(imagine: Any) -> None:
    script = """
        import math, torch
        mask = torch.rand(8192, 4, device="cuda") > 0.5
        n = int(mask.sum())
        torch.empty(n, 16, device="cuda")
        right, losses, noise = 0, [], torch.randn(100, 100, device="cuda")
        for i in range(2):
            right += (noise.argmax(1) == 3).sum().item()
            losses.append(noise.mean().item())
            print(f"{right / 100:.1f} {sum(losses)}", noise.mean())
            if not math.isfinite(losses[-1]):
                break
        if noise.argmax(1).max() > 3:
            print("branch")
        print(len(torch.bincount(noise.argmax(1))), len(torch.bincount(noise[0].long())))
        print(len(torch.repeat_interleave(noise[0].long())))
        parts = noise.new_empty(sum((noise > 0).sum(1).tolist()), 2)
        if not (noise > 0).all():
            raise ValueError("a check")
        while noise.any():
            pass
    """
    result = imagine(script)
    told = {r["line"]: r for r in result.main.all("readback")}
    assert {line: (r["use"], r["number"], r["value"], r.get("upper")) for line, r in told.items()} == {
        4: ("size", "int", "32768", 32768), 13: ("branch", "bool", "false", 1), 15: ("size", "int", "1", None),
        16: ("size", "int", "100", None), 17: ("size", "int", "100", 100), 20: ("loop", "bool", "false", 1),
    }  # fmt: skip
    lines = [("script.py", 4, 5), ("", 17, [2] * 100), ("", 16, 7), ("", 20, False)]
    asked = {"all": 1, "lines": [{"file": file, "line": line, "value": value} for file, line, value in lines]}
    answered = imagine(script, HIGHTIDE_IMAGINE_READS=json.dumps(asked))
    told = {r["line"]: (r["value"], r["answered"]) for r in answered.main.all("readback")}
    assert told[4] == ("5", True) and told[16] == ("7", True) and told[17][1] and told[13] == ("true", True)
    assert "branch" in answered.out and answered.out.splitlines()[-1] == "7"
    other = imagine(script, HIGHTIDE_IMAGINE_READS='{"other": true}')
    told = {r["line"]: r["value"] for r in other.main.all("readback")}
    assert told[4] == "0" and told[13] == "true" and told[20] == "false"


def test_floating_point_numbers_that_are_said_to_be_finite(imagine: Any) -> None:
    result = imagine(
        """
        import torch
        def whole(x): return x.any().item(), x.all().item()
        g = torch.randn(100, 100, device="cuda")
        for each in g, g.bfloat16(), g.half(), g.double():
            assert whole(each.isnan()) == whole(each.isinf()) == whole(torch.isneginf(each)) == (False, False)
            assert whole(torch.isfinite(each)) == whole(torch.isclose(each, each)) == (True, True)
            assert each.isnan().logical_or(each.isinf()).float().max().item() == 0.0
        found = torch.zeros([1], device="cuda")
        for _ in range(3):
            found += (g.isnan() | g.isinf()).float().max()
        over = found.bool().byte()
        assert over[0].item() == over[0].item() == over.tolist()[0] == 0 and found.tolist() == [0.0]
        norm = torch.stack([torch.linalg.vector_norm(g), g.norm(), g.abs().max()]).pow(2).sum().sqrt()
        assert not (~torch.isfinite(norm) | (norm < 0)).any() and not norm == -1 and norm >= 0
        (norm - 1 < 0).item()  # asked for: printed alone
        own = torch.tensor([1.0, float("nan"), float("inf")]).cuda()  # the host's own numbers are looked at
        assert own.isnan().tolist() == [False, True, False] and own.isinf().tolist() == [False, False, True]
        assert torch.nan_to_num(own, nan=2.0, posinf=3.0).tolist() == [1.0, 2.0, 3.0]
        endless = torch.full((200, 200), float("-inf"), device="cuda")
        assert whole(endless.isinf()) == (True, True) and whole(torch.isfinite(endless)) == (False, False)
        counter = torch.ones(1, device="cuda")
        counter += 2
        counter.mul_(0.5).exp_()
        with torch.inference_mode():
            other = torch.zeros(1, device="cuda")
            other.normal_()
            other.item()
        """
    )
    told = {r["line"]: r["use"] for r in result.main.all("readback") if r["use"] != "nothing"}
    assert not told, told


def test_the_same_element_reads_the_same(imagine: Any) -> None:
    result = imagine(
        """
        import torch
        x = torch.randn(8, 8, device="cuda")
        seen = []
        for _ in range(3):
            over = x.argmax(1).to(torch.uint8)
            if over[0].item() > 1: seen.append(over[0].item() == over.tolist()[0] == int(over[0]))
            mask = x.sum(1) > 3
            if mask.tolist()[1]: seen.append(mask[1].item() and bool(mask[1:2]))
            if x.mean().item() > 5: pass
            loss = x.mean()
            seen.append(loss.item() == loss.item())
        waits = (x > 0).any()
        while not waits.item(): seen.append(True)  # for what writes without telling
        print(len(seen) < 4000 and all(seen))
        """,
        HIGHTIDE_IMAGINE_READS='{"other": true}',
    )
    assert result.out == "True\n"


def test_what_is_written_without_a_version_is_not_known_any_more(imagine: Any, tmp_path: Path) -> None:
    os.symlink(LIBRARY / "libhightide_device.so", tmp_path / "libcuda.so.1")
    result = imagine("""
        import torch, triton
        import triton.language as tl

        @triton.jit
        def count(x, out, n: tl.constexpr):
            tl.store(out, tl.sum((tl.load(x + tl.arange(0, n)) > 0).to(tl.int64), 0))

        x, out = torch.arange(16, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
        count[(1,)](x, out, 16)
        print(x.sum().item(), torch.empty(out.item()).shape)
        with torch.inference_mode():
            total = torch.zeros((), dtype=torch.int64, device="cuda")
            torch.sum(torch.rand(64, device="cuda") > 0, 0, out=total)
            print(torch.empty(int(total)).shape)
        pick = torch.rand(64, 5, device="cuda").argmax(1)
        print(torch.nn.functional.one_hot(pick).shape, len(torch.unique(pick)))
    """, TRITON_LIBCUDA_PATH=str(tmp_path))  # fmt: skip
    assert result.out == "120 torch.Size([0])\ntorch.Size([0])\ntorch.Size([64, 1]) 5\n"  # all rows choose the same
    told = {r["line"]: (r["use"], r["number"]) for r in result.main.all("readback")}
    assert told == {11: ("size", "int"), 15: ("size", "int"), 17: ("passed on", "spread")}


def test_generation_and_trainer(imagine: Any, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    result = imagine(
        """
        import torch, transformers as t
        shape = dict(hidden_size=256, num_hidden_layers=2, intermediate_size=512, num_attention_heads=4, vocab_size=500)
        model = t.LlamaForCausalLM(t.LlamaConfig(**shape))
        prompt = torch.ones(2, 16, dtype=torch.long, device="cuda")
        print(model.cuda().generate(prompt, max_new_tokens=20, do_sample=True, eos_token_id=2, pad_token_id=0).shape[1])
        rows = [{"input_ids": torch.ones(64, dtype=torch.long), "labels": torch.ones(64, dtype=torch.long)}] * 200
        args = t.TrainingArguments("out", per_device_train_batch_size=4, bf16=True, report_to=[], logging_steps=1,
                                   gradient_accumulation_steps=2, disable_tqdm=True)
        t.Trainer(model=model, args=args, train_dataset=rows).train()
        """,
        HIGHTIDE_IMAGINE_SANDBOX=str(tmp_path / "box"), HIGHTIDE_IMAGINE_SWITCH="checkpointing",
    )  # fmt: skip
    (attention,) = {r["value"] for r in result.main.all("condition") if r["name"] == "attention"}
    assert set(attention.split(" and ")) == {"efficient", "cudnn"}, "no mask that hides nothing"
    assert result.out.splitlines()[0] == "36" and result.main.one("stop")["reason"] == "steady"
    assert all(s["micro"] == 2 for s in result.main.steps)
    assert result.main.one("switch")["applied"] and not (tmp_path / "out").exists()


def test_numbers_written_in_place_are_read_more_than_once(imagine: Any) -> None:
    """A slice that is copied to the host is copied on the device first, through a view whose versions begin anew."""
    result = imagine(
        """
        import torch
        made = torch.multinomial(torch.rand(2, 50, device="cuda"), 36)
        made.copy_(torch.full((2, 36), 7, dtype=torch.long))
        part = made[:, 16:]
        print(part.cpu()[0, :2].tolist(), made.tolist()[1][:2], part.cpu()[1, :2].tolist(), made.sum().item())
        best = torch.rand(2, 50, device="cuda").argmax(1)  # made up once it is looked at, as an expert is
        print(len(best.unique()))
        best.copy_(torch.tensor([3, 4]))
        print((best > 3).cpu().tolist())
        """
    )
    assert result.out == "[7, 7] [7, 7] [7, 7] 504\n2\n[False, True]\n"


def test_generated_tokens_do_not_end_what_is_generated_in_full_length(imagine: Any) -> None:
    """What comes of generate() is used on the host as reinforcement learning does: cut behind the first end token."""
    pytest.importorskip("transformers", reason="needs transformers")
    result = imagine(
        """
        import torch, transformers as t
        shape = dict(hidden_size=64, num_hidden_layers=1, intermediate_size=64, num_attention_heads=4, vocab_size=50)
        model = t.LlamaForCausalLM(t.LlamaConfig(**shape)).cuda()
        prompt = torch.arange(2, 18, device="cuda").repeat(2, 1)
        for do_sample, ends in (True, [0, 1, 4]), (False, 0):
            made = model.generate(prompt, max_new_tokens=20, do_sample=do_sample, eos_token_id=ends, pad_token_id=3)
            answers = made[:, 16:]
            over = torch.isin(answers, torch.tensor(ends, device="cuda"))
            last = torch.full((2,), 20, dtype=torch.long, device="cuda")
            last[over.any(dim=1)] = over.int().argmax(dim=1)[over.any(dim=1)]
            kept = (torch.arange(20, device="cuda").expand(2, -1) <= last.unsqueeze(1)).bool().cpu()
            cut = [c[m].tolist() for c, m in zip(answers.cpu(), kept)]
            print([len(c) for c in cut], set(sum(cut, [])) & {0, 1, 3, 4}, made[0, :16].tolist() == list(range(2, 18)))
        """
    )
    assert result.out == "[20, 20] set() True\n" * 2
    assert {r["op"] for r in result.main.all("policy")} == {"generate"}, "no size of it is unknown"


def test_autocast_can_be_switched_on(imagine: Any) -> None:
    plain, bf16 = imagine(TRAIN), imagine(TRAIN, HIGHTIDE_IMAGINE_SWITCH="bf16,checkpointing,unknown")
    told = [(r["name"], r["applied"]) for r in bf16.main.all("switch")]
    assert sorted(told) == [("bf16", True), ("checkpointing", False), ("unknown", False)], "each once, not each call"
    assert bf16.main.all("peak")[-1]["allocated_bytes"] != plain.main.all("peak")[-1]["allocated_bytes"]


def test_a_played_rank_waits_for_nobodys_symmetric_memory(imagine: Any) -> None:
    result = imagine(
        """
        import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symmetric
        dist.init_process_group("nccl")
        mine = symmetric.empty(1 << 20, device="cuda")
        try:
            symmetric.rendezvous(mine, dist.group.WORLD)
        except RuntimeError as error:
            print(error)
        """,
        HIGHTIDE_IMAGINE_PLAY="0/3", HIGHTIDE_DEVICE_PLAY="1",
    )  # fmt: skip
    assert "hightide imagine: rank 0 waits for the symmetric memory of 2 others" in result.out, result.out


def test_a_rank_that_its_program_names_is_known(imagine: Any, tmp_path: Path) -> None:
    """As LLM servers start their workers: no launcher says in the environment which rank a process is."""
    result = imagine(
        """
        import subprocess, sys, torch, torch.distributed as dist
        rank = int((sys.argv + ["0"])[1])
        other = None if rank else subprocess.Popen([sys.executable, __file__, "1"])
        dist.init_process_group("nccl", init_method="file://%s", rank=rank, world_size=2)
        dist.all_reduce(torch.ones(4, device="cuda:%%d" %% rank))
        assert other is None or other.wait() == 0
        """
        % (tmp_path / "store"),
        gpus=2,
    )
    told = [(p["rank"], p["world_size"], p["role"]) for p in result.main.all("hello")[-1:]]
    assert told == [(0, 2, "rank")], result.main.all("hello")


@pytest.mark.parametrize("version", torchversions.listed())
@pytest.mark.parametrize("backend", ["cpu:gloo,cuda:nccl", "gloo"])
def test_a_played_rank_has_the_groups_that_it_asks_for(
    observe: Any, tmp_path: Path, version: str, backend: str
) -> None:
    """As FSDP2's offload to the host asks for, with the debugging that checks each call with all ranks."""
    python = torchversions.python(version)
    if not python.exists():
        pytest.skip("needs PyTorch %s: scripts/setup puts it in place" % version)
    result = observe(
        """
        import datetime, sys, torch, torch.distributed as dist
        dist.init_process_group(sys.argv[1])
        for kind in ("cpu", "cuda") if "nccl" in sys.argv[1] else ("cpu",):
            tensor = torch.ones(4, device=kind)
            dist.all_reduce(tensor), dist.broadcast(tensor, 0), dist.all_gather([tensor, tensor.clone()], tensor)
        own = dist.new_group([0, 1], backend="gloo")
        dist.barrier(own), dist.monitored_barrier(own), dist.all_reduce(torch.ones(4), group=own)
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=9), own)
        print(dist.get_world_size(), dist.get_backend(own))
        """,
        backend, python=str(python),
        env={**device(tmp_path, 2), "HIGHTIDE_IMAGINE_STEPS": "auto", "HIGHTIDE_IMAGINE_PLAY": "0/2",
             "HIGHTIDE_DEVICE_PLAY": "1", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    )  # fmt: skip
    assert result.out == "2 gloo\n"


def test_the_device_is_read_at_the_end_of_each_step(imagine: Any) -> None:
    result = imagine(
        """
        import torch
        model, kept = torch.nn.Linear(64, 64, device="cuda"), []
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(60):
            model(torch.randn(8, 64, device="cuda")).sum().backward(); sgd.step()
            kept.append(torch.zeros(1 << 20, dtype=torch.uint8, device="cuda"))
        """
    )
    held = [step["allocated"] for step in result.main.steps]
    assert [later - before for before, later in zip(held[1:], held[2:])] == [MIB] * 58


SUMMED = """
import torch
w = torch.zeros(4 << 20, device="cuda", requires_grad=True)
torch.cuda.reset_peak_memory_stats()
((w * 2).sum() + (w * 3).sum()).backward()
print(torch.cuda.max_memory_allocated() >> 20)
"""


def test_gradients_whose_elements_are_known_are_summed_in_place(imagine: Any) -> None:
    """The parameter and two gradients, as on a GPU: nothing of ours owns the memory into which they are summed."""
    assert imagine(SUMMED).out == "48\n"


RANKS = """
import os, sys, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(4)]
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers[:2]))
mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("data", "tensor"))
net = torch.nn.Sequential(*layers[2:])
parallelize_module(net, mesh["tensor"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
fully_shard(net, mesh=mesh["data"])
objects = [None] * dist.get_world_size()
dist.all_gather_object(objects, {"seed": 1})
assert objects == [{"seed": 1}] * len(objects)
dist.new_group(list(range(0, dist.get_world_size(), 2)))
adams = [torch.optim.AdamW(m.parameters()) for m in (ddp, net)]
for _ in range(3):
    net(ddp(torch.randn(64, 512, device="cuda"))).pow(2).mean().backward()
    for adam in adams:
        adam.step()
        adam.zero_grad()
dist.barrier()
peaks = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
os.write(1, ("RANK %d %d %d\\n" % (dist.get_rank(), *peaks)).encode())  # one write: ranks share the pipe
dist.destroy_process_group()
"""


def test_played_ranks_agree_with_started_ones(tmp_path: Path) -> None:
    ranks = int(os.environ.get("HIGHTIDE_TEST_RANKS", "8"))
    (tmp_path / "ranks.py").write_text(RANKS)

    def environment(**variables: str) -> Dict[str, str]:
        folder = tmp_path / ("channels%d" % len(list(tmp_path.glob("channels*"))))
        folder.mkdir(mode=0o700)
        return observed_environment(folder, **device(tmp_path, ranks), HIGHTIDE_IMAGINE_STEPS="0", **variables)

    def peaks(*done: Any) -> Dict[int, List[str]]:
        assert not any(each.returncode for each in done), [each.stderr[-3000:] for each in done]
        found = re.findall(r"RANK (\d+) (\d+) (\d+)", "".join(each.stdout for each in done))
        return {int(rank): list(peak) for rank, *peak in found}

    program = [sys.executable, "ranks.py"]
    started = peaks(*forkserver.run_ranks(ranks, program, environment(), tmp_path))
    assert sorted(started) == list(range(ranks))
    last = ranks - 1
    env = environment(
        HIGHTIDE_IMAGINE_PLAY="%d/%d" % (last, ranks), HIGHTIDE_DEVICE_PLAY="1", LOCAL_WORLD_SIZE=str(ranks)
    )
    assert peaks(forkserver.run(program, env, tmp_path)) == {last: started[last]}
    launch = ["-m", "torch.distributed.run", "--master-port", forkserver.free_port(), "--nproc-per-node", str(ranks)]
    env = environment(HIGHTIDE_IMAGINE_PLAY="0/%d" % ranks, HIGHTIDE_DEVICE_PLAY="1")
    launched = subprocess.run(
        [sys.executable, *launch, "ranks.py"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert peaks(launched) == {0: started[0]}, "torchrun itself becomes the rank"


SLOW = """
import time, torch
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(6):
    model(torch.randn(64, 8, 64, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    until = time.process_time() + 0.6
    while time.process_time() < until:
        pass
print("never")
"""


def test_what_blocks_keep_is_told_before_a_steady_training_ends(imagine: Any) -> None:
    """Where steps take long, its peak is believed as soon as the third has ended, which the recorded pass waits for."""
    result = imagine(SLOW, HIGHTIDE_BLOCKS="1")
    assert result.out == "" and result.main.one("stop")["step"] == 3
    told = [record["value"] for record in result.main.all("fact") if record["key"] == "blocks"]
    assert [block[0] for block in told[-1]["blocks"]] == ["layers.0", "layers.1"]
