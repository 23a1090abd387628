"""Files of models in the runtimes of small machines, on random inputs: a file is run as it is, whatever made it."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from .options import Built, Options, Unavailable, Unknown

Step = Callable[[int], object]


class Runtime(NamedTuple):
    """`package` is what programs import, `ending` that of its files, `load` makes a step of a file."""

    package: str
    ending: str
    load: Callable[[str, Options], Step]


def build(options: Options) -> Built:
    """The step that runs the file once.

    Raises:
        Unavailable: the file takes another batch.
        Unknown: there is no such file.
    """
    runtime = RUNTIMES[options.runtime]
    path = options.model.replace("{dtype}", options.dtype).replace("{runtime}", options.runtime)
    if os.path.splitext(path)[1] not in ENDINGS:
        path += runtime.ending
    if not os.path.isfile(path):
        raise Unknown(f"{path}: no such file")
    return Built(runtime.load(path, options), None)


def shape_of(path: str, known: Sequence[Any], options: Options) -> Tuple[int, ...]:
    """The shape of an input: the first size that the file leaves open is the batch, others are the sequence.

    Args:
        known: each size; None, a name or less than 0 is left open.
    """
    shape = [n if isinstance(n, int) and n >= 0 else None for n in known]
    if options.batch and shape and shape[0] not in (None, options.batch):
        raise Unavailable(f"{path} takes a batch of {shape[0]} and no other")
    first = options.batch or 1
    return tuple((first if i == 0 else options.seq_len) if n is None else n for i, n in enumerate(shape))


def values(shape: Sequence[int], kind: Any, options: Options) -> Any:
    """Random numbers; whole ones are 0 or 1, which any vocabulary has."""
    import numpy

    random = numpy.random.default_rng(options.seed)
    if numpy.issubdtype(kind, numpy.floating):
        return random.random(tuple(shape), dtype=numpy.float32).astype(kind)
    return random.integers(2, size=tuple(shape)).astype(kind)


def _onnxruntime(path: str, options: Options) -> Step:
    import numpy
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    kinds = {"float": "float32", "double": "float64"}
    inputs: Dict[str, Any] = {}
    for given in session.get_inputs():
        kind = given.type[len("tensor(") : -1]
        shape = shape_of(path, given.shape, options)
        inputs[given.name] = values(shape, numpy.dtype(kinds.get(kind, kind)), options)
    return lambda _: session.run(None, inputs)


def _openvino(path: str, options: Options) -> Step:
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    shapes = {}
    for given in model.inputs:
        known = [None if size.is_dynamic else size.get_length() for size in given.get_partial_shape()]
        shapes[given.any_name] = list(shape_of(path, known, options))
    model.reshape(shapes)
    request = core.compile_model(model, "CPU").create_infer_request()
    inputs = {
        given.any_name: values(shapes[given.any_name], given.get_element_type().to_dtype(), options)
        for given in model.inputs
    }
    return lambda _: request.infer(inputs)


def _litert(path: str, options: Options) -> Step:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path)
    inputs = {}
    for given in interpreter.get_input_details():
        known = [int(size) for size in given["shape_signature"]]
        shape = shape_of(path, known, options)
        if min(known, default=0) < 0:
            interpreter.resize_tensor_input(given["index"], shape)
        inputs[given["index"]] = values(shape, given["dtype"], options)
    interpreter.allocate_tensors()

    def step(_: int) -> None:
        for index, array in inputs.items():
            interpreter.set_tensor(index, array)
        interpreter.invoke()

    return step


# Numbers of ScalarType, in ExecuTorch's scalar_type.h.
SCALARS = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
}  # fmt: skip


def _executorch(path: str, options: Options) -> Step:
    import numpy
    import torch
    from executorch.runtime import Runtime as ExecuTorch

    program = ExecuTorch.get().load_program(path)
    method: Any = program.load_method("forward")
    inputs: List[Any] = []
    for i in range(method.metadata.num_inputs()):
        given = method.metadata.input_tensor_meta(i)
        kind = numpy.dtype(SCALARS.get(given.dtype(), "float32"))
        inputs.append(torch.from_numpy(values(shape_of(path, given.sizes(), options), kind, options)))
    return lambda _: method.execute(inputs)


def _llama(path: str, options: Options) -> Step:
    """Sequences of tokens beside each other, as many as the batch, from their beginning each time."""
    import llama_cpp

    sequences, length = options.batch or 1, options.seq_len
    context = llama_cpp.llama_context_default_params()
    context.n_ctx = context.n_batch = context.n_ubatch = sequences * length
    context.n_seq_max = sequences
    model = llama_cpp._internals.LlamaModel(
        path_model=path, params=llama_cpp.llama_model_default_params(), verbose=False
    )
    made = llama_cpp._internals.LlamaContext(model=model, params=context, verbose=False)
    batch = llama_cpp._internals.LlamaBatch(n_tokens=sequences * length, embd=0, n_seq_max=sequences, verbose=False)
    for sequence in range(sequences):
        batch.add_sequence([token % 2 for token in range(length)], sequence, False)

    def step(_: int) -> None:
        made.kv_cache_clear()
        made.decode(batch)

    return step


RUNTIMES: Dict[str, Runtime] = {
    "onnxruntime": Runtime("onnxruntime", ".onnx", _onnxruntime),
    "litert": Runtime("ai_edge_litert", ".tflite", _litert),
    "openvino": Runtime("openvino", ".onnx", _openvino),
    "executorch": Runtime("executorch", ".pte", _executorch),
    "llama.cpp": Runtime("llama_cpp", ".gguf", _llama),
}
ENDINGS = {".onnx", ".tflite", ".xml", ".pte", ".gguf"}
