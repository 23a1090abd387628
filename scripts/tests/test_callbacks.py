"""Callbacks and experiment trackers of the SDK, each with the real package. The examples of docs/sdk.md are what runs;
what they leave to the reader, as the model, stands here. Three processes serve all tests: frameworks take long to import."""

import json
import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HIGHTIDE = ROOT / "bin" / "hightide"
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
KINDS = {"frameworks": CACHE / "frameworks" / "bin" / "python", "trackers": CACHE / "trackers" / "bin" / "python"}


def example(mark: str) -> str:
    """The one example of docs/sdk.md in which this stands."""
    text = (ROOT / "docs" / "sdk.md").read_text()
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if mark in block]
    return str(found)


class Done:
    """A program that ended, in its folder."""

    def __init__(self, folder: Path, out: str, err: str) -> None:
        self.folder, self.out, self.err = folder, out, err

    def hightide(self, *arguments: str) -> Any:
        command = [str(HIGHTIDE), *arguments, "--json", "--data-dir", str(self.folder / "data")]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def runs(self) -> "dict[str, Any]":
        """The reports of runs by name; of a name's second run by "NAME 2"."""
        found: dict[str, Any] = {}
        for row in reversed(self.hightide("ls")["runs"]):
            name = row.get("name", "")
            found[f"{name} 2" if name in found else name] = self.hightide("report", row["id"])
        return found


def run(folder: Path, kind: str, *parts: str, **more: str) -> Done:
    """Run parts of a program, one after the other, without hightide: its callbacks start what they need."""
    python = KINDS[kind]
    if not python.exists():
        pytest.skip(f"{python} is not there: scripts/setup {kind}")
    quick_end = (
        "import atexit, gc\natexit.register(gc.freeze)"  # else the collector looks through all that was imported
    )
    (folder / "script.py").write_text("\n".join([quick_end, *(textwrap.dedent(part) for part in parts)]))
    env = {key: value for key, value in os.environ.items() if not key.startswith("HIGHTIDE_")}
    env.update(
        HOME=str(folder), HIGHTIDE_DATA=str(folder / "data"), HIGHTIDE_BINARY=str(HIGHTIDE), OMP_NUM_THREADS="1",
        PYTHONPATH=str(ROOT / "agent" / "python" / "src"), CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", **more,
    )  # fmt: skip
    done = subprocess.run([python, "script.py"], capture_output=True, text=True, cwd=folder, env=env, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return Done(folder, done.stdout, done.stderr)


def spans(report: "dict[str, Any]") -> "dict[str, int]":
    """How often each span was entered."""
    (table,) = [t for t in report["tables"] if t["name"] == "spans"]
    names = [c["name"] for c in table["columns"]]
    return {row[names.index("span")]: row[names.index("count")] for row in table["rows"]}


KERAS = """
import os
os.environ["KERAS_BACKEND"] = "{backend}"
import keras, numpy as np
x, y = np.random.rand(320, 64).astype("float32"), np.random.randint(0, 10, 320)
model = keras.Sequential([keras.layers.Dense(32), keras.layers.Dense(10)], name="digits_{backend}")
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
"""


def check_keras(done: Done, backend: str) -> None:
    """Two epochs of ten batches, and evaluations: one in a training, one for itself."""
    report = done.runs()["digits_" + backend]
    assert report["headline"]["steps"] == 20 and report["headline"]["complete"]
    assert spans(report) == {"epoch": 2}
    assert re.fullmatch(rf"keras 3\.\S+ {backend}", report["run"]["tags"]["trainer"])
    header, first, second = (done.folder / f"log_{backend}.csv").read_text().splitlines()
    names = header.split(",")
    peaks = [int(float(line.split(",")[names.index("hightide/peak_rss")])) for line in (first, second)]
    assert 100 << 20 < peaks[0] <= peaks[1] <= report["headline"]["peak"]["host_rss_bytes"] + (64 << 20), peaks
    alone = done.runs()["alone"]
    assert spans(alone) == {"evaluation": 1} and alone["headline"]["steps"] == 0


ALONE = """
os.rename("log.csv", "log_" + keras.backend.backend() + ".csv")
model.evaluate(x, y, batch_size=32, verbose=0, callbacks=[HightideCallback(name="alone")])
"""


def test_keras_on_tensorflow(tmp_path: Path) -> None:
    fit = example("hightide.keras import").replace("epochs=2", "epochs=2, batch_size=32, verbose=0")
    done = run(tmp_path, "frameworks", KERAS.format(backend="tensorflow"), fit, ALONE)
    check_keras(done, "tensorflow")


LIGHTNING = """
import logging, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel("ERROR")
import torch
import lightning
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(64, 10)
    def training_step(self, batch, index):
        if index == fails_at:
            raise KeyError("the training's own")
        x, y = batch
        return torch.nn.functional.cross_entropy(self.head(x), y)
    def validation_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.head(x), y)
    test_step = validation_step
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
fails_at = -1
data = torch.utils.data.TensorDataset(torch.randn(320, 64), torch.randint(0, 10, (320,)))
loader = torch.utils.data.DataLoader(data, batch_size=16)
model = Net()
class Trainer(lightning.Trainer):  # what an example leaves out
    def __init__(self, **given):
        super().__init__(accelerator="cpu", enable_progress_bar=False, enable_model_summary=False,
                         logger=lightning.pytorch.loggers.CSVLogger("logs", "example"), **given)
lightning.Trainer, real = Trainer, lightning.Trainer
"""

LIGHTNING_MORE = """
lightning.Trainer = real
memory = HightideCallback(name="fitted")
trainer = lightning.Trainer(logger=False, accelerator="cpu", max_epochs=2, accumulate_grad_batches=2, inference_mode=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[memory])
trainer.fit(model, loader, loader)
memory._trainer.name = "tested"
trainer.test(model, loader, verbose=False)
fails_at = 3
trainer = lightning.Trainer(logger=False, accelerator="cpu", max_epochs=1, enable_progress_bar=False,
    enable_model_summary=False, callbacks=[HightideCallback(name="fails", alerts=["rss > 1GiB/step", "rss > 5"])])
try:
    trainer.fit(model, loader)
except KeyError as error:
    print(error)

class Manual(Net):
    \"\"\"Steps that no optimizer of PyTorch takes.\"\"\"
    automatic_optimization = False
    def training_step(self, batch, index):
        super().training_step(batch, index)
        self.trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.increment_ready()
        self.trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.increment_completed()
    def configure_optimizers(self):
        return None
fails_at = -1
trainer = lightning.Trainer(logger=False, accelerator="cpu", max_epochs=1, enable_progress_bar=False,
    enable_model_summary=False, callbacks=[HightideCallback(name="unseen steps")])
trainer.fit(Manual(), loader)
"""


def test_lightning_and_keras_on_torch(tmp_path: Path) -> None:
    fit = example("hightide.keras import").replace("epochs=2", "epochs=2, batch_size=32, verbose=0")
    alerts = example("rss > 50MiB/step")
    done = run(tmp_path, "frameworks", LIGHTNING, example("hightide.lightning import"), alerts, LIGHTNING_MORE,
               KERAS.format(backend="torch"), "from hightide.keras import HightideCallback", fit, ALONE)  # fmt: skip
    check_keras(done, "torch")
    runs = done.runs()
    report = runs["example/0"]
    assert report["headline"]["steps"] == 40 and spans(report) == {"epoch": 2} and report["headline"]["complete"]
    assert report["run"]["tags"]["loggers"] == "example/0" and report["run"]["tags"]["stage"] == "fit"
    rows = [line.split(",") for line in (tmp_path / "logs/example/version_0/metrics.csv").read_text().splitlines()]
    assert [row[rows[0].index("step")] for row in rows[1:]] == ["10", "20", "30", "40"], rows
    assert all(int(float(row[rows[0].index("hightide/peak_rss")])) > 100 << 20 for row in rows[1:])
    # Two batches a step; the check before the training validates, too.
    assert runs["fitted"]["headline"]["steps"] == 20 and spans(runs["fitted"]) == {"epoch": 2, "validation": 3}
    assert spans(runs["tested"]) == {"test": 1} and runs["tested"]["headline"]["steps"] == 0
    assert runs["fails"]["headline"]["steps"] == 3 and runs["fails"]["headline"]["complete"]
    assert "the training's own" in done.out and "alert not watched: 'rss > 5' is not a limit" in done.err
    assert runs["unseen steps"]["headline"]["steps"] == 20
    assert len(re.findall(r"^hightide: Peak .* \(hightide report \w+\)$", done.err, re.MULTILINE)) == 7, done.err


TRANSFORMERS = """
import torch, transformers
config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=500, n_positions=32, bos_token_id=0, eos_token_id=1)
model = transformers.GPT2LMHeadModel(config)
data = [{"input_ids": torch.arange(16), "labels": torch.arange(16)} for _ in range(64)]
import mlflow, wandb
mlflow.set_tracking_uri("file:" + os.path.abspath("mlflow"))
arguments = transformers.TrainingArguments(
    output_dir="out/gpt", per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2, logging_steps=4,
    report_to=["mlflow", "wandb"], save_strategy="epoch", eval_strategy="no", use_cpu=True, disable_tqdm=True)
"""

TRANSFORMERS_MORE = """
print(json.dumps({"history": trainer.state.log_history, "mlflow": mlflow.last_active_run().info.run_id, "wandb": wandb.run.id}))
trainer.evaluate(data[:8])
mlflow.end_run()
wandb.finish()
"""

ACCELERATE = """
model = torch.nn.Linear(64, 1)
data = torch.utils.data.TensorDataset(torch.randn(320, 64), torch.randn(320, 1))
loader = torch.utils.data.DataLoader(data, batch_size=16)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
"""

TRACKERS = """
held = []
def train():
    global held
    held = bytearray(b"x") * (64 << 20)
    time.sleep(0.3)
"""

TRACKERS_MORE = """
run = hightide.stop()
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter("logs/theirs") as writer:
    hightide.tensorboard.log(writer)
print(json.dumps({"run": hightide.report().id, "mlflow": mlflow.last_active_run().info.run_id}))

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
events = {}
for folder in ("logs/hightide", "logs/theirs"):
    read = EventAccumulator(folder, size_guidance={"tensors": 0, "scalars": 0})
    read.Reload()
    events[folder] = {
        tag: [[event.wall_time, event.step, make_ndarray(event.tensor_proto).tolist()] for event in read.Tensors(tag)]
        for tag in read.Tags()["tensors"] if read.SummaryMetadata(tag).plugin_data.plugin_name == "scalars"
    }
    events[folder].update((tag, [[event.wall_time, event.step, event.value] for event in read.Scalars(tag)]) for tag in read.Tags()["scalars"])
    events[folder]["text"] = make_ndarray(read.Tensors("hightide.run/text_summary")[0].tensor_proto).tolist()[0].decode()
print(json.dumps(events))
client = mlflow.MlflowClient()
found = client.get_run(mlflow.last_active_run().info.run_id)
print(json.dumps({
    "metrics": found.data.metrics, "tags": found.data.tags,
    "artifacts": [file.path for file in client.list_artifacts(found.info.run_id, "hightide")],
    "curve": [[m.timestamp, m.step, m.value] for m in client.get_metric_history(found.info.run_id, "hightide/tree.rss")],
}))
for id in sorted(file.name for file in pathlib.Path("wandb").glob("offline-run-*")):
    print(json.dumps({id: wandb_records(next(pathlib.Path("wandb", id).glob("*.wandb")))}))
"""

LOGGERS = """
import warnings
warnings.simplefilter("ignore")
import lightning
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(64, 1)
    def training_step(self, batch, index):
        return self.head(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
mlflow_logger = lightning.pytorch.loggers.MLFlowLogger("lightning", tracking_uri=mlflow.get_tracking_uri())
tensorboard_logger = lightning.pytorch.loggers.TensorBoardLogger("logs", "lightning")
lightning.Trainer(
    logger=[mlflow_logger, tensorboard_logger], accelerator="cpu", max_epochs=1, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[hightide.lightning.HightideCallback("tracked")],
).fit(Net(), torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 64)), batch_size=16))
found = mlflow_logger.experiment.get_run(mlflow_logger.run_id).data
print(json.dumps({"mlflow": mlflow_logger.run_id, "tensorboard": os.path.abspath(tensorboard_logger.log_dir),
                  "metrics": found.metrics, "tags": found.tags}))
"""

WANDB = '''
def wandb_records(path):
    """Configuration, summary, history and files of an offline run: records of protocol buffers in LevelDB's log format."""
    from wandb.proto import wandb_internal_pb2
    data, at, whole, found = path.read_bytes(), 7, b"", {"config": {}, "summary": {}, "history": [], "files": []}
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        whole = (whole if kind in (3, 4) else b"") + data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            for item in record.config.update:
                found["config"][item.key or "/".join(item.nested_key)] = item.value_json
            for item in record.summary.update:
                found["summary"][item.key or "/".join(item.nested_key)] = item.value_json
            if record.history.item:
                found["history"].append({i.key or "/".join(i.nested_key): i.value_json for i in record.history.item})
            found["files"] += [file.path for file in record.files.files]
    return found
'''


PICTURES = """
import pathlib, time
from matplotlib.image import imread
from hightide.compat.gpumemprof import GPUMemoryProfiler, MemoryVisualizer
profiler = GPUMemoryProfiler()
held = []
def grow():
    held.append(bytearray(b"x") * (160 << 20))
    time.sleep(0.5)
def rest():
    time.sleep(0.5)
for _ in range(2):
    profiler.profile_function(grow)
    profiler.profile_function(rest)
pictures = MemoryVisualizer(profiler)
for name, draw in (("timeline", pictures.plot_memory_timeline), ("bars", pictures.plot_function_comparison),
                   ("heat", pictures.create_memory_heatmap)):
    drawn = draw(save_path=name + ".png")
    pixels = imread(name + ".png")
    told = [shape.text for shape in drawn.shapes if shape.kind == "text"]
    height, width, _ = pixels.shape
    print(json.dumps({"picture": name, "width": width, "height": height, "of": drawn.height, "texts": told,
                      "colours": len(set(map(tuple, (pixels[::2, ::2, :3] * 255).astype(int).reshape(-1, 3).tolist())))}))
pictures.create_interactive_dashboard(save_path="board.png")
assert imread("board.png").shape[0] > height
"""


def test_pictures_as_png(tmp_path: Path) -> None:
    """Drawn by matplotlib from a real recording, read back as pixels."""
    done = run(tmp_path, "trackers", "import json", PICTURES)
    drawn = {told["picture"]: told for told in map(json.loads, done.out.splitlines())}
    assert sorted(drawn) == ["bars", "heat", "timeline"]
    for told in drawn.values():
        assert (told["width"], told["height"]) == (drawn["bars"]["width"], round(2 * told["of"])), told
        assert told["colours"] > 2, told
    assert any("grow" in text for text in drawn["bars"]["texts"]) and "grow" in " ".join(drawn["heat"]["texts"])
    assert any("measured" in text for text in drawn["timeline"]["texts"])


def test_trainers_and_trackers(tmp_path: Path) -> None:
    done = run(
        tmp_path, "trackers", "import json, os, pathlib, struct, time", WANDB, TRANSFORMERS,
        example("hightide.transformers import"), TRANSFORMERS_MORE, ACCELERATE,
        example("hightide.accelerate import"), "model, x = torch.nn.Linear(64, 1), torch.ones(512, 64)",
        example("trace_handler"), "hightide.stop()", LOGGERS, TRACKERS, example("hightide.mlflow.log"), example("hightide.wandb.log"),
        example("hightide.tensorboard.log"), TRACKERS_MORE, MLFLOW_ALLOW_FILE_STORE="true", WANDB_MODE="offline",
        WANDB_SILENT="true",
    )  # fmt: skip
    printed = [json.loads(line) for line in done.out.splitlines() if line.startswith('{"')]
    trained, by_loggers, last, events, logged, *offline = printed
    runs = done.runs()
    check_transformers(runs["gpt"], runs["gpt 2"], trained, offline[0])
    assert spans(runs["gpt"]) == {"epoch": 2, "checkpoint": 2} and spans(runs["gpt 2"]) == {"evaluation": 1}
    accelerated = runs["baseline"]
    assert accelerated["headline"]["steps"] == 20 and accelerated["headline"]["complete"]
    assert accelerated["run"]["tags"].pop("loss") and accelerated["run"]["tags"]["lr"] == "0.01"
    tracked = runs["tracked"]["run"]
    assert tracked["tags"]["mlflow.run"] == by_loggers["mlflow"]
    assert tracked["tags"]["tensorboard.run"] == by_loggers["tensorboard"]
    assert by_loggers["tags"]["hightide.run"] == tracked["id"] and by_loggers["metrics"]["hightide/peak_rss"] > 1 << 20
    (trace,) = (tmp_path / "traces").glob("*.pt.trace.json.gz")
    assert [m["text"] for m in runs[""]["marks"] if m["kind"] == "mark"] == [f"profiler's trace traces/{trace.name}"]
    explained = done.hightide("explain", str(trace))
    assert explained["peak"]["allocated_bytes"] >= 512 * 4
    # Each side knows the other's run.
    told = runs[" 2"]
    tags = told["run"]["tags"]
    wandb_run, wandb_found = next(iter(offline[1].items()))
    assert tags["mlflow.run"] == last["mlflow"] and wandb_run.endswith(tags["wandb.run"])
    assert tags["tensorboard.run"] == str(tmp_path / "logs" / "theirs")
    assert logged["tags"]["hightide.run"] == last["run"] == json.loads(wandb_found["config"]["hightide.run"])
    check_mlflow(logged, last["run"], told)
    check_wandb(wandb_found)
    check_tensorboard(events["logs/hightide"], events["logs/theirs"], told, last["run"])


def check_transformers(
    report: "dict[str, Any]", evaluated: "dict[str, Any]", trained: "dict[str, Any]", offline: "dict[str, Any]"
) -> None:
    """Reporters got the figures with their logs, though they were called before; both linked themselves."""
    assert report["headline"]["steps"] == 16 and report["headline"]["complete"]
    assert report["run"]["tags"]["model"] == "gpt2"
    assert all(entry["hightide/peak_rss"] > 100 << 20 for entry in trained["history"])
    ((_, found),) = offline.items()
    rows = [row for row in found["history"] if "train/loss" in row]
    assert len(rows) == 4 and all(int(row["train/hightide/peak_rss"]) > 100 << 20 for row in rows)
    assert report["run"]["tags"]["wandb.run"] == trained["wandb"]
    assert report["run"]["tags"]["mlflow.run"] == trained["mlflow"]
    assert json.loads(found["config"]["hightide.run"]).split() == [report["run"]["id"], evaluated["run"]["id"]]


def check_mlflow(logged: "dict[str, Any]", run: str, report: "dict[str, Any]") -> None:
    assert logged["artifacts"] == [f"hightide/hightide-{run}.html"]
    start = report["run"]["start_wall_ns"] // 1_000_000
    assert len(logged["curve"]) > 3
    assert all(0 <= at - start - step <= 1 and value > 100 << 20 for at, step, value in logged["curve"])
    most = max(value for _, _, value in logged["curve"])
    assert logged["metrics"]["hightide/peak/host_rss_bytes"] >= most
    assert "hightide/steps" not in logged["metrics"]


def check_wandb(found: "dict[str, Any]") -> None:
    assert int(found["summary"]["hightide/peak/host_rss_bytes"]) > 100 << 20
    (row,) = [row for row in found["history"] if any(key.startswith("hightide/report") for key in row)]
    assert any(key.startswith("hightide/memory") for key in row), row
    assert any(path.endswith(".html") for path in found["files"]), found["files"]


def check_tensorboard(ours: "dict[str, Any]", theirs: "dict[str, Any]", report: "dict[str, Any]", run: str) -> None:
    """TensorBoard's own reader gives back what the report says, to the byte and to the millisecond."""
    assert ours["text"] == theirs["text"] == run
    (curve,) = [s for s in report["series"] if s["name"] == "tree.rss" and "process" not in s]
    now: "dict[int, set[int]]" = {}  # on a busy machine two readings may lie in one millisecond
    for at, value in zip(curve["x"], curve["y"]):
        now.setdefault(at // 1_000_000, set()).add(value)
    known = [value in now[step] for _, step, value in ours["hightide/tree.rss"] if step in now]
    assert len(known) > 10 and all(known)
    start = report["run"]["start_wall_ns"] / 1e9
    assert all(abs(at - start - step / 1000) < 0.01 for at, step, _ in ours["hightide/tree.rss"])
    assert theirs["hightide/peak/host_rss_bytes"][0][2] == pytest.approx(report["headline"]["peak"]["host_rss_bytes"])
    # Logged after the end, so it is about what the report is about: growth may have been looked for, or not.
    looked = "not_looked_for" not in report["headline"] or report["findings"]
    assert [found for _, _, found in theirs.get("hightide/findings", [])] == [len(report["findings"])] * bool(looked)
