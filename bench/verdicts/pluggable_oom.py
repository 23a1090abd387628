"""An allocator of the program's own that answers NULL where there is no room: the next kernel fails.

gpu: 1 GiB
truth: out of memory
"""

import subprocess
from pathlib import Path

import torch

SOURCE = """
#include <stddef.h>
#include <sys/types.h>
int cudaMalloc(void **, size_t);
int cudaFree(void *);
void *take(ssize_t size, int device, void *stream) { void *p = NULL; return cudaMalloc(&p, size) ? NULL : p; }
void give(void *p, ssize_t size, int device, void *stream) { cudaFree(p); }
"""
runtime = next((Path(torch.__file__).parents[1] / "nvidia").glob("*/lib/libcudart.so*"))
Path("own.c").write_text(SOURCE)
subprocess.run(["cc", "-shared", "-fPIC", "own.c", "-o", "own.so", runtime, f"-Wl,-rpath,{runtime.parent}"], check=True)
torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator("./own.so", "take", "give"))
kept = [torch.ones(64 << 20, device="cuda") for _ in range(4)]
torch.cuda.synchronize()
