"""CNN: ResNet-50 of torchvision, SGD with momentum."""

import torch
import torchvision
from scale import pick

batch, size = pick((32, 224), (4, 64))
model = torchvision.models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for _ in range(3):
    images = torch.randn(batch, 3, size, size).cuda(non_blocking=True)
    labels = torch.randint(0, 1000, (batch,)).cuda(non_blocking=True)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
