"""What an item of a growing container is: its arrays, where they are in it, and what they keep alive."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Dict, List

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from hightide_agent.kept import described  # noqa: E402
from hightide_agent.pytorch.tensors import TorchTensors  # noqa: E402

NEVER = 1 << 62
TELLS_SAVED = hasattr(torch._C._autograd.SavedTensor, "data")
Pair = namedtuple("Pair", "first second")


class InSlots:
    __slots__ = ("absent", "row")


def of(*items: Any) -> Dict[str, Any]:
    tensors = TorchTensors(torch)
    return described(list(items), dict.fromkeys(tensors.types, tensors), NEVER)


def ats(*items: Any) -> List[str]:
    return [part["at"] for part in of(*items).get("parts", [])]


def network() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))


def test_expressions_that_lead_to_the_arrays() -> None:
    x = torch.ones(4)
    slots = InSlots()
    slots.row = x
    assert ats(x) == [""]
    assert ats({"loss": x, 3: [x.clone()]}) == ["['loss']", "[3][0]"]
    assert ats(Pair(1, x)) == [".second"]
    assert ats(slots) == [".row"]
    assert of("text") == {}, "nothing of what has no arrays"


def test_a_view_keeps_the_whole() -> None:
    (part,) = of(torch.zeros(128, 64)[0])["parts"]
    assert (part["elements"], part["bytes"], part["storage_bytes"]) == (64, 256, 128 * 256)
    numpy = pytest.importorskip("numpy")
    (part,) = of(numpy.zeros((128, 64))[0])["parts"]
    assert (part["elements"], part["bytes"], part["storage_bytes"]) == (64, 512, 128 * 512)


@pytest.mark.skipif(not TELLS_SAVED, reason="this PyTorch does not tell what a graph saved without unpacking it")
def test_saved_tensors_live_until_backward() -> None:
    x, net = torch.randn(32, 64), network()
    loss = net(x).pow(2).mean()
    alive = of({"loss": loss})
    assert alive["parts"][0]["grad_fn"] == "MeanBackward0"
    # What the layers save: the input, what ReLU made, what pow raised.
    assert alive["saved_bytes"] == 4 * 32 * (64 + 256 + 64)
    assert of(loss, net(x).pow(2).mean())["saved_bytes"] == 4 * 32 * (256 + 64), "the input is both's"
    loss.backward()
    assert of(loss)["saved_bytes"] == 0


def test_what_hooks_packed_is_not_unpacked() -> None:
    unpacked = []

    def unpack(packed: Any) -> Any:
        unpacked.append(packed)
        return packed[0]

    x = torch.randn(8, 64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], unpack):
        y = x.exp().pow(2).sum()
    said = of(y)
    assert unpacked == []
    assert said.get("saved_bytes") == (4 * 8 * 64 if TELLS_SAVED else None)
    z = checkpoint(network(), torch.randn(8, 64, requires_grad=True), use_reentrant=False)
    assert "saved_bytes" not in of(z.sum()), "not known, which is not zero"


def test_describing_keeps_nothing_alive() -> None:
    import weakref

    y = network()(torch.randn(8, 64))
    slot = y.grad_fn._raw_saved_mat1
    item = {"y": y}
    of(item)
    gone = weakref.ref(y)
    del y, item, slot
    assert gone() is None
