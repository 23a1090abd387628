"""A penalty on the gradient: the graph of the first backward pass lives until the second.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024), torch.nn.Tanh()] * 12).cuda()
x = torch.randn(8192, 1024, device="cuda", requires_grad=True)
(gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
gradient.square().sum().backward()
