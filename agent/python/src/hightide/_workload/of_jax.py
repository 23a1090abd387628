"""JAX, in plain functions: parameters are a tree of arrays, a step is one jitted call. No other library is needed."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Tuple

from . import own
from .models import CLASSES, COLOURS, MODELS, PIXELS, STAGES, VOCABULARY, Model, batches
from .options import DTYPES, Built, Options, Unavailable

PACKAGE = "jax"
Tree = Dict[str, Any]
Apply = Callable[[Tree, Tree, Any, bool], Tuple[Any, Tree]]
"""apply(parameters, state, inputs, train) gives logits and the new state: running means of batch norms."""


def build(options: Options) -> Built:
    """Make the model and its step.

    Raises:
        Unavailable: this JAX reaches no GPU, and one is asked for.
        Unknown: there is no such model.
    """
    if options.device == "cpu":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    if options.device == "cuda" and jax.default_backend() != "gpu":
        raise Unavailable(f"JAX {jax.__version__} reaches no GPU here")
    if options.model not in MODELS:
        return own.build(options)
    numbers = MODELS[options.model]
    make = Maker(jax, getattr(jax.numpy, DTYPES[options.dtype]), options.seed)
    makers = {"lenet": lenet, "resnet18": resnet18, "transformer": transformer}
    parameters, state, apply = makers[numbers.build](make, numbers, options.seq_len)
    return Built(_step(make, parameters, state, apply, options), count(jax, parameters))


def count(jax: Any, parameters: Tree) -> int:
    """Numbers that are trained."""
    return sum(int(leaf.size) for leaf in jax.tree.leaves(parameters))


class Maker:
    """Fresh arrays, and the layers that all models use."""

    def __init__(self, jax: Any, dtype: Any, seed: int) -> None:
        import numpy

        self.jax, self.np, self.dtype = jax, jax.numpy, dtype
        self._random = numpy.random.default_rng(seed)  # JAX would compile its own for each shape

    def normal(self, *shape: int, fan: int) -> Any:
        """Random numbers with a standard deviation of 1/√fan."""
        drawn = self._random.standard_normal(shape, dtype="float32")
        return self.np.asarray(drawn * drawn.dtype.type(fan**-0.5), self.dtype)

    def dense(self, before: int, after: int) -> Tree:
        """A fully connected layer."""
        return {"w": self.normal(before, after, fan=before), "b": self.np.zeros(after, self.dtype)}

    def conv(self, size: int, before: int, after: int, bias: bool = False) -> Tree:
        """A convolution of size by size pixels."""
        layer = {"w": self.normal(size, size, before, after, fan=size * size * before)}
        return {**layer, "b": self.np.zeros(after, self.dtype)} if bias else layer

    def norm(self, width: int) -> Tree:
        """Scale and shift of a normalisation."""
        return {"scale": self.np.ones(width, self.dtype), "shift": self.np.zeros(width, self.dtype)}

    def running(self, width: int) -> Tree:
        """A batch norm's mean and variance."""
        return {"mean": self.np.zeros(width, self.dtype), "variance": self.np.ones(width, self.dtype)}

    def convolved(self, layer: Tree, x: Any, stride: int = 1, padding: Any = "VALID") -> Any:
        """What a convolution gives."""
        x = self.jax.lax.conv_general_dilated(
            x, layer["w"], (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return x + layer["b"] if "b" in layer else x

    def pooled(self, x: Any, size: int, padding: Any = "VALID") -> Any:
        """The largest of each size by size pixels, every second one."""
        return self.jax.lax.reduce_window(x, -self.np.inf, self.jax.lax.max, (1, size, size, 1), (1, 2, 2, 1), padding)

    def layer_normed(self, layer: Tree, x: Any) -> Any:
        """x, normalised over its last axis."""
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * self.jax.lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["shift"]

    def batch_normed(self, layer: Tree, running: Tree, x: Any, train: bool) -> Tuple[Any, Tree]:
        """x, normalised over all but its last axis, and the running means after it."""
        if train:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            running = {
                "mean": 0.9 * running["mean"] + 0.1 * mean,
                "variance": 0.9 * running["variance"] + 0.1 * variance,
            }
        else:
            mean, variance = running["mean"], running["variance"]
        scale = layer["scale"] * self.jax.lax.rsqrt(variance + 1e-5)
        return x * scale + (layer["shift"] - mean * scale), running


def _step(make: Maker, parameters: Tree, state: Tree, apply: Apply, options: Options) -> Any:
    jax, np = make.jax, make.np
    draw = batches(MODELS[options.model], options.seq_len, options.seed, channels_first=False)

    def loss_of(parameters: Tree, state: Tree, inputs: Any, wanted: Any) -> Tuple[Any, Tree]:
        logits, state = apply(parameters, state, inputs, True)
        of_class = np.take_along_axis(jax.nn.log_softmax(logits), wanted[:, None], 1)
        return -of_class.mean(), state

    def train(held: Tree, inputs: Any, wanted: Any) -> Tree:
        gradients, state = jax.grad(loss_of, has_aux=True)(held["parameters"], held["state"], inputs, wanted)
        return {**_adam(jax, held, gradients), "state": state}

    train = jax.jit(train, donate_argnums=0)
    infer = jax.jit(lambda inputs, parameters, state: apply(parameters, state, inputs, False)[0])
    held: Tree = {"parameters": parameters, "state": state}
    if options.train:
        zeros = jax.tree.map(np.zeros_like, parameters)
        held.update(mean=zeros, square=jax.tree.map(np.zeros_like, parameters), step=np.zeros((), np.int32))

    def step(n: int) -> None:
        drawn, wanted = draw(n)
        inputs = np.asarray(drawn, None if MODELS[options.model].reads_text else make.dtype)
        if options.train:
            held.update(train(dict(held), inputs, np.asarray(wanted)))
            jax.block_until_ready(held)
        else:
            infer(inputs, parameters, state).block_until_ready()

    return step


def _adam(jax: Any, held: Tree, gradients: Tree) -> Tree:
    """One step of Adam."""
    np, each = jax.numpy, jax.tree.map
    step = held["step"] + 1
    mean = each(lambda m, g: 0.9 * m + 0.1 * g, held["mean"], gradients)
    square = each(lambda v, g: 0.999 * v + 0.001 * g * g, held["square"], gradients)
    rate = 1e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)

    def moved(p: Any, m: Any, v: Any) -> Any:
        return (p - rate * m / (np.sqrt(v) + 1e-8)).astype(p.dtype)

    return {"parameters": each(moved, held["parameters"], mean, square), "mean": mean, "square": square, "step": step}


def lenet(make: Maker, _: Model, __: int) -> Tuple[Tree, Tree, Apply]:
    """LeNet-5 for colour images."""
    relu = make.jax.nn.relu
    side = ((PIXELS - 4) // 2 - 4) // 2
    parameters = {
        "convolutions": [make.conv(5, COLOURS, 6, bias=True), make.conv(5, 6, 16, bias=True)],
        "dense": [make.dense(16 * side * side, 120), make.dense(120, 84), make.dense(84, CLASSES)],
    }

    def apply(parameters: Tree, state: Tree, x: Any, train: bool) -> Tuple[Any, Tree]:
        for layer in parameters["convolutions"]:
            x = make.pooled(relu(make.convolved(layer, x)), 2)
        x = x.reshape(len(x), -1)
        *inner, last = parameters["dense"]
        for layer in inner:
            x = relu(x @ layer["w"] + layer["b"])
        return x @ last["w"] + last["b"], state

    return parameters, {}, apply


def resnet18(make: Maker, _: Model, __: int) -> Tuple[Tree, Tree, Apply]:
    """ResNet-18, with its stem for large images."""
    relu = make.jax.nn.relu
    strides = [2 if i and first else 1 for i in range(len(STAGES)) for first in (True, False)]
    parameters: Tree = {"stem": _normed(make, 7, COLOURS, STAGES[0]), "blocks": []}
    state: Tree = {"stem": make.running(STAGES[0]), "blocks": []}
    before = STAGES[0]
    for i, stride in enumerate(strides):
        channels = STAGES[i // 2]
        block = {"first": _normed(make, 3, before, channels), "second": _normed(make, 3, channels, channels)}
        if stride > 1:
            block["shortcut"] = _normed(make, 1, before, channels)
        parameters["blocks"].append(block)
        state["blocks"].append({name: make.running(channels) for name in block})
        before = channels
    parameters["head"] = make.dense(before, CLASSES)

    def apply(parameters: Tree, state: Tree, x: Any, train: bool) -> Tuple[Any, Tree]:
        def normed(layer: Tree, running: Tree, x: Any, stride: int, around: int) -> Tuple[Any, Tree]:
            x = make.convolved(layer["conv"], x, stride, ((around, around), (around, around)))
            return make.batch_normed(layer["norm"], running, x, train)

        after: Tree = {"blocks": []}
        x, after["stem"] = normed(parameters["stem"], state["stem"], x, 2, 3)
        x = make.pooled(relu(x), 3, ((0, 0), (1, 1), (1, 1), (0, 0)))
        for block, running, stride in zip(parameters["blocks"], state["blocks"], strides):
            means: Tree = {}
            y, means["first"] = normed(block["first"], running["first"], x, stride, 1)
            y, means["second"] = normed(block["second"], running["second"], relu(y), 1, 1)
            if stride > 1:
                x, means["shortcut"] = normed(block["shortcut"], running["shortcut"], x, stride, 0)
            x = relu(x + y)
            after["blocks"].append(means)
        return x.mean((1, 2)) @ parameters["head"]["w"] + parameters["head"]["b"], after

    return parameters, state, apply


def _normed(make: Maker, size: int, before: int, after: int) -> Tree:
    return {"conv": make.conv(size, before, after), "norm": make.norm(after)}


def transformer(make: Maker, numbers: Model, seq_len: int) -> Tuple[Tree, Tree, Apply]:
    """Blocks of attention over tokens and learned positions, and the mean's class."""
    jax, width, heads = make.jax, numbers.width, numbers.heads

    def block() -> Tree:
        names = ("query", "key", "value", "out")
        return {
            **{name: make.dense(width, width) for name in names},
            "norm": make.norm(width), "up": make.dense(width, numbers.inner), "down": make.dense(numbers.inner, width),
            "last_norm": make.norm(width),
        }  # fmt: skip

    parameters = {
        "tokens": make.normal(VOCABULARY, width, fan=width),
        "positions": make.normal(seq_len, width, fan=width),
        "blocks": [block() for _ in range(numbers.blocks)],
        "norm": make.norm(width),
        "head": make.dense(width, CLASSES),
    }

    def dense(layer: Tree, x: Any) -> Any:
        return x @ layer["w"] + layer["b"]

    def apply(parameters: Tree, state: Tree, ids: Any, train: bool) -> Tuple[Any, Tree]:
        x = parameters["tokens"][ids] + parameters["positions"]
        for layers in parameters["blocks"]:
            split = (*x.shape[:2], heads, width // heads)
            query, key, value = (dense(layers[name], x).reshape(split) for name in ("query", "key", "value"))
            attended = jax.nn.dot_product_attention(query, key, value).reshape(x.shape)
            x = make.layer_normed(layers["norm"], x + dense(layers["out"], attended))
            inner = dense(layers["down"], jax.nn.relu(dense(layers["up"], x)))
            x = make.layer_normed(layers["last_norm"], x + inner)
        return dense(parameters["head"], make.layer_normed(parameters["norm"], x.mean(1))), state

    return parameters, {}, apply
