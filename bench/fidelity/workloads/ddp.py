"""DistributedDataParallel, two ranks: bucketed all-reduce, static graph, no_sync."""
# ranks: 2

import torch
import torch.distributed as dist
import torchvision
from scale import pick

batch, size = pick((16, 224), (2, 64))
dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
model = torchvision.models.resnet18().cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[dist.get_rank()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    with model.no_sync() if step == 1 else torch.enable_grad():
        model(torch.randn(batch, 3, size, size).cuda()).logsumexp(1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
