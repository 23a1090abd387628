"""Toy: its functions are wrapped, and its device's counters are read."""

from ..allocators import ALLOCATED, INACTIVE_SPLIT, RESERVED
from ..tensors import Tensors
from ..tracker import BACKWARD, DATA, FORWARD


def install(training, toy, watch):
    """Observe this process's use of toy, which has just been imported."""
    toy.load = training.phase(DATA, toy.load)
    toy.Model.__call__ = training.phase(FORWARD, toy.Model.__call__)
    toy.Layer.__call__ = training.module(toy.Layer.__call__, describe)
    toy.backward = training.phase(BACKWARD, toy.backward)
    toy.Optimizer.step = training.step(toy.Optimizer.step)
    training.allocator("toy", lambda: counters(toy))
    training.tensors(Tensors([toy.Tensor], lambda tensor: (id(tensor), tensor.size)))
    training.out_of_memory(lambda error: ("toy", "toy:0", error.asked) if isinstance(error, toy.OutOfMemory) else None)


def describe(layer):
    """Name, class, and bytes of the parameters and buffers of a layer."""
    return layer.name, "Layer", layer.weights.size, 0


def counters(toy):
    """What the allocator of the one device counts: (device, quantity, value)."""
    yield "toy:0", ALLOCATED, toy.allocated
    yield "toy:0", RESERVED, toy.reserved
    yield "toy:0", INACTIVE_SPLIT, toy.reserved - toy.allocated
