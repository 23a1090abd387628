"""Models that are built on the host and then moved: their weights need no host memory if nobody writes them.

Fresh memory from the system is zero and takes no room until it is touched. So initialisers leave large host
tensors alone: the functions of torch.nn.init, and in-place random numbers on a tensor that something else (a
Parameter) holds too. What torch.randn and its like make is data, and is made.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable

from .ledger import Ledger

LARGE = 1 << 20  # bytes
_MMAP_THRESHOLD = -3  # of mallopt: from this size on memory comes fresh from the system, and goes back at once


def install(ledger: Ledger, torch: Any) -> None:
    """Let initialisers skip large tensors of the host."""
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE)

    def skips(tensor: Any) -> bool:
        return (
            isinstance(tensor, torch.Tensor)
            and tensor.device.type == "cpu"
            and tensor.numel() * tensor.element_size() >= LARGE
            and type(tensor).__name__ not in ("FakeTensor", "FunctionalTensor")
        )

    for name, function in list(vars(torch.nn.init).items()):
        if name.endswith("_") and not name.startswith("_") and callable(function):
            setattr(torch.nn.init, name, _skipping(function, skips))
    _in_place(torch, skips)


def _skipping(function: Callable[..., Any], skips: Callable[[Any], bool]) -> Callable[..., Any]:
    @functools.wraps(function)
    def initialise(*args: Any, **kwargs: Any) -> Any:
        tensor = args[0] if args else kwargs.get("tensor")
        return tensor if skips(tensor) else function(*args, **kwargs)

    return initialise


def _in_place(torch: Any, skips: Callable[[Any], bool]) -> None:
    """x.normal_() and x.uniform_(), also by `weight.data`; below autograd, and seen by no compiler."""
    count = getattr(torch._C, "_storage_Use_Count", None)
    if count is None:
        return
    library = torch.library.Library("aten", "IMPL")
    after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)

    def alone(tensor: Any) -> bool:
        storage = tensor.untyped_storage()
        return bool(count(storage._cdata) <= 2)  # this one and the tensor's own

    for operator in (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default):

        def kernel(keyset: Any, tensor: Any, *args: Any, _redispatch: Any = operator.redispatch, **kwargs: Any) -> Any:
            if skips(tensor) and not alone(tensor):
                return tensor
            result = _redispatch(keyset & after, tensor, *args, **kwargs)
            for forget in drawn:
                forget(tensor)
            return result

        library.impl(operator.name().partition("::")[2].replace(".default", ""), kernel, "BackendSelect",
                     with_keyset=True)  # fmt: skip
    _kept.append(library)


drawn: list[Callable[[Any], None]] = []  # are told of each tensor that random numbers were written to
_kept: list[Any] = []  # a library takes its kernels back when it goes
