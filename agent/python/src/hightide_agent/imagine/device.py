"""The preloaded device, as far as the agent asks it: which bytes of device memory the host knows, and what a
read of unknown ones shall answer.

The functions are C entry points of the device library, found in the process. Where one is missing everything counts
as unknown, and no answer can be set.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import Any, Iterator, Optional

MOST = 64 << 10  # bytes of one tensor that the device keeps at most


class Device:
    """Entry points of the device library."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        address, size = ctypes.c_void_p, ctypes.c_uint64
        self._known = _find(library, "hightide_device_known", ctypes.c_int, address, size)
        self._answer = _find(library, "hightide_device_answer", None, ctypes.c_int, ctypes.c_uint64)

    @property
    def answers(self) -> bool:
        """Whether reads of what no kernel wrote can be answered."""
        return self._answer is not None

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

    @contextmanager
    def answering(self, value: Optional[int]) -> Iterator[None]:
        """Within: a read of up to 8 unknown bytes by this thread gives `value`. None: as outside."""
        if self._answer is None or value is None:
            yield
            return
        self._answer(1, value)
        try:
            yield
        finally:
            self._answer(0, 0)


def _find(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    try:
        function = getattr(library, name)
    except AttributeError:
        return None
    function.restype, function.argtypes = result, list(arguments)
    return function
