"""A detector: the number of boxes that stay is decided by scores, and bounded. Its checks only raise.

gpu: 2 GiB
truth: fits
with: libraries
"""

import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
    weights=None, weights_backbone=None, num_classes=5
).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(4):
    images = [torch.rand(3, 200, 200, device="cuda") for _ in range(2)]
    targets = [
        {"boxes": torch.tensor([[10.0, 10, 50, 50], [30, 30, 90, 80]]).cuda(), "labels": torch.tensor([1, 2]).cuda()}
        for _ in range(2)
    ]
    losses = model(images, targets)
    total = sum(losses.values())
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(total.item())
model.eval()
with torch.no_grad():
    print([len(each["boxes"]) for each in model(images)])
