"""Data-dependent sizes: what nonzero, masks, unique and their like give, when no kernel has counted.

    the script ─▶ aten::nonzero ─▶ autograd ─▶ BackendSelect: ours ─▶ CUDA: the real one, told what to read
                                                                        └▶ its scratch, its output: as on hardware

The real CUDA code runs, with all it allocates; only the number it reads back from the device is ours. The
number is the true one where the device still has the input as the host wrote it. Else it is the policy's: the upper
bound, nothing, or a fraction of the bound. Contents then read as zeros, which are valid indices; true contents
are put in place where they are known. BackendSelect lies below autograd, fake tensors and compilation, so none of
them notices; no other operator pays for it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional

from .device import Device
from .known import Known
from .ledger import Ledger
from .undecided import Reads, bits, policy


def install(ledger: Ledger, device: Device, known: Known, torch: Any) -> Reads:
    """Put ours between autograd and CUDA for the few operators whose size a kernel counts. The result answers reads."""
    sizes = Sizes(ledger, device, known, torch)
    sizes.library = torch.library.Library("aten", "IMPL")
    for name, function in sizes.table().items():
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if operator is not None:
            sizes.library.impl(name, sizes.between(operator, function), "BackendSelect", with_keyset=True)
    ledger.agent.at_end.append(sizes.ended)
    _unsigned(torch)
    return sizes.reads


def _unsigned(torch: Any) -> None:
    """Up to PyTorch 2.6 a kernel in Python cannot hand on a number of 2**63 or more: such a one is read as a negative
    one of the same bits."""
    kind = getattr(torch, "uint64", None)
    if kind is None:
        return
    try:
        torch.tensor(1 << 63, dtype=kind).item()
    except (RuntimeError, OverflowError, TypeError):
        torch.Tensor.item = _reading(torch, torch.Tensor.item, kind)


def _reading(torch: Any, original: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def read(tensor: Any) -> Any:
        if tensor.dtype != kind:
            return original(tensor)
        return original(tensor.view(torch.int64)) & (1 << 64) - 1

    return read


class Sizes:
    """The operators, and what they are told."""

    def __init__(self, ledger: Ledger, device: Device, known: Known, torch: Any) -> None:
        self.ledger = ledger
        self.device = device
        self.known = known
        self.reads = known.reads = Reads(ledger, known, torch)
        self.torch = torch
        self.name, self.fraction = policy()
        known.even = self.reads.other or not self.fraction
        self.library: Any = None
        self.truths: list[bool] = []  # answers to the checks of the operator that is running, next one last
        self._after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)

    def table(self) -> Dict[str, Callable[..., Any]]:
        """The operators and what runs in their place: function(call, *arguments), call being the real one."""
        return {
            "nonzero": self._nonzero,
            "_unique": self._unique,
            "_unique2": self._unique,
            "unique_consecutive": self._unique,
            "unique_dim": self._unique_dim,
            "unique_dim_consecutive": self._unique_dim,
            "repeat_interleave.Tensor": self._repeat_interleave,
            "bincount": self._bincount,
            "multinomial": self._multinomial,
            "_coalesce": self._coalesce,
            "_local_scalar_dense": self._item,
        }

    def ended(self) -> None:
        """Nothing of ours may run while the interpreter is taken down."""
        self.library = None

    def between(self, operator: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel that is put in between: the real one at once for tensors of no imaginary device."""
        after, redispatch = self._after, operator.redispatch

        def kernel(keyset: Any, tensor: Any, *arguments: Any, **more: Any) -> Any:
            below = keyset & after
            if isinstance(tensor, (int, float, complex)):  # PyTorch takes a tensor that it made of a number for that
                wide = {float: self.torch.float64, complex: self.torch.complex128}.get(type(tensor))
                return redispatch(below, self.torch.tensor(tensor, dtype=wide), *arguments, **more)
            if not tensor.is_cuda:
                return redispatch(below, tensor, *arguments, **more)
            return function(lambda t=tensor: redispatch(below, t, *arguments, **more), operator, tensor,
                            *arguments, **more)  # fmt: skip

        return kernel

    def _chosen(self, operator: Any, bound: int) -> int:
        size = self.reads.size(_name(operator), int(bound * self.fraction), bound)
        self.ledger.at_line("policy", _name(operator), 2, ("elements",), policy=self.name, elements=size)
        return size

    def _on_host(self, operator: Any, tensor: Any, *arguments: Any, **more: Any) -> Optional[Any]:
        """What the operator gives for the tensor's true values; None where they are not known."""
        truth = self.known.truth(tensor)
        return None if truth is None else operator(truth, *arguments, **more)

    def _fill(self, result: Any, truth: Any) -> Any:
        """Put known contents into what the real operator has allocated, where the sizes agree."""
        pairs = zip(result, truth) if isinstance(result, (tuple, list)) else [(result, truth)]
        for made, true in pairs:
            if made.shape == true.shape and made.numel() and made.dtype == true.dtype:
                made.copy_(true if made.is_contiguous() else true.clone())
        return result

    def _counted(self, call: Any, operator: Any, count: int, truth: Any) -> Any:
        with self.device.answering(count):
            result = call()
        return result if truth is None else self._fill(result, truth)

    def _nonzero(self, call: Any, operator: Any, tensor: Any) -> Any:
        truth = self._on_host(operator, tensor)
        if truth is None:
            return self._nonzero_assumed(call, operator, tensor)
        return self._counted(call, operator, len(truth), truth)

    def _nonzero_assumed(self, call: Any, operator: Any, tensor: Any) -> Any:
        """Of a mask that follows from a routing, or has an opposite that was asked for: their bounds hold together."""
        host, coin = self.known.assumed(tensor), self.known.twins.coin_of(tensor)
        if host is not None:
            places = operator(host)
            result = self._counted(call, operator, self._said(operator, len(places)), None)
            self.known.twins.keep(result, places, True)
            return result
        count = self._chosen(operator, tensor.numel())
        if coin is not None:
            count = 0 if self.reads.flip else count
            asked, count = coin[0].true is not None, coin[0].count(coin[1], count, tensor.numel())
            if asked:
                self.reads.shared(count, tensor.numel())
        return self._counted(call, operator, count, None)

    def _said(self, operator: Any, size: int) -> int:
        self.ledger.at_line("policy", _name(operator), 3, ("elements",), policy=self.name, elements=size)
        return size

    def _unique(self, call: Any, operator: Any, tensor: Any, *arguments: Any, **more: Any) -> Any:
        truth = self._on_host(operator, tensor, *arguments, **more)
        if truth is not None:
            return self._counted(call, operator, len(truth[0]), truth)
        most = self.known.twins.most(tensor)
        bound = min(tensor.numel(), _values(self.torch, tensor.dtype) if most is None else most + 1)
        return self._counted(call, operator, max(self._chosen(operator, bound), min(1, bound)), None)

    def _unique_dim(self, call: Any, operator: Any, tensor: Any, dim: int, *arguments: Any, **more: Any) -> Any:
        truth = self._on_host(operator, tensor, dim, *arguments, **more)
        bound = tensor.shape[dim]
        count = truth[0].shape[dim] if truth is not None else max(self._chosen(operator, bound), min(1, bound))
        return self._counted(call, operator, count, truth)

    def _coalesce(self, call: Any, operator: Any, tensor: Any) -> Any:
        """As many elements stay of a sparse tensor as it has places."""
        places = tensor._indices()
        truth = self._on_host(self.torch.unique, places, dim=1)
        bound = places.shape[1]
        count = truth.shape[1] if truth is not None else max(self._chosen(operator, bound), min(1, bound))
        result = self._counted(call, operator, count, None)
        if truth is not None:
            self._fill(result._indices(), truth)
        return result

    def _repeat_interleave(self, call: Any, operator: Any, repeats: Any, *, output_size: Any = None) -> Any:
        if output_size is not None:
            return call()
        truth = self._on_host(operator, repeats)
        assumed = self.known.assumed(repeats) if truth is None else None
        if assumed is not None:
            return self._counted(call, operator, self._said(operator, int(assumed.sum())), None)
        # No bound is known: each element once.
        count = len(truth) if truth is not None else self.reads.size("repeat_interleave", repeats.numel(), None)
        return self._counted(call, operator, count, truth)

    def _bincount(self, call: Any, operator: Any, tensor: Any, weights: Any = None, minlength: int = 0) -> Any:
        truth = self._on_host(operator, tensor, None, minlength)
        assumed = self.known.assumed(tensor) if truth is None and weights is None else None
        if assumed is not None:
            counts = operator(assumed, None, max(minlength, (self.known.twins.most(tensor) or 0) + 1))
            result = self._scripted(call, [len(counts) - 1], None)
            self.known.twins.keep(result, counts, True, tensor.numel())
            return result
        largest = len(truth) - 1 if truth is not None else self._largest(tensor, minlength)
        return self._scripted(call, [max(0, largest)], truth if weights is None else None)

    def _largest(self, tensor: Any, minlength: int) -> int:
        """Of numbers that are counted: what it can be, where that is known, and else a guess."""
        most = self.known.twins.most(tensor)
        if most is None:
            return self.reads.size("bincount", max(minlength, 1), None) - 1
        return self.reads.size("bincount", max(minlength, most + 1), most + 1 + minlength) - 1

    def _multinomial(self, call: Any, operator: Any, tensor: Any, *arguments: Any, **more: Any) -> Any:
        """The real one checks on the host that probabilities are finite, and then that no row sums to zero."""
        return self._scripted(call, [True, False], None)

    def _scripted(self, call: Any, answers: Any, truth: Any) -> Any:
        self.truths = list(reversed(answers))
        try:
            result = call()
        finally:
            self.truths = []
        return result if truth is None else self._fill(result, truth)

    def _item(self, call: Any, operator: Any, tensor: Any) -> Any:
        """A number read by the host: the device gives what it knows, and counts what it does not."""
        if self.truths and not self.device.known(tensor):
            with self.device.answering(int(self.truths.pop())):
                return call()
        if self.device.busy:  # a count that another operator asks for
            return call()
        answer = None
        if not self.device.known(tensor):
            truth = self.known.truth(tensor)
            answer = truth.item() if truth is not None else self.reads.one(tensor)
        if isinstance(answer, list):
            answer = answer[0] if answer else 0
        with self.device.reading(tensor.dtype) if answer is None else self.device.answering(bits(answer, tensor.dtype)):
            return call()


def _name(operator: Any) -> str:
    text = str(operator.name()).partition("::")[2] if callable(getattr(operator, "name", None)) else str(operator)
    name = text.partition(".")[0]
    return {"_unique2": "unique", "_unique": "unique", "_coalesce": "coalesce"}.get(name, name)


def _values(torch: Any, dtype: Any) -> int:
    """How many different values a type has, where that is few."""
    return {torch.bool: 2, torch.uint8: 256, torch.int8: 256}.get(dtype, 1 << 62)
