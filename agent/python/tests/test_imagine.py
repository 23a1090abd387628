"""The imagined process without a device: what is made up, redirected and agreed on."""

from __future__ import annotations

import ctypes
import math
import os
import struct
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

from conftest import SOURCE, forkserver
from hightide_agent.imagine import breakdown, settle, truncated
from hightide_agent.imagine.mailbox import Mailbox
from hightide_agent.imagine.steady import Steady
from hightide_agent.imagine.together import Together
from hightide_agent.imagine.undecided import Reads
from hightide_agent.tracker import BACKWARD, DATA, EVALUATION, STEP

pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
MIB = 1 << 20
IMAGINE = {"HIGHTIDE_IMAGINE": "1", "HIGHTIDE_IMAGINE_STEPS": "0"}


def test_writes_go_to_the_sandbox_and_are_seen(observe: Any, tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text("below ")
    result = observe(
        """
        import glob, io, os, pathlib, shutil
        os.makedirs("out/deep", exist_ok=True)
        with open("out/deep/a.txt", "w") as f: f.write("hi")
        assert open("out/deep/a.txt").read() == "hi" and os.listdir("out") == ["deep"]
        with open("keep.txt", "a") as f: f.write("above")
        assert pathlib.Path("keep.txt").read_text() == "below above"
        os.rename(src="out/deep/a.txt", dst="out/deep/c.txt")
        os.replace("out/deep/c.txt", dst="out/b.txt")
        assert [p.name for p in os.scandir("out")] == ["b.txt", "deep"] and glob.glob("out/*.txt") == ["out/b.txt"]
        shutil.copy("out/b.txt", "c.txt")
        shutil.rmtree("out")
        os.remove("keep.txt")
        assert not os.path.exists("out") and not os.path.exists("keep.txt") and "keep.txt" not in os.listdir(".")
        try: open("nothere/x", "w")
        except FileNotFoundError: pass
        else: raise AssertionError
        """,
        env={**IMAGINE, "HIGHTIDE_IMAGINE_SANDBOX": str(tmp_path / "box")},
    )
    assert (tmp_path / "keep.txt").read_text() == "below " and not (tmp_path / "c.txt").exists()
    assert (tmp_path / "box").joinpath(*tmp_path.parts[1:], "c.txt").read_text() == "hi"
    told = {Path(r["path"]).name for r in result.main.all("redirected")}
    assert {"out", "deep", "a.txt", "keep.txt", "b.txt", "c.txt"} <= told


def test_what_was_compiled_in_the_sandbox_is_loaded(observe: Any, tmp_path: Path) -> None:
    """As Triton's launchers are, which a program compiles beside itself; caches of the home folder are not of it."""
    result = observe(
        """
        import _json, importlib.util, os, pathlib, shutil, sysconfig, torch, ctypes
        os.makedirs("cache", exist_ok=True)
        source = next(pathlib.Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("_csv*.so"))
        for name in ("_csv.so", "other.so"):
            shutil.copyfile(source, "cache/" + name)
        spec = importlib.util.spec_from_file_location("_csv", os.path.abspath("cache/_csv.so"))
        module = importlib.util.module_from_spec(spec)
        print(module.__file__ == os.path.abspath("cache/_csv.so"), bool(ctypes.CDLL(os.path.abspath("cache/other.so"))))
        os.makedirs(".triton", exist_ok=True)
        open(".triton/kernel", "w").close()
        """,
        env={**IMAGINE, "HIGHTIDE_IMAGINE_SANDBOX": str(tmp_path / "box"), "HOME": str(tmp_path)},
    )
    assert result.out == "True True\n" and not (tmp_path / "cache").exists(), result.err
    assert (tmp_path / ".triton" / "kernel").exists()


def test_without_a_sandbox_written_files_are_listed(observe: Any, tmp_path: Path) -> None:
    result = observe("open('mine.txt', 'w').write('x'); open('script.py').read()", env=IMAGINE)
    assert [Path(r["path"]).name for r in result.main.all("written")] == ["mine.txt"]


def test_models_built_on_the_host_take_no_memory(observe: Any) -> None:
    result = observe(
        """
        import torch
        def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
        before = resident()
        model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(4)], torch.nn.Embedding(50000, 1024))
        model[0].weight.data.normal_(0, 0.02)
        torch.nn.init.trunc_normal_(model[1].weight)
        data = torch.randn(1024, 1024)
        assert data.abs().max() > 1 and torch.nn.Linear(4, 4).weight.abs().max() > 0, "data and small weights are made"
        print(resident() - before)
        """,
        env=IMAGINE,
    )
    assert int(result.out) < 40 * MIB, "1.2 GiB of weights"


def test_weights_that_are_not_here(observe: Any, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    result = observe(
        """
        import torch, torchvision, transformers
        config = transformers.LlamaConfig(hidden_size=2048, num_hidden_layers=8, vocab_size=64000, dtype="bfloat16")
        config.save_pretrained("llama")
        def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
        before = resident()
        model = transformers.AutoModelForCausalLM.from_pretrained("llama")
        shapes = {n: p.shape for n, p in transformers.LlamaForCausalLM(config).named_parameters()}
        assert {n: p.shape for n, p in model.named_parameters()} == shapes and model.dtype == torch.bfloat16
        assert type(transformers.AutoModel.from_pretrained("bert")).__name__ == "BertModel"
        for kind, name in (transformers.AutoModelForCausalLM, "llama"), (transformers.LlamaForCausalLM, "llama"):
            kind.from_pretrained(pretrained_model_name_or_path=name, config=None, device_map="cpu")
        made = torch.load(f="nowhere.pt")
        model.load_state_dict(made["model"])
        assert int(made["epoch"]) == 0
        torchvision.models.resnet18(weights="DEFAULT")
        from safetensors.torch import load_file
        print(load_file("short.safetensors")["w"].shape, resident() - before)
        try: transformers.AutoModel.from_pretrained("./no-such-model")
        except OSError as error: assert "config.json" in str(error)
        """.replace("import torch,", short_file() + "import torch,"),
        env={**IMAGINE, "HIGHTIDE_IMAGINE_FAKE_WEIGHTS": "1", "HF_HUB_OFFLINE": "1"},
    )
    shape, _, taken = result.out.rpartition(" ")
    assert shape == "torch.Size([1024, 1024])" and int(taken) < 600 * MIB, "1.5 GiB of weights, and imports"
    fakes = {(f["what"], Path(f["name"]).name) for f in result.main.all("fake")}
    assert {("from_pretrained", "llama"), ("from_pretrained", "bert"), ("torch.load", "nowhere.pt"),
            ("safetensors", "short.safetensors")} <= fakes  # fmt: skip
    assert all(f["file"].endswith("script.py") and f["line"] for f in result.main.all("fake"))
    assert not list(tmp_path.glob("channels*/weights-*")), "gone at the end"


def short_file() -> str:
    header = b'{"w":{"dtype":"F32","shape":[1024,1024],"data_offsets":[0,4194304]}}'
    data = struct.pack("<Q", len(header)) + header
    return "open('short.safetensors', 'wb').write(%r)\n        " % data


def test_ranks_end_at_the_same_step(tmp_path: Path) -> None:
    script = """if 1:
        import sys, types, random, time
        sys.path.insert(0, sys.argv[1])
        from hightide_agent.imagine.together import Together
        rank = int(sys.argv[2])
        agent = types.SimpleNamespace(folder=sys.argv[3], log=print)
        dist = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True,
                                     get_rank=lambda: rank, get_world_size=lambda: 4, get_backend=lambda: "nccl")
        together = Together(agent, types.SimpleNamespace(distributed=dist))
        for step in range(1, 30):
            time.sleep(random.random() * 0.01)
            if together.all_of_us(step, step >= (3, 7, 12, 5)[rank]):
                break
        print(step)
    """
    ranks = [
        subprocess.Popen([sys.executable, "-c", script, str(SOURCE), str(rank), str(tmp_path)], stdout=subprocess.PIPE)
        for rank in range(4)
    ]
    assert [int(r.communicate(timeout=300)[0]) for r in ranks] == [12] * 4


def test_a_world_of_one_process_waits_for_nobody(tmp_path: Path) -> None:
    """The fake backend pretends to the other ranks."""
    agent: Any = types.SimpleNamespace(folder=str(tmp_path), log=print)
    world = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: 256, get_backend=lambda: "fake")
    world.is_available = world.is_initialized = lambda: True
    assert Together(agent, types.SimpleNamespace(distributed=world)).all_of_us(1, True)
    assert not any(tmp_path.iterdir())


def test_who_waits_for_a_rank_that_waits_in_vain_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHTIDE_IMAGINE_PLAYED", "0,1,7")
    first, second = (Mailbox(str(tmp_path), rank) for rank in (0, 1))
    assert second.receive("p2p-2-1", 2) is None
    assert second.unanswered(2).endswith("Play that one too: --play 0,1,2,7")
    assert first.receive("p2p-1-0", 1) is None  # at once: two minutes are the patience with a rank that may still send
    assert first.unanswered(1).endswith("Play those in between too: --play 0,1,2,3,4,5,6,7")


def test_a_rank_that_waits_for_nobody_says_so(tmp_path: Path) -> None:
    script = """if 1:
        import os, sys, torch, torch.distributed as dist
        sys.path.insert(0, sys.argv[1])
        from hightide_agent.imagine import ranks
        ranks.PATIENCE = 1
        ranks._unstarted(dist.distributed_c10d, torch)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", LOCAL_WORLD_SIZE="1")
        os.environ["WORLD_SIZE"] = sys.argv[2]
        dist.init_process_group("gloo")
        print("joined", dist.TCPStore("127.0.0.1", 0, None, True).timeout)
    """
    alone, one = (
        forkserver.run([sys.executable, "-c", script, str(SOURCE), world], os.environ, tmp_path)
        for world in ("256", "1")
    )
    assert "hightide imagine: rank 0 waits at 127.0.0.1:0 for 255 others, and not all of them were" in alone.stderr
    assert "--world-size N --play RANK" in alone.stderr and alone.returncode == 1
    assert one.stdout.startswith("joined"), one.stderr


def test_rounds_of_a_cut_distribution() -> None:
    three, hundred = math.erf(3 / math.sqrt(2)), 1.0
    assert [truncated.rounds(n, three) for n in (100, 1 << 20, 1 << 24)] == [0, 2, 2]
    assert truncated.rounds(1 << 40, hundred) == 0 and truncated.rounds(1 << 20, 0.35) == 33


@pytest.mark.parametrize("phase", [{}, {"phase": "forward"}, {"phase": "backward"}])
def test_a_peak_without_a_line_has_that_of_backward(phase: Any) -> None:
    """Whatever phase the allocator's clock puts it into, on a machine where that runs apart from ours."""
    seen: Any = types.SimpleNamespace(lines={BACKWARD: ("train.py", 7, "<module>")})
    record: Any = {"type": "categories", **phase}
    Steady._line(seen, record)
    assert (record["file"], record["line"]) == ("train.py", 7)
    own = {"file": "mine.py", "line": 1, "function": "f", **phase}
    Steady._line(seen, own)
    assert own["line"] == 1


@pytest.mark.parametrize(("edges", "phase"), [
    ([(1, EVALUATION, 6), (2, STEP, 6)], EVALUATION), ([(1, EVALUATION, 6), (2, DATA, 6), (3, STEP, 6)], STEP),
    ([(1, EVALUATION, 6), (2, STEP, 7)], STEP), ([(1, STEP, 0)], STEP),
])  # fmt: skip
def test_what_is_made_of_an_evaluations_outputs_is_of_the_evaluation(edges: Any, phase: int) -> None:
    seen: Any = types.SimpleNamespace(edges=edges)
    assert Steady._passed(seen) == phase


def test_a_thread_without_a_line_of_the_program_is_told_to_have_none() -> None:
    """As a thread of autograd has none but ours."""
    found: list[Any] = []
    nobody: Any = None
    names: Any = {"line": lambda frame: found.append(Reads._line(nobody, frame)), "sys": sys}
    source = "def ask():\n    line(sys._getframe())\n"
    exec(compile(source, "/x/hightide_agent/imagine/sizes.py", "exec"), names)
    asked = threading.Thread(target=names["ask"])
    asked.start()
    asked.join()
    assert found == [("", 0, "")]


def test_the_end_waits_for_autograds_threads() -> None:
    """A thread of autograd's name that works on, a little at a time; who ended before it would abort."""
    done, over = [], threading.Event()

    def work() -> None:
        ctypes.CDLL(None).prctl(15, b"pt_autograd_7", 0, 0, 0)  # PR_SET_NAME
        ready.set()
        for _ in range(30):
            time.sleep(0.01)
        done.append(True)
        over.wait()

    ready = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        ready.wait()
        settle()
        assert done
    finally:
        over.set()
        thread.join()


class Seen:
    """Owners as the breakdown reads them."""

    times = [50, 150]
    more: list[Any] = []
    seen = {
        ("cuda:0", 0x1000, 1000, "parameters", "w"): [0, 1],
        ("cuda:0", 0x2000, 512, "gradients", "w"): [1],
    }


def test_the_peak_is_broken_down() -> None:
    def event(action: str, address: int, size: int, us: int) -> Any:
        frames = [{"filename": "/home/me/train.py", "line": us, "name": "main"}]
        return {"action": action, "addr": address, "size": size, "time_us": us, "frames": frames}

    events = [
        event("alloc", 0x1000, 1000, 10),  # rounded to 1024
        event("alloc", 0x2000, 2048, 20), event("free_requested", 0x2000, 2048, 30),  # before the gradient came there
        event("alloc", 0x3000, 2048, 110),  # in forward
        event("alloc", 0x2000, 512, 120), event("alloc", 0x4000, 600, 130),  # in backward: the peak
        event("free_requested", 0x4000, 600, 135), event("free_requested", 0x3000, 2048, 140),
    ]  # fmt: skip
    snapshot = {
        "device_traces": [events],
        "segments": [{"address": 0x1000, "device": 0, "blocks": [
            {"address": 0x1000, "size": 1024, "state": "active_allocated"},
            {"address": 0x2000, "size": 512, "state": "active_allocated"}]}],
    }  # fmt: skip

    class Peak:
        device, allocated, reserved = 0, 4608 + 32, 8192

    edges = [(0, 0, 0), (100, 3, 1), (115, 4, 1), (145, 5, 1)]
    (record,) = breakdown.at_peak(snapshot, Seen, [Peak], edges)
    want = {"parameters": 1024, "gradients": 512, "activations": 2048, "temporaries": 1024, "line": 130}
    assert record["phase"] == "backward"
    assert {k: record.get(k) for k in want} == want and record["other"] == 32


def test_activations_as_large_as_a_workspace() -> None:
    """Memory ran out in step 2, in backward: no activation of that step was freed, nor the workspaces of step 1."""
    size = breakdown.WORKSPACES[1]

    def event(action: str, address: int, us: int) -> Any:
        return {"action": action, "addr": address * size, "size": size, "time_us": us, "frames": []}

    events = [event("alloc", 1, 110), event("alloc", 2, 160)]  # workspaces: of forward, of backward
    events += [event("alloc", n, 200 + n) for n in range(3, 13)]  # step 2: activations
    events += [event("alloc", 13, 260)]  # a gradient of one
    blocks = [{"address": e["addr"], "size": size, "state": "active_allocated"} for e in events]
    snapshot = {"device_traces": [events], "segments": [{"address": size, "device": 0, "blocks": blocks}]}

    class Peak:
        device, allocated, reserved = 0, 13 * size, 13 * size

    class Nobody:
        times, seen, more = [], {}, []

    edges = [(100, 3, 1), (150, 4, 1), (200, 3, 2), (250, 4, 2)]
    (record,) = breakdown.at_peak(snapshot, Nobody, [Peak], edges)
    want = {"workspaces": 2 * size, "activations": 10 * size, "temporaries": size, "step": 2}
    assert {k: record[k] for k in want} == want
    (first,) = breakdown.at_peak(snapshot, Nobody, [Peak], [(100, 3, 1), (150, 4, 1), (200, 3, 1), (250, 4, 1)])
    assert first["workspaces"] == 2 * size, "one in each thread that multiplies, in a first step as well"


def test_before_any_phase_stacks_tell() -> None:
    def event(address: int, file: str, name: str) -> Any:
        frames = [{"filename": f, "line": 1, "name": n} for f, n in (("/home/me/train.py", "f"), (file, name))]
        return {"action": "alloc", "addr": address, "size": 1024, "time_us": address, "frames": frames}

    module = "/x/torch/nn/modules/module.py"
    events = [event(0x1000, module, "to"), event(0x2000, module, "_call_impl"),
              event(0x3000, "/x/torch/optim/adam.py", "step"), event(0x4000, "/home/me/train.py", "main")]  # fmt: skip
    blocks = [{"address": e["addr"], "size": 1024, "state": "active_allocated"} for e in events]
    snapshot = {"device_traces": [events], "segments": [{"address": 0x1000, "device": 0, "blocks": blocks}]}

    class Peak:
        device, allocated, reserved = 0, 4096, 4096

    class Nobody:
        times, seen, more = [], {}, []

    (record,) = breakdown.at_peak(snapshot, Nobody, [Peak], [(0, 0, 0)])
    want = {"activations": 1024, "temporaries": 1024, "other": 2048, "by_stack_bytes": 2048}
    assert {k: record[k] for k in want} == want


@pytest.mark.parametrize("policy", ["upper", "zero", "0.25", "nonsense"])
def test_policies(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hightide_agent.imagine import sizes

    monkeypatch.setenv("HIGHTIDE_IMAGINE_SIZES", policy)
    expected = {"upper": 1.0, "zero": 0.0, "0.25": 0.25, "nonsense": 1.0}[policy]
    assert sizes.policy() == ("upper" if policy == "nonsense" else policy, expected)


def test_nothing_is_changed_where_nothing_is_imagined(observe: Any) -> None:
    result = observe(
        """
        import builtins, io, os, sys, torch
        assert "hightide_agent.imagine" not in sys.modules and os.open.__module__ in ("posix", "nt")
        assert torch.nn.init.normal_.__module__ == "torch.nn.init" and not hasattr(torch.load, "__wrapped__")
        """
    )
    assert not result.main.all("written")


@pytest.mark.parametrize(
    ("version", "library", "told"),
    [
        ("1.13.1+cu117", b"\x7fELF...libc10.so\0librt.so.1\0", {"torch.runtime": "inside"}),
        ("1.13.1", b"\x7fELF...libcudart.so.11.0\0", {}),  # of conda: a library of its own
        ("2.0.1", None, {}),
    ],
)
def test_a_runtime_of_cuda_inside_torch_is_told(
    version: str, library: bytes | None, told: dict[str, str], tmp_path: Path
) -> None:
    from hightide_agent import imagine

    if library is not None:
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/libc10_cuda.so").write_bytes(library)
    facts: dict[str, str] = {}
    agent: Any = types.SimpleNamespace(fact=facts.__setitem__)
    imagine._inside(agent, types.SimpleNamespace(__version__=version, __file__=str(tmp_path / "__init__.py")))
    assert facts == told
