"""torch.compile's own activation budget: `budget`, the share of the activations that compiled graphs may keep.

The compiler then chooses what it computes again in the backward pass, the cheapest first. Numbers stay the same as far
as the compiler's kernels agree: tests of its partition without fused kernels compare bit for bit. It costs the
second computation. What a graph draws at random, as dropout does, is kept: a second computation would draw others. It
is refused where nothing is compiled, where the program has set a budget itself, and before PyTorch 2.4. Where PyTorch
cannot keep what was drawn, as 2.6 cannot, such a graph ends the program before its first step.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Dict, List

from .found import Found, Refused
from .plan import refuse

NAME = "activation_memory_budget"


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets the budget, before the first graph of the model is compiled."""
    budget = float(settings.get("budget", 1.0))
    if not 0 < budget < 1:
        raise Refused("a budget is a share above 0 and below 1, and this one is %g" % budget)
    if not found.compiled:
        raise Refused("%s is not compiled" % found.name)
    try:
        from torch._functorch import config, partitioners
    except ImportError:
        raise Refused("it needs PyTorch 2.4 or newer") from None
    if not hasattr(config, NAME) or not hasattr(partitioners, "choose_saved_values_set"):
        raise Refused("it needs PyTorch 2.4 or newer")
    try:
        from torch.utils.checkpoint import CheckpointPolicy

        keep = CheckpointPolicy.MUST_SAVE
    except ImportError:
        raise Refused("it needs PyTorch 2.4 or newer") from None
    if getattr(config, NAME) != 1.0:
        raise Refused("the program has set a budget of %g" % getattr(config, NAME))

    def apply() -> str:
        # older partitioners compute what they were told to keep again
        code = partitioners.choose_saved_values_set.__code__
        keeps = "must_save_nodes" in code.co_varnames + code.co_cellvars
        plain, seeded = partitioners.choose_saved_values_set, found.torch.Tag.nondeterministic_seeded

        @functools.wraps(plain)
        def choose(graph: Any, *args: Any, **kwargs: Any) -> Any:
            for node in graph.nodes:
                if seeded in getattr(node.target, "tags", ()):
                    if not keeps:
                        refuse(found.agent, "compile_budget: %s draws random numbers, which would be drawn "
                               "anew; PyTorch 2.9 keeps them" % node.target)  # fmt: skip
                    for drawn in _values(node):
                        drawn.meta["recompute"] = keep
            return plain(graph, *args, **kwargs)

        partitioners.choose_saved_values_set = choose
        setattr(config, NAME, budget)
        return "compiled graphs may keep %g of their activations" % budget

    return apply


def _values(node: Any) -> List[Any]:
    """A node of a graph, and what is taken out of its tuple."""
    return [node, *(user for user in node.users if user.target is operator.getitem)]
