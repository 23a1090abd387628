"""Detection: Faster R-CNN with a ResNet-50 FPN; sizes depend on what the network proposes."""

import torch
import torchvision
from scale import pick

batch, size = pick((2, 800), (1, 160))
model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
    weights=None, weights_backbone=None, num_classes=91, min_size=size, max_size=size * 4 // 3
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
for _ in range(3):
    images = [torch.rand(3, size, size).cuda() for _ in range(batch)]
    boxes = torch.tensor([[10.0, 10.0, 80.0, 90.0], [30.0, 40.0, 150.0, 140.0]])
    targets = [{"boxes": boxes.cuda(), "labels": torch.tensor([3, 7]).cuda()} for _ in range(batch)]
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
