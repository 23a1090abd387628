"""Attention: flash, memory-efficient, cuDNN and plain, forward and backward, causal and masked."""

import torch
from scale import pick
from torch.nn.attention import SDPBackend, sdpa_kernel

batch, heads, length = pick((4, 16, 2048), (1, 2, 64))
for kind in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH):
    for causal in (True, False):
        q, k, v = (
            torch.randn(batch, heads, length, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            for _ in "qkv"
        )
        with sdpa_kernel(kind):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).sum().backward()
