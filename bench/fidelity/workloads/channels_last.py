"""CNN in memory format channels_last under bf16 autocast: ConvNeXt."""

import torch
import torchvision
from scale import pick

batch, size = pick((32, 224), (2, 64))
model = torchvision.models.convnext_tiny().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    images = torch.randn(batch, 3, size, size).cuda().to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
