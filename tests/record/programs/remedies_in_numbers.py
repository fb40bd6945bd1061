"""Computes what each change of `memreplay advise` computes, with real numbers on the CPU, and what the script does
without it: remedies_in_numbers.py [NAME...]. It fails unless they differ by no more than the proposal's words allow:
not at all ("the same"), or by rounding. The lines that run here are those that the proposals show.
"""
import functools
import sys
import types

import torch
import torch.nn.functional as F
from memreplay_record import remedies
from memreplay_record.remedies import (
    checkpoint,
    chunked_loss,
    fused_head,
    offload,
    optimizer,
    step_in_backward,
)
from torch import nn

# How far a result may be from the script's own, both rounded to 16 bits once or twice: relative to its largest value.
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}
TYPES = list(ROUNDING)
REPEATED = types.SimpleNamespace(tracks=True)


def lines_of(lines, **names):
    """Runs lines of a proposal and returns the names that they leave."""
    exec("\n".join(lines), names)
    return types.SimpleNamespace(**{name: each for name, each in names.items() if name != "__builtins__"})


def error(found, expected):
    found, expected = found.double(), expected.double()
    assert found.isfinite().all() == expected.isfinite().all(), "infinite"
    return ((found - expected).norm() / expected.norm().clamp(min=1e-30)).item()


def check(what, found, expected, limit):
    for name, each in expected.items():
        assert (found[name] is None) == (each is None), f"{what}: {name}"
        if each is not None and limit == 0:
            assert torch.equal(found[name], each), f"{what}: {name} differs by {error(found[name], each):.2g}"
        elif each is not None:
            assert error(found[name], each) <= limit, \
                f"{what}: {name} differs by {error(found[name], each):.2g}, more than {limit:.2g}"


def zeros(tensor):
    return (tensor == 0).double().mean().item()


# The loss of logits.

FUSED = lines_of(chunked_loss.source_of(fused_head._make, "FusedCrossEntropy")).FusedCrossEntropy
CHUNKED = lines_of(chunked_loss.source_of(chunked_loss._make, "ChunkedCrossEntropy")).ChunkedCrossEntropy


def head(rows, words, width, dtype, ignored, with_bias):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, width, generator=generator).to(dtype).requires_grad_()
    weight = (torch.randn(words, width, generator=generator) / width**0.5 / 4).to(dtype).requires_grad_()
    bias = torch.zeros(words, dtype=dtype, requires_grad=True) if with_bias else None
    targets = torch.randint(words, (rows,), generator=generator)
    targets[:int(ignored * rows)] = -1
    return x, weight, bias, targets


def losses_of_logits():
    """float16 with the scale of a GradScaler, at first 65,536, and as many rows as a batch of 16 x 1,024 has."""
    for dtype in TYPES:
        for ignored in (0, 0.3, 1):
            for scale in (65536.0,) if dtype is torch.float16 else (1.0, 65536.0):
                loss_of_logits(dtype, scale, 2100, 500, ignored, with_bias=True)
    loss_of_logits(torch.float16, 65536.0, 16384, 5030, 0, with_bias=False)


def loss_of_logits(dtype, scale, rows, words, ignored, with_bias):
    x, weight, bias, targets = head(rows, words, 32, dtype, ignored, with_bias)

    def gradients(loss_of):
        leaves = [each.detach().clone().requires_grad_() if each is not None else None
                  for each in (x, weight, bias)]
        loss = loss_of(*leaves)
        (loss * scale).backward()
        return {"loss": loss.detach(),
                **{name: each.grad for name, each in zip(("dx", "dw", "db"), leaves) if each is not None}}

    expected = gradients(lambda x, w, b: F.cross_entropy(F.linear(x, w, b).float(), targets, ignore_index=-1))
    what = f"{dtype} scaled by {scale:.0f}, {rows} rows of {words}, {ignored} ignored"
    for name, found in (
            ("fused_head", gradients(lambda x, w, b: FUSED.apply(x, targets, w, b, -1))),
            ("chunked_loss", gradients(lambda x, w, b: CHUNKED.apply(F.linear(x, w, b), targets, -1)))):
        if ignored == 1:
            found["loss"] = expected["loss"] = torch.ones(())  # of 0 / 0
        check(f"{name}, {what}", found, expected, ROUNDING[dtype])
        assert zeros(found["dw"]) <= zeros(expected["dw"]) + 0.01, f"{name}: {zeros(found['dw']):.0%} zeros"


# Networks with everything that moves: dropout, running statistics, buffers of the script.

class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.other, self.drop = nn.BatchNorm1d(width, momentum=None), nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(torch.relu(self.other(self.norm(self.first(x)))))


class Net(nn.Module):
    """It returns its loss."""

    def __init__(self):
        super().__init__()
        self.blocks, self.last = nn.ModuleList(Block() for _ in range(3)), nn.Linear(8, 5)

    def forward(self, x, y):
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.last(x), y)


class Plain(nn.Module):
    """Without what sees a whole batch or draws random numbers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 5))

    def forward(self, x, y):
        return F.cross_entropy(self.layers(x).float(), y)


def made(cls, dtype=torch.float32):
    torch.manual_seed(1)
    return cls().to(dtype)


def batch(dtype, rows=32):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(rows, 8, generator=generator).to(dtype), torch.randint(5, (rows,), generator=generator)


def train(model, dtype, optimizer=None, steps=3, scale=1.0, step=None):
    """Returns parameters, buffers and losses after some steps, and what evaluation says then."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(3)
    losses = []
    for _ in range(steps):
        loss = model(*batch(dtype))
        losses.append(loss.detach())
        (loss * scale).backward()
        if scale != 1:
            for p in model.parameters():
                p.grad /= scale
        if step is None:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        losses.append(model(*batch(dtype)))
    return {"losses": torch.stack(losses), "random": torch.get_rng_state(),
            **{name: each.detach().clone() for name, each in model.state_dict().items()}}


def checkpoints():
    for dtype in TYPES:
        for scale in (1.0, 1024.0):
            expected = train(made(Net, dtype), dtype, scale=scale)
            model = made(Net, dtype)
            for text in (checkpoint._lines(REPEATED, "model.blocks", "block"),):
                lines_of(text, model=model)
            check(f"checkpoint, {dtype}", train(model, dtype, scale=scale), expected, 0)
    change = remedies.apply(torch, ["checkpoint:Block"])
    found = train(made(Net), torch.float32)
    assert change.met == ["checkpoint:Block"]
    check("checkpoint, as injected", found, train_plainly(Net), 0)


def train_plainly(cls):
    """Trains a class of the same code that no change knows by its name."""
    torch.manual_seed(1)
    Unchanged = type("Unchanged", (Block,), {})
    model = made(cls)
    for number, block in enumerate(model.blocks):
        other = Unchanged()
        other.load_state_dict(block.state_dict())
        model.blocks[number] = other
    return train(model, torch.float32)


def saved_on_host():
    for dtype in TYPES:
        expected = train(made(Net, dtype), dtype)

        def around(hooks, dtype=dtype):
            model = made(Net, dtype)
            forward = model.forward

            def hooked(*args):
                with hooks():
                    return forward(*args)

            model.forward = hooked
            return train(model, dtype)

        check("offload", around(lambda: torch.autograd.graph.save_on_cpu(pin_memory=True)), expected, 0)
        hooks = lines_of(offload._LARGE.splitlines(), torch=torch)
        check("offload large", around(functools.partial(
            torch.autograd.graph.saved_tensors_hooks, hooks.to_host, hooks.to_gpu)), expected, 0)


# Optimizers.

def optimizers():
    for dtype in TYPES:
        for cls in ("AdamW", "Adam", "RMSprop", "Adagrad", "NAdam"):
            def of(model, kind=None, cls=cls, **more):
                groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
                          {"params": [p for p in model.parameters() if p.dim() < 2], "lr": 1e-2}]
                more.update({} if cls == "Adagrad" else {"eps": 1e-3})  # the usual one is 0 in float16
                return (kind or getattr(torch.optim, cls))(groups, lr=1e-3, **more)

            model = made(Plain, dtype)
            expected = train(model, dtype, of(model))
            limit = 2 * ROUNDING[dtype]
            changed = made(Plain, dtype)
            check(f"foreach=False of {cls}", train(changed, dtype, of(changed, foreach=False)), expected, limit)
            if cls in ("AdamW", "Adam") and dtype is torch.float32:
                changed = made(Plain, dtype)
                check(f"fused {cls}", train(changed, dtype, of(changed, fused=True)), expected, limit)
            words = {"name": "HostState", "where": "", "used": "value.to(p.device)", "kept": "value.clone()"}
            kind = lines_of(optimizer._STATE.format(base=cls, **words).splitlines(), torch=torch).HostState
            changed = made(Plain, dtype)
            check(f"state of {cls} aside", train(changed, dtype, of(changed, kind)), expected, limit)
            changed = made(Plain, dtype)
            own = of(changed)
            lines_of(step_in_backward._LINES.format(cls=f"torch.optim.{cls}").splitlines(), torch=torch, optimizer=own)
            check(f"step of {cls} in backward", train(changed, dtype, own, step="in backward"), expected, limit)


def frozen_parameters():
    """An optimizer that was given all parameters, some of which are frozen."""
    def frozen():
        model = made(Plain)
        model.layers[0].weight.requires_grad_(False)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

    expected = train(*(lambda model, own: (model, torch.float32, own))(*frozen()))
    model, own = frozen()
    lines_of(step_in_backward._LINES.format(cls="torch.optim.AdamW").splitlines(), torch=torch, optimizer=own)
    check("step in backward, frozen", train(model, torch.float32, own, step="in backward"), expected, 1e-6)


def micro_batches():
    for dtype in TYPES:
        for parts in (2, 4):
            model, other = made(Plain, dtype), made(Plain, dtype)
            x, y = batch(dtype)
            model(x, y).backward()
            for part, wanted in zip(x.chunk(parts), y.chunk(parts)):
                (other(part, wanted) / parts).backward()
            check(f"micro-batches, {dtype}", *({name: p.grad for name, p in each.named_parameters()}
                                               for each in (other, model)), 4 * ROUNDING[dtype])


# Attention.

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(16, 16).tril())

    def forward(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * 0.25
        scores = scores.masked_fill(self.mask == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return y


class Filled(Attention):
    def forward(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * 0.25
        scores = scores.masked_fill(self.mask == 0, 0.0)  # these take part
        y = F.softmax(scores, dim=-1) @ v
        return y


def attention():
    from memreplay_record.remedies import sdpa
    for dtype in TYPES:
        q, k, v = (torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(i)).to(dtype) for i in range(3))
        found = sdpa.find(Attention)
        changed = types.MethodType(found.function, Attention())
        check(f"sdpa, {dtype}", {"y": changed(q, k, v)}, {"y": Attention()(q, k, v)}, 2 * ROUNDING[dtype])
    assert sdpa.find(Filled) is None


PARTS = (losses_of_logits, checkpoints, saved_on_host, optimizers, frozen_parameters, micro_batches, attention)

if __name__ == "__main__":
    for part in PARTS:
        if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
            part()
            print(part.__name__, flush=True)
