"""The largest token that the host wrote decides the size of an embedding.

gpu: 1 GiB
truth: fits, 200 MiB
"""

import torch

ids = torch.randint(0, 50_000, (64, 512), generator=torch.Generator().manual_seed(1)).to("cuda")
size = int(ids.max()) + 1
table = torch.nn.Embedding(size, 1024, device="cuda")
print(table.weight.shape)
