"""A function with its own backward pass that saves what it squares in sixteen bits.

gpu: 1 GiB
truth: fits, 4 + 5 * 64 + 128 MiB
"""

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.half())
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


x = torch.randn(1 << 20, device="cuda", requires_grad=True)
y = x.expand(32, -1).contiguous()
for _ in range(1):
    y = Square.apply(y)
y.sum().backward()
