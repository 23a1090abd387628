"""Context parallel: the sequence over two ranks, ring attention."""
# ranks: 2

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformer import BATCH, LENGTH, WORDS, Model

mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("cp",))
torch.cuda.set_device(dist.get_rank())
model = Model().cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    ids = torch.randint(0, WORDS, (BATCH, 4 * LENGTH)).cuda()
    labels = ids.clone()
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), context_parallel(mesh, buffers=[ids, labels], buffer_seq_dims=[1, 1]):
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
