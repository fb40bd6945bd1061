"""A Llama-like model, as Meta's reference reads, in nanoGPT's training loop."""
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

dim, layers, heads, kv_heads, vocab, T, B = 256, 2, 8, 4, 1000, 128, 4
hidden = 768
fused = sys.argv[1] == "fused" if len(sys.argv) > 1 else True


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        if fused:
            return F.rms_norm(x, (dim,), self.weight, 1e-5)
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def rotate(xq, xk, angles):
    q = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    k = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    angles = angles.view(1, T, 1, -1)
    q_out = torch.view_as_real(q * angles).flatten(3)
    k_out = torch.view_as_real(k * angles).flatten(3)
    return q_out.type_as(xq), k_out.type_as(xk)


def repeat(x, n):
    b, t, h, d = x.shape
    return x[:, :, :, None, :].expand(b, t, h, n, d).reshape(b, t, h * n, d)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        d = dim // heads
        self.wq, self.wk = nn.Linear(dim, dim, bias=False), nn.Linear(dim, kv_heads * d, bias=False)
        self.wv, self.wo = nn.Linear(dim, kv_heads * d, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x, angles):
        b, t, _ = x.shape
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q, k, v = q.view(b, t, heads, -1), k.view(b, t, kv_heads, -1), v.view(b, t, kv_heads, -1)
        q, k = rotate(q, k, angles)
        k, v = repeat(k, heads // kv_heads), repeat(v, heads // kv_heads)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(b, t, -1)
        return self.wo(y)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.attention_norm, self.ffn_norm = RMSNorm(), RMSNorm()

    def forward(self, x, angles):
        h = x + self.attention(self.attention_norm(x), angles)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.output = RMSNorm(), nn.Linear(dim, vocab, bias=False)
        self.register_buffer("angles", torch.ones(T, dim // heads // 2, dtype=torch.complex64))

    def forward(self, tokens, targets):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.angles)
        logits = self.output(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def batch():
    data = torch.randint(vocab, (B, T + 1))
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)


model = Llama().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
X, Y = batch()
for step in range(2):
    with torch.amp.autocast("cuda", torch.bfloat16):
        logits, loss = model(X, Y)
    X, Y = batch()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
