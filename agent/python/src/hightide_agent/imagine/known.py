"""Small whole numbers that the host knows stay known through simple arithmetic: a length that is the largest of
some lengths, a flag that is true where two counts agree, the sizes that ranks tell each other.

    lengths.max() ─▶ BackendSelect: ours ─▶ the real kernel, and the same on the host ─▶ the device keeps the result

Only for tensors of integers or bools, of at most MOST elements, on an imaginary device, whose bytes the device still
has as the host wrote them. All others pass at the cost of one Python call; floating-point operators are
not among them, but where one name serves both.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Iterator, List, Optional, Tuple

from .device import Device

MOST = 4096  # elements
LARGEST = 64 << 10  # bytes of a storage
OPERATORS = (
    "max", "min", "sum", "sum.dim_IntList", "any", "all", "any.dim", "all.dim", "max.dim", "min.dim", "cumsum",
    "eq.Scalar", "ne.Scalar", "lt.Scalar", "le.Scalar", "gt.Scalar", "ge.Scalar",
    "eq.Tensor", "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor",
    "bitwise_or.Tensor", "bitwise_and.Tensor", "bitwise_not", "logical_not", "fill_.Scalar",
)  # fmt: skip
ARITHMETIC = ("add.Tensor", "sub.Tensor", "mul.Tensor", "add_.Tensor", "sub_.Tensor", "mul_.Tensor")
"""For programs of several ranks alone, which work out offsets from what they tell each other: the names serve
floating-point numbers too, and every training step calls them often."""


def install(device: Device, torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Put ours between autograd and CUDA for these operators."""
    if not device.keeps:
        return
    known = Known(device, torch)
    _between(known, torch, OPERATORS)
    watch("torch.distributed.distributed_c10d", lambda module: _with_ranks(known, torch, module))


def _with_ranks(known: Known, torch: Any, module: Any) -> None:
    from .ranks import replace

    original, as_bytes = module.init_process_group, getattr(module, "_object_to_tensor", None)

    @functools.wraps(as_bytes or original)
    def object_to_tensor(*args: Any, **kwargs: Any) -> Any:
        assert as_bytes is not None
        made = as_bytes(*args, **kwargs)
        for tensor in made:
            known.remember(tensor)
        return made

    if as_bytes is not None:
        replace(as_bytes, object_to_tensor)

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        if len(_kept) == 1:
            _between(known, torch, ARITHMETIC)
            _kept[-1].impl("cat", known.joining(torch.ops.aten.cat.default), "BackendSelect", with_keyset=True)
        return original(*args, **kwargs)

    replace(original, init_process_group)


def _between(known: Known, torch: Any, names: Tuple[str, ...]) -> None:
    library = torch.library.Library("aten", "IMPL")
    for name in names:
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if operator is not None:
            library.impl(name, known.between(operator), "BackendSelect", with_keyset=True)
    _kept.append(library)


class Known:
    """The operators on known numbers."""

    def __init__(self, device: Device, torch: Any) -> None:
        self.device = device
        self.torch = torch
        self.after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        self._remembered: List[Tuple[Any, Any]] = []  # weak reference and host copy
        kinds = ("bool", "uint8", "int8", "int16", "int32", "int64")
        self.kinds = frozenset(getattr(torch, kind) for kind in kinds)

    def between(self, operator: Any) -> Callable[..., Any]:
        """The kernel that is put in between."""
        after, kinds, redispatch = self.after, self.kinds, operator.redispatch
        fills = operator.name() == "aten::fill_.Scalar"
        of_tensors = operator.name().endswith(".Tensor")
        in_place = operator.name().endswith("_.Tensor")

        def kernel(keyset: Any, tensor: Any, *rest: Any, **more: Any) -> Any:
            below = keyset & after
            if of_tensors and rest:
                tensor, rest = self._tensors(tensor, rest)
            subject = rest[0] if of_tensors and rest and not tensor.is_cuda else tensor
            if subject.dtype not in kinds or not subject.is_cuda or subject.numel() > MOST:
                return redispatch(below, tensor, *rest, **more)
            if fills:
                result = redispatch(below, tensor, *rest, **more)
                self._keep(tensor, self.torch.full(tensor.shape, rest[0], dtype=tensor.dtype))
                return result
            inputs = [(t, self._host(t)) for t in (tensor, *rest) if isinstance(t, self.torch.Tensor)]
            storages = [pair for t, host in inputs[in_place:] if host is not None and t.is_cuda
                        for pair in self._storage(t)]  # fmt: skip
            result = redispatch(below, tensor, *rest, **more)
            if all(host is not None for _, host in inputs):
                hosts = {id(t): host for t, host in inputs}
                truth = operator(*(hosts.get(id(a), a) for a in (tensor, *rest)), **more)
                pairs = zip(result, truth) if isinstance(result, (tuple, list)) else [(result, truth)]
                for made, true in pairs:
                    self._keep(made, true)
            for given, storage in storages:  # what a kernel was given is forgotten; this one only read it
                self.device.keep(given, storage.data_ptr(), storage.nbytes())
            self._recall()
            return result

        return kernel

    def joining(self, operator: Any) -> Callable[..., Any]:
        """As between, for cat, which takes a list: objects travel between ranks as bytes put one behind the other."""
        after, redispatch = self.after, operator.redispatch

        def kernel(keyset: Any, tensors: Any, *rest: Any) -> Any:
            mine = bool(tensors) and all(t.is_cuda and t.dtype in self.kinds and t.numel() <= MOST for t in tensors)
            self._recall()
            hosts = [self._host(t) for t in tensors] if mine else [None]
            storages = [pair for t in tensors for pair in self._storage(t)] if mine else []
            result = redispatch(keyset & after, tensors, *rest)
            if all(host is not None for host in hosts):
                self._keep(result, self.torch.cat(hosts, *rest))
            for given, storage in storages:
                self.device.keep(given, storage.data_ptr(), storage.nbytes())
            self._recall()
            return result

        return kernel

    def remember(self, tensor: Any) -> None:
        """Keep what a tensor holds for as long as it lives: a launch may forget more than its arguments, as what
        an earlier one left on the stack."""
        host = self._host(tensor) if tensor.is_cuda else None
        if host is not None:
            self._remembered.append((weakref.ref(tensor), host))

    def _recall(self) -> None:
        if not self._remembered:
            return
        self._remembered = [(tensor, host) for tensor, host in self._remembered if tensor() is not None]
        for reference, host in self._remembered:
            tensor = reference()
            if tensor is not None and tensor.nbytes >= host.nbytes:  # more: padded to the largest of all ranks
                self.device.keep(tensor.data_ptr(), host.data_ptr(), host.nbytes)

    def _tensors(self, one: Any, rest: Tuple[Any, ...]) -> Tuple[Any, Tuple[Any, ...]]:
        """Both operands as tensors, of which either may come as a number: `7 - t` subtracts t from a wrapped 7."""
        if not isinstance(one, self.torch.Tensor):
            return self._number(rest[0], one), rest
        if not isinstance(rest[0], self.torch.Tensor):
            return one, (self._number(one, rest[0]), *rest[1:])
        return one, rest

    def _number(self, tensor: Any, value: Any) -> Any:
        """A Python number as the tensor that the operator was given: of the type that changes the result's least."""
        same = type(value) is int and tensor.dtype in self.kinds and tensor.dtype != self.torch.bool
        same = same or (type(value) in (int, float) and tensor.dtype.is_floating_point)
        return self.torch.tensor(value, dtype=tensor.dtype) if same else self.torch.tensor(value)

    def _host(self, tensor: Any) -> Optional[Any]:
        if not tensor.is_cuda:
            return tensor if tensor.device.type == "cpu" else None
        if tensor.numel() > MOST or not tensor.is_contiguous() or not self.device.known(tensor):
            return None
        return tensor.cpu()

    def _storage(self, tensor: Any) -> Iterator[Any]:
        """Address and host copy of all that lies under a tensor, as far as it is known."""
        storage = tensor.untyped_storage()
        if storage.nbytes() <= LARGEST and self.device.has(storage.data_ptr(), storage.nbytes()):
            yield storage.data_ptr(), storage.cpu()

    def _keep(self, tensor: Any, host: Any) -> None:
        if tensor.is_cuda and tensor.is_contiguous() and tensor.dtype == host.dtype and tensor.shape == host.shape:
            host = host.contiguous()
            self.device.keep(tensor.data_ptr(), host.data_ptr(), host.numel() * host.element_size())


_kept: list[Any] = []  # a library takes its kernels back when it goes
