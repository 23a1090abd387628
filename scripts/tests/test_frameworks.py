"""Frameworks other than plain PyTorch under the built program: lines of TensorFlow and JAX, steps of Lightning,
transformers' Trainer and accelerate. None is mocked; 'scripts/setup frameworks' gets them."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HIGHTIDE = ROOT / "bin" / "hightide"
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
FRAMEWORKS = CACHE / "frameworks" / "bin" / "python"
MiB = 1 << 20
# At the end the interpreter's collector looks through all that a framework imported, a second of computing of which
# nothing is tested here: test_examples ends as programs do.
QUICK_END = "\nimport atexit, gc\natexit.register(gc.freeze)\n"


def record(
    folder: Path,
    script: str,
    *command: str,
    python: Path = Path(sys.executable),
    flags: "tuple[str, ...]" = (),
    code: int = 0,
    **more: str,
) -> "dict[str, Any]":
    """Record a script and return its report. `command` stands between the interpreter and the script, `more` in the
    environment, `flags` are of the command; `code` is what the script exits with."""
    if not python.exists():
        pytest.skip(f"{python} is not there: scripts/setup frameworks")
    file = folder / "script.py"
    file.write_text(textwrap.dedent(script) + QUICK_END)
    env = {
        **os.environ,
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **more,
    }
    run = [
        str(word)
        for word in (HIGHTIDE, "run", "--quiet", "--data-dir", folder / "data", *flags, "--", python, *command, file)
    ]
    done = subprocess.run(run, capture_output=True, text=True, cwd=folder, env=env, timeout=900)
    assert done.returncode == code and "done" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    shown = subprocess.run(
        [HIGHTIDE, "report", "last", "--json", "--data-dir", folder / "data"],
        capture_output=True,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(shown.stdout)
    assert report["dropped"] == 0, report["notes"]
    return report


def rows(report: "dict[str, Any]", name: str) -> "list[dict[str, Any]]":
    (table,) = [t for t in report["tables"] if t["name"] == name]
    return [dict(zip((c["name"] for c in table["columns"]), row)) for row in table["rows"]]


def held(report: "dict[str, Any]", mark: str) -> int:
    """Bytes at the peak that are blamed on the line of script.py with this mark."""
    text = (Path(report["run"]["cwd"]) / "script.py").read_text().splitlines()
    (line,) = [n for n, found in enumerate(text, 1) if mark in found]
    return sum(row["bytes"] for row in rows(report, "sites") if row["line"] == f"script.py:{line}")


@pytest.mark.parametrize("onednn", ["0", "1"])
def test_tensorflow_is_blamed_on_lines(tmp_path: Path, onednn: str) -> None:
    """With oneDNN, which is on by itself where the processor has AVX512-VNNI, TensorFlow serves tensors from an arena of
    its own. There malloc sees it grow, in regions of twice the size each, on whatever line asked for the first of a region."""
    report = record(
        tmp_path,
        """
        import tensorflow as tf
        kept = []
        for _ in range(30):
            made = tf.random.normal([1024, 1024])  # MADE: 4 MiB, the last of them kept
            kept.append(made + 1.0)  # KEPT: 4 MiB a turn
            many = [tf.fill([16, 1024], float(i)) for i in range(64)]  # MANY: 64 KiB each, 4 MiB at a time
        print("done", len(kept))
        """,
        python=FRAMEWORKS,
        TF_ENABLE_ONEDNN_OPTS=onednn,
        HIGHTIDE_HEAP_ADAPT="0",  # what is tested is the line: on a busy machine an import has the sampler take far fewer samples
    )
    made, kept, many = (held(report, f"# {mark}") for mark in ("MADE", "KEPT", "MANY"))
    arena = sum(
        row["bytes"] for row in rows(report, "sites") if row["line"].startswith("TensorFlow's own arena, grown at")
    )
    if onednn == "0":
        assert 0.9 * 116 * MiB <= kept <= 1.1 * 120 * MiB
        assert many <= 40 * MiB and not arena  # of 120 MiB in all: on a busy machine TensorFlow lets go of some late
    else:  # the arena is nobody's: no line is said to hold what is in it
        assert max(made, kept, many) <= 40 * MiB
        assert 0.9 * 124 * MiB <= arena <= 4 * 128 * MiB
    assert report["processes"][0]["frameworks"]["tensorflow"]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_jax_is_blamed_on_lines_or_says_why_not(tmp_path: Path, asynchronous: bool) -> None:
    """JAX computes on threads that run no Python, unless it is told not to: then the report says so."""
    report = record(
        tmp_path,
        f"""
        import jax, jax.numpy as jnp
        jax.config.update("jax_cpu_enable_async_dispatch", {asynchronous})
        kept = []
        x = jnp.ones((1024, 1024))
        for _ in range(60):  # more than what compiling takes for a while
            kept.append(x + 1.0)  # KEPT: 4 MiB a turn
        jax.block_until_ready(kept)
        print("done", len(kept))
        """,
        python=FRAMEWORKS,
    )
    assert report["processes"][0]["frameworks"]["jax"]
    told = [note for note in report["notes"] if "JAX's own threads" in note]
    if not asynchronous:
        assert 0.9 * 236 * MiB <= held(report, "# KEPT") <= 1.1 * 240 * MiB and not told
    else:
        native = sum(row["bytes"] for row in rows(report, "sites") if "native" in row["line"])
        assert held(report, "# KEPT") + native >= 0.9 * 236 * MiB and (told or held(report, "# KEPT") > 100 * MiB)


def phases(report: "dict[str, Any]") -> "set[str]":
    return {row["phase"] for row in rows(report, "phases")}


TRAINING = {"step", "data", "forward", "backward", "optimizer"}


def test_lightning(tmp_path: Path) -> None:
    report = record(
        tmp_path,
        """
        import logging, warnings
        warnings.simplefilter("ignore")
        logging.getLogger("lightning").setLevel("ERROR")
        import lightning, torch
        class Net(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU())
                self.head = torch.nn.Linear(512, 10)
            def training_step(self, batch, index):
                x, y = batch
                return torch.nn.functional.cross_entropy(self.head(self.body(x)), y)
            def validation_step(self, batch, index):
                self.training_step(batch, index)
            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(640, 512), torch.randint(0, 10, (640,)))
        loader = torch.utils.data.DataLoader(data, batch_size=16)
        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
        trainer.fit(Net(), loader, loader)
        print("done")
        """,
        python=FRAMEWORKS,
    )  # fmt: skip
    assert report["headline"]["steps"] == 40
    # Of phases of milliseconds a sample is observed, so the short evaluation may not be among them.
    assert phases(report) >= TRAINING
    names = {row["module"]: row["parameters"] for row in rows(report, "modules")}
    assert names["body"] == 512 * 513 * 4 and names["head"] == 513 * 10 * 4


def test_trainer_of_transformers(tmp_path: Path) -> None:
    """Two micro batches make one step."""
    report = record(
        tmp_path,
        """
        import torch, transformers
        config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=500, n_positions=64)
        model = transformers.GPT2LMHeadModel(config)
        tokens = [{"input_ids": torch.arange(32), "labels": torch.arange(32)} for _ in range(96)]
        arguments = transformers.TrainingArguments(
            output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2,
            report_to=[], save_strategy="no", logging_strategy="no", eval_strategy="epoch", use_cpu=True, disable_tqdm=True)
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=tokens, eval_dataset=tokens[:8])
        trainer.train()
        print("done", trainer.state.global_step, sum(p.numel() for p in model.parameters()))
        """,
    )
    assert report["headline"]["steps"] == 24
    # Of phases of milliseconds a sample is observed, so the short evaluation may not be among them.
    assert phases(report) >= TRAINING


def test_accelerate_launch(tmp_path: Path) -> None:
    """The launcher starts the script in a child, and steps its optimizer through a wrapper."""
    report = record(
        tmp_path,
        """
        import accelerate, torch
        accelerator = accelerate.Accelerator(cpu=True)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1))
        data = torch.utils.data.TensorDataset(torch.randn(320, 64), torch.randn(320, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=8))
        for x, y in loader:
            accelerator.backward(((model(x) - y) ** 2).mean())
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print("done")
        """,
        "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "--num_machines", "1",
        "--mixed_precision", "no", "--dynamo_backend", "no",
    )  # fmt: skip
    assert report["headline"]["steps"] == 40
    assert phases(report) >= TRAINING
    assert [p["role"] for p in report["processes"]][:2] == ["main", "child"]


def tracings(report: "dict[str, Any]") -> "dict[str, tuple[int, str]]":
    return {row["function"]: (row["count"], row["changed"]) for row in rows(report, "tracings")}


def test_keras_on_jax(tmp_path: Path) -> None:
    """Batches of fit and of train_on_batch are steps; layers and the optimizer have their bytes. The callback of the SDK
    takes the run that there is, and counts no step again."""
    report = record(
        tmp_path,
        """
        import os
        os.environ["KERAS_BACKEND"] = "jax"
        import keras, numpy as np
        from hightide.keras import HightideCallback
        x, y = np.random.rand(640, 256).astype("float32"), np.random.randint(0, 10, 640)
        model = keras.Sequential([keras.layers.Dense(512, name="body"), keras.layers.BatchNormalization(name="norm"),
                                  keras.layers.Dense(10, name="head")])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        memory = HightideCallback()
        model.fit(x, y, batch_size=16, verbose=0, validation_data=(x[:64], y[:64]), callbacks=[memory])
        for _ in range(10):
            model.train_on_batch(x[:16], y[:16])
        model.predict(x, verbose=0, callbacks=[memory])
        model.save("model.keras")
        print("done")
        """,
        python=FRAMEWORKS,
        PYTHONPATH=str(ROOT / "agent" / "python" / "src"),
    )
    assert report["headline"]["steps"] == 50
    assert {row["span"]: row["count"] for row in rows(report, "spans")} == {"epoch": 1, "evaluation": 1, "predict": 1}
    assert phases(report) >= {"step", "evaluation", "checkpoint"}
    modules = {row["module"]: (row["parameters"], row["buffers"]) for row in rows(report, "modules")}
    assert modules == {"body": (257 * 512 * 4, 0), "norm": (2 * 512 * 4, 2 * 512 * 4), "head": (513 * 10 * 4, 0)}
    held = {row["what"]: row["bytes"] for row in rows(report, "composition")}
    parameters = 4 * (257 * 512 + 2 * 512 + 513 * 10)
    assert held["model parameters"] == parameters
    assert 2 * parameters <= held["optimizer state"] <= 2 * parameters + 64  # Adam's two, and its scalars


def test_tensorflow_loops(tmp_path: Path) -> None:
    """A tf.function that applies an optimizer takes steps; traced for each number, it is found with that argument."""
    report = record(
        tmp_path,
        """
        import numpy as np, tensorflow as tf
        model = tf.keras.Sequential([tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam()
        @tf.function
        def train_step(x, y, scale):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2) * scale
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        x, y = tf.ones((8, 32)), tf.ones((8, 1))
        for i in range(24):
            train_step(x, y, i // 2)
        del train_step
        data = tf.data.Dataset.from_tensor_slices((np.ones((128, 32), "f"), np.ones((128, 1), "f"))).batch(8)
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        print("done")
        """,
        python=FRAMEWORKS,
    )
    assert report["headline"]["steps"] == 40
    assert phases(report) >= {"step", "data", "backward", "optimizer"}
    assert tracings(report)["train_step"] == (
        12 + 1,
        "scale: 10 to 11",
    )  # the first call traces twice, for its variables
    (finding,) = (f for f in report["findings"] if f["kind"] == "tracing")
    assert finding["file"].endswith(".py") and finding["line"] == 5 and "tf.constant" in finding["advice"]


LOOPS = """
    import types
    import jax, jax.numpy as jnp
    jax.config.update("jax_platforms", "cpu")
    step = jax.jit(lambda s, x: (jax.tree.map(lambda a: a * 0.9 + x, s), jnp.sum(x)))
    larger = jax.jit(lambda s, x: (s * 0.5, (x @ x).sum()))
    add = jax.jit(lambda a, b: a + b)
    new = lambda: {"w": jnp.ones((64, 64)), "m": jnp.zeros((64, 64))}

    def train(state):
        for _ in range(6):
            state, loss = step(state, 1.0)

    def replaced():
        train(new())

    def kept_by_the_caller():
        first = new()
        train(first)

    def warmed_up():
        state, _ = step(new(), 1.0)
        for _ in range(5):
            state, _ = step(state, 1.0)

    def attribute():
        self = types.SimpleNamespace(state=new())
        for _ in range(6):
            self.state, loss = step(self.state, 1.0)

    def accumulated():
        w, x = jnp.ones((64, 64)), jnp.ones((512, 512))
        for _ in range(6):
            total = jnp.zeros((64, 64))
            for _ in range(4):
                total = add(total, w)
            w, _ = larger(w, x)

    def evaluated():
        state = new()
        for _ in range(6):
            _, loss = step(state, 1.0)

    def of_the_module():
        global state
        state = new()
        for _ in range(6):
            state, loss = step(state, 1.0)

    def looked_at():
        # another thread has what the state held for a moment, as one that writes it to a file
        import threading, time
        state, ends = new(), threading.Event()
        def looks():
            while not ends.wait(0.003):
                held = list(state.values())
                time.sleep(0.001)
        thread = threading.Thread(target=looks)
        thread.start()
        for _ in range(300):
            state, loss = step(state, 1.0)
            time.sleep(0.002)
        ends.set()
        thread.join()

    def marked():
        import hightide  # before the first call
        state = new()
        for _ in range(6):
            for _ in range(3):
                state, loss = step(state, 1.0)
            hightide.step()

    HOW()
    print("done")
"""


@pytest.mark.parametrize(
    ("how", "steps"),
    [("replaced", 6), ("kept_by_the_caller", 6), ("warmed_up", 6), ("attribute", 6), ("accumulated", (6, 10)),
     ("of_the_module", 6), ("looked_at", (150, 300)), ("evaluated", 0), ("marked", 6)],
)  # fmt: skip
def test_steps_of_jax_loops(tmp_path: Path, how: str, steps: "int | tuple[int, int]") -> None:
    """Calls of a compiled function whose result replaces what it was given are steps, with nothing said; calls that
    only read are not, nor are those of a smaller function but the first, before a larger one is seen. A program that
    imports hightide says it itself."""
    path = str(ROOT / "agent" / "python" / "src")
    report = record(tmp_path, LOOPS.replace("HOW", how), python=FRAMEWORKS, PYTHONPATH=path)
    least, most = steps if isinstance(steps, tuple) else (steps, steps)
    assert least <= report["headline"]["steps"] <= most


def test_jax_compiles_again(tmp_path: Path) -> None:
    report = record(
        tmp_path,
        """
        import jax, jax.numpy as jnp, numpy as np
        @jax.jit
        def loss(w, x):
            return jnp.tanh(x @ w).sum()
        @jax.jit
        def steady(w):
            return w * 2
        w = jnp.ones((256, 256))
        for i in range(20):
            loss(w, np.ones((i + 1, 256), "float32"))
            steady(w)
        for i in range(9):
            jax.jit(lambda a: a + 1)(w)
        for i in range(9):
            jnp.zeros((i + 3, 5))
        print("done")
        """,
        python=FRAMEWORKS,
    )
    traced = tracings(report)
    assert traced["loss"] == (20, "x: float32[19,256] to float32[20,256]") and "steady" not in traced
    assert traced["<lambda>"] == (9, "no argument")
    assert traced["broadcast_in_dim"] == (9, "a shape")  # by the line that runs it, outside of any jitted function
    assert {f["line"] for f in report["findings"] if f["kind"] == "tracing"} == {3, 14, 16}


def test_programs_of_jax(tmp_path: Path) -> None:
    """What XLA says of each program. Then arguments that could have been donated, and others that could not; arrays that are
    alive at a step and as memory runs out, by line."""
    report = record(
        tmp_path,
        """
        from functools import partial
        import hightide, jax, jax.numpy as jnp
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        change = lambda w: w * 0.5
        plain = jax.jit(lambda w: jnp.tanh(w @ w))                          # PLAIN
        inner = jax.jit(lambda state: jax.tree.map(change, state))          # INNER
        attribute = jax.jit(lambda w: w + 1)                                # ATTRIBUTE
        donated = jax.jit(lambda w: w - 1, donate_argnums=0)                # DONATED
        compared = jax.jit(lambda w: w - 2)
        swapped = jax.jit(lambda w: w - 3)
        added = jax.jit(lambda w: w - 4)
        kept = jax.jit(lambda w: w - 5)
        both = jax.jit(lambda a, b: (a + 1, b * 2))                         # BOTH
        def make():
            return jnp.ones((2048, 2048))                                   # MAKE: 16 MiB
        def advance(state):
            return inner(state)
        class Box: pass
        box = Box()

        w = make()
        for _ in range(3):
            w = plain(w)
        state = {"a": make(), "b": make()}
        state = advance(state)
        box.w = make()
        box.w = attribute(box.w)
        w = donated(w)
        new = compared(w); w = new - w
        w, old = swapped(w), w
        w, old = swapped(w), w
        w = w + added(w)
        first = make()
        kept(first)
        a, b = make(), make()
        a, b = both(a, b)
        del a, b
        hightide.step()
        list_of_arrays = [make() for _ in range(4)]
        hightide.step()
        print("done", flush=True)
        jnp.zeros((1 << 23, 1 << 20))                                       # FULL
        """,
        python=FRAMEWORKS,
        flags=("--snapshot-on", "step:2,oom"),
        code=1,
        PYTHONPATH=str(ROOT / "agent" / "python" / "src"),
    )
    text = (tmp_path / "script.py").read_text().splitlines()
    mark = {word: n for n, line in enumerate(text, 1) for word in line.partition("# ")[2].rstrip(":").split(":")[:1]}
    of = {row["line"]: row for row in rows(report, "programs")}
    size = 16 * MiB
    row = of[f"script.py:{mark['PLAIN']}"]
    assert (row["argument_bytes"], row["output_bytes"], row["alias_bytes"], row["count"]) == (size, size, 0, 1)
    assert row["needs"] == 2 * size + row["temp_bytes"]
    row = of[f"script.py:{mark['DONATED']}"]
    assert (row["alias_bytes"], row["needs"]) == (size, size + row["temp_bytes"])
    assert of[f"script.py:{mark['MAKE']}"]["output_bytes"] == size  # an operation outside of any jitted function
    found = {f["line"]: f for f in report["findings"] if f["kind"] == "donation"}
    assert {n: f["bytes"] for n, f in found.items()} == {
        mark["PLAIN"]: size, mark["INNER"]: 2 * size, mark["ATTRIBUTE"]: size, mark["BOTH"]: 2 * size
    }, found  # fmt: skip
    assert 'donate_argnames="state"' in found[mark["INNER"]]["advice"]
    assert 'donate_argnames=("a", "b")' in found[mark["BOTH"]]["advice"]
    assert "2 arrays of together 32.0 MiB (a, b; on the CPU)" in found[mark["BOTH"]]["text"]
    step, full = [t for t in report["tables"] if t["name"] == "arrays"]
    assert step["file"].startswith("step-2-") and full["file"].startswith("oom-1-")
    made = [r for r in step["rows"] if r[0] == f"script.py:{mark['MAKE']}"]
    assert made[0][2] == 5 * size and made[0][3] == 5, step
    (oom,) = [f for f in report["findings"] if f["kind"] == "oom"]
    assert oom["line"] == mark["FULL"] and oom["bytes"] == 1 << 45
    assert f"most is of script.py:{mark['MAKE']}: 80.0 MiB" in oom["text"]
