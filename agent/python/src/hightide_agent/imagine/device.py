"""The preloaded device, as far as the agent asks it: which bytes of device memory the host knows, and what a
read of unknown ones shall answer.

The functions are C entry points of the device library, found in the process. Where one is missing everything counts
as unknown, and no answer can be set.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import contextmanager
from typing import Any, Iterator, Optional

_KINDS = {"torch.float16": 2, "torch.bfloat16": 3, "torch.float32": 4, "torch.float64": 5}  # others: 1
MOST = 64 << 10  # bytes of one tensor that the device keeps at most


class Device:
    """Entry points of the device library."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        address, size = ctypes.c_void_p, ctypes.c_uint64
        self._known = _find(library, "hightide_device_known", ctypes.c_int, address, size)
        self._answer = _find(library, "hightide_device_answer", None, ctypes.c_int, ctypes.c_uint64)
        self._keep = _find(library, "hightide_device_keep", None, address, address, size)
        self._here = threading.local()
        self._reads = _find(library, "hightide_device_reads", None, ctypes.c_int)
        self._used = _find(library, "hightide_device_used", ctypes.c_int)
        self._renew = _find(library, "hightide_device_renew", None)

    @property
    def answers(self) -> bool:
        """Whether reads of what no kernel wrote can be answered."""
        return self._answer is not None

    @property
    def used(self) -> bool:
        """Whether this process has used a GPU, and not only asked about it."""
        return self._used is None or bool(self._used())

    def renew(self) -> None:
        """In a child that has used none: its GPUs are those that the environment names now."""
        if self._renew is not None:
            self._renew()

    def known(self, tensor: Any) -> bool:
        """Whether all of the tensor's bytes are as the host wrote them, so that its copy on the host is true."""
        if self._known is None:
            return False
        try:
            if not tensor.numel():
                return True
            extent = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1
            size = extent * tensor.element_size()
            return bool(size <= MOST and self._known(tensor.data_ptr(), size) == 1)
        except Exception:
            return False

    def has(self, address: int, size: int) -> bool:
        """Whether the host knows these bytes."""
        return self._known is not None and self._known(address, size) == 1

    def keep(self, address: int, host: int, size: int) -> None:
        """Device memory at `address` has the bytes at `host` from now on, until a kernel is given it."""
        if self._keep is not None and size:
            self._keep(address, host, size)

    @contextmanager
    def reading(self, dtype: Any) -> Iterator[None]:
        """Within: this thread reads one number of that type."""
        if self._reads is None:
            yield
            return
        self._reads(_KINDS.get(str(dtype), 1))
        try:
            yield
        finally:
            self._reads(0)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Within: what this thread reads and nobody wrote is zeros and is not counted; the caller knows better."""
        if self._answer is None or self.busy:
            yield
            return
        with self._telling(2, 0):
            yield

    @contextmanager
    def answering(self, value: Optional[int]) -> Iterator[None]:
        """Within: a read of up to 8 unknown bytes by this thread gives `value`. None: as outside."""
        if self._answer is None or value is None:
            yield
            return
        with self._telling(1, value):
            yield

    @property
    def busy(self) -> bool:
        """Whether this thread's reads are being answered already."""
        return getattr(self._here, "on", False)

    @contextmanager
    def _telling(self, kind: int, value: int) -> Iterator[None]:
        self._answer(kind, value)
        self._here.on = True
        try:
            yield
        finally:
            self._here.on = False
            self._answer(0, 0)


def _find(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    try:
        function = getattr(library, name)
    except AttributeError:
        return None
    function.restype, function.argtypes = result, list(arguments)
    return function
