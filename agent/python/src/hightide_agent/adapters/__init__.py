"""The frameworks that are recognised, and the adapter of each.

An adapter is a module of this package with `install(training, module, watch)`: `training` takes what it tells
(training.py), `module` is the framework, fully imported, and `watch(name, function)` calls function(module) once that
module, too, has been imported. To add one: write the file, and put the name that programs import in this list.
None: the import is noted, nothing more. Of a package without an __init__, name one of its modules. docs/adapters.md has
an example.
"""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Optional


ADAPTERS: dict[str, Optional[str]] = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "keras": "keras",
    "vllm": "vllm",
    "sglang": "sglang",
    "onnxruntime": "onnxruntime",
    "ai_edge_litert": "litert",
    "openvino": "openvino",
    "executorch.extension.pybindings._C": "executorch",
    "llama_cpp": "llama",
    "cupy": "cupy",
    "rmm": "rmm",
    "lightning": None,
    "pytorch_lightning": None,
    "transformers": "transformers",
    "flax": None,  # those that import jax themselves are watched from their beginning: what waits for them is told
    "equinox": None,  # at their end, before a class of the program is made
    "haiku": None,
}
