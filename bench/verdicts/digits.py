"""scikit-learn's digits: real images, and rows that the host chose by their label.

gpu: 1 GiB
truth: fits, 178 * 4 MiB
"""

import torch
from sklearn.datasets import load_digits

data = load_digits()
labels = torch.tensor(data.target).cuda()
zeros = (labels == 0).nonzero().flatten()
rows = torch.zeros(len(zeros), 1 << 20, device="cuda")
