"""Equinox, which has JAX compile functions of its own: what is said of them is said of the program's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import imaginary
import pytest
from imaginary import HIGHTIDE, XLA, environment, imagined, script

pytestmark = pytest.mark.skipif(not XLA.exists(), reason=f"{XLA} is not there: scripts/setup xla")

TRAINING = """
    import equinox as eqx, jax, jax.numpy as jnp, optax

    optimizer = optax.adam(1e-3)

    @eqx.filter_value_and_grad
    def loss(model, x):
        return jnp.mean(jax.vmap(model)(x) ** 2)

    class Trainer(eqx.Module):
        rate: float

        def change(self, model, state, x):
            value, gradients = loss(model, x)
            updates, state = optimizer.update(gradients, state)
            return eqx.apply_updates(model, updates), state, value

    @eqx.filter_jit
    def function(model, state, x):
        return Trainer(0.1).change(model, state, x)

    trainer = Trainer(0.1)
    steps = {{"function": function, "method": eqx.filter_jit(trainer.change)}}
    step = steps["{how}"]

    def main():
        model = eqx.nn.MLP(512, 512, {width}, 2, key=jax.random.PRNGKey(0))
        state = optimizer.init(eqx.filter(model, eqx.is_array))
        x = jnp.ones((64, 512))
        for _ in range(7):
            model, state, value = step(model, state, x)
        print(float(value))

    main()
"""
LINES = {"function": (18, "function"), "method": (13, "change")}  # where each is defined, with its decorator


@pytest.mark.parametrize("how", sorted(LINES))
def test_steps_and_functions(tmp_path: Path, how: str) -> None:
    """A run counts the calls as steps, and says what the user's function needs."""
    file = script(tmp_path, TRAINING.format(how=how, width=512))
    env = environment(tmp_path, JAX_PLATFORMS="cpu")
    run = [str(word) for word in (HIGHTIDE, "run", "--quiet", "--", XLA, file)]
    subprocess.run(run, capture_output=True, cwd=tmp_path, env=env, check=True, timeout=900)
    show = [str(HIGHTIDE), "report", "last", "--json"]
    report = json.loads(subprocess.run(show, capture_output=True, text=True, env=env, check=True).stdout)
    (table,) = [table for table in report["tables"] if table["name"] == "programs"]
    line, name = LINES[how]
    assert table["rows"][0][:2] == [name, f"train.py:{line}"], table["rows"]
    assert report["headline"]["steps"] == 7


def test_where_memory_runs_out(tmp_path: Path) -> None:
    verdict, said = imagined(
        XLA, tmp_path, script(tmp_path, TRAINING.format(how="function", width=8192)), code=1,
        flags=("--memory", "2400MiB", "--no-suggest"),
    )  # fmt: skip
    assert verdict["verdict"] == "oom" and "RESOURCE_EXHAUSTED" in said, verdict
    show = [str(HIGHTIDE), "show", verdict["run_id"]]
    text = subprocess.run(show, capture_output=True, text=True, env=environment(tmp_path), check=True).stdout
    assert "in function (train.py:18) called at train.py:31" in " ".join(text.split()), text
    assert imaginary.findings(tmp_path, verdict, "oom"), text
