"""Writes the small files of weights beside it, and files.json: what the libraries of both formats say of them.

    python -m venv /tmp/files && /tmp/files/bin/pip install gguf==0.19.0 safetensors==0.8.0 onnx
    /tmp/files/bin/python internal/modelfile/testdata/files.py
"""

import json
import os

import gguf
import numpy
import safetensors
import safetensors.numpy
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

HERE = os.path.dirname(os.path.abspath(__file__))
NUMPY = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool"]


def safetensors_file(path):
    tensors = {f"layers.{i}.{name}.weight": numpy.zeros((3, i + 1), dtype=name) for i, name in enumerate(NUMPY)}
    tensors["empty"] = numpy.zeros((0, 4), dtype="float32")
    tensors["scalar"] = numpy.zeros((), dtype="float16")
    safetensors.numpy.save_file(tensors, path, metadata={"format": "np"})
    said = []
    with safetensors.safe_open(path, framework="numpy") as file:
        for name in file.keys():
            part = file.get_slice(name)
            said.append([name, part.get_dtype(), part.get_shape(), file.get_tensor(name).nbytes])
    return said


def low_bits(path):
    """Types that NumPy does not have, written by the library's own function."""
    data = {
        "a": ("bfloat16", [2, 3], 12),
        "b": ("float8_e4m3fn", [4, 4], 16),
        "c": ("float8_e5m2", [5], 5),
        "d": ("float8_e8m0fnu", [7], 7),
        "e": ("float4_e2m1fn_x2", [2, 8], 16),  # the library counts two for each
    }
    held = {name: numpy.zeros(size, dtype="uint8") for name, (_, _, size) in data.items()}
    text = safetensors.serialize(
        {
            name: safetensors.TensorSpec(dtype=kind, shape=shape, data_ptr=held[name].ctypes.data, data_len=size)
            for name, (kind, shape, size) in data.items()
        }
    )
    with open(path, "wb") as file:
        file.write(text)
    with safetensors.safe_open(path, framework="numpy") as file:
        slices = {k: file.get_slice(k) for k in file.keys()}
        return [[k, s.get_dtype(), s.get_shape(), data[k][2]] for k, s in slices.items()]


def gguf_file(path, endian=gguf.GGUFEndian.LITTLE):
    writer = gguf.GGUFWriter(path, "llama", endianess=endian)
    writer.add_block_count(3)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(512)
    writer.add_head_count(8)
    writer.add_head_count_kv(2)
    writer.add_context_length(2048)
    writer.add_rope_dimension_count(32)
    writer.add_token_list([f"token {i}" for i in range(50)])
    writer.add_token_scores([float(i) for i in range(50)])
    writer.add_array("llama.some.flags", [True, False, True])
    writer.add_float64("llama.some.number", 0.5)
    for kind, (block, size) in GGML_QUANT_SIZES.items():
        if kind in (GGMLQuantizationType.Q8_1,):
            continue  # no file has it, and the library and ggml differ on its size
        if block == 1:
            plain = {"F32": "float32", "F16": "float16", "F64": "float64", "I8": "int8", "I16": "int16", "I32": "int32",
                     "I64": "int64"}.get(kind.name)
            if plain is None:
                writer.add_tensor("blk.0.BF16", numpy.zeros((3, 16), dtype="uint8"), raw_dtype=kind)
            else:
                writer.add_tensor(f"blk.0.{kind.name}", numpy.zeros((3, 8), dtype=plain))
            continue
        writer.add_tensor(f"blk.0.{kind.name}", numpy.zeros((2, 2 * size), dtype="uint8"), raw_dtype=kind)
    writer.add_tensor("token_embd.weight", numpy.zeros((50, 8), dtype="float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return [
        [t.name, t.tensor_type.name, [int(n) for n in reversed(t.shape)], int(t.n_bytes)]
        for t in gguf.GGUFReader(path).tensors
    ]


def onnx_file(path):
    """A graph with weights, a constant, a graph inside it, and weights in a file beside it that is not there."""
    from onnx import TensorProto, helper, save

    def weight(name, kind, shape):
        size = int(numpy.prod(shape))
        return helper.make_tensor(name, kind, shape, numpy.zeros(size, "int32").tolist())

    kinds = ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT64", "INT32", "INT8", "UINT8", "BOOL", "INT4"]
    weights = [weight(kind.lower(), getattr(TensorProto, kind), [3, 5]) for kind in kinds]
    apart = TensorProto(name="apart", data_type=TensorProto.FLOAT, dims=[1000, 1000], data_location=TensorProto.EXTERNAL)
    apart.external_data.add(key="location", value="weights.bin")
    inner = helper.make_graph([], "inner", [], [], [weight("inner", TensorProto.FLOAT, [7])])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=weight("constant", TensorProto.FLOAT, [11])),
        helper.make_node("If", ["c"], ["d"], then_branch=inner, else_branch=helper.make_graph([], "e", [], [])),
    ]
    save(helper.make_model(helper.make_graph(nodes, "main", [], [], [*weights, apart])), path)
    bits = {"FLOAT": 32, "FLOAT16": 16, "BFLOAT16": 16, "DOUBLE": 64, "INT64": 64, "INT32": 32, "BOOL": 8, "INT4": 4}
    names = {"FLOAT": "F32", "FLOAT16": "F16", "BFLOAT16": "BF16", "DOUBLE": "F64", "INT64": "I64", "INT32": "I32",
             "INT8": "I8", "UINT8": "U8"}
    said = [[k.lower(), names.get(k, k), [3, 5], (15 * bits.get(k, 8) + 7) // 8] for k in kinds]
    return [*said, ["apart", "F32", [1000, 1000], 4_000_000], ["inner", "F32", [7], 28], ["constant", "F32", [11], 44]]


def main():
    said = {}
    for name, write in {
        "numpy.safetensors": safetensors_file,
        "low.safetensors": low_bits,
        "little.gguf": gguf_file,
        "graph.onnx": onnx_file,
        "big.gguf": lambda path: gguf_file(path, gguf.GGUFEndian.BIG),
    }.items():
        said[name] = write(os.path.join(HERE, name))
    with open(os.path.join(HERE, "files.json"), "w", encoding="utf-8") as file:
        rows = ",\n".join(json.dumps(name) + ": [\n " + ",\n ".join(map(json.dumps, r)) + "\n]" for name, r in said.items())
        file.write("{" + rows + "}\n")


main()
