"""What a captured graph has let go of stays in its pool.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.zeros(32 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    a = x * 2
    b = a.sin()
    c = b.cos()
    del a, b, c
for _ in range(2):
    graph.replay()
y = torch.empty(96 << 20, device="cuda")
