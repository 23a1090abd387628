"""Six captured graphs with a pool each: what each has let go of serves none of the others.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.zeros(16 << 20, device="cuda")
graphs, kept = [], []
for _ in range(6):
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1]):
        kept.append((x * 2).sin())
for graph in graphs:
    graph.replay()
