"""Whole numbers and truth values that follow from what the host wrote are computed on the host beside the device.

    host copies ids to the device ─▶ a twin of the storage on the host
    padding_mask.all(), lengths.max() ─▶ BackendSelect: ours ─▶ the real kernel, and the same on the twins ─▶ a twin
    .item(), .cpu(), if mask: ─▶ the twin's value

A twin belongs to a storage and a version of it: whatever writes to a tensor counts its version up, and what was not
followed makes the twin worthless. Twins have up to LARGEST bytes. Floating-point numbers are followed where they come
of such numbers, and are few or all the same; and compared where they are few and still as the host wrote them. What a
kernel computes of others is taken to be finite and no NaN (plain.py).
"""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import kernels, lazy
from .device import Device
from .plain import COMPARED, INFINITE, NORMS, Plain
from .shares import EXPERT, ROUTES, Coin, route
from .twins import Twins

SMALL = 4096  # elements of a floating-point tensor that is looked at
FEW = 16  # of one that is filled with a number: larger ones are models' parameters, which kernels of others write to
NUMBERS = 4096  # Python numbers that are kept as tensors
OPERATORS = (
    *COMPARED,
    "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_",
    "floor_divide", "floor_divide_", "remainder", "remainder_", "fmod", "fmod_", "neg", "neg_", "abs", "abs_",
    "sign", "pow", "square", "clamp", "clamp_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_", "maximum",
    "minimum", "bitwise_and", "bitwise_and_", "bitwise_or", "bitwise_or_", "bitwise_xor", "bitwise_xor_",
    "bitwise_not", "bitwise_not_", "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__",
    "__and__", "__or__", "__xor__", "logical_and", "logical_and_", "logical_or", "logical_or_", "logical_xor",
    "logical_xor_", "logical_not", "logical_not_", "sum", "prod", "any", "all", "max", "min", "amax", "amin",
    "aminmax", "argmax", "argmin", "cumsum", "cumsum_", "cumprod", "cummax", "cummin", "count_nonzero", "sort",
    "topk", "kthvalue", "median", "mode", "where", "cat", "stack", "index", "index_select", "gather", "take",
    "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "scatter", "scatter_", "scatter_add",
    "scatter_add_", "index_put", "index_put_", "_index_put_impl_", "index_fill", "index_fill_", "index_add",
    "index_add_", "index_copy", "index_copy_", "roll", "flip", "tril", "tril_", "triu", "triu_", "isin",
    "searchsorted", "bucketize", "histc", "tril_indices", "triu_indices", "fill", "fill_", "zero_", "copy_",
    "arange", "isfinite", "isinf", "isnan", "isposinf", "isneginf", "equal", "constant_pad_nd", "repeat", "diff",
    "random_", "clone", "mean", "nan_to_num", "nan_to_num_", "sqrt", "sqrt_",
    "linalg_vector_norm", "norm", "exp", "pow_",
)  # fmt: skip
OVERWRITES = frozenset(("copy_", "fill_", "zero_", "arange"))  # what was there before does not matter
WRITES = ("scatter_reduce_", "index_reduce_", "put_", "bernoulli_", "geometric_")  # also where no version counts
RANDOM = frozenset(("random_",))
OUT = frozenset(("arange.start_out",))
OF_SECOND = frozenset(("where.self",))  # the type of the second argument decides


def install(device: Device, torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> Known:
    """Put ours between autograd and CUDA for these operators."""
    known = Known(device, torch)
    library = torch.library.Library("aten", "IMPL")
    for base in (*OPERATORS, *WRITES):
        packet = getattr(torch.ops.aten, base, None)
        for overload in packet.overloads() if packet is not None else ():
            operator = getattr(packet, overload)
            if base not in WRITES and _ours(torch, operator, base, overload):
                name = base if overload == "default" else "%s.%s" % (base, overload)
                library.impl(name, known.between(operator, base, name), "BackendSelect", with_keyset=True)
        for operator in _writing(torch, packet, base):
            library.impl(operator.name().partition("::")[2], known.writing(operator), "BackendSelect", with_keyset=True)
    _kept.append(library)
    lazy.drawn.append(known.twins.forget)
    kernels.install(known, watch)
    watch("torch.distributed.distributed_c10d", known.collectives)
    watch("torch.distributed._functional_collectives", known.collectives)
    return known


def _writing(torch: Any, packet: Any, base: str) -> Iterator[Any]:
    """Operators that write and are not followed: a few, and of those above that take one tensor what they write into
    `out`. In inference mode PyTorch counts no version of it."""
    for overload in packet.overloads() if packet is not None else ():
        operator = getattr(packet, overload)
        if not torch._C._dispatch_has_kernel(operator.name()) or "Dimname" in str(operator._schema):
            continue
        if _has(torch, operator, "CompositeImplicitAutograd") or _has(torch, operator, "BackendSelect"):
            continue
        tensors = [a.is_out for a in operator._schema.arguments if "Tensor" in str(a.type)]
        out = (
            True in tensors and tensors.count(False) == 1
        )  # two may be numbers, which Python cannot hand on as tensors
        if base in WRITES or (out and "%s.%s" % (base, overload) not in OUT):
            yield operator


def _has(torch: Any, operator: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key))


def _ours(torch: Any, operator: Any, base: str, overload: str) -> bool:
    name = operator.name()
    first = operator._schema.arguments[:1]
    if "Dimname" in str(operator._schema) or not first:
        return False
    if any(a.is_out for a in operator._schema.arguments) and "%s.%s" % (base, overload) not in OUT:
        return False
    if "Tensor" not in str(first[0].type) and "%s.%s" % (base, overload) not in OUT:
        return False
    if not torch._C._dispatch_has_kernel(name):  # of TorchScript alone
        return False
    return not _has(torch, operator, "CompositeImplicitAutograd") and not _has(torch, operator, "BackendSelect")


class Known:
    """The operators on known numbers."""

    def __init__(self, device: Device, torch: Any) -> None:
        self.device = device
        self.torch = torch
        self.after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        kinds = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
        self.kinds = frozenset(getattr(torch, kind) for kind in kinds if hasattr(torch, kind))
        self.twins = Twins(device, torch)
        self.plain = Plain(self.twins, torch)
        self.reads: Any = None  # answers what the host reads and nobody knows: the room undecided
        self.even = False  # rows of a routing choose in turn
        self._here = threading.local()
        self._told = False
        self._numbers: Dict[Any, Any] = {}

    def between(self, operator: Any, base: str, name: str) -> Callable[..., Any]:
        """The kernel that is put in between: the real one at once for floating-point numbers and other devices."""
        after, kinds, redispatch, tensor_type = self.after, self.kinds, operator.redispatch, self.torch.Tensor
        at = 1 if name in OF_SECOND else 0
        looks = base in COMPARED or base in ROUTES or base in INFINITE or base in NORMS
        follow, both, known = self._follow, self._both, self._floating
        arguments = operator._schema.arguments
        of_tensors = len(arguments) > 1 and str(arguments[0].type) == str(arguments[1].type) == "Tensor"
        if name in OUT:
            return functools.partial(self._out, operator)
        if name == "copy_":
            return self._copying(operator)

        def kernel(keyset: Any, *args: Any, **more: Any) -> Any:
            if of_tensors and not (isinstance(args[1], tensor_type) and isinstance(args[0], tensor_type)):
                args = both(args)
            subject = args[at]
            if type(subject) is list:
                subject = subject[0] if subject else None
            if not isinstance(subject, tensor_type) or (of_tensors and not subject.is_cuda):
                subject = args[1] if len(args) > 1 and isinstance(args[1], tensor_type) else None
            if subject is None or not subject.is_cuda:
                return redispatch(keyset & after, *args, **more)
            if subject.dtype not in kinds and not looks and not known(base, args):
                return redispatch(keyset & after, *args, **more)
            return follow(operator, base, lambda: redispatch(keyset & after, *args, **more), args, more)

        return kernel

    def _floating(self, base: str, args: Any) -> bool:
        """Whether anything is known of an operator's floating-point operands."""
        if base == "zero_" or (base == "fill_" and type(args[1]) in (int, float)):
            endless = base == "fill_" and not math.isfinite(args[1])
            return endless or args[0].numel() <= FEW or self.twins.holds(args[0])
        first = args[0] if type(args[0]) in (list, tuple) else args[:3]
        return any(isinstance(a, self.torch.Tensor) and a.is_cuda and self.twins.holds(a) for a in first)

    def writing(self, operator: Any) -> Callable[..., Any]:
        """The kernel for what writes and is not followed."""
        after, redispatch, forget = self.after, operator.redispatch, self.twins.forget
        outs = [a.name for a in operator._schema.arguments if a.is_out]

        def kernel(keyset: Any, *args: Any, **more: Any) -> Any:
            result = redispatch(keyset & after, *args, **more)
            for tensor in [more[name] for name in outs] if outs else args[:1]:
                if isinstance(tensor, self.torch.Tensor) and (tensor.dtype in self.kinds or self.twins.holds(tensor)):
                    forget(tensor)
            return result

        return kernel

    def _both(self, args: Any) -> Any:
        """Both operands as tensors, of which either comes as a number: `7 - t` subtracts t from a wrapped 7."""
        one, other = args[:2]
        if not isinstance(one, self.torch.Tensor):
            one = self._number(other, one)
        else:
            other = self._number(one, other)
        return (one, other, *args[2:])

    def _number(self, tensor: Any, value: Any) -> Any:
        """A Python number as the tensor that the operator was given: of the type that changes the result's least."""
        key = (type(value), value, tensor.dtype)
        made = self._numbers.get(key)
        if made is None:
            same = type(value) is int and tensor.dtype in self.kinds and tensor.dtype != self.torch.bool
            same = same or (type(value) in (int, float) and tensor.dtype.is_floating_point)
            made = self.torch.tensor(value, dtype=tensor.dtype) if same else self.torch.tensor(value)
            if len(self._numbers) < NUMBERS:
                self._numbers[key] = made
        return made

    def truth(self, tensor: Any) -> Optional[Any]:
        """The tensor's values on the host, not to be written to; None where they are not known."""
        host = self.assumed(tensor)
        return None if self.twins.tainted else host

    def assumed(self, tensor: Any) -> Optional[Any]:
        """As truth, and also what follows from a routing that was made up (twins.tainted says whether it does)."""
        self.twins.tainted = False
        if getattr(self._here, "busy", False):
            return self.twins.view(tensor)
        self._here.busy = True
        try:
            return self._host(tensor)
        except Exception as error:
            self.failed(error)
            return None
        finally:
            self._here.busy = False

    def _follow(self, operator: Any, base: str, call: Callable[[], Any], args: Any, more: Any) -> Any:
        """The real operator, and the same on the host where all that it takes is known."""
        if getattr(self._here, "busy", False):
            return call()
        writes = base.endswith("_") and not base.endswith("__")
        rule, hosts = None, None
        self._here.busy = True
        self.twins.tainted = False
        try:
            if base in EXPERT:
                self._ask(base, args)
            looked_at = isinstance(args[0], self.torch.Tensor) and self._host(args[0]) is not None
            if base in OVERWRITES and self.twins.tainted and self.twins.whole(args[0]):
                self.twins.tainted = False  # what was made up is gone
            rule = self.plain.rule(operator, base, args, more, looked_at)
            hosts = None if rule is not None or base in RANDOM else self._hosts(base, args, writes)
        except Exception as error:
            self.failed(error)
        finally:
            self._here.busy = False
        assumed = self.twins.tainted
        result = call()
        self._here.busy = True
        try:
            if hosts is not None:
                self._beside(operator, base, writes, hosts, more, args, result, assumed)
            elif rule is not None:
                self.twins.constant(result, rule, writes)
            else:
                upwards = self._upwards(base, args, result)
                self._unknown(base, writes, args, result)
                self._share(base, args, more, result)
                if upwards:
                    self.twins.upwards(result, writes)
        except Exception as error:
            self.failed(error)
        finally:
            self._here.busy = False
        return result

    def _ask(self, base: str, args: Any) -> None:
        """Which expert the program asks for first, where a routing is compared with a number."""
        one, other = args[:2]
        if isinstance(other, self.torch.Tensor) and other.device.type == "cpu" and other.numel() == 1:
            other = other.item()
        if type(other) is int and one.is_cuda:
            self.twins.settle(one, other + EXPERT[base])

    def _share(self, base: str, args: Any, more: Any, result: Any) -> None:
        """What nobody knows, and has a bound together with what else is drawn from it."""
        tensor, twins = self.torch.Tensor, self.twins
        if base in ROUTES:
            made = result[1] if base == "topk" else result
            chosen = route(base, args, more, made, self.even)
            if chosen is not None:
                twins.routed(made, chosen)
        elif base in COMPARED and isinstance(result, tensor) and args[0].dtype.is_floating_point:
            twins.coin(result, Coin(), True)
        elif base in ("bitwise_not", "logical_not"):
            coin = twins.coin_of(args[0])
            if coin is not None:
                twins.coin(result, coin[0], not coin[1])

    def _upwards(self, base: str, args: Any, result: Any) -> bool:
        """Whether a result of floating-point numbers is not below zero, whatever they are."""
        of_floats = isinstance(result, self.torch.Tensor) and result.is_floating_point()
        return of_floats and self.plain.not_negative(base, args)

    def failed(self, error: Exception) -> None:
        """What we cannot follow is not known; the program does not notice."""
        self.twins.clear()
        if self.reads is not None and not self._told:
            self._told = True
            self.reads.ledger.agent.log("could not follow a number", error)

    def _beside(
        self, operator: Any, base: str, writes: bool, hosts: Any, more: Any, args: Any, result: Any, assumed: bool
    ) -> None:
        more = {k: (self.torch.device("cpu") if k == "device" else v) for k, v in more.items()}
        try:
            if base == "histc":  # the host has it of floating-point numbers alone
                hosts = [hosts[0].double(), *hosts[1:]]
            truth = operator(*hosts, **more)
            if base == "histc":
                truth = truth.to(result.dtype)
        except Exception:  # of a type that the host has no kernel for
            self._unknown("", writes, args, result)
            return
        if writes:
            self.twins.write(args[0], hosts[0], assumed)
            return
        pairs = zip(result, truth) if isinstance(result, (tuple, list)) else [(result, truth)]
        for made, true in pairs:
            if isinstance(made, self.torch.Tensor) and (made.dtype in self.kinds or made.numel() <= SMALL):
                self.twins.keep(made, true, assumed)

    def _hosts(self, base: str, args: Any, writes: bool) -> Optional[List[Any]]:
        """The arguments with each tensor on the host; None where one is not known."""
        hosts: List[Any] = []
        for number, arg in enumerate(args):
            if writes and not number:
                host = self.twins.to_write(arg, base in OVERWRITES or (base == "scatter_" and self._covers(args)))
            elif isinstance(arg, self.torch.Tensor):
                host = self._host(arg)
            elif isinstance(arg, (list, tuple)) and any(isinstance(a, self.torch.Tensor) for a in arg):
                host = [self._host(a) if isinstance(a, self.torch.Tensor) else a for a in arg]
                if any(h is None and a is not None for h, a in zip(host, arg)):
                    return None
            else:
                hosts.append(arg)
                continue
            if host is None:
                return None
            hosts.append(host)
        return hosts

    def _covers(self, args: Any) -> bool:
        """Whether scatter_ writes every element of a row of numbers, as where a permutation is turned around."""
        if len(args) < 4 or not isinstance(args[3], self.torch.Tensor) or args[0].dim() != 1 or args[2].dim() != 1:
            return False
        places = self._host(args[2])
        return places is not None and len(set(places.tolist())) == args[0].numel()

    def _host(self, tensor: Any) -> Optional[Any]:
        if tensor.is_cuda and tensor.dtype not in self.kinds and tensor.numel() > SMALL:
            return None
        return self.twins.view(tensor)

    def _unknown(self, base: str, writes: bool, args: Any, result: Any) -> None:
        """Nothing is known of the result; of some it is known how large its numbers can be."""
        tensor = self.torch.Tensor
        if writes:
            self.twins.forget(args[0])
        bound = self.twins.bound_of(base, args, result)
        for number, made in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
            if not isinstance(made, tensor) or made.dtype not in self.kinds:
                continue
            if number and base != "aminmax":  # where the first one's elements were
                bound = max(0, args[0].numel() - 1)
            self.twins.bound(made, bound)

    def _copying(self, operator: Any) -> Callable[..., Any]:
        after, kinds, redispatch, follow = self.after, self.kinds, operator.redispatch, self._follow

        def kernel(keyset: Any, to: Any, source: Any, *rest: Any, **more: Any) -> Any:
            if not isinstance(source, self.torch.Tensor):
                source = self._number(to, source)
            if source.is_cuda and to.dtype.is_floating_point and to.device.type == "cpu":
                return self._floats(lambda: redispatch(keyset & after, to, source, *rest, **more), to, source)
            if to.is_cuda and source.is_cuda and to.dtype not in kinds and self.twins.holds(source):
                return follow(
                    operator, "copy_", lambda: redispatch(keyset & after, to, source, *rest, **more), (to, source), more
                )
            if to.dtype not in kinds or not (to.is_cuda or source.is_cuda) or to.device.type not in ("cpu", "cuda"):
                if to.is_cuda and self.twins.holds(to):  # of a parameter whose data was filled, versions do not tell
                    self.twins.forget(to)
                return redispatch(keyset & after, to, source, *rest, **more)
            call = lambda: redispatch(keyset & after, to, source, *rest, **more)  # noqa: E731
            if to.is_cuda:
                return follow(operator, "copy_", call, (to, source), more)
            return self._to_host(call, to, source)

        return kernel

    def _floats(self, call: Callable[[], Any], to: Any, source: Any) -> Any:
        """Floating-point numbers that are read many at a time: where they decide something, all are the same one."""
        if getattr(self._here, "busy", False) or self.reads is None or self.device.busy or self.device.known(source):
            return call()
        answer = self.truth(source) if self.twins.holds(source) else None
        if answer is None:
            answer = self.reads.floats(source)
        if answer is None:
            return call()
        with self.device.silent():
            result = call()
        if isinstance(answer, self.torch.Tensor) or answer:
            self._here.busy = True
            try:
                to.copy_(self.torch.as_tensor(answer, dtype=to.dtype).expand(to.shape))
            except Exception as error:  # a list of another length was asked for
                self.failed(error)
            finally:
                self._here.busy = False
        return result

    def _to_host(self, call: Callable[[], Any], to: Any, source: Any) -> Any:
        """Known numbers arrive as they are; unknown ones are answered, and the line is named."""
        if getattr(self._here, "busy", False) or self.reads is None or self.device.busy:
            return call()
        truth = self.truth(source)
        answer = None if truth is not None else self.reads.many(source)
        if truth is None and answer is None:
            return call()
        with self.device.silent():
            result = call()
        self._here.busy = True
        try:
            to.copy_(truth if truth is not None else self.torch.as_tensor(answer, dtype=to.dtype).expand(to.shape))
        except Exception as error:  # a list of another length was asked for
            self.failed(error)
        finally:
            self._here.busy = False
        return result

    def _out(self, operator: Any, keyset: Any, *args: Any, **more: Any) -> Any:
        """arange writes into what was made for it."""
        result = operator.redispatch(keyset & self.after, *args, **more)
        out = more.get("out")
        if out is not None and out.is_cuda and out.dtype in self.kinds:
            try:
                self.twins.keep(out, self.torch.arange(*args[:3], dtype=out.dtype))
            except Exception as error:
                self.failed(error)
        return result

    def collectives(self, module: Any) -> None:
        """What other ranks write into a tensor is followed by the device, not here."""
        from .ranks import replace

        for name, original in list(vars(module).items()):
            if name.startswith(COLLECTIVES) and "object" not in name and type(original) is type(_forgetting):
                replace(original, _forgetting(original, self.twins, self.torch))


COLLECTIVES = ("all_reduce", "all_gather", "all_to_all", "reduce", "broadcast", "scatter", "gather", "recv", "irecv",
               "batch_isend_irecv", "_all_gather_base", "_reduce_scatter_base")  # fmt: skip
"""The beginnings of their names."""


def _forgetting(original: Callable[..., Any], twins: Any, torch: Any) -> Callable[..., Any]:
    """What is known goes to the device, which passes it on to the other ranks, and comes back as what is known then."""

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        given = list(_tensors(torch, (*args, *kwargs.values())))
        upwards = all([twins.is_upwards(tensor) for tensor in given])  # and those of the other ranks are alike
        assumed = any([twins.give(tensor) for tensor in given])
        result = original(*args, **kwargs)
        for tensor in (*given, *_tensors(torch, (result,))):
            if assumed:
                twins.suppose(tensor)
            elif upwards and not twins.device.known(tensor):
                twins.upwards(tensor, True)
        return result

    return collective


def _tensors(torch: Any, values: Any) -> Iterator[Any]:
    """The device's tensors among values and their lists, also those that wait for a collective's end."""
    for value in values:
        for each in value if isinstance(value, (list, tuple)) else (value,):
            tensor = getattr(each, "tensor", getattr(each, "elem", each))
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                yield tensor


_kept: List[Any] = []  # a library takes its kernels back when it goes
