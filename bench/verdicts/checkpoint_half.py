"""A training saves its model and its optimizer each ten steps: one tensor after the other goes to the host.
The most is that of a step: weights, gradients, momentum, one new gradient and the workspace of cuBLAS.

gpu: 1 GiB
truth: fits, 6 * 32 * 3 + 32 + 8 MiB
flags: --until checkpoint --sandbox
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, bias=False) for _ in range(6)]).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
for step in range(40):
    model(torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16)).square().mean().backward()
    optimizer.step()
    if step % 10 == 9:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    optimizer.zero_grad(set_to_none=False)
