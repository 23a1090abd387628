"""The optimizer updates one parameter after the other, instead of all in one kernel over lists of tensors.

That saves the temporary copies which the kernels over lists make, up to as much as all parameters take. Numbers stay
the same bit for bit on the host; on a device they do as far as the two kinds of kernels agree, which PyTorch tests but
does not promise. It costs a launch of each kernel for each parameter. It is refused where an optimizer has no such
choice, is fused or is capturable.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from .found import Found, Refused


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets foreach=False in all groups."""
    optimizers = found.optimizer()
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    for optimizer in optimizers:
        name = type(optimizer).__name__
        if any("foreach" not in group for group in optimizer.param_groups):
            raise Refused("%s has no choice between kernels over lists and single ones" % name)
        if any(group.get("fused") for group in optimizer.param_groups):
            raise Refused("%s is fused, which makes no temporary copies" % name)
        if any(group.get("capturable") for group in optimizer.param_groups):
            raise Refused("%s is capturable" % name)
        if all(group["foreach"] is False for group in optimizer.param_groups):
            raise Refused("%s has foreach=False already" % name)

    def apply() -> str:
        for group in groups:
            group["foreach"] = False
        for optimizer in optimizers:
            optimizer.defaults["foreach"] = False
        return "%s with foreach=False" % ", ".join(sorted({type(o).__name__ for o in optimizers}))

    return apply
