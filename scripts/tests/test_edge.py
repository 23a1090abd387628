"""Runtimes for small machines under the built program; 'scripts/setup edge' gets them."""

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from test_frameworks import CACHE, HIGHTIDE, ROOT, record, rows

EDGE = CACHE / "edge" / "bin" / "python"
EXECUTORCH = CACHE / "executorch" / "bin" / "python"
LLAMA = CACHE / "llama" / "bin" / "python"

# Multiplies what it is handed over by a matrix of 4 MiB. KEEP stands for what is done with the product.
SCRIPT = """
    import numpy, onnx, onnxruntime, sys, time
    from onnx import helper, numpy_helper, TensorProto

    side = 1024
    weights = numpy_helper.from_array(numpy.ones((side, side), numpy.float32), "weights")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weights"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", side])], [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, "product.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession("product.onnx", options, providers=["CPUExecutionProvider"])
    other = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kept = []
    x = numpy.ones((512, side), numpy.float32)
    for number in range(60):
        (y,) = session.run(None, {"x": x})
        other.run(None, {"x": y[:1]})
        KEEP
        time.sleep(0.03)
    assert y[0, 0] == side
    print("done")
"""


def test_calls_are_steps_and_what_they_keep_is_found(tmp_path: Path) -> None:
    """The session called first leads; what a program keeps of its answers grows with the steps."""
    report = record(tmp_path, SCRIPT.replace("KEEP", "kept.append(y)"), python=EDGE)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60, report["headline"]
    assert list(process["frameworks"]) == ["onnxruntime"], process
    size = (tmp_path / "product.onnx").stat().st_size
    assert process["numbers"]["onnxruntime_threads"] == 1, process
    assert (
        process["facts"].items()
        >= {
            "onnxruntime_providers": "CPUExecutionProvider",
            "onnxruntime_arena": "no",
            "onnxruntime_model": f"product.onnx, {size} bytes, copied",
        }.items()
    )
    assert "forward" in [row["phase"] for row in rows(report, "phases")]
    leaks = [f for f in report["findings"] if f["kind"] == "leak"]
    assert len(leaks) == 1 and "`kept`" in str(leaks[0]), report["findings"]


def test_calls_that_keep_nothing(tmp_path: Path) -> None:
    report = record(tmp_path, SCRIPT.replace("KEEP", "pass"), python=EDGE)
    assert report["headline"]["steps"] == 60 and not report["findings"], report["findings"]


# Halves what it is handed over.
MAKE_ONNX = """
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper

shape = [1, 3, 64, 64]
graph = helper.make_graph(
    [helper.make_node("Mul", ["x", "half"], ["y"])], "scaled",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    [numpy_helper.from_array(numpy.full(shape, 0.5, numpy.float32), "half")],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), PATH)
"""

# Of dense.tflite: it is given 512 bytes and answers 64. What lies between, 256, XNNPACK keeps.
DELEGATED = {"litert_values": 576, "litert_not_told": "1 of 3 values, which a delegate keeps"}

# The model is one of internal/modelfile's. MAKE is how it is loaded.
LITERT = """
    import numpy, sys, time
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    path = MODEL
    interpreter = MAKE
    interpreter.allocate_tensors()
    (given,), (answer,) = interpreter.get_input_details(), interpreter.get_output_details()
    kept = []
    for number in range(60):
        interpreter.set_tensor(given["index"], numpy.ones(given["shape"], given["dtype"]))
        interpreter.invoke()
        kept.append((interpreter.get_tensor(answer["index"]), b"x" * (2 << 20)))
        time.sleep(0.03)
    print("done")
"""


@pytest.mark.parametrize(
    "make, how, values",
    [
        ("Interpreter(path, num_threads=1)", "dense.tflite, %d bytes, mapped", DELEGATED),
        (
            "Interpreter(model_content=open(path, 'rb').read(), num_threads=1)",
            "%d bytes, handed over in memory",
            DELEGATED,
        ),
        (
            "Interpreter(path, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)",
            "dense.tflite, %d bytes, mapped",
            {"litert_values": 832, "litert_most_alive": "832 bytes at operator 2 of 2, FULLY_CONNECTED"},
        ),
    ],
)
def test_calls_of_litert(tmp_path: Path, make: str, how: str, values: dict[str, object]) -> None:
    model = ROOT / "internal" / "modelfile" / "testdata" / "dense.tflite"
    report = record(tmp_path, LITERT.replace("MODEL", repr(str(model))).replace("MAKE", make), python=EDGE)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60 and "ai_edge_litert" in process["frameworks"], report["headline"]
    told = {**process["facts"], **process["numbers"]}
    facts = {key: value for key, value in told.items() if key.startswith("litert")}
    assert facts == {"litert_model": how % model.stat().st_size, "litert_threads": 1, **values}, facts
    leaks = [f for f in report["findings"] if f["kind"] == "leak"]
    assert len(leaks) == 1 and "`kept`" in str(leaks[0]), report["findings"]


OPENVINO = """
    import numpy, openvino, time

    core = openvino.Core()
    model = core.read_model(MODEL)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    other = core.compile_model(MODEL, "CPU")
    kept = []
    for number in range(60):
        x = numpy.ones((1, 3, 64, 64), numpy.float32)
        answer = CALL
        other([x])
        kept.append((answer, b"x" * (2 << 20)))
        time.sleep(0.03)
    print("done")
"""


@pytest.mark.parametrize("call", ["request.infer([x])", "compiled([x])"])
def test_calls_of_openvino(tmp_path: Path, call: str) -> None:
    """The model that is called first leads, by a request or by itself."""
    model = tmp_path / "scaled.onnx"
    make = MAKE_ONNX.replace("PATH", repr(str(model)))
    subprocess.run([EDGE, "-c", make], check=True)
    report = record(tmp_path, OPENVINO.replace("MODEL", repr(str(model))).replace("CALL", call), python=EDGE)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60 and "openvino" in process["frameworks"], report["headline"]
    assert process["facts"]["openvino_model"].startswith(f"scaled.onnx, {model.stat().st_size} bytes, "), process[
        "facts"
    ]
    assert process["facts"]["openvino_devices"] == "CPU" and process["numbers"]["openvino_threads"] == 1, process
    leaks = [f for f in report["findings"] if f["kind"] == "leak"]
    assert len(leaks) == 1 and "`kept`" in str(leaks[0]), report["findings"]


# Two layers. What the planner sets aside is, of all values alive at once, the most.
MAKE_PTE = """
import torch
from executorch.exir import to_edge
from torch.export import export

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
program = to_edge(export(model, (torch.ones(1, 256),))).to_executorch()
open(PATH, "wb").write(program.buffer)
print(sum(program.executorch_program.execution_plan[0].non_const_buffer_sizes))
"""

EXECUTORCH_CALLS = """
    import time, torch
    from executorch.runtime import Runtime

    HOW
    x = torch.ones(1, 256)
    kept = []
    for number in range(60):
        kept.append((call([x]), b"x" * (2 << 20)))
        time.sleep(0.03)
    print("done")
"""


@pytest.fixture(scope="module")
def pte(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, int]":
    """A program of ExecuTorch, and what its planner set aside."""
    if not EXECUTORCH.exists():
        pytest.skip(f"{EXECUTORCH} is not there: scripts/setup edge")
    path = tmp_path_factory.mktemp("executorch") / "layers.pte"
    make = [str(EXECUTORCH), "-c", MAKE_PTE.replace("PATH", repr(str(path)))]
    done = subprocess.run(
        make, check=True, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )
    return path, int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "how, model",
    [
        ("call = Runtime.get().load_program(PATH).load_method('forward').execute", "layers.pte, %d bytes, mapped"),
        (  # the runtime does not keep what it is handed over
            "from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load\n"
            "    call = load(data := open(PATH, 'rb').read()).forward",
            "%d bytes, handed over in memory",
        ),
    ],
)
def test_calls_of_executorch(tmp_path: Path, pte: "tuple[Path, int]", how: str, model: str) -> None:
    path, planned = pte
    script = EXECUTORCH_CALLS.replace("HOW", how.replace("PATH", repr(str(path))))
    report = record(tmp_path, script, python=EXECUTORCH)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60 and "executorch" in process["frameworks"], report["headline"]
    assert process["facts"]["executorch_model"] == model % path.stat().st_size, process["facts"]
    assert process["numbers"]["executorch_planned"] == planned > 0, process["numbers"]
    assert process["numbers"]["executorch_threads"] >= 1, process["numbers"]
    leaks = [f for f in report["findings"] if f["kind"] == "leak"]
    assert len(leaks) == 1 and "`kept`" in str(leaks[0]), report["findings"]


# A model of llama's form without words, written by the library that others write theirs with.
MAKE_GGUF = """
import gguf, numpy

writer, random, wide, inside = gguf.GGUFWriter(PATH, "llama"), numpy.random.default_rng(1), 256, 512
writer.add_block_count(2)
writer.add_embedding_length(wide)
writer.add_feed_forward_length(inside)
writer.add_head_count(8)
writer.add_head_count_kv(8)
writer.add_context_length(2048)
writer.add_rope_dimension_count(32)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(256)
writer.add_tokenizer_model("no_vocab")
shapes = {"token_embd": (256, wide), "output_norm": (wide,), "output": (256, wide)}
for block in ("blk.0.", "blk.1."):
    shapes.update({block + name: (wide, wide) for name in ("attn_q", "attn_k", "attn_v", "attn_output")})
    shapes.update({block + name: (wide,) for name in ("attn_norm", "ffn_norm")})
    shapes.update({block + name: (inside, wide) for name in ("ffn_gate", "ffn_up")})
    shapes[block + "ffn_down"] = (wide, inside)
for name, shape in shapes.items():
    writer.add_tensor(name + ".weight", random.standard_normal(shape, dtype="float32"))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
"""

LLAMA_CALLS = """
    import llama_cpp, time

    said = []
    LOG
    model = llama_cpp.Llama(PATH, n_ctx=512, n_threads=1, n_threads_batch=1, use_mmap=MAPPED, verbose=False)
    kept = []
    for number in range(60):
        model.reset()
        model.eval([number, 1, 2, 3])
        kept.append(b"x" * (2 << 20))
        time.sleep(0.03)
    assert not LOG_IS_OURS or any(b"KV buffer" in text for text in said)
    print("done")
"""
OWN_LOG = """hear = llama_cpp.llama_log_callback(lambda level, text, data: said.append(text))
    llama_cpp.llama_log_set(hear, None)"""


@pytest.mark.parametrize("mapped, log", [(True, ""), (False, OWN_LOG)])
def test_calls_of_llama(tmp_path: Path, mapped: bool, log: str) -> None:
    """Mapped or copied, and with a log that leads elsewhere: it still does."""
    model = tmp_path / "blocks.gguf"
    if LLAMA.exists():
        subprocess.run([LLAMA, "-c", MAKE_GGUF.replace("PATH", repr(str(model)))], check=True)
    script = LLAMA_CALLS.replace("LOG_IS_OURS", repr(bool(log))).replace("PATH", repr(str(model)))
    report = record(tmp_path, script.replace("MAPPED", repr(mapped)).replace("LOG", log or "pass"), python=LLAMA)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60 and list(process["frameworks"]) == ["llama_cpp"], report["headline"]
    how = "mapped" if mapped else "copied"
    assert process["facts"]["llama_model"] == f"blocks.gguf, {model.stat().st_size} bytes, {how}", process["facts"]
    # keys and values of two layers, 512 tokens of 256 numbers in two bytes
    assert "KV 1.00 MiB in CPU" in process["facts"]["llama_buffers"].split(", "), process["facts"]
    assert "compute" in process["facts"]["llama_buffers"] and "model 5.50 MiB" in process["facts"]["llama_buffers"]
    numbers = {key: value for key, value in process["numbers"].items() if key.startswith("llama")}
    assert numbers == {"llama_threads": 1, "llama_threads_batch": 1, "llama_context": 512}, numbers
    leaks = [f for f in report["findings"] if f["kind"] == "leak"]
    assert len(leaks) == 1 and "`kept`" in str(leaks[0]), report["findings"]


# One product in three types, each in a file: as it is, in 16 bits, and with weights of 8 bits.
MAKE_TYPES = """
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16

side = 1024
weights = numpy_helper.from_array(numpy.random.default_rng(1).random((side, side), dtype=numpy.float32), "weights")
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "weights"], ["y"])], "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", side])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", side])], [weights],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
onnx.save(model, "net-fp32.onnx")
onnx.save(convert_float_to_float16(model, keep_io_types=True), "net-fp16.onnx")
quantize_dynamic("net-fp32.onnx", "net-int8.onnx")
"""


def bench(folder: Path, matrix: str, code: int = 0) -> "dict[str, dict[str, Any]]":
    """Measure a matrix of files in a folder; the last trial of each cell."""
    file = folder / "files.yaml"
    file.write_text(textwrap.dedent(matrix) + "\nrepeats: 1\nsteps: 3\nwarmup: 1\n")
    env = {**os.environ, "HOME": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    words = [str(word) for word in (HIGHTIDE, "bench", file, "--json", "--data-dir", folder / "data")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env, timeout=900)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
    return {trial["cell"]: trial for trial in json.loads(done.stdout)["trials"]}


def test_bench_of_files_by_type(tmp_path: Path) -> None:
    if not EDGE.exists():
        pytest.skip(f"{EDGE} is not there: scripts/setup edge")
    subprocess.run([EDGE, "-c", MAKE_TYPES], check=True, cwd=tmp_path, capture_output=True)
    cells = bench(
        tmp_path,
        f"""
        axes:
          runtime: [onnxruntime, openvino]
          model: ["net-{{dtype}}"]
          dtype: [fp32, fp16, int8]
          batch: [4]
        environments: [{{python: {EDGE}}}]""",
    )
    assert len(cells) == 6 and {cell["state"] for cell in cells.values()} == {"done"}, cells
    for cell, trial in cells.items():
        shown = [HIGHTIDE, "show", trial["run"], "--json", "--data-dir", tmp_path / "data"]
        report = json.loads(subprocess.run(shown, capture_output=True, text=True, check=True).stdout)
        facts = next(process["facts"] for process in report["processes"] if process["role"] == "main")
        dtype = next(kind for kind in ("fp32", "fp16", "int8") if f"dtype={kind}" in cell)
        name = f"net-{dtype}.onnx"
        told = facts.get("onnxruntime_model") or facts["openvino_model"]
        assert told.startswith(f"{name}, {(tmp_path / name).stat().st_size} bytes, "), facts
        assert report["headline"]["steps"] == 4, report["headline"]


def test_bench_of_files_by_runtime(tmp_path: Path, pte: "tuple[Path, int]") -> None:
    """Each runtime has its own kind of file; one that takes another batch says so."""
    for python in (EDGE, LLAMA):
        if not python.exists():
            pytest.skip(f"{python} is not there: scripts/setup edge")
    subprocess.run([LLAMA, "-c", MAKE_GGUF.replace("PATH", "'net.gguf'")], check=True, cwd=tmp_path)
    (tmp_path / "net.pte").symlink_to(pte[0])
    (tmp_path / "net.tflite").symlink_to(ROOT / "internal" / "modelfile" / "testdata" / "dense.tflite")  # of two
    cells = bench(
        tmp_path,
        f"""
        axes: {{runtime: [litert, executorch, llama.cpp], model: [net], batch: [1, 2], seq_len: [16]}}
        environments:
          - {{when: {{runtime: litert}}, python: {EDGE}}}
          - {{when: {{runtime: executorch}}, python: {EXECUTORCH}}}
          - {{when: {{runtime: llama.cpp}}, python: {LLAMA}}}""",
    )
    states = {name: (cell["state"], cell.get("reason", "")) for name, cell in cells.items()}
    assert states == {
        "runtime=litert model=net batch=1 seq_len=16": ("unavailable", "net.tflite takes a batch of 2 and no other"),
        "runtime=litert model=net batch=2 seq_len=16": ("done", ""),
        "runtime=executorch model=net batch=1 seq_len=16": ("done", ""),
        "runtime=executorch model=net batch=2 seq_len=16": ("unavailable", "net.pte takes a batch of 1 and no other"),
        "runtime=llama.cpp model=net batch=1 seq_len=16": ("done", ""),
        "runtime=llama.cpp model=net batch=2 seq_len=16": ("done", ""),
    }, states
