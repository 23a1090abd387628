"""More small trainings with JAX, for test_xla.py: each written in a library's own way, or with what trainings do besides.

    libraries.py NAME train             trains; nothing in it knows of hightide
    libraries.py NAME truth TARGET      prints XLA's own analysis of the step, compiled for the GPU of that file

A program is a function that returns its state, its step and a batch. The step has `lower`, as a jitted function has, or is an Own.
"""

import functools
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from programs import WIDTH, mlp_loss, needed, placing, vectors, weights_of, with_optimizer


class Own:
    """A step that is called otherwise than a jitted function over (state, batch), and is lowered by `lower(state, batch, placed)`,
    where `placed` says on what device arrays of a tree lie."""

    def __init__(self, call, lower):
        self.call, self.lower = call, lower

    def __call__(self, state, batch):
        return self.call(state, batch)


def plain(begin, step, data):
    return jax.jit(begin)(jax.random.PRNGKey(0)), step, data()


def equinox(donate="none"):
    """A perceptron of Equinox, whose activation is a leaf, too."""
    import equinox as eqx

    model = eqx.nn.MLP(WIDTH, WIDTH, 2048, 3, key=jax.random.PRNGKey(0))
    optimizer = optax.adamw(1e-3)

    def loss(model, batch):
        return jnp.mean((jax.vmap(model)(batch[0]) - batch[1]) ** 2)

    def change(batch, state):
        model, inner = state
        value, gradients = eqx.filter_value_and_grad(loss)(model, batch)
        updates, inner = optimizer.update(gradients, inner, eqx.filter(model, eqx.is_array))
        return (eqx.apply_updates(model, updates), inner), value

    def lower(state, batch, placed):
        arrays, rest = eqx.partition(state, eqx.is_array)

        def step(arrays, batch):
            return eqx.filter(change(batch, eqx.combine(arrays, rest)), eqx.is_array)

        return jax.jit(step, donate_argnums=() if donate == "none" else 0).lower(placed(arrays), placed(batch))

    state = model, optimizer.init(eqx.filter(model, eqx.is_array))
    step = eqx.filter_jit(change, donate=donate)
    return state, Own(lambda state, batch: step(batch, state), lower), vectors()


def haiku():
    """A network of Haiku with batch normalisation, whose state is handed on beside the parameters."""
    import haiku as hk

    def forward(images):
        x = hk.Conv2D(64, 3, stride=2)(images)
        for _ in range(2):
            y = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(hk.Conv2D(64, 3)(x), is_training=True))
            x = x + hk.Conv2D(64, 3)(y)
        return hk.Linear(10)(x.mean((1, 2)))

    network, optimizer = hk.transform_with_state(forward), optax.sgd(1e-2, momentum=0.9, nesterov=True)
    images, labels = jnp.ones((32, 64, 64, 3)), jnp.zeros((32,), jnp.int32)

    def loss(parameters, averages, batch):
        logits, averages = network.apply(parameters, averages, None, batch[0])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean(), averages

    @jax.jit
    def step(state, batch):
        parameters, averages, inner = state
        (value, averages), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, averages, batch)
        updates, inner = optimizer.update(gradients, inner)
        return (optax.apply_updates(parameters, updates), averages, inner), value

    def begin(key):
        parameters, averages = network.init(key, images)
        return parameters, averages, optimizer.init(parameters)

    return plain(begin, step, lambda: (images, labels))


def of_nnx(make, optimizer, batch, loss):
    """A step of Flax nnx as its guide has it: nnx.jit over the model and its optimizer, which it changes in place."""
    from flax import nnx

    model = make(nnx)
    state = model, nnx.Optimizer(model, optimizer, wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, batch):
        value, gradients = nnx.value_and_grad(loss)(model, batch)
        optimizer.update(model, gradients)
        return value

    def call(state, batch):
        return state, step(*state, batch)

    return state, Own(call, lambda state, batch, placed: step.lower(*placed((*state, batch))).lowered), batch


def nnx_jit():
    """A transformer's feed-forward part."""

    def make(nnx):
        class Model(nnx.Module):
            def __init__(self, rngs):
                self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
                self.up, self.down = nnx.Linear(WIDTH, 2048, rngs=rngs), nnx.Linear(2048, WIDTH, rngs=rngs)

            def __call__(self, x):
                return x + self.down(nnx.gelu(self.up(self.norm(x))))

        return Model(nnx.Rngs(0))

    return of_nnx(make, optax.adamw(1e-3), vectors(), lambda model, batch: jnp.mean((model(batch[0]) - batch[1]) ** 2))


def nnx_images():
    """Convolutions with batch normalisation and dropout: averages and random numbers change, too."""

    def make(nnx):
        class Model(nnx.Module):
            def __init__(self, rngs):
                self.first = nnx.Conv(3, 32, (3, 3), rngs=rngs)
                self.norm = nnx.BatchNorm(32, rngs=rngs)
                self.second = nnx.Conv(32, 64, (3, 3), strides=2, rngs=rngs)
                self.drop = nnx.Dropout(0.2, rngs=rngs)
                self.out = nnx.Linear(64, 10, rngs=rngs)

            def __call__(self, x):
                x = nnx.relu(self.second(nnx.relu(self.norm(self.first(x)))))
                return self.out(self.drop(x.mean((1, 2))))

        return Model(nnx.Rngs(0))

    def loss(model, batch):
        return optax.softmax_cross_entropy_with_integer_labels(model(batch[0]), batch[1]).mean()

    return of_nnx(make, optax.adam(1e-3), (jnp.ones((32, 64, 64, 3)), jnp.zeros((32,), jnp.int32)), loss)


def of_keras(make, optimizer, loss, batch):
    """Keras on JAX: `fit`; for XLA's analysis the function that `fit` calls."""
    import keras

    assert keras.backend.backend() == "jax"
    model = make(keras)
    model.compile(optimizer=optimizer, loss=loss)
    x, y = tuple(np.asarray(part) for part in batch)  # Keras puts what it gets on the device anew

    def call(model, batch):
        model.fit(x, y, batch_size=len(x), verbose=0)
        return model, 0.0

    def lower(model, batch, placed):
        model._symbolic_build(data_batch=(x[:1], y[:1]))
        model.optimizer.build(model.trainable_variables)
        names = ("trainable_variables", "non_trainable_variables", "optimizer_variables", "metrics_variables")
        state = tuple(model._get_jax_state(**dict.fromkeys(names, True)))
        return jax.jit(model.train_step, donate_argnums=0).lower(
            placed(state), placed((jnp.asarray(x), jnp.asarray(y)))
        )

    return model, Own(call, lower), (x, y)


def keras_dense():
    def make(keras):
        layers = keras.layers
        return keras.Sequential(
            [layers.Input((WIDTH,)), layers.Dense(2048, activation="relu"), layers.Dropout(0.1), layers.Dense(WIDTH)]
        )

    return of_keras(make, "adamw", "mse", vectors())


def summed():
    """Gradients of four small batches, each made and added within a scan."""
    optimizer = optax.adamw(1e-3)

    def begin(key):
        parameters = weights_of(key)
        return parameters, optimizer.init(parameters)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, batch):
        parameters, inner = state
        parts = jax.tree.map(lambda a: a.reshape(4, -1, WIDTH), batch)

        def one(total, part):
            value, gradients = jax.value_and_grad(mlp_loss)(parameters, part)
            return jax.tree.map(jnp.add, total, gradients), value

        total, values = jax.lax.scan(one, jax.tree.map(jnp.zeros_like, parameters), parts)
        updates, inner = optimizer.update(jax.tree.map(lambda g: g / 4, total), inner, parameters)
        return (optax.apply_updates(parameters, updates), inner), values.mean()

    return plain(begin, step, lambda: vectors(4096))


def diffusion():
    """A U-Net that takes noise off: times, attention in the middle, an average of its weights beside them."""
    import flax.linen as nn

    class Block(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x, time):
            y = nn.Conv(self.width, (3, 3))(nn.silu(nn.GroupNorm(8)(x)))
            y = y + nn.Dense(self.width)(nn.silu(time))[:, None, None]
            y = nn.Conv(self.width, (3, 3))(nn.silu(nn.GroupNorm(8)(y)))
            return y + nn.Conv(self.width, (1, 1))(x)

    class UNet(nn.Module):
        @nn.compact
        def __call__(self, x, time):
            angles = time[:, None] * jnp.exp(-jnp.arange(32) / 4)
            time = nn.Dense(128)(nn.silu(nn.Dense(128)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))
            kept, x = [], nn.Conv(32, (3, 3))(x)
            for width in (32, 64):
                x = Block(width)(x, time)
                kept.append(x)
                x = nn.Conv(width, (3, 3), strides=2)(x)
            flat = nn.GroupNorm(8)(x).reshape(x.shape[0], -1, 64)
            x = Block(64)(x + nn.MultiHeadDotProductAttention(4)(flat).reshape(x.shape), time)
            for width in (64, 32):
                x = jax.image.resize(x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest")
                x = Block(width)(jnp.concatenate([x, kept.pop()], -1), time)
            return nn.Conv(3, (3, 3))(x)

    model, optimizer, images = UNet(), optax.adamw(1e-4), jnp.ones((8, 64, 64, 3))

    def begin(key):
        parameters = model.init(key, images, jnp.ones(8))
        return parameters, optimizer.init(parameters), jax.tree.map(jnp.copy, parameters), key

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, batch):
        parameters, inner, average, key = state
        key, one, two = jax.random.split(key, 3)
        time, noise = jax.random.uniform(one, (8,)), jax.random.normal(two, batch.shape)

        def loss(parameters):
            share = jnp.cos(time * jnp.pi / 2)[:, None, None, None]
            noisy = share * batch + jnp.sqrt(1 - share**2) * noise
            return jnp.mean((model.apply(parameters, noisy, 1000 * time) - noise) ** 2)

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, inner = optimizer.update(gradients, inner, parameters)
        parameters = optax.apply_updates(parameters, updates)
        average = optax.incremental_update(parameters, average, 1e-3)
        return (parameters, inner, average, key), value

    return plain(begin, step, lambda: images)


def decoder_layer(x, weights):
    """With names for what may be kept, as MaxText gives them."""
    from jax.ad_checkpoint import checkpoint_name

    def norm(x):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    y = norm(x)
    q, k, v = (checkpoint_name(jnp.einsum("btd,dhs->bths", y, weights[n]), n) for n in ("q", "k", "v"))
    scores = jnp.einsum("bqhs,bkhs->bhqk", q, k) / 8
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    out = checkpoint_name(jnp.einsum("bhqk,bkhs->bqhs", jax.nn.softmax(scores), v), "context")
    x = x + jnp.einsum("bqhs,hsd->bqd", out, weights["out"])
    y = norm(x)
    return x + checkpoint_name(jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"]), "mlp") @ weights["down"]


def decoder(policy):
    """Four layers in a Python loop, each given to jax.checkpoint with a policy of what is kept."""
    width, heads, size = 256, 4, 64
    shapes = {**dict.fromkeys("qkv", (width, heads, size)), "out": (heads, size, width),
              "gate": (width, 1024), "up": (width, 1024), "down": (1024, width)}  # fmt: skip
    layer = jax.checkpoint(decoder_layer, policy=policy)

    def init(key):
        return [{name: 0.02 * jax.random.normal(key, shape) for name, shape in shapes.items()} for _ in range(4)]

    def loss(layers, batch):
        x, y = batch
        for weights in layers:
            x = layer(x, weights)
        return jnp.mean((x - y) ** 2)

    shape = (8, 256, width)
    batch = lambda: (jnp.ones(shape), jnp.zeros(shape))  # noqa: E731
    return plain(*with_optimizer(optax.adamw(1e-3), init, loss, donate_argnums=0), batch)


def experts():
    """A mixture: each token goes to two of eight experts, as far as these have room."""
    width, hidden, count, tokens = 256, 512, 8, 2048
    room = 2 * tokens // count

    def init(key):
        shapes = {"route": (width, count), "up": (count, width, hidden), "down": (count, hidden, width)}
        return {name: 0.02 * jax.random.normal(key, shape) for name, shape in shapes.items()}

    def loss(weights, batch):
        x, y = batch
        shares, chosen = jax.lax.top_k(jax.nn.softmax(x @ weights["route"]), 2)
        sent = jax.nn.one_hot(chosen, count).sum(1)
        place = (jnp.cumsum(sent, 0) - 1) * sent
        seat = jax.nn.one_hot(place, room) * sent[..., None]
        share = jnp.zeros((tokens, count)).at[jnp.arange(tokens)[:, None], chosen].set(shares)
        inside = jnp.einsum("tec,td->ecd", seat, x)
        out = jnp.einsum(
            "ech,ehd->ecd", jax.nn.silu(jnp.einsum("ecd,edh->ech", inside, weights["up"])), weights["down"]
        )
        return jnp.mean((jnp.einsum("tec,te,ecd->td", seat, share, out) - y) ** 2)

    batch = lambda: (jnp.ones((tokens, width)), jnp.zeros((tokens, width)))  # noqa: E731
    return plain(*with_optimizer(optax.adamw(1e-3), init, loss), batch)


def spaces():
    """A state-space layer: an associative scan over time, which keeps each of its levels."""

    def init(key):
        return {"in": 0.02 * jax.random.normal(key, (256, 512)), "out": 0.02 * jax.random.normal(key, (512, 256)),
                "decay": jnp.zeros((512,))}  # fmt: skip

    def loss(weights, batch):
        x, y = batch
        u = x @ weights["in"]
        decay = jnp.broadcast_to(jax.nn.sigmoid(weights["decay"]), u.shape)
        _, h = jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (decay, u), axis=1)
        return jnp.mean((h @ weights["out"] - y) ** 2)

    batch = lambda: (jnp.ones((8, 512, 256)), jnp.zeros((8, 512, 256)))  # noqa: E731
    return plain(*with_optimizer(optax.adam(1e-3), init, loss), batch)


def epoch():
    """A whole epoch in one call: a scan over batches, each a step of the optimizer."""
    begin, step = with_optimizer(optax.adam(1e-3), weights_of, mlp_loss)

    @functools.partial(jax.jit, donate_argnums=0)
    def all(state, batches):
        state, values = jax.lax.scan(step, state, batches)
        return state, values.mean()

    return plain(begin, all, lambda: (jnp.ones((6, 512, WIDTH)), jnp.zeros((6, 512, WIDTH))))


def second_order():
    """A step by what the loss is after a step: gradients of gradients."""

    def loss(weights, batch):
        inner = jax.grad(mlp_loss)(weights, batch)
        return mlp_loss([w - 0.1 * g for w, g in zip(weights, inner)], batch)

    return plain(*with_optimizer(optax.sgd(1e-2), weights_of, loss), vectors)


def adversaries():
    """Two networks, each with its optimizer, in one step; the discriminator sees both batches."""
    one, two = optax.adam(1e-4, b1=0.5), optax.adam(4e-4, b1=0.5)

    def network(weights, x):
        for w in weights:
            x = jax.nn.leaky_relu(x @ w)
        return x

    def begin(key):
        makes, judges = weights_of(key), weights_of(jax.random.fold_in(key, 1))
        return makes, judges, one.init(makes), two.init(judges)

    def judged(judges, makes, noise, real):
        made, seen = network(judges, network(makes, noise)), network(judges, real)
        return jnp.mean(jax.nn.softplus(made)) + jnp.mean(jax.nn.softplus(-seen))

    def fooled(makes, judges, noise):
        return jnp.mean(jax.nn.softplus(-network(judges, network(makes, noise))))

    @jax.jit
    def step(state, batch):
        makes, judges, first, second = state
        value, gradients = jax.value_and_grad(judged)(judges, makes, *batch)
        updates, second = two.update(gradients, second)
        judges = optax.apply_updates(judges, updates)
        updates, first = one.update(jax.grad(fooled)(makes, judges, batch[0]), first)
        return (optax.apply_updates(makes, updates), judges, first, second), value

    return plain(begin, step, vectors)


POLICIES = jax.checkpoint_policies
PROGRAMS = {
    "equinox": equinox, "equinox-donated": lambda: equinox("all-except-first"), "haiku": haiku, "nnx-jit": nnx_jit,
    "nnx-images": nnx_images, "keras-dense": keras_dense, "summed": summed, "diffusion": diffusion,
    "decoder-dots": lambda: decoder(POLICIES.dots_with_no_batch_dims_saveable),
    "decoder-names": lambda: decoder(POLICIES.save_only_these_names("context", "mlp")),
    "experts": experts, "spaces": spaces, "epoch": epoch, "second-order": second_order, "adversaries": adversaries,
}  # fmt: skip


def train(name, steps=6):
    state, step, batch = PROGRAMS[name]()
    print("analysis", needed(lowered(state, step, batch, lambda tree: tree)))
    for _ in range(steps):
        state, loss = step(state, batch)
        print(float(loss))
    print("done")


def lowered(state, step, batch, placed):
    return step.lower(state, batch, placed) if isinstance(step, Own) else step.lower(placed(state), placed(batch))


def truth(name, target):
    """Compiled for a GPU that is described by a file; the state is made on the CPU."""
    placed = placing(target)
    jax.config.update("jax_platforms", "cpu")
    print("analysis", needed(lowered(*PROGRAMS[name](), placed)))


if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = "jax"
    if sys.argv[2] == "train":
        train(sys.argv[1])
    else:
        truth(sys.argv[1], sys.argv[3])
