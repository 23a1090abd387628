"""Runtimes for small machines under the built program; 'scripts/setup edge' gets them."""

import subprocess
from pathlib import Path

import pytest
from test_frameworks import CACHE, ROOT, record, rows

EDGE = CACHE / "edge" / "bin" / "python"

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

# The model is one of internal/modelfile's. MAKE is how it is loaded.
LITERT = """
    import numpy, sys, time
    from ai_edge_litert.interpreter import Interpreter

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
    "make, how",
    [
        ("Interpreter(path, num_threads=1)", "dense.tflite, %d bytes, mapped"),
        ("Interpreter(model_content=open(path, 'rb').read(), num_threads=1)", "%d bytes, handed over in memory"),
    ],
)
def test_calls_of_litert(tmp_path: Path, make: str, how: str) -> None:
    model = ROOT / "internal" / "modelfile" / "testdata" / "dense.tflite"
    report = record(tmp_path, LITERT.replace("MODEL", repr(str(model))).replace("MAKE", make), python=EDGE)
    (process,) = [p for p in report["processes"] if p["role"] == "main"]
    assert report["headline"]["steps"] == 60 and "ai_edge_litert" in process["frameworks"], report["headline"]
    told = {**process["facts"], **process["numbers"]}
    facts = {key: value for key, value in told.items() if key.startswith("litert")}
    assert facts == {"litert_model": how % model.stat().st_size, "litert_threads": 1}, facts
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
