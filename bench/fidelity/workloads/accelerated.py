"""accelerate: its loop with accumulation and clipping, ResNet-18."""

import torch
import torchvision
from accelerate import Accelerator
from scale import pick

batch, size = pick((32, 224), (2, 64))
accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
model = torchvision.models.resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = torch.utils.data.TensorDataset(torch.rand(6 * batch, 3, size, size), torch.randint(0, 1000, (6 * batch,)))
loader = torch.utils.data.DataLoader(data, batch)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for images, labels in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
