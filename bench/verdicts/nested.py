"""A nested tensor has the lengths' sum, its padded form the longest times the count.

gpu: 1 GiB
truth: out of memory
"""

import torch

lengths = [8192] + [16] * 63
x = torch.nested.nested_tensor([torch.zeros(n, 512) for n in lengths], device="cuda", layout=torch.jagged)
padded = x.to_padded_tensor(0.0)
