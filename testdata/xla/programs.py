"""Small trainings with JAX, for test_xla.py: each as people write them, and what XLA says without any device that its step
needs.

    programs.py NAME train             trains; nothing in it knows of hightide
    programs.py NAME truth TARGET      prints XLA's own analysis of the step, compiled for the GPU of that file
    programs.py NAME halve FOLDER [TARGET]   dumps what XLA makes of it for its batch and for half of it, into two folders
"""

import functools
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH, LAYERS, BATCH = 512, 4, 1024


def mlp_loss(weights, batch):
    x, y = batch
    for w in weights:
        x = jax.nn.relu(x @ w)
    return jnp.mean((x - y) ** 2)


def weights_of(key, dtype=jnp.float32):
    return [0.02 * jax.random.normal(k, (WIDTH, WIDTH), dtype) for k in jax.random.split(key, LAYERS)]


def with_optimizer(optimizer, init, loss, **options):
    """state, step: a training step over (parameters, optimizer's state)."""

    def begin(key):
        parameters = init(key)
        return parameters, optimizer.init(parameters)

    @functools.partial(jax.jit, **options)
    def step(state, batch):
        parameters, inner = state
        value, gradients = jax.value_and_grad(loss)(parameters, batch)
        updates, inner = optimizer.update(gradients, inner, parameters)
        return (optax.apply_updates(parameters, updates), inner), value

    return begin, step


def vectors(rows=BATCH):
    return jnp.ones((rows, WIDTH)), jnp.zeros((rows, WIDTH))


def adamw():
    return *with_optimizer(optax.adamw(1e-3), weights_of, mlp_loss), vectors


def donated():
    return *with_optimizer(optax.adamw(1e-3), weights_of, mlp_loss, donate_argnums=0), vectors


def momentum():
    return *with_optimizer(optax.sgd(1e-2, momentum=0.9), weights_of, mlp_loss), vectors


def half():
    init = functools.partial(weights_of, dtype=jnp.bfloat16)
    return *with_optimizer(optax.adam(1e-3), init, mlp_loss), lambda: jax.tree.map(
        lambda a: a.astype(jnp.bfloat16), vectors()
    )


def layers(remat):
    """A scan over layers, which keeps what each needs for its gradient, or computes it anew."""

    def layer(x, w):
        return jnp.tanh(jax.nn.gelu(x @ w) @ w.T), None

    def loss(weights, batch):
        x, y = batch
        out, _ = jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, weights)
        return jnp.mean((out - y) ** 2)

    def init(key):
        return 0.02 * jax.random.normal(key, (8, WIDTH, WIDTH))

    return *with_optimizer(optax.adam(1e-3), init, loss), vectors


def accumulated():
    """Gradients of small batches that a scan adds up."""

    def loss(weights, batch):
        parts = jax.tree.map(lambda a: a.reshape(4, -1, WIDTH), batch)

        def one(total, part):
            return total + jax.checkpoint(mlp_loss)(weights, part), None

        return jax.lax.scan(one, 0.0, parts)[0] / 4

    return *with_optimizer(optax.adam(1e-3), weights_of, loss), vectors


def attention():
    """A block of a transformer, in flax linen."""
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            return x + nn.Dense(256)(nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x))))

    block, shape = Block(), (8, 128, 256)

    def loss(parameters, batch):
        return jnp.mean((block.apply(parameters, batch[0]) - batch[1]) ** 2)

    return (
        *with_optimizer(optax.adamw(1e-3), lambda key: block.init(key, jnp.ones(shape)), loss),
        lambda: (jnp.ones(shape), jnp.zeros(shape)),
    )


def nnx():
    """The same optimizer over a module of flax nnx, taken apart into its state."""
    from flax import nnx as n

    class Model(n.Module):
        def __init__(self, rngs):
            self.first, self.second = n.Linear(WIDTH, 2048, rngs=rngs), n.Linear(2048, WIDTH, rngs=rngs)

        def __call__(self, x):
            return self.second(jax.nn.silu(self.first(x)))

    graph = n.split(n.eval_shape(lambda: Model(n.Rngs(0))))[0]

    def init(key):
        return n.split(Model(n.Rngs(key)))[1]

    def loss(state, batch):
        return jnp.mean((n.merge(graph, state)(batch[0]) - batch[1]) ** 2)

    return *with_optimizer(optax.adam(1e-3), init, loss), vectors


def convolutions():
    """A U-Net of two levels, in flax linen: what goes down is kept for the way up."""
    import flax.linen as nn

    class UNet(nn.Module):
        @nn.compact
        def __call__(self, x):
            first = nn.silu(nn.GroupNorm(8)(nn.Conv(32, (3, 3))(x)))
            second = nn.silu(nn.GroupNorm(8)(nn.Conv(64, (3, 3), strides=(2, 2))(first)))
            middle = nn.silu(nn.Conv(64, (3, 3))(second))
            up = nn.ConvTranspose(32, (2, 2), strides=(2, 2))(middle)
            return nn.Conv(3, (3, 3))(jnp.concatenate([first, up], -1))

    return linen(UNet(), (8, 64, 64, 3), optax.adam(1e-3))


def linen(model, shape, optimizer, out=None):
    """A module of flax linen that is trained towards zeros."""

    def loss(parameters, batch):
        return jnp.mean((model.apply(parameters, batch[0]) - batch[1]) ** 2)

    return (
        *with_optimizer(optimizer, lambda key: model.init(key, jnp.ones(shape)), loss),
        lambda: (jnp.ones(shape), jnp.zeros(out or shape)),
    )


def transformer(remat=False):
    """Four blocks in a Python loop; computed again for their gradients, or not."""
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.LayerNorm()(x)
            q, k, v = (nn.Dense(256, use_bias=False)(y).reshape(*y.shape[:2], 4, 64) for _ in range(3))
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8)
            x = x + nn.Dense(256)(jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape))
            return x + nn.Dense(256)(nn.silu(nn.Dense(1024)(nn.LayerNorm()(x))))

    class Stack(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(4):
                x = (nn.remat(Block) if remat else Block)()(x)
            return x

    return linen(Stack(), (8, 128, 256), optax.adamw(1e-3))


def vit():
    """Patches of images, a block, the mean of all patches."""
    import flax.linen as nn

    class ViT(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.Conv(128, (8, 8), strides=(8, 8))(images)
            x = x.reshape(x.shape[0], -1, 128)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            x = x + nn.Dense(128)(nn.gelu(nn.Dense(512)(nn.LayerNorm()(x))))
            return nn.Dense(10)(x.mean(1))

    return linen(ViT(), (32, 64, 64, 3), optax.sgd(1e-2, momentum=0.9), out=(32, 10))


def recurrent():
    """A cell that a scan over time repeats."""

    def loss(weights, batch):
        x, y = batch
        w, u = weights

        def cell(h, t):
            h = jnp.tanh(t @ w + h @ u)
            return h, h

        return jnp.mean((jax.lax.scan(cell, jnp.zeros_like(x[0]), x)[1] - y) ** 2)

    shape = (64, 128, 256)
    init = lambda key: [0.02 * jax.random.normal(k, (256, 256)) for k in jax.random.split(key)]  # noqa: E731
    return *with_optimizer(optax.rmsprop(1e-3), init, loss), lambda: (jnp.ones(shape), jnp.zeros(shape))


def mixed():
    """Weights in float32, computed with in bfloat16."""

    def loss(weights, batch):
        cast = [w.astype(jnp.bfloat16) for w in weights]
        return mlp_loss(cast, jax.tree.map(lambda a: a.astype(jnp.bfloat16), batch)).astype(jnp.float32)

    return *with_optimizer(optax.lion(1e-4), weights_of, loss), vectors


def clipped():
    """The norm of all gradients, a schedule, and gradients of several steps that the optimizer adds up."""
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-3, 100)))
    return *with_optimizer(optax.MultiSteps(chain, 2).gradient_transformation(), weights_of, mlp_loss), vectors


def embedded():
    """A table of words whose gradient is dense, and a loss over all of them."""
    words, width = 8192, 128

    def loss(table, batch):
        x, y = batch
        logits = table[x] @ table.T
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, y))

    init = lambda key: 0.02 * jax.random.normal(key, (words, width))  # noqa: E731
    ids = lambda: (jnp.zeros((8, 64), jnp.int32), jnp.ones((8, 64), jnp.int32))  # noqa: E731
    return *with_optimizer(optax.adafactor(1e-3), init, loss), ids


def adapters():
    """Two small factors beside each frozen weight, which alone are trained."""
    rank = 8

    def init(key):
        return [
            (0.02 * jax.random.normal(k, (WIDTH, rank)), jnp.zeros((rank, WIDTH)))
            for k in jax.random.split(key, LAYERS)
        ]

    def loss(factors, batch):
        frozen, x, y = batch
        for w, (down, up) in zip(frozen, factors):
            x = jax.nn.relu(x @ w + (x @ down) @ up)
        return jnp.mean((x - y) ** 2)

    def data():
        return weights_of(jax.random.PRNGKey(1)), *vectors()

    return *with_optimizer(optax.adamw(1e-3), init, loss), data


def decoder():
    """As MaxText writes it: layers in a scan, each computed again; RMS norms, rotary positions, fewer heads of keys, a gate."""
    width, heads, groups, size, words = 256, 8, 2, 32, 4096

    def norm(x):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    def rotated(x):
        angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(0, size, 2) / size)
        a, b = jnp.split(x, 2, -1)
        sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def layer(x, weights):
        y = norm(x)
        q = rotated(jnp.einsum("btd,dhs->bths", y, weights["q"]))
        k = rotated(jnp.einsum("btd,dhs->bths", y, weights["k"]))
        k, v = (jnp.repeat(a, heads // groups, 2) for a in (k, jnp.einsum("btd,dhs->bths", y, weights["v"])))
        scores = jnp.einsum("bqhs,bkhs->bhqk", q, k) / size**0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        x = x + jnp.einsum("bhqk,bkhs,hsd->bqd", jax.nn.softmax(scores), v, weights["out"])
        y = norm(x)
        return x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"], None

    def init(key):
        shapes = {"q": (width, heads, size), "k": (width, groups, size), "v": (width, groups, size),
                  "out": (heads, size, width), "gate": (width, 1024), "up": (width, 1024), "down": (1024, width)}  # fmt: skip
        layers = {name: 0.02 * jax.random.normal(key, (4, *shape)) for name, shape in shapes.items()}
        return {"layers": layers, "words": 0.02 * jax.random.normal(key, (words, width))}

    def loss(weights, batch):
        ids, targets = batch
        x, _ = jax.lax.scan(jax.checkpoint(layer), weights["words"][ids], weights["layers"])
        logits = norm(x) @ weights["words"].T
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))

    ids = lambda: (jnp.zeros((4, 128), jnp.int32), jnp.ones((4, 128), jnp.int32))  # noqa: E731
    return *with_optimizer(optax.adamw(1e-3), init, loss, donate_argnums=0), ids


def lstm():
    """Two layers of flax linen over 64 moments."""
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.RNN(nn.OptimizedLSTMCell(256))(x)
            return nn.Dense(64)(x)

    return linen(Model(), (32, 64, 64), optax.adam(1e-3))


PROGRAMS = {
    "adamw": adamw, "donated": donated, "momentum": momentum, "half": half, "scan": lambda: layers(False),
    "remat": lambda: layers(True), "accumulated": accumulated, "attention": attention, "nnx": nnx,
    "convolutions": convolutions, "transformer": transformer, "blocks-remat": lambda: transformer(remat=True), "vit": vit,
    "recurrent": recurrent, "mixed": mixed, "clipped": clipped, "embedded": embedded,
    "adapters": adapters, "decoder": decoder, "lstm": lstm,
}  # fmt: skip


def train(name, steps=6):
    init, step, data = PROGRAMS[name]()
    state, batch = jax.jit(init)(jax.random.PRNGKey(0)), data()
    print("analysis", needed(step.lower(state, batch)))
    for _ in range(steps):
        state, loss = step(state, batch)
        print(float(loss))
    print("done")


def needed(lowered):
    """Everything that is alive in a step: arguments and results, those that are donated once, and temporaries."""
    stats = lowered.compile().memory_analysis()
    alive = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    return alive + stats.temp_size_in_bytes


def placing(target):
    """What puts arrays of a tree on a GPU that a file describes, as their types alone; no device is there, and none of hightide."""
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # no driver is here
    import jax._src.hardware_utils
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True
    with open(target) as file:
        topology = topologies.get_topology_desc(
            platform="cuda", topology_name="", target_config=file.read(), topology="1x1x1"
        )
    everywhere = NamedSharding(Mesh(np.array(topology.devices[:1]), ("x",)), PartitionSpec())

    def one(leaf):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere) if hasattr(leaf, "dtype") else leaf

    return lambda tree: jax.tree.map(one, tree)


def truth(name, target):
    """The same, compiled for a GPU that is described by a file."""
    placed = placing(target)
    init, step, data = PROGRAMS[name]()
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    print("analysis", needed(step.lower(placed(jax.eval_shape(init, key)), placed(jax.eval_shape(data)))))


def halve(name, folder, target=None):
    """The step, compiled for its batch and for half of it; without a target for the CPU."""
    placed = placing(target) if target else lambda tree: tree
    init, step, data = PROGRAMS[name]()
    state, batch = jax.eval_shape(init, jax.ShapeDtypeStruct((2,), jnp.uint32)), jax.eval_shape(data)
    at = 1 if name == "recurrent" else 0  # its first dimension is time

    def smaller(a):
        return jax.ShapeDtypeStruct((*a.shape[:at], a.shape[at] // 2, *a.shape[at + 1 :]), a.dtype)

    less = jax.tree.map(smaller, batch)
    options = {"xla_dump_hlo_as_proto": True} | ({"xla_gpu_autotune_level": 0} if target else {})
    for part, given in {"whole": batch, "half": less}.items():
        options["xla_dump_to"] = os.path.join(folder, part)
        step.lower(placed(state), placed(given)).compile(options)


if __name__ == "__main__":
    if sys.argv[2] == "train":
        train(sys.argv[1])
    elif sys.argv[2] == "halve":
        halve(sys.argv[1], *sys.argv[3:])
    else:
        truth(sys.argv[1], sys.argv[3])
