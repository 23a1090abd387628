"""The PyTorch adapter against the real PyTorch: phases, steps, models, and what must not change."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any, Dict, Tuple

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
def net(n=8):
    return nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 1))
def batch(n=8):
    return torch.randn(4, n), torch.randn(4, 1)
def loss_of(model, n=8):
    x, y = batch(n)
    return ((model(x) - y) ** 2).mean()
class Module(nn.Module):  # its parts are called, itself never
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 8), nn.Linear(8, 1)
    def both(self):
        x, y = batch()
        return ((self.head(self.encoder(x)) - y) ** 2).mean()
"""


def script(text: str) -> str:
    return HEAD + textwrap.dedent(text)


STEP = ["+step", "+forward", "-forward", "+backward", "-backward", "+optimizer", "-optimizer", "-step"]


def test_plain_loop(observe: Any) -> None:
    ring = observe(
        script(
            """
            from torch.utils.data import DataLoader, TensorDataset
            model = net()
            model.train()
            adam = torch.optim.Adam(model.parameters())
            for x, y in DataLoader(TensorDataset(*[t for t in (torch.randn(12, 8), torch.randn(12, 1))]), batch_size=4):
                loss = ((model(x) - y) ** 2).mean()
                adam.zero_grad(); loss.backward(); adam.step()
            model.eval()
            with torch.no_grad():
                model(x)
            torch.save(model.state_dict(), "m.pt")
            """
        )
    ).main
    data = ["+data", "-data"]
    step = STEP[:1] + data + STEP[1:]
    expected = step + ["=1"] + step + ["=2"] + step + ["=3"]
    expected += ["+step", *data, "+evaluation", "-evaluation", "+checkpoint", "-checkpoint"]
    assert ring.outline("module") == expected
    modules = ring.all("modules")[-1]["modules"]
    assert [(m["id"], m["name"], m["class"], m["parameter_bytes"]) for m in modules] == [
        (1, "Sequential", "Sequential", 4 * (72 + 9)), (2, "0", "Linear", 288), (3, "1", "ReLU", 0),
        (4, "2", "Linear", 36),
    ]  # fmt: skip
    first = [r for r in ring.outline() if "module" in r][:6]
    assert first == ["+module2", "-module2", "+module3", "-module3", "+module4", "-module4"]
    model = ring.all("model")[-1]
    assert (model["parameter_bytes"], model["gradient_bytes"], model["device"]) == (324, 324, "cpu")
    assert model["optimizer_bytes"] == 2 * 324 + 4 * 4  # two moments, and a step counter for each parameter
    assert all(r["rss"] > 50 << 20 for r in ring.edges + ring.steps) and ring.dropped == 0
    assert [s["micro"] for s in ring.steps] == [1, 1, 1]
    assert ring.steps[0]["duration"] == 0 and ring.steps[2]["duration"] > 0
    assert ring.all("framework")[-1]["version"] == torch.__version__


def test_gradient_accumulation(observe: Any) -> None:
    ring = observe(
        script(
            """
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(9):
                loss_of(model).backward()
                if i % 3 == 2:
                    sgd.step(); sgd.zero_grad()
            """
        )
    ).main
    micro = ["+forward", "-forward", "+backward", "-backward"]
    one = ["+step"] + micro * 3 + ["+optimizer", "-optimizer", "-step"]
    assert ring.outline("module") == one + ["=1"] + one + ["=2"] + one + ["=3", "+step"]
    assert [s["micro"] for s in ring.steps] == [3, 3, 3]


def test_two_optimizers_are_one_step(observe: Any) -> None:
    ring = observe(
        script(
            """
            D, G = net(), net()
            d, g = torch.optim.SGD(D.parameters(), lr=0.1), torch.optim.SGD(G.parameters(), lr=0.1)
            for i in range(4):
                loss_of(D).backward(); d.step()
                loss_of(G).backward(); g.step()
            """
        )
    ).main
    assert len(ring.steps) == 4 and [s["micro"] for s in ring.steps] == [1, 2, 2, 2]
    tail = ring.outline("module")
    last = tail[tail.index("=3") + 1 : tail.index("=4")]
    one = ["+forward", "-forward", "+backward", "-backward", "+optimizer", "-optimizer"]
    assert last == ["+step", *one, *one, "-step"]
    names = {m["id"]: m["class"] for m in ring.all("modules")[-1]["modules"]}
    assert list(names.values()).count("Sequential") == 2, "the second root is known as well"


@pytest.mark.parametrize("fused", ["False", "True"])
def test_scaler_that_skips(observe: Any, fused: str) -> None:
    ring = observe(
        script(
            f"""
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1, fused={fused})
            scaler = torch.amp.GradScaler("cpu")
            for i in range(4):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = loss_of(model)
                if i == 1:
                    loss = loss * float("inf")
                scaler.scale(loss).backward(); scaler.step(sgd); scaler.update(); sgd.zero_grad()
            """
        )
    ).main
    assert [(s["step"], s["flags"]) for s in ring.steps] == [(1, 0), (2, 1), (3, 0), (4, 0)]
    assert {(f["key"], f["value"]) for f in ring.all("fact")} == {("amp", "bfloat16")}


def test_no_train_call_and_a_wrapper(observe: Any) -> None:
    ring = observe(
        script(
            """
            class Wrapped(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
                    self.head = nn.Linear(8, 1)
                def forward(self, x):
                    for block in self.blocks:
                        x = block(x)
                    return self.head(x)
            model = Wrapped(); parallel = nn.DataParallel(model)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(3):
                loss_of(parallel).backward(); sgd.step()
            """
        )
    ).main
    tail = ring.outline("module")
    assert tail[tail.index("=2") + 1 : tail.index("=3")] == STEP
    names = [m["name"] for m in ring.all("modules")[-1]["modules"]]
    assert names == ["Wrapped", "blocks.0", "blocks.1", "head"]


def test_training_step_that_calls_the_parts(observe: Any) -> None:
    """As Lightning does: the root itself is never called."""
    ring = observe(
        script(
            """
            module = Module(); module.train()
            sgd = torch.optim.SGD(module.parameters(), lr=0.1)
            for i in range(2):
                def closure():
                    sgd.zero_grad(); loss = module.both(); loss.backward(); return loss
                sgd.step(closure)
            """
        )
    ).main
    parts = ["+forward", "+module2", "-module2", "-forward", "+forward", "+module3", "-module3", "-forward"]
    one = ["+step", "+optimizer", *parts, "+backward", "-backward", "-optimizer", "-step"]
    assert ring.outline() == [*one, "=1", *one, "=2", "+step"]


def test_short_steps_are_recorded_sparsely_and_counted_all(observe: Any) -> None:
    ring = observe(
        script(
            """
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(400):
                loss_of(model).backward(); sgd.step(); sgd.zero_grad()
            model.eval(); model(batch()[0])
            model.train(); loss_of(model).backward(); sgd.step()
            """
        )
    ).main
    assert [s["step"] for s in ring.steps] == list(range(1, 402))
    recorded = [r["step"] for r in ring.edges if r["phase"] == "backward" and r["leave"]]
    assert 8 <= len(recorded) < 300 and recorded[:8] == list(range(8))
    assert ring.outline().count("+evaluation") == 1, "an evaluation is recorded in any step"


def test_steps_that_are_only_counted(observe: Any) -> None:
    """When most steps of a short loop are only counted: what must be noticed in any of them."""
    ring = observe(
        script(
            """
            import gc, os
            class Outer(torch.optim.Optimizer):  # steps through another one
                def __init__(self, inner):
                    super().__init__(inner.param_groups, {})
                    self.inner = inner
                @torch.no_grad()
                def step(self, closure=None): self.inner.step()
            D, G = net(), net()
            d, g = torch.optim.SGD(D.parameters(), lr=0.01), torch.optim.SGD(G.parameters(), lr=0.01)
            for i in range(200):
                loss_of(D).backward(); d.step(); d.zero_grad(); loss_of(G).backward(); g.step(); g.zero_grad()
            scaler = torch.amp.GradScaler("cpu")
            for i in range(100):  # 201 to 300; skips 251
                scaler.scale(loss_of(D) * (float("inf") if i == 50 else 1)).backward()
                scaler.step(d); scaler.update(); d.zero_grad()
            if os.fork() == 0:
                loss_of(D).backward(); d.step(); os._exit(0)
            os.wait()
            del d; gc.collect()
            for i in range(100):  # the second one leads from here on: 301 to 400
                loss_of(G).backward(); g.step()
            outer = Outer(torch.optim.SGD(D.parameters(), lr=0.01)); del g; gc.collect()
            for i in range(100):
                loss_of(D).backward(); outer.step()
            for i in range(3):
                try: loss_of(D).backward(); outer.inner = None; outer.step()
                except AttributeError: outer.inner = torch.optim.SGD(D.parameters(), lr=0.01)
            loss_of(D).backward(); outer.step()
            """
        )
    )
    main, child = ring.main, ring.rings[1]
    assert [s["step"] for s in main.steps] == list(range(1, 502)) and [s["step"] for s in child.steps] == [1]
    assert [s["step"] for s in main.steps if s["flags"]] == [251]
    assert {s["micro"] for s in main.steps[1:200]} == {2} and {s["micro"] for s in main.steps[300:500]} == {1}
    assert all(s["duration"] > 0 for s in main.steps[1:])
    recorded = {r["step"] for r in main.edges}
    assert len(recorded) < 350, "most were only counted"


def test_request_of_the_engine_in_steps_that_are_only_counted(observe: Any) -> None:
    ring = observe(
        script(
            """
            import glob, mmap, os, struct
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            (path,) = glob.glob(os.environ["HIGHTIDE_CHANNELS"] + "/agent-%d-*.ring" % os.getpid())
            with open(path, "r+b") as file:
                header = mmap.mmap(file.fileno(), 4096)
            for i in range(1, 400):
                loss_of(model).backward()
                if i == 299:
                    struct.pack_into("<Q", header, 200, 299)  # stop_at_step, then control_seq
                    struct.pack_into("<Q", header, 192, 1)
                sgd.step(); sgd.zero_grad()
            """
        )
    ).main
    assert [s["step"] for s in ring.steps] == list(range(1, 300))


def test_a_forked_child_knows_the_modules(observe: Any) -> None:
    result = observe(
        script(
            """
            import os
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            def train():
                for i in range(3):
                    loss_of(model).backward(); sgd.step()
            train()
            if os.fork() == 0:
                train()
                os._exit(0)
            os.wait()
            """
        )
    )
    main, child = result.rings
    assert any(e["module"] == 2 for e in child.edges)
    assert child.one("modules") == main.all("modules")[-1]


def test_short_evaluation_that_calls_the_parts(observe: Any) -> None:
    ring = observe(
        script(
            """
            module = Module(); module.train()
            sgd = torch.optim.SGD(module.parameters(), lr=0.1)
            for i in range(101):
                module.both().backward(); sgd.step(); sgd.zero_grad()
            module.eval(); module.both()
            """
        )
    ).main
    assert ring.outline().count("+evaluation") == 2, "once for each part"


def test_data_loader_workers(observe: Any) -> None:
    result = observe(
        script(
            """
            class Leaky(torch.utils.data.Dataset):
                def __init__(self): self.kept = []
                def __len__(self): return 400
                def __getitem__(self, i):
                    self.kept.append(torch.randn(1000))
                    return torch.randn(8)
            if __name__ == "__main__":
                model = net(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
                for x in torch.utils.data.DataLoader(Leaky(), batch_size=4, num_workers=2):
                    model(x).mean().backward(); sgd.step()
            """
        )
    )
    workers = result.rings[1:]
    assert len(workers) == 2 and len(result.main.steps) == 100
    for worker in workers:
        assert worker.all("hello")[-1]["role"] == "dataloader" and not worker.steps
        holder = worker.all("holder")[-1]
        assert (holder["name"], holder["function"]) == ("Leaky.kept", "Leaky.__getitem__")
        assert holder["items_per_step"] == pytest.approx(2.0, rel=0.05)  # 4 items a batch, every second batch


@pytest.mark.parametrize("steps", [5, 377])
def test_stop_after_steps(observe: Any, steps: int) -> None:
    result = observe(
        script(
            """
            import atexit
            atexit.register(print, "exit handlers run")
            model = net(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                loss_of(model).backward(); sgd.step()
            """
        ),
        env={"HIGHTIDE_STEPS": str(steps)},
    )
    assert result.code == 0 and result.out == "exit handlers run\n" and len(result.main.steps) == steps
    assert result.main.one("stop")["step"] == steps and result.main.one("bye")


def test_cpu_allocator_out_of_memory(observe: Any) -> None:
    result = observe(script("x = torch.empty(1 << 58, dtype=torch.uint8)\n"), ok=False)
    told = result.main.one("oom")
    assert (told["source"], told["bytes"], told["function"]) == ("torch.cpu", 1 << 58, "<module>")
    assert told["file"].endswith("script.py") and "DefaultCPUAllocator" in result.err


COMPILED = script(
    """
    import json, torch._dynamo as dynamo
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 1)
        def forward(self, x):
            x = self.a(x)
            dynamo.graph_break()
            return self.b(x)
    model = Model(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    BEFORE
    BODY
    for i in range(40):
        x, y = batch()
        ((run(x) - y) ** 2).mean().backward(); sgd.step(); sgd.zero_grad()
        if i == 30: model.eval(); run(x); model.train()
    c = dynamo.utils.counters
    print(json.dumps([c["stats"]["unique_graphs"], c["stats"]["calls_captured"], c["frames"],
                      sum(c["graph_break"].values()), len(c["recompiles"])]))
    """
)
BODIES = {
    "module": "run = torch.compile(model, backend='eager')\n",
    "in place": "run = model; model.compile(backend='eager')\n",
    "function": "run = torch.compile(lambda x: model(x), backend='eager')\n",
    "wrapped": "run = nn.DataParallel(torch.compile(model, backend='eager'))\n",
}
BEFORES = {
    "at once": "pass",
    "after steps": "loss_of(model).backward(); sgd.step(); model.train(); loss_of(model).backward(); sgd.step()",
}
EACH = """
import runpy, sys, torch._dynamo
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
"""


def compiled(body: str, before: str) -> str:
    return COMPILED.replace("BODY", BODIES[body]).replace("BEFORE", BEFORES[before])


@pytest.fixture(scope="module")
def unobserved_graphs(tmp_path_factory: pytest.TempPathFactory) -> Dict[Tuple[str, str], str]:
    """What each program prints where nobody observes it: of all of them in one process, as most of their time goes
    to importing PyTorch."""
    folder = tmp_path_factory.mktemp("unobserved")
    cases = [(body, before) for body in BODIES for before in BEFORES]
    files = [folder / ("%d.py" % number) for number in range(len(cases))]
    for file, case in zip(files, cases):
        file.write_text(compiled(*case))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HIGHTIDE", "PYTHONPATH"))}
    command = [sys.executable, "-c", EACH, *map(str, files)]
    lines = subprocess.run(command, env=env, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert lines.count("\n") == len(cases)
    return dict(zip(cases, lines.splitlines(keepends=True)))


@pytest.mark.parametrize("body", BODIES)
def test_compiled_graphs_are_the_same(observe: Any, body: str, unobserved_graphs: Dict[Tuple[str, str], str]) -> None:
    for before in BEFORES:
        seen = observe(compiled(body, before))
        assert seen.out == unobserved_graphs[body, before]
        assert ("compile", "yes") in {(f["key"], f["value"]) for f in seen.main.all("fact")}
        if body in ("module", "wrapped"):
            # The first eight steps are always recorded, later ones only as often as the pace allows.
            assert seen.main.outline("module").count("+forward") >= 5


def test_what_libraries_compile_for_themselves_hides_no_forward_pass(observe: Any) -> None:
    seen = observe(
        script(
            """
            torch.compile(nn.functional.relu, backend="eager")
            model = net()
            sgd = torch.optim.SGD(model.parameters(), 0.1)
            for _ in range(3):
                model.train()
                loss_of(model).backward()
                sgd.step()
            """
        )
    )
    assert seen.main.outline("module").count("+forward") == 3
    assert "compile" not in {f["key"] for f in seen.main.all("fact")}


def test_where_nothing_is_recorded_nothing_is_observed(observe: Any) -> None:
    assert observe(script("loss_of(net()).backward()"), env={"HIGHTIDE_CHANNELS": ""}).rings == []


def test_models_carry_no_trace_of_us(observe: Any) -> None:
    result = observe(
        script(
            """
            import copy, io, pickle, subprocess, sys
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            loss_of(model).backward(); sgd.step()
            assert model._forward_hooks, "observed"
            twin = copy.deepcopy(model)
            twin(batch()[0])
            torch.save(model, "model.pt")
            open("model.pickle", "wb").write(pickle.dumps(model))
            scripted = torch.jit.script(model)
            scripted(batch()[0])
            """
        )
    )
    assert b"hightide" not in (result.rings[0].path.parent.parent / "model.pt").read_bytes()
    assert b"hightide" not in (result.rings[0].path.parent.parent / "model.pickle").read_bytes()
    outline = result.main.outline("module")
    assert outline.count("+forward") == 1


def test_an_exception_inside_a_phase_does_not_confuse(observe: Any) -> None:
    ring = observe(
        script(
            """
            model = net(); model.train(); sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(4):
                try:
                    model(torch.randn(4, 3) if i == 1 else batch()[0]).mean().backward()
                except RuntimeError:
                    continue
                sgd.step()
            """
        )
    ).main
    tail = ring.outline("module")
    assert tail[tail.index("=2") + 1 : tail.index("=3")] == STEP
    assert tail.count("+forward") == tail.count("-forward")
