"""Runs code blocks of testdata/article.md, each in a namespace with what the article takes for granted.

    python article_blocks.py GROUP FOLDER      prints a line of JSON for each block and way: what went wrong, or ""

Each block runs twice: with its import changed to hightide.compat, and as it stands after compat.install(). What it must
have done is looked at while its names are there. A group is a process: see GROUPS.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

ARTICLE = Path(__file__).parent / "testdata" / "article.md"
Names = Dict[str, Any]


class Code(NamedTuple):
    """A block of the article."""

    title: str
    """its heading, and its number beneath it where there are several"""
    language: str
    text: str


def blocks() -> List[Code]:
    """All of the article, in order."""
    found: List[Code] = []
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", ARTICLE.read_text("utf-8"), re.M | re.S):
        inside = re.findall(r"```(\w+)\n(.*?)```", body, re.S)
        for n, (language, text) in enumerate(inside, 1):
            title = heading.split(" / ", 1)[-1] if not heading.endswith("Basic Usage") else heading
            found.append(Code(f"{title} ({n})" if len(inside) > 1 else title, language, text))
    return found


def nothing(names: Names) -> None:
    """Before or after a block of which nothing is asked."""


class Block(NamedTuple):
    """How a block is run."""

    group: str
    before: Callable[[Names], None] = nothing
    after: Callable[[Names], None] = nothing


# ---- what the article takes for granted


def torch_model(names: Names) -> None:
    import torch

    names.update(torch=torch, model=torch.nn.Linear(16, 4), data=torch.ones(8, 16), input_tensor=torch.ones(8, 16))
    names.update(target=torch.zeros(8, dtype=torch.long))


# At a time, until nothing is left: 20 GiB, then 21. A peak between readings is known where the mark rises.
GIB = iter((4, 3))


def train_model(names: Names) -> None:
    def train(*_: Any) -> int:
        time.sleep(0.3)
        return 0

    names.update(train_model=train, train_step=abs, dataset=range(10))
    names.update(optimizer=None, gc=gc)


def imports(*wanted: str) -> Callable[[Names], None]:
    """The names of gpumemprof that a block uses without importing them, and a profiler that has seen two calls."""

    def before(names: Names) -> None:
        from hightide.compat import gpumemprof

        train_model(names)
        profiler = gpumemprof.GPUMemoryProfiler()
        names["profiler"] = profiler
        with profiler.profile_context("read"):
            names["kept"] = bytearray(b"x") * (24 << 20)
            time.sleep(0.3)
        profiler.profile_function(sorted, [3, 1, 2])
        for name in wanted:
            names[name] = getattr(gpumemprof, name)

    return before


def figures(names: Names) -> None:
    from hightide.compat.gpumemprof import MemoryVisualizer
    from hightide.compat.tfmemprof import TFMemoryProfiler

    imports()(names)
    profiler = TFMemoryProfiler()
    with profiler.profile_context("encode"):
        time.sleep(0.3)
    names.update(results=profiler.get_results(), visualizer=MemoryVisualizer(profiler))


def modules(names: Names) -> None:
    imports("ProfiledModule", "profile_model")(names)
    torch_model(names)


def analyzer(names: Names) -> None:
    imports("MemoryAnalyzer")(names)
    names["analyzer"] = names["MemoryAnalyzer"]()


def several_gpus(names: Names) -> None:
    imports("GPUMemoryProfiler")(names)
    on_gpu(names)


def leaking(names: Names) -> None:
    import hightide

    hightide.stop()  # what a block before kept and let go is of another run
    imports()(names)
    kept = names["kept"] = []
    for _ in range(80):
        kept.append(bytearray(b"x") * (1 << 20))
        time.sleep(0.01)
        hightide.step()
    names["tracking_results"] = None


def keras(names: Names) -> None:
    import numpy
    import tensorflow as tf

    x, y = numpy.ones((64, 784), "float32"), numpy.zeros(64, "int64")
    model = tf.keras.Sequential([tf.keras.Input((784,)), tf.keras.layers.Dense(10, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    names.update(tf=tf, x_train=x, y_train=y, model=model, optimizer=tf.keras.optimizers.Adam())
    names["train_dataset"] = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)


def on_gpu(names: Names) -> None:
    import torch

    names.update(torch=torch, gc=gc)


def named_tensor(names: Names) -> None:
    from hightide.compat.gpumemprof import GPUMemoryProfiler

    on_gpu(names)
    torch, held = names["torch"], names.setdefault("held", [])
    names.update(profiler=GPUMemoryProfiler(), my_tensor=torch.ones(1 << 20, device="cuda"), optimize_model=held.clear)
    held.append(torch.ones(8 << 20, device="cuda"))


def watched(names: Names) -> None:
    on_gpu(names)
    torch = names["torch"]

    def train() -> None:
        held = [torch.ones(1 << 28, device="cuda") for _ in range(7)]  # 1 GiB each
        until = time.monotonic() + 30
        while not names["watchdog"].actions and time.monotonic() < until:
            time.sleep(0.05)
        del held

    names["train_model"] = train


def too_large(names: Names) -> None:
    imports("MemoryTracker", "MemoryAnalyzer")(names)
    torch = __import__("torch")
    gib = next(GIB)
    torch.cuda.empty_cache()
    names["train_model"] = lambda: [torch.ones(gib << 28, device="cuda") for _ in range(100)]


# ---- what a block must have done


def profiled(calls: int, *said: str) -> Callable[[Names], None]:
    """So many calls, whose figures are in the summary and in the recording."""

    def after(names: Names) -> None:
        import hightide

        summary = names["profiler"].get_summary()
        assert summary["total_function_calls"] == calls, summary
        assert summary["peak_memory_usage"] > 0, summary
        spans = {row["span"]: row["count"] for row in hightide.report().spans}
        assert set(names["profiler"].calls) <= set(spans), spans
        for text in said:
            assert text in names["out"], names["out"]

    return after


def tracked(names: Names) -> None:
    results = names["results"]
    assert results["peak_memory"] > 1 << 20 and results["sample_count"] >= 2, results
    assert results["tracking_duration_seconds"] >= 0.3, results


def leak_found(names: Names) -> None:
    (leak,) = [leak for leak in names["leaks"] if leak["type"] == "monotonic_increase"][:1]
    off = abs(leak["bytes_per_step"] - (1 << 20))
    assert leak["file"].endswith("article_blocks.py") and off <= 3 * leak["error_bytes"] + (64 << 10), leak
    assert "Memory leaks detected!" in names["out"] and "monotonic_increase" in names["out"]


def drawn(names: Names) -> None:
    """The picture is an SVG with something in it, and the page needs nothing else."""
    from xml.etree import ElementTree

    made = names["drawn"]
    assert len(list(ElementTree.fromstring(made.svg))) > 3 and "http" not in made.html.replace("http://www.w3.org", "")


def served(names: Names) -> None:
    from urllib.request import Request, urlopen

    board = names["drawn"]
    with urlopen(board.url) as answer:
        page = answer.read().decode()
    assert "hightide-report" in page and "<script src" not in page
    try:
        urlopen(Request(board.url, headers={"Host": "elsewhere.example:80"}))
        raise AssertionError("a stranger's page was answered")
    except OSError:
        board.close()


def decorated(names: Names) -> None:
    from hightide.compat.gpumemprof import get_summary

    before = get_summary()["function_summaries"].get("my_training_function", {"call_count": 0})["call_count"]
    names["my_training_function"]()
    assert get_summary()["function_summaries"]["my_training_function"]["call_count"] == before + 1


def contexts(names: Names) -> None:
    from hightide.compat.gpumemprof import get_summary

    assert {"data_loading", "model_training"} <= set(get_summary()["function_summaries"])


def module_profiled(names: Names) -> None:
    torch, profiled_model = names["torch"], names["profiled_model"]
    assert isinstance(profiled_model, torch.nn.Module) and profiled_model(torch.ones(2, 16)).shape == (2, 4)
    assert profiled_model.get_profile()["Linear"]["call_count"] >= 1


def scored(names: Names) -> None:
    assert 0 <= names["efficiency_score"] <= 10
    assert {row["part"] for row in names["report"]["score_parts"]} >= {"use"}


def insights(names: Names) -> None:
    assert len(names["insights"]) >= 1 and "Top performance insights:\n- " in names["out"]


def patterns(names: Names) -> None:
    assert {"steady", "steady_growth"} & {p.pattern_type for p in names["patterns"]} or names["patterns"], names[
        "patterns"
    ]


def lives(names: Names) -> None:
    from hightide.compat.gpumemprof import TensorTracker

    found = [life for life in TensorTracker().by_line() if life.line.startswith(names["file"])]
    assert [(life.created >= 1, life.freed >= 1, life.created_bytes >= 4_000_000) for life in found] == [(True,) * 3], (
        found
    )


def kept_picture(names: Names) -> None:
    profiled(1, "Optimization suggestions:")(names)
    assert Path("my_memory_timeline.svg").stat().st_size > 1000 or Path("my_memory_timeline.png").exists()


def saved(names: Names) -> None:
    assert names["memory_saved"] == 32.0 and "Optimization saved 32.00 MB" in names["out"], names["out"]
    assert names["profiler"].tensor_tracker.get_active_tensors() == {"important_data": 4 << 20}


def cleaned(names: Names) -> None:
    actions = names["watchdog"].actions
    assert actions and "allocated > 6000MiB" in actions[0].reason and not actions[0].error, actions


def told_of_memory(names: Names) -> None:
    assert "Peak memory before crash: " in names["out"] and "Try these optimizations:" in names["out"], names["out"]
    assert float(re.findall(r"crash: ([0-9.]+)", names["out"])[0]) > 16 * 1024


def both_gpus(names: Names) -> None:
    assert names["profiler"].number == 1


def logged(names: Names) -> None:
    mlflow = names["mlflow"]
    run = mlflow.last_active_run()
    mlflow.end_run()
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["peak_memory_mb"] > 1 and metrics["total_profiled_calls"] == 0, metrics


def keras_profiled(names: Names) -> None:
    """Besides: a model whose fit, predict and the like are profiled."""
    from hightide.compat.tfmemprof import get_results, profile_model

    tf_results(names)
    model = profile_model(names["model"], name="mine")
    model.predict(names["x_train"][:8], verbose=0)
    assert model is names["model"] and get_results().function_profiles["mine.predict"]["call_count"] >= 1


def tf_results(names: Names) -> None:
    assert names["results"].peak_memory_mb > 10 and names["results"].run, names["results"]


# Each block that is code of the program; what is absent here is in NOT_CODE.
BLOCKS = {
    "Common Memory Problems / 1. Memory Leaks": Block(
        "cpu", lambda names: names.update(load_large_dataset=list, train_model=len)
    ),
    "Common Memory Problems / 2. Inefficient Batch Sizes": Block("cpu"),
    "Common Memory Problems / 3. Accumulating Tensors": Block("cpu", train_model),
    "PyTorch Memory Profiling / Basic Usage": Block("cpu", torch_model, profiled(2, "Profiled function: train_step")),
    "PyTorch-Specific Features / 2. Tensor Lifecycle Tracking": Block("gpu", named_tensor, lives),
    "Real PyTorch Example": Block("gpu", on_gpu, profiled(20, "Epoch 9, Loss:", "Peak memory usage:")),
    "TensorFlow Memory Profiling / Basic Usage": Block("tensorflow", keras, tf_results),
    "TensorFlow-Specific Features / 1. TensorFlow Memory Growth": Block("tensorflow", keras),
    "Real TensorFlow Example": Block("tensorflow", keras, tf_results),
    "1. Real-Time Memory Monitoring": Block("cpu", train_model, tracked),
    "2. Automatic Memory Leak Detection / Statistical Analysis": Block("leak", leaking, leak_found),
    "4. Beautiful Visualizations / Memory Timeline": Block("cpu", figures, drawn),
    "4. Beautiful Visualizations / Function Comparison": Block("cpu", figures, drawn),
    "4. Beautiful Visualizations / Memory Heatmap": Block("cpu", figures, drawn),
    "4. Beautiful Visualizations / Interactive Dashboard": Block("cpu", figures, served),
    "5. Context-Aware Profiling / Function Decorators": Block("cpu", imports("profile_function"), decorated),
    "5. Context-Aware Profiling / Context Managers": Block("cpu", imports("profile_context"), contexts),
    "5. Context-Aware Profiling / Automatic Model Profiling": Block("cpu", modules, module_profiled),
    "Example 1: Startup AI Company": Block(
        "cpu", lambda names: names.update(LargeVisionModel=object, OptimizedVisionModel=object)
    ),
    "Advanced Analysis Features / 1. Efficiency Scoring": Block("cpu", imports("MemoryAnalyzer"), scored),
    "Advanced Analysis Features / 2. Performance Correlation": Block("cpu", analyzer, insights),
    "Advanced Analysis Features / 3. Fragmentation Analysis": Block("cpu", analyzer, patterns),
    "Quick Start Guide / For PyTorch Users": Block("cpu", nothing, profiled(1, "Profiled function: train_step")),
    "Quick Start Guide / For TensorFlow Users": Block("tensorflow", keras, keras_profiled),
    "Your First Memory Analysis": Block("gpu", on_gpu, kept_picture),
    "1. Custom Memory Tracking": Block("gpu", named_tensor, saved),
    "2. Memory Watchdog": Block("gpu", watched, cleaned),
    "3. Multi-GPU Profiling": Block("gpu", several_gpus, both_gpus),
    "4. Integration with Experiment Tracking": Block("mlflow", train_model, logged),
    "Problem 1: \"CUDA out of memory\" Errors": Block("gpu", too_large, told_of_memory),
    "Problem 2: Memory Leaks Not Detected": Block("cpu", imports("MemoryAnalyzer", "MemoryTracker")),
    "Problem 3: Profiling Overhead": Block("cpu", imports("GPUMemoryProfiler", "MemoryTracker")),
}  # fmt: skip

NOT_CODE = {
    "Example 2: Research Lab Memory Leak": "what a program printed",
    "PyTorch CLI (`gpumemprof`)": "commands: cmd/hightide/testdata/script/article.txtar",
    "TensorFlow CLI (`tfmemprof`)": "commands: cmd/hightide/testdata/script/article.txtar",
    "Automation Examples": "commands: cmd/hightide/testdata/script/article.txtar",
    "Installation (1)": "how the other package is installed",
    "Installation (2)": "how the other package is installed",
    "Installation (3)": "how the other package is installed",
    "Problem 4: Visualization Issues": "packages that pictures do not need here",
}
GROUPS = sorted({block.group for block in BLOCKS.values()})


def changed(text: str) -> str:
    """The block with its import changed."""
    return re.sub(r"\b(from|import) (gpumemprof|tfmemprof)\b", r"\1 hightide.compat.\2", text)


def run(code: Code, block: Block, text: str, way: str, folder: Path) -> str:
    """Run a block; what went wrong, "" where nothing did. Its text is a file, as a program's is."""
    import ast
    import contextlib
    import io

    file = folder / f"{re.sub('[^a-z]+', '_', code.title.lower()).strip('_')}_{way}.py"
    file.write_text(text)
    names: Names = {"__name__": "__main__", "file": file.name}
    out = io.StringIO()
    try:
        block.before(names)
        tree = ast.parse(text)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):  # what the block leaves unused, for the one who looks after it
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("drawn", ast.Store())], last.value), last)
        with contextlib.redirect_stdout(out):
            exec(compile(ast.fix_missing_locations(tree), str(file), "exec"), names)
        names["out"] = out.getvalue()
        block.after(names)
    except BaseException:
        return traceback.format_exc() + out.getvalue()
    finally:
        names.clear()
        gc.collect()
    return ""


def main(group: str, folder: Path) -> None:
    """Run a group."""
    those = [code for code in blocks() if code.title in BLOCKS and BLOCKS[code.title].group == group]
    from hightide import compat

    for way in ("changed", "unchanged"):
        if way == "unchanged":
            compat.install()
        for code in those:
            text = changed(code.text) if way == "changed" else code.text
            start = time.monotonic()
            wrong = run(code, BLOCKS[code.title], text, way, folder)
            took = round(time.monotonic() - start, 2)
            print(json.dumps({"title": code.title, "way": way, "wrong": wrong, "seconds": took}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
