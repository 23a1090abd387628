"""Memory asked of libcudart by ctypes, as numba and CuPy do: the program checks each answer.

gpu: 1 GiB
truth: fits
"""

import ctypes
import glob
import os

import torch

torch.zeros(1, device="cuda")
root = os.path.dirname(os.path.dirname(torch.__file__))
runtime = ctypes.CDLL(sorted(glob.glob(root + "/nvidia/**/libcudart.so*", recursive=True))[-1])


def free() -> int:
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert runtime.cudaMemGetInfo(ctypes.byref(left), ctypes.byref(total)) == 0
    assert (left.value, total.value) == torch.cuda.mem_get_info()
    return left.value


before, place = free(), ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(100 << 20)) == 0
assert before - free() == 100 << 20
assert runtime.cudaFree(place) == 0
assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(900 << 20)) == 2
assert runtime.cudaGetLastError() == 2
assert before == free()
