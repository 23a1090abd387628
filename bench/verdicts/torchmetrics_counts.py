"""Accuracy of predictions, validated by torchmetrics, which counts the unique ones.

gpu: 1 GiB
truth: fits
with: libraries
"""

import torch
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix

model = torch.nn.Linear(64, 10, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
acc, matrix = MulticlassAccuracy(num_classes=10).to("cuda"), MulticlassConfusionMatrix(num_classes=10).to("cuda")
for _ in range(5):
    x, y = torch.randn(512, 64).cuda(), torch.randint(0, 10, (512,)).cuda()
    out = model(x)
    torch.nn.functional.cross_entropy(out, y).backward()
    optimizer.step()
    optimizer.zero_grad()
    acc(out.argmax(1), y)
    matrix.update(out.argmax(1), y)
print(acc.compute(), matrix.compute())
