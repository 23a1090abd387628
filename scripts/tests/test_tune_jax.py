"""JAX under `hightide tune` and its plans: layers that are computed again, what is refused, and the same losses."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from imaginary import CACHE, HIGHTIDE, XLA, environment, imagined, script

pytestmark = pytest.mark.skipif(not XLA.exists(), reason=f"{XLA} is not there: scripts/setup xla")

BEGIN = """
    import sys
    import jax, jax.numpy as jnp, optax
    rows, width, layers = int(sys.argv[1]), int(sys.argv[2]), 4
    x = jnp.sin(jnp.arange(rows * width, dtype=jnp.float32)).reshape(rows, width)
    """
MODELS = {
    "linen": """
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            y = nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(nn.LayerNorm()(x))))
            return x + nn.Dropout(0.1, deterministic=not train)(y)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(layers):
                x = Block()(x, train=True)
            return x

    net, key = Net(), jax.random.key(0)
    params = net.init({"params": key, "dropout": key}, x[:1])

    def loss(params, x):
        return (net.apply(params, x, rngs={"dropout": key}) ** 2).mean()
    """,
    "nnx": """
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

        def __call__(self, x):
            return x + self.down(nnx.gelu(self.up(x)))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([Block(rngs) for _ in range(layers)])

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    graph, params = nnx.split(Net(nnx.Rngs(0)))

    def loss(params, x):
        return (nnx.merge(graph, params)(x) ** 2).mean()
    """,
    "equinox": """
    import equinox as eqx

    class Block(eqx.Module):
        up: eqx.nn.Linear
        down: eqx.nn.Linear

        def __init__(self, key):
            self.up, self.down = eqx.nn.Linear(width, 4 * width, key=key), eqx.nn.Linear(4 * width, width, key=key)

        def __call__(self, x):
            return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(x)))

    class Net(eqx.Module):
        layers: list

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    params, rest = eqx.partition(Net([Block(key) for key in jax.random.split(jax.random.key(0), layers)]), eqx.is_array)

    def loss(params, x):
        return (eqx.combine(params, rest)(x) ** 2).mean()
    """,
    "haiku": """
    import haiku as hk

    class Block(hk.Module):
        def __call__(self, x):
            return x + hk.Linear(width)(jax.nn.gelu(hk.Linear(4 * width)(x)))

    def forward(x):
        for _ in range(layers):
            x = Block()(x)
        return x

    net = hk.without_apply_rng(hk.transform(forward))
    params = net.init(jax.random.key(0), x[:1])

    def loss(params, x):
        return (net.apply(params, x) ** 2).mean()
    """,
    "scan": """
    keys = jax.random.split(jax.random.key(0), 2)
    params = {"up": 0.05 * jax.random.normal(keys[0], (layers, width, 4 * width)),
              "down": 0.05 * jax.random.normal(keys[1], (layers, 4 * width, width))}

    def block(x, of):
        return x + jax.nn.gelu(x @ of["up"]) @ of["down"], None

    def loss(params, x):
        return (jax.lax.scan(block, x, params)[0] ** 2).mean()
    """,
    "plain": """
    params = {"up": jnp.ones((width, 4 * width)), "down": jnp.ones((4 * width, width))}

    def loss(params, x):
        return ((x + jax.nn.gelu(x @ params["up"]) @ params["down"]) ** 2).mean()
    """,
}
TRAINS = """
    tx = optax.adamw(1e-3)
    state = tx.init(params)

    @jax.jit
    def step(params, state, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    print("begins")
    first = params if "reads" in sys.argv else None
    for _ in range(6):
        params, state, value = step(params, state, x)
        if first is not None:
            print("first", [float(leaf.sum()) for leaf in jax.tree.leaves(first)])
        print("loss", float(value).hex())
    """
AROUND = {
    "linen": "each Block of Flax (nn.remat(Block))",
    "nnx": "each Block of Flax (nnx.remat)",
    "equinox": "each Block of Equinox (eqx.filter_checkpoint)",
    "haiku": "each Block of Haiku (hk.remat)",
    "scan": "the body of jax.lax.scan at train.py:15",
}
REMAT = "version = 1\n[levers.remat]\n"
SMALL = ("64", "32")


def program(folder: Path, model: str) -> Path:
    return script(folder, BEGIN + MODELS[model] + TRAINS)


def hightide(folder: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """One command, on the CPU where it runs the program for real."""
    env = environment(folder, **({"JAX_PLATFORMS": "cpu"} if words[0] == "run" else {}))
    return subprocess.run(
        [str(word) for word in (HIGHTIDE, *words)], capture_output=True, text=True, cwd=folder, env=env, timeout=1200
    )


@pytest.mark.parametrize("model", AROUND)
def test_the_same_losses(tmp_path: Path, model: str) -> None:
    """Six losses of a training on the CPU, to the bit. What XLA fuses otherwise on a GPU may round otherwise."""
    file, plan = program(tmp_path, model), tmp_path / "some.toml"
    plan.write_text(REMAT)
    plain = hightide(tmp_path, "run", "--", XLA, file, *SMALL)
    again = hightide(tmp_path, "run", "--plan", plan, "--", XLA, file, *SMALL)
    assert plain.returncode == again.returncode == 0, plain.stderr + again.stderr
    losses = re.findall("loss (.*)", plain.stdout)
    assert len(set(losses)) == 6 and re.findall("loss (.*)", again.stdout) == losses
    text = " ".join(again.stderr.split())
    assert f"some.toml was applied: remat (around {AROUND[model]})" in text, again.stderr


def test_a_plan_is_found(tmp_path: Path) -> None:
    """Four layers whose activations do not fit; computed again, they do, and the run with the plan has that peak."""
    file, size = program(tmp_path, "linen"), ("32768", "512")
    card = ("--gpu", "rtx4090", "--memory", "2000MiB")
    tuned = hightide(tmp_path, "tune", *card, "--json", "--", XLA, file, *size)
    assert tuned.returncode == 0, tuned.stderr
    result = json.loads(tuned.stdout)
    plan = result["recommended"]
    assert list(plan["levers"]) == ["remat"] and result["imagined_runs"] <= 5, result
    verdicts = {point["what"]: point["verdict"] for point in result["points"]}
    assert verdicts["no change"]["verdict"] == "oom" and verdicts["layers computed again"]["verdict"] == "fits"
    assert not any(point["numbers_stay"] for point in result["points"] if point["plan"]["levers"])
    verdict, said = imagined(XLA, tmp_path, file, *size, gpu="rtx4090",
                             flags=(*card[2:], "--plan", "hightide.plan.toml", "--no-suggest"))  # fmt: skip
    assert verdict["peak_allocated_bytes"] == plan["planned"]["peak_allocated_bytes"], said
    assert result["need_bytes"] > plan["planned"]["peak_allocated_bytes"]


def donates(file: Path, function: str = "step") -> str:
    """The lever, with the arguments of a function of the program."""
    line = file.read_text().splitlines().index("@jax.jit") + 1
    return f'[levers.donate]\narguments = ["{function}(params, state) at train.py:{line}"]\n'


def test_donated(tmp_path: Path) -> None:
    """Six losses on the CPU with parameters and state donated, to the bit; and what reads old parameters is ended there."""
    file, plan = program(tmp_path, "plain"), tmp_path / "some.toml"
    plain = hightide(tmp_path, "run", "--", XLA, file, *SMALL, "reads")
    plan.write_text("version = 1\n" + donates(file))
    again = hightide(tmp_path, "run", "--plan", plan, "--", XLA, file, *SMALL)
    assert plain.returncode == again.returncode == 0, plain.stderr + again.stderr
    losses = re.findall("loss (.*)", plain.stdout)
    assert len(set(losses)) == 6 and re.findall("loss (.*)", again.stdout) == losses
    assert "some.toml was applied: donate (step(params, state))" in " ".join(again.stderr.split()), again.stderr
    reads = hightide(tmp_path, "run", "--plan", plan, "--", XLA, file, *SMALL, "reads")
    at = next(i for i, line in enumerate(file.read_text().splitlines(), 1) if 'print("first"' in line)
    assert reads.returncode == 3 and "loss" not in reads.stdout, reads.stdout
    why = f"some.toml cannot be applied: donate: an array that was donated or deleted is read at train.py:{at}"
    assert why in reads.stderr, reads.stderr


def test_donation_is_found(tmp_path: Path) -> None:
    """Parameters and Adam's state of 32 MiB each in two arrays, of which each would be there twice."""
    file = program(tmp_path, "plain")
    card = ("--gpu", "rtx4090", "--memory", "1100MiB")
    tuned = hightide(tmp_path, "tune", *card, "--json", "--", XLA, file, "64", "2048")
    assert tuned.returncode == 0, tuned.stderr
    result = json.loads(tuned.stdout)
    plan = result["recommended"]
    assert list(plan["levers"]) == ["donate"], result
    arguments = plan["levers"]["donate"]["arguments"]
    assert len(arguments) == 1 and arguments[0].startswith("step(params, state) at train.py:"), arguments
    assert result["refused"]["remat"].startswith("nothing of the program is repeated"), result
    verdict, said = imagined(XLA, tmp_path, file, "64", "2048", gpu="rtx4090",
                             flags=(*card[2:], "--plan", "hightide.plan.toml", "--no-suggest"))  # fmt: skip
    assert verdict["peak_allocated_bytes"] == plan["planned"]["peak_allocated_bytes"], said


def test_what_is_refused(tmp_path: Path) -> None:
    """Each in one line, by name, before anything is trained."""
    file, plan = program(tmp_path, "plain"), tmp_path / "some.toml"
    torch = CACHE / "torch-2.15.0" / "bin" / "python"
    of_torch = tmp_path / "torch_train.py"
    of_torch.write_text("import torch\nprint('begins')\ntorch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()\n"
                        "print('loss 0')\n")  # fmt: skip
    for levers, python, script_, why in (
        ("[levers.remat]", XLA, file, "some.toml cannot be applied: remat: nothing of the program is repeated that can be "
         "computed again, no layers of Flax, Equinox or Haiku and no jax.lax.scan; jax.checkpoint around a part of its "
         "loss does so by hand"),
        (donates(file, "walk"), XLA, file, "donate: the program jits no walk(params, state) at train.py:"),
        ("[levers.foreach]", XLA, file, "foreach: it is a lever of PyTorch, and this program trains with JAX"),
        ("[levers.remat]", torch, of_torch, "remat: it is a lever of JAX, and this program trains with PyTorch"),
    ):  # fmt: skip
        plan.write_text("version = 1\n" + levers)
        done = hightide(tmp_path, "run", "--plan", plan, "--", python, script_, *SMALL)
        assert done.returncode == 3 and "begins" in done.stdout and "loss" not in done.stdout, done.stderr
        assert f"hightide: {why}" in done.stderr or why in done.stderr, done.stderr
    plan.write_text("version = 1\n[levers.remat]\n[levers.foreach]\n")
    done = hightide(tmp_path, "run", "--plan", plan, "--", XLA, file, *SMALL)
    assert done.returncode == 3 and "its levers are of two frameworks" in done.stderr and not done.stdout, done.stderr


def test_what_a_tune_refuses(tmp_path: Path) -> None:
    """A lever of PyTorch that is asked for by name; and where nothing can be computed again, the line says what to do."""
    file, size = program(tmp_path, "plain"), ("65536", "512")
    tune = ("tune", "--gpu", "rtx4090", "--memory", "1200MiB")
    done = hightide(tmp_path, *tune, "--allow", "bf16", "--", XLA, file, *SMALL)
    assert (
        done.returncode == 3
        and "--allow bf16: it is a lever of PyTorch, and this program computes with JAX" in done.stderr
    )
    done = hightide(tmp_path, *tune, "--", XLA, file, *size)
    assert "Not used: remat: nothing of the program is repeated" in done.stderr, done.stderr
    assert "jax.checkpoint around a part of its loss" in done.stderr and "No plan that was run fits" in done.stderr
