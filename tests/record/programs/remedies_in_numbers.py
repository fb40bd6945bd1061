"""Computes what each change of `memreplay advise` computes, with real numbers on the CPU, and what the script does
without it: remedies_in_numbers.py [NAME...]. It fails unless they differ by no more than the proposal's words allow:
not at all ("the same"), or by rounding. What runs here are the lines that the proposals show, or the changes as they
are injected. Each part prints its name and the changes that it has computed.
"""
import contextlib
import functools
import os
import pathlib
import socket
import sys
import tempfile
import types

import torch
import torch.nn.functional as F
from memreplay_record import remedies
from memreplay_record.remedies import (
    bf16,
    bf16_state,
    checkpoint,
    chunked_loss,
    edits,
    fused_head,
    offload,
    optimizer,
    reads,
    step_in_backward,
    survey,
)
from torch import nn

# How far a result may be from the script's own, both rounded to 16 bits once or twice: relative to its largest value.
ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}
TYPES = list(ROUNDING)
HAS_FSDP = hasattr(torch.cpu.Stream, "record_event")  # FSDP2 of a CPU needs it, which came after 2.6
REPEATED = types.SimpleNamespace(tracks=True)


def lines_of(lines, **names):
    """Runs lines of a proposal and returns the names that they leave."""
    exec("\n".join(lines), names)
    return types.SimpleNamespace(**{name: each for name, each in names.items() if name != "__builtins__"})


@contextlib.contextmanager
def injected(*names, classes=()):
    """Makes changes as `memreplay advise` does, to the end of the block, by which the script must have met them."""
    owners = [nn.Module, nn.parallel, nn.parallel.distributed, nn.parallel.DistributedDataParallel, nn.attention,
              torch.optim, torch.optim.Optimizer, torch.optim.AdamW, torch.Tensor, torch.backends.cuda, F, *classes]
    before = [dict(vars(owner)) for owner in owners]
    change = remedies.apply(torch, names)
    try:
        yield
    finally:
        for owner, kept in zip(owners, before):
            for name, value in list(vars(owner).items()):
                if name not in kept:
                    delattr(owner, name)
                elif value is not kept[name]:
                    setattr(owner, name, kept[name])
    assert change.met == list(names), change.met


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

FUSED = lines_of(chunked_loss.source_of(fused_head._make, "FusedCrossEntropy"), torch=torch, F=F).FusedCrossEntropy
CHUNKED = lines_of(chunked_loss.source_of(chunked_loss._make, "ChunkedCrossEntropy"), torch=torch,
                   F=F).ChunkedCrossEntropy


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


def sums():
    """The loss of a library, which divides it itself, also where all is ignored."""
    library = types.SimpleNamespace(cross_entropy=F.cross_entropy)
    lines_of(chunked_loss._IN_LIBRARY.splitlines(), ChunkedCrossEntropy=CHUNKED, F=library)
    for dtype in TYPES:
        for ignored in (0, 0.3, 1):
            x, weight, bias, targets = head(2100, 500, 32, dtype, ignored, with_bias=True)
            found = []
            for function in (F.cross_entropy, library.cross_entropy):
                x.grad = None
                loss = function(F.linear(x, weight, bias).to(function is F.cross_entropy and torch.float32 or dtype),
                                targets, ignore_index=-1, reduction="sum")
                (loss / 2100 * 1024).backward()
                found.append({"loss": loss.detach(), "dx": x.grad})
            check(f"sum, {dtype}, {ignored} ignored", found[1], found[0], ROUNDING[dtype])
    # What is no plain mean or sum, and logits that are read after the loss, as for an accuracy.
    x, weight, bias, targets = head(2100, 500, 32, torch.float32, 0, with_bias=True)
    for more in ({"weight": torch.rand(500)}, {"label_smoothing": 0.1}, {"reduction": "none"}):
        logits = F.linear(x, weight, bias)
        assert torch.equal(library.cross_entropy(logits, targets, **more), F.cross_entropy(logits, targets, **more))
    logits = F.linear(x, weight, bias)
    before = logits.detach().clone()
    loss = library.cross_entropy(logits, targets)
    assert torch.equal(logits, before)
    loss.backward(retain_graph=True)
    try:
        loss.backward()
    except RuntimeError as error:
        assert "inplace" in str(error)
    else:
        raise AssertionError("a second backward pass took a gradient for logits")


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
            lines_of([*checkpoint._WITH_STATISTICS.splitlines(),
                      *checkpoint._lines(REPEATED, "model.blocks", "block")],
                     model=model, torch=torch, functools=functools, contextmanager=contextlib.contextmanager,
                     nullcontext=contextlib.nullcontext)
            check(f"checkpoint, {dtype}", train(model, dtype, scale=scale), expected, 0)
    expected = train(made(Net), torch.float32)
    with injected("checkpoint:Block", classes=[Block]):
        check("checkpoint, as injected", train(made(Net), torch.float32), expected, 0)


def saved_on_host():
    for dtype in TYPES:
        expected = train(made(Plain, dtype), dtype)

        def around(hooks, dtype=dtype, cls=Plain):
            model = made(cls, dtype)
            forward = model.forward

            def hooked(*args):
                with hooks():
                    return forward(*args)

            model.forward = hooked
            return train(model, dtype)

        save = functools.partial(torch.autograd.graph.save_on_cpu, pin_memory=True)
        check("offload", around(save), expected, 2 * ROUNDING[dtype])
        check("offload, random numbers", around(save, cls=Net), {"random": train(made(Net, dtype), dtype)["random"]}, 0)
        hooks = lines_of(offload._LARGE.splitlines(), torch=torch)
        check("offload large", around(functools.partial(
            torch.autograd.graph.saved_tensors_hooks, hooks.to_host, hooks.to_gpu)), expected, 2 * ROUNDING[dtype])


# Optimizers.

IN_BACKWARD = lines_of(step_in_backward._DEFINITION.splitlines()).step_in_backward


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
            check(f"foreach of {cls}", train(changed, dtype, of(changed, foreach=True)), expected, limit)
            if cls in ("AdamW", "Adam"):
                changed, exact = made(Plain, dtype), made(Plain, dtype).float()
                found = train(changed, dtype, of(changed, fused=True))
                if dtype is torch.float32:
                    check(f"fused {cls}", found, expected, limit)
                else:  # it differs by more than rounding, and is the one closer to float32
                    exact = train(exact, torch.float32, of(exact))
                    for name, each in exact.items():
                        assert error(found[name], each) <= error(expected[name], each) + limit, f"fused {cls}: {name}"
            words = {"name": "HostState", "where": "", "used": "value.to(p.device)", "kept": "value.clone()"}
            kind = lines_of(optimizer._STATE.format(base=cls, **words).splitlines(), torch=torch).HostState
            changed = made(Plain, dtype)
            check(f"state of {cls} aside", train(changed, dtype, of(changed, kind)), expected, limit)
            changed = made(Plain, dtype)
            own = of(changed)
            IN_BACKWARD(own)
            check(f"step of {cls} in backward", train(changed, dtype, own, step="in backward"), expected, limit)


def frozen_parameters():
    """An optimizer that was given all parameters, some of which are frozen."""
    def frozen():
        model = made(Plain)
        model.layers[0].weight.requires_grad_(False)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

    expected = train(*(lambda model, own: (model, torch.float32, own))(*frozen()))
    model, own = frozen()
    IN_BACKWARD(own)
    check("step in backward, frozen", train(model, torch.float32, own, step="in backward"), expected, 1e-6)


def scaled_and_clipped():
    """A GradScaler and clipping need all gradients, of which the step in backward, which is not proposed then, leaves
    none.
    """
    def found(*names):
        with injected(*names, classes=[Plain]):
            model = made(Plain)
            own, scaler = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3), torch.amp.GradScaler("cpu")
            for _ in range(3):
                scaler.scale(model(*batch(torch.float32))).backward()
                scaler.unscale_(own)
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                scaler.step(own)
                scaler.update()
                own.zero_grad()
        return {name: each.detach() for name, each in model.named_parameters()}

    expected = found()
    check("micro-batches, scaled and clipped", found("micro_batches:Plain:4"), expected, 1e-5)
    try:
        found("step_in_backward:AdamW")
    except AssertionError as none:
        assert "No inf checks" in str(none), none
    else:
        raise AssertionError("the step in backward left gradients")


def different(found, expected):
    return max(error(found[name], each) for name, each in expected.items())


def zeroed():
    """Gradients that are zeros to begin with, or are not there."""
    def found(dtype, *names, cls=Plain, scale=1.0):
        with injected(*names):
            model = made(cls, dtype)
            own = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1, eps=1e-3)
            torch.manual_seed(3)
            for _ in range(3):
                own.zero_grad(set_to_none=False)
                (model(*batch(dtype)) * scale).backward()
                own.step()
        return {**model.state_dict(), "random": torch.get_rng_state()}

    class Unused(Plain):
        def __init__(self):
            super().__init__()
            self.extra = nn.Linear(2, 2)

    class Once(Unused):
        """Its extra layer gets a gradient in the first pass alone."""
        passes = 0

        def forward(self, x, y):
            self.passes += 1
            return super().forward(x, y) + (self.extra.weight.square().sum() if self.passes == 1 else 0)

    for dtype in TYPES:
        for cls in (Net, Plain, Unused):
            check(f"set_to_none, {cls.__name__}", found(dtype, "set_to_none", cls=cls, scale=256.0),
                  found(dtype, cls=cls, scale=256.0), 0)
    assert different(found(torch.float32, "set_to_none", cls=Once), found(torch.float32, cls=Once)) > 0  # as it says


def evaluated():
    """Training is the same next to an evaluation that keeps no activations, and so are its outputs."""
    def found(dtype, *names):
        with injected(*names, classes=[Net]):
            model = made(Net, dtype)
            before = train(model, dtype)
            outputs = model(*batch(dtype))
            assert outputs.requires_grad == (not names)
            return {**before, "outputs": outputs.detach(), **{f"then {name}": each for name, each in train(
                model.train(), dtype).items()}}

    for dtype in TYPES:
        check("no_grad", found(dtype, "no_grad:Net"), found(dtype), 0)
    encoder = made(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)).eval()
    x, padding = torch.randn(3, 6, 16), torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 3:] = True
    for mask in (None, padding):
        expected = encoder(x, src_key_padding_mask=mask).detach()
        with torch.no_grad():
            outputs = encoder(x, src_key_padding_mask=mask)
        if mask is not None:
            assert (outputs[mask] == 0).all() and (expected[mask] != 0).all()
            outputs, expected = outputs[~mask], expected[~mask]
        check("no_grad of an encoder", {"y": outputs}, {"y": expected}, ROUNDING[torch.float32])


class Pair(Plain):
    """Returns logits next to their loss."""

    def forward(self, x, y):
        logits = self.layers(x)
        return logits, F.cross_entropy(logits.float(), y)


def train_pair(dtype, scale):
    model, losses = made(Pair, dtype), []
    own = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    for _ in range(3):
        logits, loss = model(*batch(dtype))
        losses.append(loss.detach())
        (loss * scale).backward()
        own.step()
        own.zero_grad()
    return {**model.state_dict(), "losses": torch.stack(losses)}


def unread():
    smallest, reads.SMALLEST = reads.SMALLEST, 0
    for dtype in TYPES:
        expected = train_pair(dtype, 1024.0)
        with injected("unread_output:Pair", classes=[Pair]):
            check("unread_output", train_pair(dtype, 1024.0), expected, 0)
    reads.SMALLEST = smallest


def emptied():
    torch.cuda.init()
    for dtype in TYPES:
        def found(dtype=dtype):
            model = made(Net, dtype)
            return {**train(model, dtype), **{f"then {name}": each for name, each in train(
                model.train(), dtype).items()}}

        expected = found()
        with injected("empty_cache"):
            check("empty_cache", found(), expected, 0)


def collected():
    expected = train(made(Net), torch.float32)
    with injected("collect:SGD"):
        check("collect", train(made(Net), torch.float32), expected, 0)


class Counting(Plain):
    """Counts its calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, y):
        self.calls += 1
        return super().forward(x, y)


def micro_batches():
    """Whole and uneven batches, and what the proposal's words leave out."""
    def gradients(dtype, cls=Plain, rows=32, ignored=0, scale=1.0):
        model = made(cls, dtype)
        x, y = batch(dtype, rows)
        y[:ignored] = -100
        loss = model(x, y)
        (loss * scale).backward()
        return {**{name: p.grad for name, p in model.named_parameters()}, **dict(model.named_buffers())}

    script = pathlib.Path(tempfile.mkdtemp(), "script.py")
    script.write_text("loss = model(x, y)\n(1024.0 * loss).backward()\n", encoding="utf-8")
    for dtype in TYPES:
        for rows in (32, 31, 5):
            expected = gradients(dtype, rows=rows, scale=1024.0)
            for parts in (2, 4):
                with injected(f"micro_batches:Plain:{parts}", classes=[Plain]):
                    check(f"micro-batches, {dtype}, {rows} in {parts}", gradients(dtype, rows=rows, scale=1024.0),
                          expected, 4 * ROUNDING[dtype])
                model, (x, y) = made(Plain, dtype), batch(dtype, rows)
                seen = types.SimpleNamespace(call=survey.Call(str(script), 1))
                text = script.read_text(encoding="utf-8")
                for edit in reversed(edits.checked(remedies.module("micro_batches")._edits(seen, parts))):
                    text = text[:edit["begin"]] + edit["text"] + text[edit["end"]:]
                lines_of(text.splitlines(), model=model, x=x, y=y)
                check("micro-batches, written", {name: p.grad for name, p in model.named_parameters()}, expected,
                      4 * ROUNDING[dtype])
    for cls, ignored in ((Plain, 12), (Net, 0), (Counting, 0)):  # "of equal weight"; and these claim nothing
        expected = gradients(torch.float32, cls, ignored=ignored)
        with injected(f"micro_batches:{cls.__name__}:2", classes=[cls]):
            assert different(gradients(torch.float32, cls, ignored=ignored), expected) > 1e-3


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
        scores = scores.masked_fill(self.mask == 0, 0.0)  # what tril() leaves out takes part
        y = F.softmax(scores, dim=-1) @ v
        return y


class Tiny(Attention):
    def forward(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * 0.25
        scores = scores.masked_fill(self.mask == 0, -1e-9)  # and so does what tril() leaves out here
        y = F.softmax(scores, dim=-1) @ v
        return y


def attention():
    from memreplay_record.remedies import sdpa
    for dtype in TYPES:
        q, k, v = (torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(i)).to(dtype) for i in range(3))
        found = sdpa.find(Attention)
        changed = types.MethodType(found.function, Attention())
        check(f"sdpa, {dtype}", {"y": changed(q, k, v)}, {"y": Attention()(q, k, v)}, 2 * ROUNDING[dtype])
    assert sdpa.find(Filled) is None and sdpa.find(Tiny) is None


def kernels_of_attention():
    """The kernel that keeps the scores, which the script chooses, and the one that PyTorch does."""
    def found(dtype, *names):
        tensors = [torch.randn(2, 3, 32, 16, generator=torch.Generator().manual_seed(i)).to(dtype).requires_grad_()
                   for i in range(3)]
        with injected(*names):
            with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
                y = F.scaled_dot_product_attention(*tensors, is_causal=True)
            (y.float().square().mean() * 1024).backward()
        return {"y": y.detach(), **{name: each.grad for name, each in zip("qkv", tensors)}}

    for dtype in TYPES:
        expected, others = found(dtype), found(dtype, "sdp_kernel")
        check("sdp_kernel", others, expected, 4 * ROUNDING[dtype])
        assert different(others, expected) > 0  # it is another kernel


def other_types():
    """What computes in bfloat16 is not the same, and does not say so."""
    def found(around=contextlib.nullcontext, lines=(), kind=torch.optim.AdamW):
        model = made(Plain)
        lines_of(lines, torch=torch, model=model)
        forward = model.forward

        def called(*args):
            with around():
                return forward(*args)

        model.forward = called
        return {name: each.float() for name, each in train(model, torch.float32, kind(
            model.parameters(), lr=1e-2)).items()}

    expected = found()
    state = optimizer._STATE.format(base="AdamW", **bf16_state._WORDS).splitlines()
    for name, others in (
            ("autocast", found(lambda: torch.autocast("cpu", dtype=torch.bfloat16))),
            ("bf16", found(lines=(bf16._LINES + bf16._INPUTS).format(model="model").splitlines())),
            ("bf16_state", found(kind=lines_of(state, torch=torch).Bfloat16State))):
        assert different(others, expected) > 1e-4, name


# Jobs of two processes.

def jobs():
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    sys.stdout.flush()
    child = os.fork()
    os.environ["RANK"] = "0" if child else "1"
    status = 1
    try:
        job()
        status = 0
    finally:
        if child == 0:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    del os.environ["WORLD_SIZE"], os.environ["RANK"]


def job():
    torch.distributed.init_process_group("gloo")
    for dtype in TYPES[:2]:  # gloo adds no float16
        job_of(dtype)
    torch.distributed.destroy_process_group()


def job_of(dtype):
    rank = torch.distributed.get_rank()

    def found(*names, replicated=False, part=None):
        with injected(*names, classes=[Plain]):
            model = made(Plain, dtype)
            model = nn.parallel.DistributedDataParallel(model) if replicated else model
            own = torch.optim.AdamW(model.parameters(), lr=1.0, eps=1.0)  # which does not amplify rounding
            for _ in range(3):
                x, y = batch(dtype)
                model(*((x, y) if part is None else (x.chunk(2)[part], y.chunk(2)[part]))).backward()
                own.step()
                own.zero_grad()
        return {name.removeprefix("module."): each.full_tensor() if hasattr(each, "full_tensor") else each
                for name, each in model.state_dict().items()}

    limit = 8 * ROUNDING[dtype]
    expected = found()
    check("ddp, split", found("ddp:Plain"), expected, limit)
    check("zero, split", found("zero:AdamW:Plain:split"), expected, limit)
    parts = found(replicated=True, part=rank)  # a script that is a job
    check("a job", parts, expected, limit)
    check("ddp", found("ddp", replicated=True, part=rank), parts, 0)
    check("zero", found("zero:AdamW", replicated=True, part=rank), parts, limit)
    check("zero without split", found("zero:AdamW:Plain"), expected, limit)  # the same samples for both
    if HAS_FSDP:
        with on_cpus():
            check("fsdp, split", found("fsdp:Plain:Linear:split"), expected, limit)
            check("fsdp", found("fsdp:Plain:Linear", part=rank), parts, limit)


@contextlib.contextmanager
def on_cpus():
    from torch.distributed import device_mesh, fsdp
    fully_shard, mesh = fsdp.fully_shard, device_mesh.init_device_mesh("cpu", (2,))
    fsdp.fully_shard = functools.partial(fully_shard, mesh=mesh)
    yield
    fsdp.fully_shard = fully_shard


def compiled():
    """By Inductor, for the CPU."""
    def gradients(dtype):
        model = made(Plain, dtype)
        loss = model(*batch(dtype))
        (loss * 1024).backward()
        return {"loss": loss.detach(), **{name: p.grad for name, p in model.named_parameters()}}

    for dtype in TYPES:
        expected = gradients(dtype)
        with injected("compile:Plain", classes=[Plain]):
            check(f"compile, {dtype}", gradients(dtype), expected, 2 * ROUNDING[dtype])


# And the changes that each computes.
PARTS = {
    jobs: "ddp zero fsdp" if HAS_FSDP else "ddp zero",  # first, as autograd has no threads yet, which forbid a fork
    losses_of_logits: "fused_head chunked_loss", sums: "chunked_loss", checkpoints: "checkpoint",
    saved_on_host: "offload", optimizers: "fused foreach host_state step_in_backward",
    frozen_parameters: "step_in_backward", scaled_and_clipped: "micro_batches", zeroed: "set_to_none",
    evaluated: "no_grad", unread: "unread_output", emptied: "empty_cache", collected: "collect",
    micro_batches: "micro_batches",
    attention: "sdpa", kernels_of_attention: "sdp_kernel", other_types: "",
    compiled: "compile"}  # only if it is named, as it takes longer than the others together


def main(parts):
    torch.set_num_threads(1)  # of which a tensor this small needs no more
    for part, changes in parts.items():
        if part.__name__ in (sys.argv[1:] or [each.__name__ for each in parts if each is not compiled]):
            part()
            print("computed", part.__name__, changes, flush=True)


if __name__ == "__main__":
    main(PARTS)
