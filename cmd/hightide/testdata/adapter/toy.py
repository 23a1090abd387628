"""A framework of thirty lines. Its device only counts: no byte of it exists."""

__version__ = "1.0"
allocated = reserved = 0  # bytes of toy:0
capacity = 48 << 30


class OutOfMemory(RuntimeError):
    asked = 0


class Tensor:
    def __init__(self, size):
        global allocated, reserved
        if allocated + size > capacity:
            OutOfMemory.asked = size
            raise OutOfMemory(f"toy:0 has no {size} bytes")
        self.size = size
        allocated += size
        reserved = max(reserved, allocated + allocated // 4)  # it caches, as others do

    def __del__(self):
        global allocated
        allocated -= getattr(self, "size", 0)


class Layer:
    def __init__(self, name, size):
        self.name, self.weights = name, Tensor(size)

    def __call__(self, x):
        return Tensor(x.size)


class Model:
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Optimizer:
    def __init__(self, model):
        self.model = model

    def step(self):
        self.state = [Tensor(layer.weights.size) for layer in self.model.layers]


def backward(loss):
    return Tensor(loss.size)


def load(size):
    return Tensor(size)
