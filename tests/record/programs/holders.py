"""Holds memory from step to step in the way that the first argument names, or lets go of it: holders.py KIND."""
import functools
import sys

import torch
from torch import nn

SIZE = 1 << 20  # bytes


class Doubled(torch.autograd.Function):
    """Keeps its output as an attribute, which is a cycle, or saves its input."""

    @staticmethod
    def forward(ctx, x):
        if KIND == "cycle":
            ctx.kept = x * 2
            return ctx.kept
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Trainer:
    """Trains a small model."""

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.mean, self.log, self.memo = 0, [], {}

    def step(self, number):
        rows = {"sizes": 256 * (number * 7 % 5 + 1), "cycle": 32 << 10}.get(KIND, 1024)
        loss = self.model(torch.randn(rows, 256, device="cuda")).pow(2).mean()
        if KIND in ("cycle", "saved"):
            loss = loss + Doubled.apply(self.model(torch.randn(rows, 256, device="cuda"))).mean()
        other = self.model(torch.randn(rows, 256, device="cuda")).mean()
        if KIND == "mean":
            self.mean = 0.9 * self.mean + 0.1 * other
        elif KIND == "mean_detached":
            self.mean = 0.9 * self.mean + 0.1 * other.detach()
        elif KIND == "logged":
            self.log.append(torch.empty(SIZE, dtype=torch.uint8, device="cuda"))
        elif KIND == "warm" and number < 5:
            self.memo[number] = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        if KIND == "evaluation" and number == 3:
            self.score = sum(self.model(torch.randn(8 << 10, 256, device="cuda")).mean() for _ in range(12))
        if KIND == "eval_mode":
            self.model.eval()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def attempt(pieces):
    held = []
    for _ in range(pieces):
        held.append(torch.empty(SIZE << 10, dtype=torch.uint8, device="cuda"))


def counted(values):
    def count():
        values.append(torch.empty(SIZE, dtype=torch.uint8, device="cuda"))
    return count


def train():
    trainer = Trainer()
    count = counted([])
    for number in range(24):
        trainer.step(number)
        if KIND == "closure":
            count()


def joined():
    """Keeps all that it has made in one tensor, which takes two for a moment."""
    whole, model = None, nn.Linear(1 << 10, 1 << 10).cuda()
    with torch.no_grad():
        for _ in range(100):
            part = model(torch.randn(32 << 10, 1 << 10, device="cuda"))
            whole = part if whole is None else torch.cat((whole, part))


def spread():
    one, other = torch.randn(1, 16 << 10, 64, device="cuda"), torch.randn(16 << 10, 1, 64, device="cuda")
    return one * other


def widened():
    half = torch.empty(6 << 30, dtype=torch.bfloat16, device="cuda")
    return half.float()


def scored():
    one = torch.empty(8, 16, 8 << 10, 64, device="cuda")
    return one @ one.transpose(-2, -1)


def dense():
    """Runs out in a backward pass, whose engine has a thread of its own."""
    sparse = torch.sparse_coo_tensor([[0], [0]], [1.0], (80_000, 80_000)).cuda().requires_grad_()
    torch.sparse.mm(sparse, torch.randn(80_000, 100, device="cuda")).sum().backward()


def retry():
    kept = None
    for pieces in (30, 5):
        try:
            attempt(pieces)
        except torch.cuda.OutOfMemoryError as error:
            kept = error if KIND == "exception" else str(error)
    return kept is None


def pieces():
    seen = []
    while True:
        seen.append(torch.empty(SIZE, dtype=torch.uint8, device="cuda"))
        yield seen[-1]


class Encoder(nn.Linear):
    @functools.lru_cache(maxsize=None)  # noqa: B019
    def features(self, number):
        return torch.empty(SIZE, dtype=torch.uint8, device="cuda")


def kept_elsewhere():
    """Trains while a generator or the cache of a method keeps what each step takes."""
    model = Encoder(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, _ in zip(range(24), pieces() if KIND == "generator" else iter(int, 1)):
        if KIND == "method":
            model.features(number)
        model(torch.randn(1024, 256, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Hooked(nn.Linear):
    """Has a hook that knows it, which is a cycle."""

    def __init__(self):
        super().__init__(512, 512)

        def count(module, given, result):
            self.calls = getattr(self, "calls", 0) + 1
        self.register_forward_hook(count)


def epochs():
    """Trains for some epochs of two steps, and keeps something of each."""
    kept, model = [], nn.Linear(512, 512).cuda()
    for _ in range(3 if KIND in ("outputs", "scores") else 12):
        if KIND in ("models", "hooked"):
            model = nn.Linear(512, 512).cuda() if KIND == "models" else Hooked().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(torch.randn(64, 512, device="cuda")).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if KIND == "models":
            kept.append({"model": model})
        elif KIND == "states":
            kept.append({name: each.clone() for name, each in model.state_dict().items()})
        with torch.no_grad():
            results = [model(torch.randn(512, 512, device="cuda")) for _ in range(12)]
        if KIND == "outputs":
            kept.extend(results)
        del results


KIND = sys.argv[1]
if KIND in ("exception", "words"):
    retry()
elif KIND in ("joined", "spread", "widened", "scored", "dense"):
    globals()[KIND]()
elif KIND in ("generator", "method"):
    kept_elsewhere()
elif KIND in ("models", "hooked", "states", "outputs", "scores"):
    epochs()
else:
    train()
