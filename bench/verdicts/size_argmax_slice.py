"""Where a kernel found the largest is where a slice ends.

gpu: 1 GiB
truth: fits
"""

import torch

x = torch.randn(1 << 16, 1 << 10, device="cuda")
end = int(x[:, 0].argmax())  # DECIDES
y = x[:end].clone()
print(y.shape)
