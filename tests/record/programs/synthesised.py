"""Trains a model that `synth` writes down, in nanoGPT's training loop: synthesised.py nanogpt|llama [--KEY=VALUE]...

The keys are those of `synth`.
"""
import ast
import contextlib
import pathlib
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "synth" / "walks"))
import models

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
LLAMA = dict(n_layers=2, dim=256, n_heads=8, n_kv_heads=4, ffn_dim=768, vocab_size=1000, seq_len=128,
             rms_norm="fused" if RELEASE >= (2, 8) else "eager", tie_weights=False, upcast_logits=False)
GPT = dict(n_layer=2, n_head=4, n_embd=256, vocab_size=1000, block_size=128, dropout=0.0, bias=False)
BOTH = dict(batch_size=4, gradient_accumulation_steps=1, dtype="bfloat16", attention="auto", checkpoint="none",
            optimizer="adamw_fused", grad_clip=1.0, eval_iters=1, iterations=2)
OPTIMIZERS = dict(adamw_fused=dict(fused=True), adamw_foreach=dict(foreach=True), adamw_single=dict(foreach=False))


def literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


kind, *words = sys.argv[1:]
given = dict(word.removeprefix("--").split("=") for word in words)
c = types.SimpleNamespace(**BOTH, **(LLAMA if kind == "llama" else GPT))
for key, value in given.items():
    getattr(c, key)  # a key that the model has
    setattr(c, key, literal(value))
length = c.seq_len if kind == "llama" else c.block_size


def get_batch():
    data = torch.randint(c.vocab_size, (c.batch_size, length + 1))
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(c.eval_iters)
        for k in range(c.eval_iters):
            X, Y = get_batch()
            with context:
                _logits, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


dtype = getattr(torch, c.dtype)
context = contextlib.nullcontext() if dtype == torch.float32 else torch.amp.autocast("cuda", dtype)
model = (models.Llama if kind == "llama" else models.Gpt)(c).to("cuda")
parameters = [p for p in model.parameters() if p.requires_grad]
groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
          {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
optimizer = (torch.optim.SGD(groups, lr=1e-3) if c.optimizer == "sgd"
             else torch.optim.AdamW(groups, lr=1e-3, **OPTIMIZERS[c.optimizer]))
scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
X, Y = get_batch()
for iteration in range(c.iterations):
    if iteration == 0:
        estimate_loss()
    for _micro_step in range(c.gradient_accumulation_steps):
        with context:
            logits, loss = model(X, Y)
            loss = loss / c.gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    if c.grad_clip != 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), c.grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
