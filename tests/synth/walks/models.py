"""Two language models, written for these walks and for tests/record: the smallest that have every op of nanoGPT's and
Llama's.

Names and order of statements decide how long tensors live, so synth/*_model.cc follow them line by line.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def attend(q, k, v, kind, dropout=0.0):
    """Calls scaled_dot_product_attention, or its kernel "flash" or "efficient": a walk has no card to choose by."""
    ops = torch.ops.aten
    if kind == "auto":
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
    if kind == "flash":
        return ops._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
    wants_grad = torch.is_grad_enabled()
    return ops._scaled_dot_product_efficient_attention(q, k, v, None, wants_grad, 0.0, True)[0]


def cast_for_attention(*tensors):
    """The op is on autocast's 16-bit list; called by its inner name it has to be done here."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    return tuple(t.to(torch.get_autocast_dtype("cuda")) for t in tensors)


# ------------------------------------------------------------------------------------------------------- like Llama


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim))

    def scaled(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

    def forward(self, x):
        y = self.scaled(x.float()).type_as(x)
        return y * self.weight


class FusedRmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim))

    def forward(self, x):
        return F.rms_norm(x, (x.size(-1),), self.weight, 1e-5)


def rotate(q, k, angles):
    """Turns pairs of neighbouring channels, as complex numbers, by the angle of their position."""
    angles = angles.view(1, angles.size(0), 1, angles.size(1))
    q_ = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    k_ = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))
    q_out = torch.view_as_real(q_ * angles).flatten(3)
    k_out = torch.view_as_real(k_ * angles).flatten(3)
    return q_out.type_as(q), k_out.type_as(k)


def repeat_heads(x, times):
    if times == 1:
        return x
    b, t, h, d = x.shape
    return x.unsqueeze(3).expand(b, t, h, times, d).reshape(b, t, h * times, d)


class LlamaAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        d = c.dim // c.n_heads
        self.wq = nn.Linear(c.dim, c.n_heads * d, bias=False)
        self.wk = nn.Linear(c.dim, c.n_kv_heads * d, bias=False)
        self.wv = nn.Linear(c.dim, c.n_kv_heads * d, bias=False)
        self.wo = nn.Linear(c.n_heads * d, c.dim, bias=False)

    def forward(self, x, angles):
        c = self.c
        b, t, _ = x.shape
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q = q.view(b, t, c.n_heads, -1)
        k = k.view(b, t, c.n_kv_heads, -1)
        v = v.view(b, t, c.n_kv_heads, -1)
        q, k = rotate(q, k, angles)
        k = repeat_heads(k, c.n_heads // c.n_kv_heads)
        v = repeat_heads(v, c.n_heads // c.n_kv_heads)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        y = attend(q, k, v, c.attention)
        y = y.transpose(1, 2).contiguous().view(b, t, -1)
        return self.wo(y)


class LlamaFeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1 = nn.Linear(c.dim, c.ffn_dim, bias=False)
        self.w2 = nn.Linear(c.ffn_dim, c.dim, bias=False)
        self.w3 = nn.Linear(c.dim, c.ffn_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        norm = FusedRmsNorm if c.rms_norm == "fused" else RmsNorm
        self.attention = LlamaAttention(c)
        self.feed_forward = LlamaFeedForward(c)
        self.attention_norm = norm(c.dim)
        self.ffn_norm = norm(c.dim)

    def forward(self, x, angles):
        h = x + self.attention(self.attention_norm(x), angles)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.tok_embeddings = nn.Embedding(c.vocab_size, c.dim)
        self.layers = nn.ModuleList([LlamaBlock(c) for _ in range(c.n_layers)])
        self.norm = (FusedRmsNorm if c.rms_norm == "fused" else RmsNorm)(c.dim)
        self.output = nn.Linear(c.dim, c.vocab_size, bias=False)
        if c.tie_weights:
            self.output.weight = self.tok_embeddings.weight
        self.register_buffer("angles", torch.empty(c.seq_len, c.dim // c.n_heads // 2, dtype=torch.complex64))

    def forward(self, tokens, targets):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            if self.c.checkpoint == "block":
                x = torch.utils.checkpoint.checkpoint(layer, x, self.angles, use_reentrant=True,
                                                      preserve_rng_state=False)
            else:
                x = layer(x, self.angles)
        x = self.norm(x)
        logits = self.output(x)
        if self.c.upcast_logits:
            logits = logits.float()
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


# ----------------------------------------------------------------------------------------------------- like nanoGPT


class GptAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=c.bias)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=c.bias)
        self.drop = nn.Dropout(c.dropout)
        if c.attention == "manual":
            self.register_buffer("mask", torch.ones(1, 1, c.block_size, c.block_size).tril())

    def forward(self, x):
        b, t, channels = x.shape
        q, k, v = self.c_attn(x).split(channels, dim=2)
        k = k.view(b, t, self.c.n_head, -1).transpose(1, 2)
        q = q.view(b, t, self.c.n_head, -1).transpose(1, 2)
        v = v.view(b, t, self.c.n_head, -1).transpose(1, 2)
        if self.c.attention == "manual":
            att = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            att = F.softmax(att, dim=-1)
            att = self.drop(att)
            y = att @ v
        else:
            y = attend(q, k, v, self.c.attention, self.drop.p if self.training else 0)
        y = y.transpose(1, 2).contiguous().view(b, t, channels)
        return self.drop(self.c_proj(y))


class GptFeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc = nn.Linear(c.n_embd, 4 * c.n_embd, bias=c.bias)
        self.c_proj = nn.Linear(4 * c.n_embd, c.n_embd, bias=c.bias)
        self.gelu = nn.GELU()
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x):
        x = self.c_fc(x)
        x = self.gelu(x)
        x = self.c_proj(x)
        return self.drop(x)


class GptBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1 = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.attn = GptAttention(c)
        self.ln_2 = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.mlp = GptFeedForward(c)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.drop = nn.Dropout(c.dropout)
        self.h = nn.ModuleList([GptBlock(c) for _ in range(c.n_layer)])
        self.ln_f = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens, targets):
        positions = torch.arange(0, tokens.size(1), dtype=torch.long, device=tokens.device)
        tok_emb = self.wte(tokens)
        pos_emb = self.wpe(positions)
        x = self.drop(tok_emb + pos_emb)
        for block in self.h:
            if self.c.checkpoint == "block":
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True,
                                                      preserve_rng_state=False)
            else:
                x = block(x)
        x = self.ln_f(x)
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss
