"""What adapters tell, without any framework: a step that fails, allocators that break, a callback that raises."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Tuple

import pytest

from hightide_agent import oom
from hightide_agent.adapters import jax, keras, tensorflow
from hightide_agent.agent import Agent
from hightide_agent.allocators import ALLOCATED, OOMS, PATIENCE, RESERVED
from hightide_agent.pytorch import accelerator
from hightide_agent.tracker import BACKWARD, CHECKPOINT, DATA, EVALUATION, FORWARD, NEVER, OPTIMIZER
from hightide_agent.training import Training
from ring import Ring


class Observed:
    def __init__(self, folder: Path) -> None:
        self.agent = Agent(str(folder))
        self.agent.open()
        self.training = Training(self.agent)

    @property
    def ring(self) -> Ring:
        assert self.agent.channel is not None
        return Ring(Path(self.agent.channel.path))


@pytest.fixture
def observed(tmp_path: Path) -> Observed:
    return Observed(tmp_path)


class Optimizer:
    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def step(self) -> None:
        if self.fails:
            raise MemoryError


class Slotted:
    """One to which there can be no weak reference."""

    __slots__ = ()

    def step(self) -> None:
        pass


def test_a_part_that_fails_costs_only_itself(observed: Observed) -> None:
    installed: List[str] = []

    def fails() -> None:
        raise AttributeError("no such function in this version")

    observed.training.install_parts("Toy", ("modules", fails), ("optimizers", lambda: installed.append("optimizers")))
    assert installed == ["optimizers"]
    (log,) = observed.ring.all("log")
    assert log["text"].startswith("could not observe modules of Toy"), log


class Layer:
    name = "body"
    weights = ()


class Model:
    def __init__(self) -> None:
        self.layers, self.trainable_variables = [Layer()], ()


def test_keras_models_are_their_programs(observed: Observed) -> None:
    """A model that the program drops between two looks is gone, and one at its address is another one."""
    models = keras.Models(observed.training)
    models.step_ended(1)
    first = Model()
    gone = weakref.ref(first)
    models.trained(first)
    del first
    assert gone() is None
    told: List[Any] = []
    models._layers = told.append  # type: ignore[method-assign]
    models.step_ended(3)
    assert not told
    second = Model()
    models.trained(second)
    models.step_ended(10)
    assert told == [second]


def test_steps_that_were_not_seen_to_begin_cost_little(observed: Observed) -> None:
    """Compiled ones, as of Keras's fit: each is told, most of them without the tracker."""
    seen: List[int] = []
    observed.training.at_step_end(lambda step: seen.append(step) or NEVER)  # type: ignore[func-returns-value]
    owner = Optimizer()
    for _ in range(1000):
        observed.training.steps.passed(owner)
    assert [step["step"] for step in observed.ring.steps] == list(range(1, 1001))
    assert observed.training.tracker.steps_now() == 1000 and len(seen) < 500


@pytest.mark.parametrize("leader", ["step", "passed"])
@pytest.mark.parametrize("other", ["passed", "marked"])
def test_the_leader_of_steps_stays_while_it_steps(observed: Observed, leader: str, other: str) -> None:
    """Also while its steps are only counted: hightide.step() beside an optimizer, a second compiled function."""
    training, leads, follows = observed.training, Optimizer(), Optimizer()
    step = training.step(Optimizer.step) if leader == "step" else training.steps.passed
    for _ in range(1000):
        step(leads)
        getattr(training.steps, other)(follows)
    assert training.tracker.steps_now() == 1000
    for _ in range(200):  # the leader has retired
        getattr(training.steps, other)(follows)
    assert 1050 <= training.tracker.steps_now() <= 1200


class Tensorflow:
    """Its config and context, which answer as documented for a machine with two GPUs."""

    _initialized = False
    config = experimental = property(lambda self: self)

    def context_safe(self) -> Any:
        return self

    def list_logical_devices(self, kind: str) -> List[Any]:
        assert self._initialized, "this would have started the GPUs"
        return [SimpleNamespace(name="/device:%s:%d" % (kind, n)) for n in range(2)]

    list_physical_devices = list_logical_devices

    def get_memory_growth(self, device: Any) -> bool:
        return True

    def get_memory_info(self, name: str) -> Dict[str, int]:
        return {"current": 1 << 30 if name == "GPU:0" else 3 << 20, "peak": 2 << 30}


def test_tensorflow_counts_what_it_holds_of_gpus_that_it_has_started(observed: Observed) -> None:
    two = Tensorflow()
    devices = tensorflow.Devices(observed.training, two, two)
    assert devices.step_ended(1) == 10 and observed.training.tracker.device is None
    two._initialized = True
    assert devices.step_ended(10) == devices.step_ended(11) == NEVER
    assert observed.training.tracker.device is not None
    assert observed.training.tracker.device() == ((1 << 30) + (3 << 20), -1)
    assert list(observed.training.allocators.reads["tensorflow"]()) == [
        ("gpu:0", ALLOCATED, 1 << 30), ("gpu:1", ALLOCATED, 3 << 20)
    ]  # fmt: skip


def test_phases_and_steps(observed: Observed) -> None:
    training = observed.training
    data, forward = training.phase(DATA, lambda: 1), training.phase(FORWARD, lambda x: x + 1)
    backward, save = training.phase(BACKWARD, lambda: None), training.phase(CHECKPOINT, lambda: None)
    step, optimizer = training.step(Optimizer.step), Optimizer()
    for _ in range(2):
        for _ in range(2):
            assert forward(data()) == 2
            backward()
        step(optimizer)
    save()
    micro = ["+data", "-data", "+forward", "-forward", "+backward", "-backward"]
    one = ["+step", *micro, *micro, "+optimizer", "-optimizer", "-step"]
    assert observed.ring.outline() == [*one, "=1", *one, "=2", "+step", "+checkpoint", "-checkpoint"]
    assert [s["micro"] for s in observed.ring.steps] == [2, 2]


def test_a_step_that_fails_is_none_and_blocks_no_other(observed: Observed) -> None:
    step = observed.training.step(Optimizer.step)
    with pytest.raises(MemoryError):
        step(Optimizer(fails=True))
    assert not observed.ring.steps
    other = Optimizer()
    step(other)
    step(other)
    assert [s["step"] for s in observed.ring.steps] == [1, 2]
    assert observed.ring.one("oom")["source"] == "MemoryError"


def test_an_optimizer_without_weak_references(observed: Observed) -> None:
    step, optimizer = observed.training.step(Slotted.step), Slotted()
    for _ in range(100):
        step(optimizer)
    assert [s["step"] for s in observed.ring.steps] == list(range(1, 101))


def test_modules_are_described_once_and_by_name(observed: Observed) -> None:
    class Layer:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self) -> None:
            pass

    call = observed.training.module(Layer.__call__, lambda layer: (layer.name, "Layer", 10 // len(layer.name), 0))
    first, broken = Layer("first"), Layer("")
    for layer in (first, broken, first):
        call(layer)
    del first, layer
    call(Layer("again"))  # perhaps where the first one was
    assert [m["name"] for m in observed.ring.all("modules")[-1]["modules"]] == ["first", "again"]
    assert observed.ring.outline("step") == ["+module1", "-module1"] * 2 + ["+module2", "-module2"]
    assert "ZeroDivisionError" in observed.ring.one("log")["text"]


def test_two_allocators_of_which_one_breaks(observed: Observed) -> None:
    training = observed.training
    training.allocators._pid = training.agent.pid  # its thread is this test
    asked: List[str] = []

    def broken() -> List[Tuple[str, str, int]]:
        asked.append("broken")
        raise OSError("no such device")

    training.allocator("one", lambda: [("a:0", ALLOCATED, 5), ("a:0", RESERVED, 8), ("a:1", ALLOCATED, 2)])
    training.allocator("two", lambda: [("b:0", OOMS, 3)], lambda: (100, -1))
    training.phase(FORWARD, lambda: None)()
    training.allocator("three", broken)
    for _ in range(PATIENCE + 2):
        training.allocators.sample()
    training.phase(FORWARD, lambda: None)()
    ring = observed.ring
    assert asked == ["broken"] * (PATIENCE + 1), "and once at an edge"
    edges = [(e["allocated"], e["reserved"]) for e in ring.edges]
    assert set(edges) == {(107, 8)}, "together"
    assert [(s["framework"], s["device"], s["name"], s["unit"]) for s in ring.all("series")] == [
        ("one", "a:0", ALLOCATED, "bytes"), ("one", "a:0", RESERVED, "bytes"), ("one", "a:1", ALLOCATED, "bytes"),
        ("two", "b:0", OOMS, "count"),
    ]  # fmt: skip
    counters = [r["values"] for r in ring.records if r["kind"] == "counters"]
    assert counters == [[[1, 5], [2, 8], [3, 2], [4, 3]]] * (PATIENCE + 2)
    assert len(ring.all("log")) == 2, "of reading at an interval and at an edge"


def test_a_callback_that_raises_stops_no_other(observed: Observed) -> None:
    def raises(step: int) -> int:
        raise ValueError(step)

    seen: List[int] = []
    observed.training.at_step_end(raises)
    observed.training.at_step_end(seen.append)
    observed.training.step(Optimizer.step)(Optimizer())
    assert seen == [1] and "ValueError" in observed.ring.one("log")["text"]


def test_a_frameworks_own_error(observed: Observed, monkeypatch: Any) -> None:
    class Full(Exception):
        pass

    monkeypatch.setattr(oom, "known", [])
    observed.training.out_of_memory(lambda error: ("mine", "mine:0", 77) if isinstance(error, Full) else None)

    def fails() -> None:
        raise Full("no room")

    with pytest.raises(Full):
        observed.training.phase(FORWARD, fails)()
    told = observed.ring.one("oom")
    assert (told["source"], told["device"], told["bytes"], told["step"]) == ("mine", "mine:0", 77, 0)
    assert told["function"].endswith("fails")


def test_no_step_is_named_before_the_first(observed: Observed) -> None:
    """Memory that runs out in an evaluation, while a model is built or in a program that trains nothing."""
    tracker = observed.training.tracker
    assert tracker.current_step() == -1
    for phase, step in ((EVALUATION, -1), (DATA, -1), (FORWARD, 0), (OPTIMIZER, 0)):
        assert observed.training.phase(phase, tracker.current_step)() == step
    observed.training.steps.passed(Optimizer())
    assert tracker.current_step() == 1 == observed.training.phase(EVALUATION, tracker.current_step)()


def test_what_devices_of_jax_say() -> None:
    """Answers of Device.memory_stats stand in for devices that are not here: one as recorded in JAX's issue 1491, whose
    bytes_reserved are not a pool, and one that says -1 of what it does not know, as plugins do."""

    def device(number: int, stats: Any) -> Any:
        return SimpleNamespace(platform="gpu", id=number, memory_stats=lambda: stats)

    plain = {
        "bytes_in_use": 76288, "bytes_limit": 33014415360, "bytes_reservable_limit": 33014415360, "bytes_reserved": 0,
        "largest_alloc_size": 40960, "largest_free_block_bytes": 33014338560, "num_allocs": 3,
        "peak_bytes_in_use": 76800, "peak_bytes_reserved": 0,
    }  # fmt: skip
    pooled = {"bytes_in_use": 1 << 20, "pool_bytes": 60 << 30, "bytes_reserved": -1, "num_allocs": -1}
    unknown = {"bytes_in_use": 1 << 20, "pool_bytes": -1}
    assert list(jax._readings([device(0, plain), device(1, pooled), device(2, unknown), device(3, None)])) == [
        ("gpu:0", ALLOCATED, 76288), ("gpu:1", ALLOCATED, 1 << 20), ("gpu:1", RESERVED, 60 << 30),
        ("gpu:2", ALLOCATED, 1 << 20),
    ]  # fmt: skip


def of_bytes(current: int, peak: int) -> Dict[str, Any]:
    """One figure of an allocator, in the nested form of PyTorch's documentation."""
    return {"all": {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}}


XPU = {  # the keys that torch.xpu.memory_stats is documented to have, for a device that is not here
    "allocated_bytes": of_bytes(3 << 20, 4 << 20), "reserved_bytes": of_bytes(20 << 20, 20 << 20),
    "active_bytes": of_bytes(3 << 20, 4 << 20), "requested_bytes": of_bytes(3000000, 4000000),
}  # fmt: skip


def a_torch(kind: str, **more: Any) -> Any:
    """What of PyTorch an accelerator's counters are read by."""
    queued: List[Any] = []
    return SimpleNamespace(
        __version__="2.15.0", queued=queued, version=SimpleNamespace(cuda=None, hip=None),
        accelerator=SimpleNamespace(
            current_accelerator=lambda: SimpleNamespace(type=kind), device_count=lambda: 2,
            get_memory_info=lambda number: (14 << 30, 16 << 30),
        ),
        _C=SimpleNamespace(**more.pop("C", {})), **{kind: SimpleNamespace(**more)},
    )  # fmt: skip


def test_counters_of_xpu_and_of_what_torch_does_not_name(observed: Observed) -> None:
    """XPU tells as it starts; the allocator of a device that PyTorch does not know itself is asked at steps."""
    queued: List[Any] = []
    torch = a_torch("xpu", _lazy_call=queued.append, memory_stats_as_nested_dict=lambda number: XPU)
    found = accelerator.Accelerator(observed.training, torch)
    found.install()
    assert found.read() == [] and observed.training.allocators.reads == {}
    queued[0]()
    assert found.read()[:3] == [
        ("xpu:0", ALLOCATED, 3 << 20), ("xpu:0", RESERVED, 20 << 20), ("xpu:0", "allocator.active", 3 << 20)
    ]  # fmt: skip
    assert [r[0] for r in found.read()].count("xpu:1") == 4
    (told,) = [f for f in observed.ring.all("framework") if "accelerator" in f]
    assert told["accelerator"] == "xpu" and told["device_memory"] == {"xpu:0": 16 << 30, "xpu:1": 16 << 30}

    begun: List[bool] = []
    calls = {"_accelerator_isAllocatorInitialized": lambda: bool(begun), "_accelerator_getDeviceStats": lambda n: XPU}
    other = accelerator.Accelerator(observed.training, a_torch("npu", C=calls))
    other.install()
    assert other.step_ended(1) == 2 and other.read() == []
    begun.append(True)
    assert other.step_ended(2) == NEVER and other.read()[0] == ("npu:0", ALLOCATED, 3 << 20)


def test_counters_of_mps(observed: Observed) -> None:
    """They are read once an optimizer has parameters there: to ask before would start the device."""
    torch = a_torch(
        "mps", current_allocated_memory=lambda: 5 << 20, driver_allocated_memory=lambda: 9 << 20,
        recommended_max_memory=lambda: 10 << 30,
    )  # fmt: skip
    found = accelerator.Accelerator(observed.training, torch)
    found.install()
    assert found.step_ended(10) == 100 and found.step_ended(100) == 1000
    optimizer = Optimizer()
    parameter = SimpleNamespace(device=SimpleNamespace(type="mps"))
    optimizer.param_groups = [{"params": [parameter]}]  # type: ignore[attr-defined]
    observed.training.steps.begin(optimizer)
    assert found.step_ended(1000) == NEVER
    assert found.read() == [("mps:0", ALLOCATED, 5 << 20), ("mps:0", RESERVED, 9 << 20)]


@pytest.mark.parametrize("text, expected", [
    ("XPU out of memory. Tried to allocate 48.00 GiB. GPU 1 has a total capacity of 15.91 GiB. Of the allocated memory "
     "2.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
     ("torch.xpu", "xpu:1", 48 << 30)),
    ("MPS backend out of memory (MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB). Tried to "
     "allocate 768.00 MB on private pool.", ("torch.mps", "mps:0", 768 << 20)),
    ("CUDA out of memory. Tried to allocate 2.00 GiB.", None),
])  # fmt: skip
def test_other_devices_run_out(text: str, expected: Any) -> None:
    """Messages as PyTorch writes them; CUDA's is told by its allocator."""
    assert accelerator.out_of_memory(RuntimeError(text)) == expected


def test_an_edge_that_others_interrupted_costs_no_steps(observed: Observed, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the thread may lose the processor in the middle of an edge: that is not a cost of the edge."""
    tracker, now, took = observed.training.tracker, [1], [2_000]
    monkeypatch.setattr("hightide_agent.tracker.monotonic_ns", lambda: now[0])
    edge = tracker._edge

    def slow(phase: int, leave: int, module: int, start: int) -> None:
        now[0] += took[0]
        edge(phase, leave, module, start)

    monkeypatch.setattr(tracker, "_edge", slow)
    recorded = 0
    for step in range(60):
        recorded += tracker.recording
        for phase in (FORWARD, BACKWARD):
            took[0] = 30_000_000 if step % 10 == 9 and phase == FORWARD else 2_000
            if tracker.enter(phase):
                took[0] = 2_000
                tracker.leave(phase)
        now[0] += 400_000_000
        tracker.step_ended()
    assert recorded == 60
