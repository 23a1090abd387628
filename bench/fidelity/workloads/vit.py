"""Vision transformer: ViT-B/16 of torchvision, label smoothing."""

import torch
import torchvision
from scale import pick

batch, model = pick((32, torchvision.models.vit_b_16), (2, torchvision.models.vit_b_32))
model = model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.3)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(3):
    images, labels = torch.randn(batch, 3, 224, 224).cuda(), torch.randint(0, 1000, (batch,)).cuda()
    loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
