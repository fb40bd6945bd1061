"""Runs a model of 70 billion parameters in bfloat16 on a few tokens: large_model.py meta|card"""
import sys

import torch
from torch import nn

WIDTH, INNER, LAYERS, VOCABULARY, KEYS = 8192, 28672, 80, 32000, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.query, self.key, self.value, self.out = (
            nn.Linear(a, b, bias=False)
            for a, b in ((WIDTH, WIDTH), (WIDTH, KEYS), (WIDTH, KEYS), (WIDTH, WIDTH)))
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in (
            (WIDTH, INNER), (WIDTH, INNER), (INNER, WIDTH)))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, 128)).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        k, v = (part.repeat_interleave(WIDTH // KEYS, dim=1) for part in (k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


torch.set_default_dtype(torch.bfloat16)
with torch.device("meta" if sys.argv[1] == "meta" else "cuda"):
    model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), *[Block() for _ in range(LAYERS)],
                          nn.Linear(WIDTH, VOCABULARY, bias=False))
if sys.argv[1] == "meta":
    model = model.to_empty(device="cuda")
assert sum(weight.numel() for weight in model.parameters()) > 68e9
with torch.no_grad():
    print(model(torch.zeros(1, 64, dtype=torch.int64, device="cuda")).shape)
