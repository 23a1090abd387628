"""One expert for each token, by argmax, and one mask for each expert from a one-hot tensor.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, DIM = 16, 1024
tokens = torch.randn(16384, DIM, device="cuda")
chosen = (tokens @ torch.randn(DIM, EXPERTS, device="cuda")).argmax(-1)
hot = torch.nn.functional.one_hot(chosen, EXPERTS)
weight = torch.randn(EXPERTS, DIM, DIM, device="cuda")
out = torch.empty_like(tokens)
for number in range(EXPERTS):
    rows = hot[:, number].nonzero().flatten()
    out[rows] = tokens[rows] @ weight[number]
print(out.shape)
