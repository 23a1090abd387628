"""Classes that a kernel chose are counted, and the largest count is a size.

gpu: 1 GiB
truth: out of memory
"""

import torch

logits = torch.zeros(8192, 64, device="cuda")
logits[:, 3] = 1
labels = (logits @ torch.eye(64, device="cuda")).argmax(1)
largest = int(torch.bincount(labels, minlength=64).max())  # DECIDES
y = torch.empty(largest, 1 << 16, device="cuda")
print(y.shape)
