"""Writes unet.tflite and unet.onnx, and live.json: what is alive while each operator runs, reckoned with their own
libraries.

~/.cache/hightide/frameworks/bin/python internal/modelfile/testdata/live.py unet.tflite     with TensorFlow
~/.cache/hightide/edge/bin/python internal/modelfile/testdata/live.py unet.onnx live.json   with onnx and ai-edge-litert
~/.cache/hightide/executorch/bin/python internal/modelfile/testdata/live.py state.pte pte.json   with executorch
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VIEWS = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}


def tflite_file(path):
    """A small net that keeps the result of its first layer until its last but two."""
    import tensorflow as tf

    layers = tf.keras.layers
    image = tf.keras.Input((64, 64, 3), batch_size=1)
    kept = layers.Conv2D(16, 3, padding="same", activation="relu")(image)
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(kept)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layers.UpSampling2D(2)(x)
    x = layers.Add()([x, kept])
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    model = tf.keras.Model(image, x)
    with open(path, "wb") as file:
        file.write(tf.lite.TFLiteConverter.from_keras_model(model).convert())


def onnx_file(path):
    """The same in ONNX, with a batch that is open, a value without a size and a constant node."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = numpy.random.default_rng(1)

    def weight(name, *shape):
        return numpy_helper.from_array(random.random(shape, dtype="float32"), name)

    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["kept"]),
        helper.make_node("Conv", ["kept", "w2"], ["c2"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node(
            "Constant", [], ["scales"], value=numpy_helper.from_array(numpy.array([1, 1, 2, 2], "float32"))
        ),
        helper.make_node("Resize", ["c2", "", "scales"], ["up"], mode="nearest"),
        helper.make_node("Add", ["up", "kept"], ["sum"]),
        helper.make_node("GlobalAveragePool", ["sum"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3"], ["out"]),
        helper.make_node("Unknown", ["flat"], ["odd"], domain="of.its.own"),
    ]
    graph = helper.make_graph(
        nodes,
        "unet",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 64, 64])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", 10])],
        [weight("w1", 16, 3, 3, 3), weight("w2", 16, 16, 3, 3), weight("w3", 16, 10)],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("of.its.own", 1)]
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports))
    onnx.save(model, path)


def pte_file(path):
    """Two methods; the larger one has a state, views and a list of tensors."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge

    class State(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.ones(8, 16))
            self.up = torch.nn.Linear(16, 64)

        def forward(self, x):
            self.kept.add_(x)
            y = self.up(self.kept.reshape(16, 8).reshape(8, 16)).relu()
            values, at = y.topk(4)
            left, right = y.split(32, 1)
            return torch.cat([y, y * 2, x.repeat(1, 4)]).reshape(-1), values + left[:, :4], at, right

    class Small(torch.nn.Module):
        def forward(self, x):
            return x + 1

    x = (torch.zeros(8, 16),)
    methods = {"small": torch.export.export(Small().eval(), x), "large": torch.export.export(State().eval(), x)}
    with open(path, "wb") as file:
        file.write(to_edge(methods).to_executorch(ExecutorchBackendConfig(emit_mutable_buffer_names=True)).buffer)


def alive(operators, sizes, given, asked):
    """Bytes alive at each of (kind, takes, makes), by looking at every value at every operator."""
    same = {name: name for name in sizes}
    for kind, takes, makes in operators:
        if kind in VIEWS:
            same[makes[0]] = same[takes[0]]
    live = []
    for at in range(len(operators)):
        made = given | {v for _, _, makes in operators[: at + 1] for v in makes}
        wanted = given | asked | {v for _, takes, makes in operators[at:] for v in takes}
        wanted |= set(operators[at][2])
        storage = {same[v] for v in made & wanted}
        live.append(sum(max(sizes[v] for v in sizes if same[v] == s) for s in storage))
    return live


def of_tflite(path):
    from ai_edge_litert import interpreter as litert

    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    model = litert.Interpreter(path, experimental_op_resolver_type=plain)
    tensors = {t["index"]: t for t in model.get_tensor_details()}  # before kernels add theirs
    operators = model._get_ops_details()
    given = {t["index"] for t in model.get_input_details()}
    asked = {t["index"] for t in model.get_output_details()}
    computed = given | {int(v) for o in operators for v in o["outputs"]}
    sizes = {}
    for i in computed:
        size = tensors[i]["dtype"]().itemsize
        for d in tensors[i]["shape"]:
            size *= int(d)
        sizes[i] = size
    rows = [
        (o["op_name"], [int(v) for v in o["inputs"] if int(v) in computed], [int(v) for v in o["outputs"]])
        for o in operators
    ]
    return [kind for kind, _, _ in rows], alive(rows, sizes, given, asked)


def of_onnx(path):
    import onnx

    graph = onnx.load(path).graph
    constants = {t.name for t in graph.initializer} | {
        v for n in graph.node if n.op_type == "Constant" for v in n.output
    }
    sizes = {}
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        size = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize
        for d in kind.shape.dim:
            size *= d.dim_value if d.HasField("dim_value") else 1
        sizes[value.name] = size
    rows = [
        (n.op_type, [v for v in n.input if v and v not in constants], list(n.output))
        for n in graph.node
        if n.op_type != "Constant"
    ]
    for _, _, makes in rows:
        for v in makes:
            sizes.setdefault(v, 0)
    given = {v.name for v in graph.input} - constants
    return [kind for kind, _, _ in rows], alive(rows, sizes, given, {v.name for v in graph.output})


def of_pte(path):
    """Of the places that the planner gave to values, how much is taken by those that are alive."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    with open(path, "rb") as file:
        program = deserialize_pte_binary(file.read())
    plan = max(getattr(program, "program", program).execution_plan, key=lambda p: sum(p.non_const_buffer_sizes[1:]))
    widths, places, kinds, alive = {4: 8, 6: 4}, {}, [], {}
    last = len(plan.chains[0].instructions) - 1
    for number, value in enumerate(plan.values):
        if getattr(value.val, "allocation_info", None) is not None:
            size, at = widths[int(value.val.scalar_type)], value.val.allocation_info.memory_offset_low
            for d in value.val.sizes:
                size *= d
            places[number] = range(at, at + size)
            if value.val.extra_tensor_info and value.val.extra_tensor_info.fully_qualified_name:  # a state
                alive[number] = [0, last]
    for number in plan.inputs:
        alive[number] = [0, 0]
    for at, instruction in enumerate(plan.chains[0].instructions):
        call = instruction.instr_args
        if hasattr(call, "op_index"):
            kinds.append("{0.name}.{0.overload}".format(plan.operators[call.op_index]).rstrip("."))
        else:
            kinds.append(plan.delegates[call.delegate_index].id)
        for numbers in [getattr(plan.values[n].val, "items", None) or [n] for n in call.args]:
            for number in numbers:
                if number in places:
                    alive.setdefault(number, [at, at])[1] = max(at, alive.get(number, [at, at])[1])
    for number in plan.outputs:
        alive[number][1] = last
    live = []
    for at in range(last + 1):
        live.append(len(set().union(*(places[n] for n, (begin, end) in alive.items() if begin <= at <= end))))
    assert max(live) <= sum(plan.non_const_buffer_sizes), (live, plan.non_const_buffer_sizes)
    return kinds, live


def main():
    for name in sys.argv[1:]:
        path = os.path.join(HERE, name)
        if name.endswith(".tflite"):
            tflite_file(path)
        elif name.endswith(".onnx"):
            onnx_file(path)
        elif name.endswith(".pte"):
            pte_file(path)
        else:
            said = {}
            programs = [(f"{program}.pte", of_pte) for program in ("small", "backend", "state")]
            for file, read in programs if name == "pte.json" else (("unet.tflite", of_tflite), ("unet.onnx", of_onnx)):
                kinds, live = read(os.path.join(HERE, file))
                said[file] = {"kinds": kinds, "live": live}
            with open(path, "w") as file:
                json.dump(said, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main()
