"""Mixed precision in fp16 with a gradient scaler: RegNet."""

import torch
import torchvision
from scale import pick

batch, size = pick((64, 224), (4, 64))
model = torchvision.models.regnet_y_400mf().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    images, labels = torch.randn(batch, 3, size, size).cuda(), torch.randint(0, 1000, (batch,)).cuda()
    with torch.autocast("cuda", torch.float16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
