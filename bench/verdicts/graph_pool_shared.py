"""The same with one pool for all six: what the first has let go of serves the others.

gpu: 1 GiB
truth: fits, 64 + 6 * 64 + 64 MiB
"""

import torch

x = torch.zeros(16 << 20, device="cuda")
pool = torch.cuda.graph_pool_handle()
graphs, kept = [], []
for _ in range(6):
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1], pool=pool):
        kept.append((x * 2).sin())
for graph in graphs:
    graph.replay()
