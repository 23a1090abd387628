"""Write what ONNX Runtime's profiler says of three calls of a small net, whose widest value is in the middle:

python onnxruntime_profile.py FILE.json.gz
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

weights, nodes = [], []
for name, shape in (("wide", (32, 3, 3, 3)), ("narrow", (8, 32, 3, 3))):
    weights.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
for name, operator, takes, more in (
    ("/up/Conv", "Conv", ["x", "wide"], {"pads": [1, 1, 1, 1]}),
    ("/up/Sigmoid", "Sigmoid", ["/up/Conv"], {}),
    ("/Mul", "Mul", ["/up/Conv", "/up/Sigmoid"], {}),
    ("/down/Conv", "Conv", ["/Mul", "narrow"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("/pool", "GlobalAveragePool", ["/down/Conv"], {}),
):
    nodes.append(helper.make_node(operator, takes, [name], name=name, **more))
given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])
asked = helper.make_tensor_value_info("/pool", TensorProto.FLOAT, [1, 8, 1, 1])
model = helper.make_model(
    helper.make_graph(nodes, "net", [given], [asked], weights), opset_imports=[helper.make_opsetid("", 17)]
)
model.ir_version = 8
onnx.checker.check_model(model)

options = onnxruntime.SessionOptions()
options.enable_profiling = True
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
for _ in range(3):
    session.run(None, {"x": np.zeros((1, 3, 64, 64), np.float32)})
written = Path(session.end_profiling())
with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as packed:
    packed.write(written.read_bytes())
written.unlink()
