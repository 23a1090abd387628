"""Writes the files of programs with weights, and graphs.json: what their own libraries say is in them.

~/.cache/hightide/torch-2.15.0/bin/python internal/modelfile/testdata/graphs.py small.pt2
~/.cache/hightide/frameworks/bin/python internal/modelfile/testdata/graphs.py dense.tflite int8.tflite
python internal/modelfile/testdata/graphs.py small.pte backend.pte      with executorch 1.0.1 and torch 2.9.1
"""

import json
import math
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


def pte_file(path):
    """Weights of two types; with a backend, to which XNNPACK's part goes."""
    import torch
    from executorch.exir import to_edge, to_edge_transform_and_lower

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(64, 128)
            self.down = torch.nn.Linear(128, 16, bias=False)
            self.register_buffer("table", torch.arange(16))

        def forward(self, x):
            return self.down(self.up(x).relu()) * self.table

    torch.manual_seed(0)
    exported = torch.export.export(Small().eval(), (torch.zeros(4, 64),))
    if "backend" in path:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    else:
        edge = to_edge(exported)
    manager = edge.to_executorch()
    with open(path, "wb") as file:
        file.write(manager.buffer)
    plan, names, said, seen = manager.executorch_program.execution_plan[0], {6: "F32", 4: "I64"}, [], set()
    for value in plan.values:
        number = getattr(value.val, "data_buffer_idx", 0)
        if number and value.val.allocation_info is None and number not in seen:
            seen.add(number)
            kind, shape = names[int(value.val.scalar_type)], list(value.val.sizes)
            said.append([f"constant {number}", kind, shape, math.prod(shape) * {"F32": 4, "I64": 8}[kind]])
    for number, delegate in enumerate(plan.delegates):
        piece = manager.executorch_program.backend_delegate_data[delegate.processed.index].data
        said.append([f"{delegate.id} {number}", "U8", [len(piece)], len(piece)])
    kept = manager._named_data
    for key, entry in sorted(kept.pte_data.items()) if kept else ():
        held = len(kept.buffers[entry if isinstance(entry, int) else entry.buffer_index].buffer)
        said.append([key, "U8", [held], held])
    print(path, "planned", plan.non_const_buffer_sizes)
    return said


def main():
    file = os.path.join(HERE, "graphs.json")
    said = {}
    if os.path.exists(file):
        with open(file, encoding="utf-8") as before:
            said = json.load(before)
    for name in sys.argv[1:]:
        make = {".pt2": pt2_file, ".pte": pte_file}.get(os.path.splitext(name)[1], tflite_file)
        said[name] = make(os.path.join(HERE, name))
    with open(file, "w", encoding="utf-8") as out:
        rows = ",\n".join(json.dumps(n) + ": [\n " + ",\n ".join(map(json.dumps, r)) + "\n]" for n, r in said.items())
        out.write("{" + rows + "}\n")


main()
