"""Writes the files of programs with weights, and graphs.json: what their own libraries say is in them.

~/.cache/hightide/torch-2.15.0/bin/python internal/modelfile/testdata/graphs.py small.pt2
~/.cache/hightide/frameworks/bin/python internal/modelfile/testdata/graphs.py dense.tflite int8.tflite
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def pt2_file(path):
    """Weights of two types, one that two layers share, and a table of integers."""
    import torch

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(16, 32)
            self.down = torch.nn.Linear(32, 8, bias=False, dtype=torch.bfloat16)
            self.words = torch.nn.Embedding(10, 16)
            self.out = torch.nn.Linear(16, 10, bias=False)
            self.out.weight = self.words.weight
            self.register_buffer("table", torch.arange(24).reshape(4, 6))

        def forward(self, x):
            ids = torch.zeros(1, dtype=torch.long)
            return self.down(self.up(x).bfloat16()).float().sum() + self.out(self.words(ids)).sum() + self.table.sum()

    module = Small()
    torch.export.save(torch.export.export(module, (torch.zeros(2, 16),)), path)
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
    loaded, seen, said = torch.export.load(path).state_dict, set(), []
    for name, value in sorted(loaded.items()):
        if value.data_ptr() not in seen:
            seen.add(value.data_ptr())
            said.append([name, names[value.dtype], list(value.shape), value.nbytes])
    return said


def tflite_file(path):
    import numpy
    import tensorflow as tf
    from tensorflow.lite.python import schema_py_generated as schema

    random = numpy.random.default_rng(1)

    def constant(*shape):
        return tf.constant(random.random(shape, dtype="float32"))

    class Dense(tf.Module):
        up, bias, down = constant(64, 32), constant(32), constant(32, 8)

        @tf.function(input_signature=[tf.TensorSpec([2, 64], tf.float32)])
        def run(self, x):
            return tf.nn.relu(x @ self.up + self.bias) @ self.down

    module = Dense()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.run.get_concrete_function()], module)
    if "int8" in path:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    data = converter.convert()
    with open(path, "wb") as file:
        file.write(data)
    model = schema.Model.GetRootAs(data, 0)
    graph, said = model.Subgraphs(0), []
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        held = model.Buffers(tensor.Buffer()).DataLength()
        if held:
            kind = {schema.TensorType.FLOAT32: "F32", schema.TensorType.INT8: "I8"}[tensor.Type()]
            said.append([tensor.Name().decode(), kind, tensor.ShapeAsNumpy().tolist(), held])
    return said


def main():
    file = os.path.join(HERE, "graphs.json")
    said = {}
    if os.path.exists(file):
        with open(file, encoding="utf-8") as before:
            said = json.load(before)
    for name in sys.argv[1:]:
        said[name] = (pt2_file if name.endswith(".pt2") else tflite_file)(os.path.join(HERE, name))
    with open(file, "w", encoding="utf-8") as out:
        rows = ",\n".join(json.dumps(n) + ": [\n " + ",\n ".join(map(json.dumps, r)) + "\n]" for n, r in said.items())
        out.write("{" + rows + "}\n")


main()
