"""torch.compile's own activation budget: `budget`, the share of the activations that compiled graphs may keep.

The compiler then chooses what it computes again in the backward pass, the cheapest first. Numbers stay the same as far
as the compiler's kernels agree: tests of its partition without fused kernels compare bit for bit. It costs the
second computation. It is refused where nothing is compiled, where the program has set a budget itself, and before
PyTorch 2.4. A graph that draws random numbers ends the program as it is compiled, before its first step: the second
computation would draw others.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

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
    if getattr(config, NAME) != 1.0:
        raise Refused("the program has set a budget of %g" % getattr(config, NAME))

    def apply() -> str:
        plain, seeded = partitioners.choose_saved_values_set, found.torch.Tag.nondeterministic_seeded

        @functools.wraps(plain)
        def choose(graph: Any, *args: Any, **kwargs: Any) -> Any:
            for target in {node.target for node in graph.nodes}:
                if seeded in getattr(target, "tags", ()):
                    refuse(found.agent, "compile_budget: %s draws random numbers, which the second computation would "
                           "draw anew" % target)  # fmt: skip
            return plain(graph, *args, **kwargs)

        partitioners.choose_saved_values_set = choose
        setattr(config, NAME, budget)
        return "compiled graphs may keep %g of their activations" % budget

    return apply
