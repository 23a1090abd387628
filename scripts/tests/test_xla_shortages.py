"""JAX on imaginary GPUs that are too small: what ran out, where, and what makes it fit, tried."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import imaginary
import pytest
from imaginary import ROOT, XLA, GiB, environment, near, parts, script

pytestmark = pytest.mark.skipif(not XLA.exists(), reason=f"{XLA} is not there: scripts/setup xla")


def imagined(folder: Path, *command: object, **options: Any) -> tuple[dict[str, Any], str]:
    """The verdict, and what the program printed."""
    return imaginary.imagined(XLA, folder, *command, **options)


ARRAYS = """
    import jax.numpy as jnp
    held = [jnp.zeros((1 << 28,)) for _ in range({count})]
    print(len(held))
"""


def test_out_of_memory(tmp_path: Path) -> None:
    """A card of 24 GiB gives JAX three quarters of it: 16 arrays of 1 GiB fit, 20 do not, and do where it may take more."""
    fits, _ = imagined(tmp_path, script(tmp_path, ARRAYS.format(count=16)), gpu="rtx4090")
    assert fits["verdict"] == "fits" and near(fits["peak_allocated_bytes"], 16 * GiB, 0.001)
    full, said = imagined(
        tmp_path, script(tmp_path, ARRAYS.format(count=20)), gpu="rtx4090", code=1, flags=("--no-suggest",)
    )
    assert full["verdict"] == "oom" and "RESOURCE_EXHAUSTED" in said, full
    tried, _ = imagined(tmp_path, tmp_path / "train.py", gpu="rtx4090", code=1)
    tries = {one["kind"]: one for one in tried["tries"]}
    assert tries["fraction"]["verdict"] in ("fits", "tight"), tries
    assert near(tries["memory"]["peak_allocated_bytes"], 20 * GiB, 0.001), tries
    assert "allocator" not in tries and "donation" not in tries and "checkpointing" not in tries, tries


CAUGHT = """
    import jax, jax.numpy as jnp

    @jax.jit
    def grow(x):
        return jnp.outer(x, x)

    y = grow(jnp.ones((40_000,)))
    try:
        print(float(jax.jit(lambda y: (2 * y).sum())(y)))
    except Exception as error:
        print("caught", error)
"""


def test_one_shortage_is_told_once(tmp_path: Path) -> None:
    """Another function reads what came of the call that failed: that is no second shortage, and the program saw the error."""
    verdict, said = imagined(
        tmp_path, script(tmp_path, CAUGHT), gpu="rtx4090", flags=("--memory", "4GiB", "--no-suggest"), code=1
    )
    assert "caught RESOURCE_EXHAUSTED" in said, said
    told = imaginary.findings(tmp_path, verdict, "oom")
    assert [(Path(one["file"]).name, one["line"]) for one in told] == [("train.py", 8)], told
    show = [imaginary.HIGHTIDE, "show", verdict["run_id"]]
    text = subprocess.run(show, capture_output=True, text=True, env=environment(tmp_path), check=True).stdout
    assert "read nothing that came of it, or caught what it read" in " ".join(text.split()), text


SHORT = """
    import jax, jax.numpy as jnp

    def layer(x, w):
        return jnp.tanh(x @ w), None

    def loss(w, x):
        return jnp.mean(jax.lax.scan(layer, x, w)[0])

    @jax.jit
    def step(state, w, x):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return [0.9 * part for part in state], w - gradient, value

    state = [jnp.ones((1 << 28,)) for _ in range(4)]
    w, x = jnp.ones((64, 64, 64)), jnp.ones((1 << 17, 64))
    for _ in range(5):
        state, w, value = step(state, w, x)
        print(float(value))
"""


def test_what_makes_it_fit(tmp_path: Path) -> None:
    """Twice 4 GiB of state and 6 GiB that a scan keeps do not fit into 10.5 GiB: which function, where, what it needed.
    It fits with the arguments donated that are told of, which needs as much less as is said; or with the scan computed
    again; not where JAX takes 13.3 GiB."""
    verdict, _ = imagined(tmp_path, script(tmp_path, SHORT), gpu="rtx4090", flags=("--memory", "14GiB"), code=1)
    call = verdict["short"]
    assert (call["function"], call["line"], call["called_line"]) == ("step", 10, 18), call
    assert near(call["temp_bytes"], 6 * GiB, 0.05) and near(call["used_bytes"], 4 * GiB, 0.05), call
    held = parts(verdict)
    assert held["temporaries"] == call["temp_bytes"] and near(held["other"], 4 * GiB, 0.05), held
    most = verdict["peak_lines"][0]
    assert (most["what"], most["line"]) == ("temporaries", 8), verdict["peak_lines"]
    tries = {one["kind"]: one for one in verdict["tries"]}
    assert tries["donation"]["what"] == "state, w of step donated" and tries["donation"]["verdict"] in (
        "fits",
        "tight",
    ), tries
    needs = tries["memory"]["peak_allocated_bytes"]
    assert near(needs - tries["donation"]["peak_allocated_bytes"], 4 * GiB, 0.03), tries
    assert tries["checkpointing"]["what"] == "jax.checkpoint around the body of jax.lax.scan at train.py:8", tries
    assert needs - tries["checkpointing"]["peak_allocated_bytes"] > 3 * GiB, tries
    assert near(tries["donation"]["peak_needed_bytes"], tries["donation"]["peak_allocated_bytes"], 0.06), tries
    assert tries["fraction"]["verdict"] == "oom" and tries["gpu"]["verdict"] == "fits", tries


LAYERS = """
    import jax, jax.numpy as jnp
    from flax import linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            h = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=16, dropout_rate=0.1)(h, h, deterministic=not train)
            return x + nn.Dense(256)(nn.gelu(nn.Dense(1024)(x)))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x, train=False):
            for _ in range(4):
                x = Block()(x, train)
            return nn.Dense(16)(x)

    model, x = Model(), jnp.ones((32, 512, 256))
    params = model.init(jax.random.PRNGKey(0), x[:1])

    @jax.jit
    def step(params, x):
        loss = lambda params: jnp.mean(model.apply(params, x, True, rngs={"dropout": jax.random.PRNGKey(1)}) ** 2)
        return jax.tree.map(lambda a, b: a - 0.1 * b, params, jax.grad(loss)(params))

    for _ in range(2):
        params = step(params, x)
        print(float(jax.tree.leaves(params)[0][0]))
"""


def test_layers_of_flax_computed_again(tmp_path: Path) -> None:
    """Four layers in a loop of Python keep for the backward pass what attention made, 512 MiB each time. Computed again they
    keep their inputs, of 16 MiB: that is tried, and fits where nothing else does."""
    verdict, _ = imagined(tmp_path, script(tmp_path, LAYERS), gpu="rtx4090", flags=("--memory", "3GiB"), code=1)
    tries = {one["kind"]: one for one in verdict["tries"]}
    again = tries["checkpointing"]
    assert again["what"] == "jax.checkpoint around each Block of Flax (nn.remat(Block))" and again["verdict"] in (
        "fits",
        "tight",
    ), tries
    assert tries["memory"]["peak_allocated_bytes"] - again["peak_allocated_bytes"] > GiB, tries


NNX = """
    from flax import nnx
    import jax, jax.numpy as jnp

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.LayerNorm(256, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(16, 256, decode=False, dropout_rate=0.1, rngs=rngs)
            self.up, self.down = nnx.Linear(256, 1024, rngs=rngs), nnx.Linear(1024, 256, rngs=rngs)

        def __call__(self, x, train):
            x = x + self.attention(self.norm(x), deterministic=not train)
            return x + self.down(nnx.gelu(self.up(x)))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([Block(rngs) for _ in range(4)])
            self.out = nnx.Linear(256, 16, rngs=rngs)

        def __call__(self, x, train=False):
            for layer in self.layers:
                x = layer(x, train)
            return self.out(x)

    model, x = Model(nnx.Rngs(0)), jnp.ones((32, 512, 256))

    @nnx.jit
    def step(model, x):
        gradients = nnx.grad(lambda model: jnp.mean(model(x, True) ** 2))(model)
        nnx.update(model, jax.tree.map(lambda a, b: a - 0.1 * b, nnx.state(model, nnx.Param), gradients))

    for _ in range(2):
        step(model, x)
        print(float(model.out.bias[...][0]))
"""


def test_layers_of_nnx_computed_again(tmp_path: Path) -> None:
    """As of Flax linen; modules of nnx are held by each other, and change in place."""
    verdict, _ = imagined(tmp_path, script(tmp_path, NNX), gpu="rtx4090", flags=("--memory", "3GiB"), code=1)
    tries = {one["kind"]: one for one in verdict["tries"]}
    again = tries["checkpointing"]
    assert again["what"] == "jax.checkpoint around each Block of Flax (nnx.remat)", tries
    assert again["verdict"] in ("fits", "tight"), tries
    assert tries["memory"]["peak_allocated_bytes"] - again["peak_allocated_bytes"] > GiB, tries


HAIKU = """
    import haiku as hk  # which imports jax itself
    import jax, jax.numpy as jnp

    class Block(hk.Module):
        def __call__(self, x):
            return x + hk.Linear(512)(jax.nn.gelu(hk.Linear(2048)(x)))

    def model(x):
        for _ in range(6):
            x = Block()(x)
        return x

    net, x = hk.without_apply_rng(hk.transform(model)), jnp.ones((16384, 512))
    parameters = net.init(jax.random.PRNGKey(0), x[:1])

    @jax.jit
    def step(parameters, x):
        gradients = jax.grad(lambda p: jnp.mean(net.apply(p, x) ** 2))(parameters)
        return jax.tree.map(lambda a, b: a - 0.1 * b, parameters, gradients)

    for _ in range(2):
        parameters = step(parameters, x)
"""


def test_layers_of_haiku_computed_again(tmp_path: Path) -> None:
    """A library that imports JAX is being imported as JAX is: its layers are met from its end on."""
    verdict, _ = imagined(tmp_path, script(tmp_path, HAIKU), gpu="rtx4090", flags=("--memory", "1200MiB"), code=1)
    tries = {one["kind"]: one for one in verdict["tries"]}
    again = tries["checkpointing"]
    assert again["what"] == "jax.checkpoint around each Block of Haiku (hk.remat)", tries
    assert tries["memory"]["peak_allocated_bytes"] - again["peak_allocated_bytes"] > GiB, tries


REPEATED = {
    "nnx": """
        from flax import nnx
        met and layers.nnx(jax, nnx, told.add)

        class Block(nnx.Module):
            def __init__(self, rngs):
                self.up, self.down = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)
                self.norm, self.drop = nnx.BatchNorm(32, rngs=rngs), nnx.Dropout(0.1, rngs=rngs)

            def __call__(self, x, train):
                y = self.up(self.norm(x, use_running_average=not train))
                return x + self.drop(self.down(nnx.gelu(y)), deterministic=not train)

        class Model(nnx.Module):
            def __init__(self, rngs):
                self.layers = nnx.List([Block(rngs) for _ in range(4)])
                self.single = Block(rngs)

            def __call__(self, x, train):
                for layer in self.layers:
                    x = layer(x, train=train)
                return x

        x = jnp.ones((8, 32)) * jnp.arange(8)[:, None]
        graph, state, rest = nnx.split(Model(nnx.Rngs(0)), nnx.Param, ...)

        def loss(state):
            model = nnx.merge(graph, state, rest, copy=True)
            y = jnp.mean(model(x, True) ** 2)
            return y, model.layers[3].norm.mean[...]  # which the call changes
        """,
    "equinox": """
        import equinox as eqx
        met and layers.equinox(eqx, told.add)

        class Block(eqx.Module):
            up: eqx.nn.Linear
            down: eqx.nn.Linear
            drop: eqx.nn.Dropout

            def __init__(self, key):
                self.up, self.down = eqx.nn.Linear(32, 64, key=key), eqx.nn.Linear(64, 32, key=key)
                self.drop = eqx.nn.Dropout(0.1)

            def __call__(self, x, key, train):
                return x + self.drop(self.down(jax.nn.gelu(self.up(x))), key=key, inference=not train)

        class Model(eqx.Module):
            layers: list
            single: Block

            def __init__(self, key):
                self.layers, self.single = [Block(key) for _ in range(4)], Block(key)

            def __call__(self, x, key):
                for layer in self.layers:
                    x = layer(x, key, train=True)
                return x

        model, key = Model(jax.random.PRNGKey(0)), jax.random.PRNGKey(1)
        state, rest = eqx.partition(model, eqx.is_array)
        x = jnp.ones((8, 32))

        def loss(state):
            y = jax.vmap(lambda row: eqx.combine(state, rest)(row, key))(x)
            return jnp.mean(y ** 2), y
        """,
    "haiku": """
        import haiku as hk
        met and layers.Haiku(jax, hk, told.add).install()

        class Block(hk.Module):
            def __call__(self, x, train):
                y = hk.Linear(32)(jax.nn.gelu(hk.Linear(64)(x)))
                return x + hk.dropout(hk.next_rng_key(), 0.1 if train else 0.0, y)

        class Model(hk.Module):
            def __call__(self, x):
                for _ in range(4):
                    x = Block()(x, train=True)
                return hk.Linear(4)(x)

        network, x, key = hk.transform(lambda x: Model()(x)), jnp.ones((8, 32)), jax.random.PRNGKey(1)
        state = network.init(key, x)

        def loss(state):
            y = network.apply(state, key, x)
            return jnp.mean(y ** 2), y
        """,
}


@pytest.mark.parametrize("library", REPEATED)
def test_repeated_layers(tmp_path: Path, library: str) -> None:
    """Four layers are computed again, and a fifth module of their class that nobody calls is not. Results and gradients are
    what they were, also where a layer draws random numbers, or changes its own averages."""
    begin = f"""
        import sys
        sys.path.insert(0, {str(ROOT / "agent" / "python" / "src")!r})
        import jax, jax.numpy as jnp
        from hightide_agent.xla import layers
        met, told = sys.argv[1] == "met", set()
        """
    end = """
        (value, more), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(state)
        print([value, jnp.abs(more).sum(), *(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(gradients))])
        print(str(jax.make_jaxpr(jax.grad(loss, has_aux=True))(state)).count("remat"), *told)
        """
    program = script(tmp_path, begin + REPEATED[library] + end)
    env = {**environment(tmp_path), "JAX_PLATFORMS": "cpu"}

    def run(how: str) -> "list[str]":
        command = [str(XLA), str(program), how]
        return subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=600, check=True
        ).stdout.splitlines()

    (numbers, made), (same, plain) = run("met"), run("plain")
    assert numbers == same and plain == "0", (made, plain)
    title = {"nnx": "Flax (nnx.remat)", "equinox": "Equinox (eqx.filter_checkpoint)", "haiku": "Haiku (hk.remat)"}[
        library
    ]
    assert made == f"4 each Block of {title}", made
