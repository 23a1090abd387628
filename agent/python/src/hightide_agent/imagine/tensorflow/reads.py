"""Numbers that the program reads of TensorFlow's tensors.

What Keras reads for its logs decides nothing in the program; a callback that decides by it is not looked into.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Optional, Tuple

from ..ledger import Ledger
from ..reads import Reads

READERS = ("__bool__", "__int__", "__float__", "__index__", "numpy")


def install(ledger: Ledger, tensorflow: Any) -> None:
    """Look at each read of a tensor on a GPU."""
    reads = OfTensorFlow(ledger, tensorflow)
    kind = sys.modules["tensorflow.python.framework.ops"]._EagerTensorBase
    for name in READERS:
        setattr(kind, name, reads.wrapped(getattr(kind, name)))


class OfTensorFlow(Reads):
    """Those of TensorFlow."""

    own = ("/tensorflow/", "/keras/")
    inner = ("_evaluate_var_is_initialized",)  # of variables that the function made which is called for the first time

    def __init__(self, ledger: Ledger, tensorflow: Any) -> None:
        super().__init__(ledger)
        self.to_dlpack = tensorflow.experimental.dlpack.to_dlpack
        self._pointer = ctypes.pythonapi.PyCapsule_GetPointer
        self._pointer.restype, self._pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

    def place(self, array: Any) -> Optional[Tuple[int, int]]:
        """Where a tensor lies on a GPU, and its bytes; None: it lies on none."""
        if "GPU" not in array.device or not array.dtype.is_numpy_compatible:
            return None
        size = array.shape.num_elements() * array.dtype.size
        if not size or "GPU" not in array.backing_device:
            return None
        capsule = self.to_dlpack(array)  # a DLManagedTensor, whose first field is the address
        address = ctypes.cast(self._pointer(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]
        return address or 0, size

    def given(self, reader: str, array: Any, number: Any) -> Any:
        """What a method of that name returns, where the tensor has this number."""
        if reader != "numpy":
            return number
        numpy = sys.modules["numpy"]
        return numpy.broadcast_to(numpy.asarray(number, array.dtype.as_numpy_dtype), tuple(array.shape)).copy()[()]

    def kind(self, array: Any) -> Tuple[str, int]:
        """The type of its numbers (bool, int, float), and how many it has."""
        kind = array.dtype
        return "bool" if kind.is_bool else "int" if kind.is_integer else "float", array.shape.num_elements()
