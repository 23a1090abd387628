"""What changes the answer and stands in no line of the script: which attention ran, what the compiler found in its
caches, how matrices are multiplied, which allocator setting was in force. Each is a `condition` record, sent at the
end.

The kernels of attention are told apart by the operators that are really called, below autograd and compilation.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List

from ..agent import Agent

ATTENTION = {
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_safe_softmax": "math",  # what the plain form is made of, and nothing else is
}


# No kernel runs, so that none is faster than another: PyTorch takes the first, as cuDNN's heuristics rank them.
BENCHMARK = "on (times are not known: what cuDNN's heuristics rank first was taken)"


class Conditions:
    """What was seen in this process."""

    def __init__(self, agent: Agent, parts: Any) -> None:
        self.agent = agent
        self.parts = parts
        self.attention: Dict[str, int] = {}
        self.libraries: List[Any] = []

    def watch_attention(self) -> None:
        """Count the calls of each kernel."""
        torch = self.parts.torch
        library = torch.library.Library("aten", "IMPL")
        after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        for operator_name, name in ATTENTION.items():
            operator = getattr(getattr(torch.ops.aten, operator_name, None), "default", None)
            if operator is not None:
                library.impl(operator_name, self._counting(name, operator.redispatch, after), "BackendSelect",
                             with_keyset=True)  # fmt: skip
        self.libraries.append(library)

    def _counting(self, name: str, redispatch: Callable[..., Any], after: Any) -> Callable[..., Any]:
        def kernel(keyset: Any, tensor: Any, *arguments: Any, **more: Any) -> Any:
            if tensor.is_cuda:
                self.attention[name] = self.attention.get(name, 0) + 1
            return redispatch(keyset & after, tensor, *arguments, **more)

        return kernel

    def report(self) -> None:
        """Say what was seen."""
        self.libraries.clear()  # nothing of ours may run while the interpreter is taken down
        for name, value in (
            ("allocator setting", self._allocator()),
            ("attention", self._attention()),
            ("compile cache", self._compiled()),
            ("matmul precision", self._precision()),
            ("cudnn benchmark", BENCHMARK if self.parts.torch.backends.cudnn.benchmark else ""),
        ):
            if value:
                record: Dict[str, Any] = {"type": "condition", "name": name, "value": value}
                if name == "attention":
                    record["kernels"] = sorted(self.attention)
                self.agent.record(record)

    def _allocator(self) -> str:
        """The setting in force: the program may have made it. An older PyTorch cannot be asked, but its environment."""
        asked = getattr(self.parts.torch._C, "_accelerator_getAllocatorSettings", None)
        set_by_environment = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
        return str(asked() if asked is not None else set_by_environment)

    def _attention(self) -> str:
        kinds = sorted(self.attention, key=lambda name: -self.attention[name])
        said = {str(getattr(getattr(m, "config", None), "_attn_implementation", None) or "")
                for m in self.parts.roots.modules()} - {"", "sdpa", "None"}  # fmt: skip
        return " and ".join(kinds + sorted(said))

    def _compiled(self) -> str:
        """What torch.compile's cache of graphs gave; "" where nothing was compiled."""
        utils = sys.modules.get("torch._dynamo.utils")
        counters: Any = getattr(utils, "counters", {})
        hits = counters["inductor"]["fxgraph_cache_hit"] if "inductor" in counters else 0
        misses = counters["inductor"]["fxgraph_cache_miss"] if "inductor" in counters else 0
        saved = "aot_autograd" in counters and counters["aot_autograd"]["autograd_cache_hit"]
        if not (hits or misses or saved):
            return ""
        if not misses:
            return "warm"
        return "cold" if not (hits or saved) else "partly warm (%d graphs compiled anew)" % misses

    def _precision(self) -> str:
        """Of fp32 products, where it is not the highest."""
        precision = self.parts.torch.get_float32_matmul_precision()
        return "" if precision == "highest" else str(precision)


def install(agent: Agent, parts: Any) -> None:
    """Watch, and report at the end."""
    conditions = Conditions(agent, parts)
    agent.at_end.insert(0, conditions.report)
    conditions.watch_attention()
