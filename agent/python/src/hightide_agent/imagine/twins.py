"""Copies on the host of what storages of the device hold, as far as that is known.

A twin is found by its storage, and is true as long as the version that PyTorch counts is the one it was made for. An
operator that writes in place counts up after we have followed it, or not at all where another operator calls it: right
after we wrote, both are taken.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .device import MOST, Device

LARGEST = 32 << 20  # bytes of a twin
PARTLY = 4 << 20  # bytes of one of which a part alone is known
ALL = 256 << 20  # bytes of all twins
ANSWERS, AGAIN = 64, 100  # that are kept of one storage; and how often each is given again

NO_LARGER = frozenset((
    "max", "min", "amax", "amin", "copy_", "index_select", "index", "gather", "clone", "median", "mode", "clamp_max",
    "sort", "topk", "kthvalue", "cummax", "cummin",
))  # fmt: skip
"""Operators whose result is at most the largest of what they are given."""


class Twin:
    """What is known of one storage."""

    __slots__ = (
        "alive",
        "assumed",
        "bytes",
        "coin",
        "constant",
        "dtype",
        "fresh",
        "host",
        "most",
        "parts",
        "route",
        "said",
        "upwards",
        "version",
    )

    def __init__(self, alive: Any, version: int) -> None:
        self.alive, self.version, self.fresh = alive, version, False
        self.host: Any = None  # a storage of the host
        self.bytes = 0
        self.parts: Optional[List[Tuple[int, int]]] = None  # from and to which byte the host's are known; None: all are
        self.constant: Any = None  # instead of it: all elements, of dtype, are this
        self.dtype: Any = None
        self.most: Optional[int] = None  # nothing but how large an element can be
        self.assumed = False  # it follows from a routing that was made up
        self.route: Any = None  # a routing that is made up when somebody asks
        self.upwards = False  # nothing but that no element is below zero
        self.said: Dict[
            Any, List[Any]
        ] = {}  # what was answered of some elements: first, behind the last, type → [answer, reads]
        self.coin: Any = None  # (coin, whether it is the mask that it was made for)


class Twins:
    """All that is known."""

    def __init__(self, device: Device, torch: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        self.device = device
        self.torch = torch
        self.weak = StorageWeakRef
        # Its storage as Python has it would be a second owner, and autograd then sums into new memory (PyTorch 2.15).
        self.place = getattr(torch._C, "_storage_address", None) or (lambda tensor: tensor.untyped_storage()._cdata)
        self._owned = _has_second_owner(torch)
        self._all: Dict[int, Twin] = {}
        self._bytes = 0
        self._sweep = 256
        self.tainted = False  # something assumed was looked at since this was set to False

    def view(self, tensor: Any) -> Optional[Any]:
        """The tensor's values on the host; None where they are not known. What it gives is not to be written to."""
        if not tensor.is_cuda:
            return tensor if tensor.device.type == "cpu" else None
        twin = self._of(tensor)
        if twin is not None and twin.route is not None:
            twin = self.settle(tensor, 0)
        if twin is not None and twin.assumed:
            self.tainted = True
        if twin is not None and twin.constant is not None:
            if twin.dtype != tensor.dtype:
                return None
            return self.torch.full((1,) * tensor.dim(), twin.constant, dtype=tensor.dtype).expand(tensor.shape)
        if twin is not None and twin.host is not None:
            return self._over(twin.host, tensor) if _covers(twin, tensor) else None
        return self._kept(tensor)

    def to_write(self, tensor: Any, overwrites: bool) -> Optional[Any]:
        """As view, to be written to. What a tensor held that is overwritten need not be known."""
        twin = self._of(tensor)
        if twin is not None and twin.constant is not None:
            self._write_out(twin, tensor)
        if twin is not None and twin.host is not None:
            known = _covers(twin, tensor) or (overwrites and tensor.is_contiguous())
            return self._over(twin.host, tensor) if known else None
        if overwrites and self.whole(tensor):
            large = tensor.untyped_storage().nbytes() > LARGEST
            return None if large else self.torch.empty(tensor.shape, dtype=tensor.dtype)
        kept = self._kept(tensor)
        if kept is None and overwrites and self._partly(tensor):
            return self.torch.empty(tensor.shape, dtype=tensor.dtype)
        return kept

    def write(self, tensor: Any, host: Any, assumed: bool = False) -> None:
        """An operator has written in place; `host` is what view or to_write gave, written to alike."""
        twin = self._of(tensor)
        if twin is not None and twin.host is not None and host.untyped_storage()._cdata == twin.host._cdata:
            twin.version, twin.fresh = _version(tensor), True
            twin.assumed = assumed or (twin.assumed and not self.whole(tensor))
            _learn(twin, tensor)
            return
        if self.whole(tensor):
            self.keep(tensor, host, assumed)
        else:
            self._keep_part(tensor, host, assumed)
        twin = self._of(tensor)
        if twin is not None:
            twin.fresh = True

    def keep(self, tensor: Any, host: Any, assumed: bool = False, most: Optional[int] = None) -> None:
        """From now on the tensor holds what `host` does."""
        self.forget(tensor)
        if not self.whole(tensor):
            return
        size = tensor.untyped_storage().nbytes()
        if size > LARGEST or tensor.dtype != host.dtype or tensor.shape != host.shape:
            return
        twin = self._new(tensor)
        if twin is None:
            return
        twin.host = self.torch.UntypedStorage(size)
        twin.bytes = size
        twin.assumed, twin.most = assumed, most
        self._bytes += size
        self._over(twin.host, tensor).copy_(host)
        self._limit()

    def _limit(self) -> None:
        while self._bytes > ALL:
            self._drop(next(key for key, each in self._all.items() if each.bytes))

    def _partly(self, tensor: Any) -> bool:
        """Whether what is written to a part of a storage is kept: of whole numbers, in one piece."""
        one_piece = tensor.numel() > 0 and tensor.is_contiguous()
        whole_numbers = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
        return one_piece and whole_numbers and bool(tensor.untyped_storage().nbytes() <= PARTLY)

    def _keep_part(self, tensor: Any, host: Any, assumed: bool) -> None:
        """From now on a part of a storage of which nothing was known holds what `host` does."""
        self.forget(tensor)
        twin = self._new(tensor) if self._partly(tensor) else None
        if twin is None:
            return
        twin.bytes = tensor.untyped_storage().nbytes()
        twin.host, twin.parts, twin.assumed = self.torch.UntypedStorage(twin.bytes), [], assumed
        self._bytes += twin.bytes
        self._over(twin.host, tensor).copy_(host)
        _learn(twin, tensor)
        self._limit()

    def routed(self, tensor: Any, route: Any) -> None:
        """The tensor's elements are indices of a routing, which is made up once somebody asks."""
        twin = self._new(tensor) if self.whole(tensor) else None
        if twin is not None:
            twin.route, twin.most = route, route.choices - 1

    def settle(self, tensor: Any, first: int) -> Optional[Twin]:
        """Make a routing up, if the tensor has one: `first` is the expert that is asked for. Gives its twin."""
        twin = self._of(tensor)
        if twin is None or twin.route is None:
            return None
        route, most = twin.route, twin.most
        self.keep(tensor.as_strided(route.shape, route.stride, 0), route.indices(self.torch, first), True, most)
        return self._of(tensor)

    def coin(self, tensor: Any, coin: Any, sign: bool) -> None:
        """The tensor is a mask or its opposite."""
        twin = self._new(tensor) if self.whole(tensor) else None
        if twin is not None:
            twin.coin = coin, sign

    def coin_of(self, tensor: Any) -> Any:
        """(coin, sign) of a whole mask; None: it has none."""
        twin = self._of(tensor) if tensor.is_cuda else None
        return twin.coin if twin is not None and self.whole(tensor) else None

    def constant(self, tensor: Any, value: Any, fresh: bool = False) -> None:
        """All of the tensor's elements are `value`; `fresh`: written in place just now."""
        self.forget(tensor)
        twin = self._new(tensor) if self.whole(tensor) else None
        if twin is not None:
            twin.constant, twin.dtype, twin.fresh = value, tensor.dtype, fresh

    def constant_of(self, tensor: Any) -> Optional[Any]:
        """What all elements are, where it is known that they are the same; on the host of a single one."""
        if not tensor.is_cuda:
            return tensor.item() if tensor.numel() == 1 else None
        twin = self._of(tensor)
        return twin.constant if twin is not None and twin.dtype == tensor.dtype else None

    def bound(self, tensor: Any, most: Optional[int]) -> None:
        """Of a tensor that is not known: no element is larger than `most`, nor below zero."""
        if most is not None and tensor.is_cuda and self._of(tensor) is None:
            twin = self._new(tensor)
            if twin is not None:
                twin.most = most

    def upwards(self, tensor: Any, fresh: bool = False) -> None:
        """Of a tensor that is not known: no element is below zero. `fresh`: written in place just now."""
        twin = self._new(tensor) if self.whole(tensor) else None
        if twin is not None:
            twin.upwards, twin.fresh = True, fresh

    def is_upwards(self, tensor: Any) -> bool:
        """Whether that is known of it."""
        twin = self._of(tensor)
        return twin is not None and twin.upwards

    def say(self, tensor: Any, answer: Any) -> None:
        """Elements that nobody knows were answered with a number: they read the same again."""
        twin = self._of(tensor) or self._new(tensor)
        if twin is not None and len(twin.said) < ANSWERS:
            twin.said[_extent(tensor)] = [answer, 0]

    def said(self, tensor: Any) -> Optional[Any]:
        """What elements were answered with before; None: they were not, or it was asked AGAIN times already, as by a
        loop that waits for something that writes without telling."""
        twin = self._of(tensor) if tensor.is_cuda else None
        if twin is None or not twin.said:
            return None
        begin, end, kind = _extent(tensor)
        for (first, last, of), told in twin.said.items():
            if first <= begin and end <= last and of == kind and told[1] < AGAIN:
                told[1] += 1
                return told[0]
        return None

    def most(self, tensor: Any) -> Optional[int]:
        """How large an element can be, where that is known."""
        if tensor.dtype == self.torch.bool:
            return 1
        twin = self._of(tensor) if tensor.is_cuda else None
        if twin is not None and twin.most is not None:
            return twin.most
        host = self.view(tensor) if tensor.numel() and tensor.dtype != self.torch.bool else None
        if host is not None and not host.dtype.is_floating_point:
            return max(0, int(host.max()))
        return {self.torch.uint8: 255, self.torch.int8: 127}.get(tensor.dtype)

    def bound_of(self, base: str, args: Any, result: Any) -> Any:
        """How large the result of an operator on numbers that are not known can be."""
        one = args[0]
        if not isinstance(one, self.torch.Tensor):
            return None
        if base in ("argmax", "argmin"):
            dim = args[1] if len(args) > 1 else None
            return max(0, (one.shape[dim] if isinstance(dim, int) and one.dim() else one.numel()) - 1)
        if one.dtype.is_floating_point:
            return None
        most = self.most(one) if base not in ("copy_",) else self.most(args[1])
        if most is None:
            return None
        if base in ("sum", "count_nonzero", "cumsum"):
            summed = one.numel() // max(1, result.numel() if base != "cumsum" else 1)
            return (most if base != "count_nonzero" else 1) * summed
        if base in ("add", "add_"):
            other = args[1]
            more = self.most(other) if isinstance(other, self.torch.Tensor) else other
            return most + int(more) if isinstance(more, (int, float)) and more >= 0 else None
        return most if base in NO_LARGER else None

    def clear(self) -> None:
        """Nothing is known any more."""
        self._all.clear()
        self._bytes = 0

    def forget(self, tensor: Any) -> None:
        """Something was written that was not followed."""
        if tensor.is_cuda:
            self._drop(self.place(tensor))

    def give(self, tensor: Any) -> bool:
        """The device takes over what is known, for a collective that reads and writes there. Gives whether it follows
        from a routing that was made up."""
        self.settle(tensor, 0)
        twin = self._of(tensor)
        assumed = twin is not None and twin.assumed
        self.restore(tensor, assumed)
        self.forget(tensor)
        return assumed

    def suppose(self, tensor: Any) -> None:
        """What the device knows of the tensor follows from a routing that was made up."""
        if self.view(tensor) is not None:
            twin = self._of(tensor)
            if twin is not None:
                twin.assumed = True

    def restore(self, tensor: Any, assumed: bool = False) -> None:
        """Tell the device what is known, for what reads there without us; also where the storage has grown since. What
        follows from a routing that was made up only with `assumed`."""
        storage = tensor.untyped_storage()
        twin = self._all.get(storage._cdata)
        if twin is None or twin.alive.expired() or not 0 <= _version(tensor) - twin.version <= 1:
            return
        if twin.constant is not None:
            self._write_out(twin, tensor)
        if twin.host is not None and twin.bytes <= storage.nbytes() and assumed >= twin.assumed:
            for first, last in [(0, twin.bytes)] if twin.parts is None else twin.parts:
                self.device.keep(storage.data_ptr() + first, twin.host.data_ptr() + first, last - first)

    def holds(self, tensor: Any) -> bool:
        """Whether something is, or was, known of the tensor's storage. A sparse one has none."""
        try:
            return self.place(tensor) in self._all
        except NotImplementedError:
            return False

    def _of(self, tensor: Any) -> Optional[Twin]:
        place = self.place(tensor)
        twin = self._all.get(place)
        if twin is None:
            return None
        version = _version(tensor)
        if twin.fresh and version in (twin.version, twin.version + 1):
            twin.version, twin.fresh = version, False
        if self._counts_for_itself(twin, version):
            return None
        resized = twin.host and twin.bytes != tensor.untyped_storage().nbytes()
        if twin.version != version or twin.alive.expired() or resized:
            self._drop(place)
            return None
        return twin

    def _counts_for_itself(self, twin: Twin, version: int) -> bool:
        """Whether a tensor is another view of the storage, made beneath autograd as copies of a slice make one: its
        versions begin anew, so it says nothing of the twin, which stays for the others."""
        return 0 <= version < twin.version and not twin.alive.expired()

    def _new(self, tensor: Any) -> Optional[Twin]:
        if self.torch._C._cuda_isCurrentStreamCapturing():
            return None  # each launch of the graph computes anew
        if tensor.dtype.is_floating_point and tensor.is_inference():
            return None  # whatever writes there is not counted
        if len(self._all) >= self._sweep:
            for key in [key for key, twin in self._all.items() if twin.alive.expired()]:
                self._drop(key)
            self._sweep = 2 * len(self._all) + 256
        storage = tensor.untyped_storage()
        twin = self._all[storage._cdata] = Twin(self.weak(storage), _version(tensor))
        return twin

    def _write_out(self, twin: Twin, tensor: Any) -> None:
        """Give a constant a place of its own, of which a part can be written to."""
        storage = tensor.untyped_storage()
        if storage.nbytes() > LARGEST or twin.dtype != tensor.dtype:
            self._drop(storage._cdata)
            return
        twin.host = self.torch.UntypedStorage(storage.nbytes())
        twin.bytes = storage.nbytes()
        self._bytes += twin.bytes
        self.torch.empty(0, dtype=tensor.dtype).set_(twin.host).fill_(twin.constant)
        twin.constant = None

    def _drop(self, key: int) -> None:
        twin = self._all.pop(key, None)
        if twin is not None:
            self._bytes -= twin.bytes

    def _over(self, host: Any, tensor: Any) -> Any:
        """A tensor on the host that lies in a twin as another lies in its storage."""
        made = self.torch.empty(0, dtype=tensor.dtype)
        return made.set_(host, tensor.storage_offset(), tensor.shape, tensor.stride())

    def _kept(self, tensor: Any) -> Optional[Any]:
        """What the device itself knows, as of a memset or what another rank sent. A kernel that is given it makes the
        device forget it, so that a twin is made now."""
        if tensor.numel() * tensor.element_size() > MOST or not self.device.known(tensor):
            return None
        storage = tensor.untyped_storage()
        if storage.nbytes() > MOST or not self.device.has(storage.data_ptr(), storage.nbytes()):
            return tensor.cpu() if tensor.is_contiguous() else None
        host = storage.cpu()
        if tensor.dtype.is_complex or tensor.requires_grad:  # kernels of others write to parameters, and count nothing
            return self._over(host, tensor)
        standing = self._all.get(storage._cdata)
        if standing is not None and self._counts_for_itself(standing, _version(tensor)):
            return self._over(host, tensor)
        self._drop(storage._cdata)
        twin = self._new(tensor)
        if twin is not None:
            twin.host, twin.bytes = host, host.nbytes()
            self._bytes += twin.bytes
        return self._over(host, tensor)

    def _summed(self, tensor: Any) -> bool:
        """Whether it may be a gradient that autograd sums others into: asked for its storage, it could not any more."""
        return bool(
            self._owned
            and tensor.dtype.is_floating_point
            and self.torch._C._current_graph_task_id() >= 0
            and self.place(tensor) not in self._all
        )

    def whole(self, tensor: Any) -> bool:
        """Whether the tensor's elements are all that its storage has, each once."""
        if self._summed(tensor):
            return False
        if tensor.numel() * tensor.element_size() != tensor.untyped_storage().nbytes() or not tensor.numel():
            return False
        if tensor.is_contiguous():
            return True
        expected = 1
        for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n > 1):
            if stride != expected:
                return False
            expected *= size
        return True


def _has_second_owner(torch: Any) -> bool:
    """Whether a storage is owned twice once Python was asked for it."""
    tensor = torch.empty(1)
    place = tensor.untyped_storage()._cdata
    return hasattr(torch._C, "_storage_address") and bool(torch._C._storage_Use_Count(place) > 1)


def _bytes(tensor: Any) -> Tuple[int, int]:
    """From and to which byte of its storage a tensor lies."""
    begin, end, _ = _extent(tensor)
    return begin * tensor.element_size(), end * tensor.element_size()


def _covers(twin: Twin, tensor: Any) -> bool:
    """Whether all that a tensor spans is known."""
    if twin.parts is None:
        return True
    begin, end = _bytes(tensor)
    return any(first <= begin and end <= last for first, last in twin.parts)


def _learn(twin: Twin, tensor: Any) -> None:
    """What a tensor spans is known from now on; it is in one piece, or was known."""
    if twin.parts is None or _covers(twin, tensor):
        return
    begin, end = _bytes(tensor)
    apart = [part for part in twin.parts if part[1] < begin or end < part[0]]
    joined = [part for part in twin.parts if part not in apart]
    known = (min([begin, *(first for first, _ in joined)]), max([end, *(last for _, last in joined)]))
    twin.parts = [*apart, known]
    if known == (0, twin.bytes):
        twin.parts = None


def _extent(tensor: Any) -> Any:
    begin = tensor.storage_offset()
    return begin, begin + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1, tensor.dtype


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:  # of inference mode, which counts none
        return -1
