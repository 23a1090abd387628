"""Train a GPT of 350 million parameters on random tokens: small code, 24 GiB of GPU memory.

    hightide imagine --gpu all -- python examples/gpt.py

No GPU is needed to learn which ones it fits on; `--batch-size` and `--layers` change the answer.
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

VOCABULARY = 50304


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers, width, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--batch-size", type=int, default=8)
    arguments.add_argument("--layers", type=int, default=24)
    arguments.add_argument("--width", type=int, default=1024)
    arguments.add_argument("--length", type=int, default=1024)
    arguments.add_argument("--steps", type=int, default=100)
    options = arguments.parse_args()
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = GPT(options.layers, options.width, options.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(1, options.steps + 1):
        tokens = torch.randint(VOCABULARY, (options.batch_size, options.length + 1), device="cuda")
        logits = model(tokens[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step:3d}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
