"""Trains a transformer like nanoGPT: gpt.py [attention=flash|efficient|manual] [dtype=...] ..."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

if torch.__version__.startswith("2.1."):
    # Else the optimizer imports it, which leaves cycles that hold main()'s frame, and what is in it, until
    # Python's collector comes: when that is hangs on any other object.
    import torch._dynamo

options = {"attention": "flash", "dtype": "bfloat16", "layers": 4, "heads": 6, "width": 384,
           "context": 256, "vocabulary": 65, "batch": 32, "steps": 3, "accumulate": 1,
           "dropout": 0.2, "bias": 0, "compile": 0, "checkpoint": 0, "fused": 1}
for word in sys.argv[1:]:
    key, value = word.split("=")
    options[key] = type(options[key])(value)
o = type("Options", (), options)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(o.width, 3 * o.width, bias=bool(o.bias))
        self.out = nn.Linear(o.width, o.width, bias=bool(o.bias))
        self.mask = None

    def forward(self, x):
        batch, tokens, width = x.size()
        q, k, v = (part.view(batch, tokens, o.heads, width // o.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        if o.attention == "manual":
            scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
            mask = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).tril()
            scores = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
            y = F.dropout(scores, o.dropout, self.training) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               dropout_p=o.dropout if self.training else 0)
        y = self.out(y.transpose(1, 2).contiguous().view(batch, tokens, width))
        return F.dropout(y, o.dropout, self.training)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(o.width), Attention(), nn.LayerNorm(o.width)
        self.mlp = nn.Sequential(nn.Linear(o.width, 4 * o.width, bias=bool(o.bias)), nn.GELU(),
                                 nn.Linear(4 * o.width, o.width, bias=bool(o.bias)), nn.Dropout(o.dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(o.vocabulary, o.width)
        self.positions = nn.Embedding(o.context, o.width)
        self.blocks = nn.ModuleList(Block() for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.width)
        self.head = nn.Linear(o.width, o.vocabulary, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.blocks:
            if o.checkpoint and self.training:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def batch():
    tokens = torch.randint(o.vocabulary, (o.batch, o.context + 1))
    return tokens[:, :-1].contiguous().pin_memory().to("cuda", non_blocking=True), \
        tokens[:, 1:].contiguous().pin_memory().to("cuda", non_blocking=True)


def main():
    torch.manual_seed(1337)
    torch.backends.cuda.enable_flash_sdp(o.attention == "flash")
    torch.backends.cuda.enable_math_sdp(False)
    dtype = getattr(torch, o.dtype)
    mixed = contextlib.nullcontext() if dtype == torch.float32 else torch.autocast("cuda", dtype=dtype)
    model = Model().to("cuda")
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0.0}], lr=1e-3,
                                  fused=bool(o.fused))
    scaler = torch.cuda.amp.GradScaler(enabled=dtype == torch.float16)
    if o.compile:
        model = torch.compile(model)
    for step in range(o.steps):
        if step % 2 == 0:
            model.eval()
            with torch.no_grad(), mixed:
                losses = [model(*batch())[1].item() for _ in range(2)]
            assert all(loss == loss for loss in losses)
            model.train()
        for _ in range(o.accumulate):
            with mixed:
                _, loss = model(*batch())
                loss = loss / o.accumulate
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step}: loss {loss.item():.4f}")


main()
