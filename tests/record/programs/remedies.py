"""Trains networks, each with one change that saves memory: remedies.py injected|written MODEL/CHANGE...,
remedies.py train MODEL [BATCH]. In "named" the logits of the GPT have a name, in "reading" they are read after their
loss, in "replicated" it has DDP, and in "math" no kernels of attention but those that keep the scores. In "few_rows"
the weights outweigh the activations; "scaled" is in float16, its gradients scaled and clipped.

`written` makes the change as a script would, `injected` as `memreplay advise` does (memreplay_record/remedies). Each
runs in a child of this process, which prints "PID MODEL/CHANGE".
"""
import contextlib
import functools
import os
import sys
import traceback

import torch
import torch.nn.functional as F
from by_hand import ChunkedCrossEntropy
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, CONTEXT = 4000, 64, 128
batch = 16
change = ""
written = ""  # the same, if the code below makes it
rows = 1024  # of a batch of the perceptron
by_hand = False  # whether attention is written out
kept = []  # to the end: when Python frees the knots that checkpoint() ties is another question


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril() if by_hand else None)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (part.view(*x.shape[:2], 4, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        if not by_hand:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif written == "sdpa:Block":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
        else:
            scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
            scores = scores.masked_fill(~self.mask, float("-inf"))
            y = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training) @ v
        y = y.transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(y), 0.1, self.training)
        return x + self.mlp(self.norm2(x))


class FusedCrossEntropy(torch.autograd.Function):
    """The mean cross entropy of F.linear(x, weight, bias), whose gradients are computed with it.

    They are divided by the number of rows in backward, when the scale of the loss is known: float16 has no smaller
    ones.
    """

    @staticmethod
    def forward(ctx, x, targets, weight, bias=None, ignore_index=-100, rows=1024):
        ctx.dtypes = [each.dtype if each is not None else None for each in (x, weight, bias)]
        if torch.is_autocast_enabled():
            dtype = torch.get_autocast_gpu_dtype()
            x, weight, bias = (each.to(dtype) if each is not None else None for each in (x, weight, bias))
        needs = [ctx.needs_input_grad[at] and each is not None for at, each in ((0, x), (2, weight), (3, bias))]
        dx = torch.empty_like(x) if needs[0] else None
        dw, db = (torch.zeros_like(each, dtype=torch.float32) if need else None
                  for need, each in zip(needs[1:], (weight, bias)))
        count = (targets != ignore_index).sum()
        loss = torch.zeros((), device=x.device)
        for i, (part, wanted) in enumerate(zip(x.split(rows), targets.split(rows))):
            kept = (wanted != ignore_index)[:, None]
            log_p = F.log_softmax(F.linear(part, weight, bias), dim=-1, dtype=torch.float32)
            loss += F.nll_loss(log_p, wanted, ignore_index=ignore_index, reduction="sum")
            if any(needs):
                gradient = log_p.exp_().scatter_add_(1, wanted[:, None].where(kept, 0), -kept.float())
                gradient = gradient.mul_(kept).to(x.dtype)
                if dx is not None:
                    dx[i * rows:(i + 1) * rows] = gradient @ weight
                if dw is not None:
                    dw += gradient.T @ part
                if db is not None:
                    db += gradient.sum(0, dtype=torch.float32)
        ctx.save_for_backward(dx, dw, db, count)
        return loss / count

    @staticmethod
    def backward(ctx, scale):
        *gradients, count = ctx.saved_tensors
        dx, dw, db = (each.mul_(scale / count.clamp(min=1)).to(dtype) if each is not None else None
                      for each, dtype in zip(gradients, ctx.dtypes))
        return dx, None, dw, db, None, None


class GPT(nn.Module):
    """As nanoGPT: it returns logits and loss."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(CONTEXT, device="cuda"))
        for number, block in enumerate(self.blocks):
            if written == "checkpoint:Block" or written == "checkpoint:Block:2" and number % 2 == 0:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        if written == "fused_head:GPT:head":
            return None, FusedCrossEntropy.apply(
                self.norm(x).flatten(0, -2), targets.flatten(), self.head.weight, self.head.bias, -1)
        if written == "liger:GPT:head":
            from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy
            return None, liger_fused_linear_cross_entropy(
                self.norm(x).flatten(0, -2), self.head.weight, targets.flatten(), ignore_index=-1)
        logits = self.head(self.norm(x))
        if written == "liger":
            from liger_kernel.transformers.functional import liger_cross_entropy
            return logits, liger_cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1), ignore_index=-1)
        if written == "chunked_loss":
            return logits, ChunkedCrossEntropy.apply(logits.view(-1, VOCABULARY), targets.view(-1), -1)
        return logits, F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1), ignore_index=-1)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


@contextlib.contextmanager
def aside(block):
    """Running statistics that move in here are copies."""
    norms = [block.norm1, block.norm2]
    kept = [(norm.running_mean, norm.running_var, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.running_mean, norm.running_var = norm.running_mean.clone(), norm.running_var.clone()
        norm.num_batches_tracked = norm.num_batches_tracked.clone()
    try:
        yield
    finally:
        for norm, buffers in zip(norms, kept):
            norm.running_mean, norm.running_var, norm.num_batches_tracked = buffers


def contexts(block):
    return contextlib.nullcontext(), aside(block)


class Network(nn.Module):
    """Of convolutions; it returns scores."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.stage1 = nn.Sequential(Residual(32), Residual(32))
        self.stage2 = nn.Sequential(Residual(32), Residual(32))
        self.head = nn.Linear(32, 1000)

    def forward(self, images):
        x, number = self.stem(images), 0
        for stage in (self.stage1, self.stage2):
            for block in stage:
                if written == "checkpoint:Residual" or written == "checkpoint:Residual:2" and number % 2 == 0:
                    x = checkpoint(block, x, use_reentrant=False, context_fn=functools.partial(contexts, block))
                else:
                    x = block(x)
                number += 1
            x = F.max_pool2d(x, 2)
        return self.head(x.mean((2, 3)))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 32, 3, padding=1)

    def forward(self, images):
        return F.relu(self.deep(F.relu(self.wide(images))))


class Towered(nn.Module):
    """Has one large module, and no two of a class."""

    def __init__(self):
        super().__init__()
        self.tower, self.head = Tower(), nn.Linear(32, 1000)

    def forward(self, images):
        x = checkpoint(self.tower, images, use_reentrant=False) if written == "checkpoint:Tower" else self.tower(images)
        return self.head(x.mean((2, 3)))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)) * 2)


def gpt_batch():
    return torch.randint(VOCABULARY, (batch, CONTEXT + 1), device="cuda")


def gpt_pair():
    tokens = gpt_batch()
    return tokens[:, :-1], tokens[:, 1:].contiguous()


def share_of(model, *tensors):
    """Returns what this rank trains with."""
    if not model.training or not written.endswith(("split", "ddp:GPT")):
        return tensors
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    return [tensor.chunk(ranks)[rank] for tensor in tensors]


def large_to_host(tensor):
    if tensor.is_cuda and tensor.nbytes >= 1 << 20:
        return True, torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
    return False, tensor.detach()


def from_host(packed):
    was_large, tensor = packed
    return tensor.to("cuda", non_blocking=True) if was_large else tensor


def gpt_loss(model):
    tokens = gpt_batch()
    if written == "offload:GPT":
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return model(tokens[:, :-1], tokens[:, 1:].contiguous())[1]
    if written == "offload:GPT:large":
        with torch.autograd.graph.saved_tensors_hooks(large_to_host, from_host):
            return model(tokens[:, :-1], tokens[:, 1:].contiguous())[1]
    if written == "autocast:GPT":
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(tokens[:, :-1], tokens[:, 1:].contiguous())[1]
    if written == "no_grad:GPT" and not model.training:
        with torch.no_grad():
            return model(tokens[:, :-1], tokens[:, 1:].contiguous())[1]
    return model(*share_of(model, tokens[:, :-1], tokens[:, 1:].contiguous()))[1]


def network_loss(model):
    images, labels = torch.randn(8, 3, 64, 64, device="cuda"), torch.randint(1000, (8,), device="cuda")
    if written == "offload:Network":
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            scores = model(images)
    elif written == "autocast:Network":
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = model(images)
    elif written == "no_grad:Network" and not model.training:
        with torch.no_grad():
            scores = model(images)
    else:
        scores = model(images.bfloat16() if written == "bf16:Network:inputs" else images)
    if written == "chunked_loss":
        return ChunkedCrossEntropy.apply(scores, labels)
    return F.cross_entropy(scores, labels)


def perceptron_loss(model):
    return model(torch.randn(rows, 256, device="cuda")).square().mean()


def mean_loss(model):
    """Evaluates as nanoGPT does: the logits of a batch are live while the next ones are made, unless they are freed."""
    losses = torch.zeros(3)
    for k in range(3):
        if written == "unread_output:GPT":
            loss = model(*gpt_pair())[1]
        else:
            logits, loss = model(*gpt_pair())
        losses[k] = loss.item()
    return losses.mean()


def optimizer_of(model):
    if written == "sgd:AdamW":
        return torch.optim.SGD(model.parameters(), lr=1e-3)
    if written == "adafactor:AdamW":
        return torch.optim.Adafactor(model.parameters(), lr=1e-3, weight_decay=0.1)
    if written == "eight_bit:AdamW":
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-3, weight_decay=0.1)
    if written.startswith("zero:AdamW"):
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3, weight_decay=0.1)
    more = {"fused:AdamW": {"fused": True}, "foreach:AdamW": {"foreach": False}}.get(written, {})
    if written.endswith("_state:AdamW"):
        return OneByOne(model.parameters())
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, **more)


class OneByOne:
    """An optimizer for each parameter, whose state is on the host or in bfloat16 between steps."""

    def __init__(self, parameters):
        self.optimizers = [torch.optim.AdamW([p], lr=1e-3, weight_decay=0.1) for p in parameters]

    def step(self):
        for optimizer in self.optimizers:
            moments, = optimizer.state.values() or [{}]
            for name in ("exp_avg", "exp_avg_sq"):
                if name in moments:
                    moments[name] = moments[name].cuda() if written.startswith("host") else moments[name].float()
            optimizer.step()
            moments, = optimizer.state.values()
            for name in ("exp_avg", "exp_avg_sq"):
                moments[name] = moments[name].cpu().pin_memory() if written.startswith("host") else \
                    moments[name].bfloat16()

    def zero_grad(self, set_to_none):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)


def step_in_backward(model):
    optimizers = {p: torch.optim.AdamW([p], lr=1e-3, weight_decay=0.1) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in optimizers:
        p.register_post_accumulate_grad_hook(update)
    return optimizers


def in_job(model, is_replicated):
    """Returns the model as one of several ranks trains it."""
    kind = written.partition(":")[0]
    if is_replicated or kind in ("ddp", "zero", "fsdp"):
        torch.distributed.init_process_group("nccl")
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard
        blocks = model.blocks if isinstance(model, GPT) else [*model.stage1, *model.stage2]
        for block in blocks:
            fully_shard(block)
        fully_shard(model)
    elif is_replicated or kind in ("ddp", "zero"):
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=not is_replicated or kind == "ddp")
    return model


def train(name):
    """Two steps, an evaluation and another step. The evaluation keeps activations that nothing needs, unless something
    else is changed."""
    global by_hand, rows
    rows = 16 if name == "few_rows" else 1024
    is_named = name.startswith("named")
    graded = not is_named and (change == "" or change.startswith("no_grad"))
    by_hand = name == "attention"
    if name == "math" and written != "sdp_kernel":
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    is_replicated = name.endswith("replicated")  # by the script itself
    is_scaled = name == "scaled"
    scaler = torch.amp.GradScaler("cuda", enabled=is_scaled)
    kinds = {"network": (Network, network_loss), "perceptron": (Perceptron, perceptron_loss),
             "few_rows": (Perceptron, perceptron_loss), "tower": (Towered, network_loss)}
    cls, loss_of = kinds.get(name, (GPT, gpt_loss))
    model = cls().cuda()
    if written.startswith("compile:"):
        model.compile()
    model = in_job(model, is_replicated)
    if written.startswith("bf16:"):
        model.to(torch.bfloat16)
    optimizer = step_in_backward(model) if written == "step_in_backward:AdamW" else optimizer_of(model)
    kept.append((model, optimizer))
    for step in range(3):
        if step == 2:
            if written == "empty_cache":
                torch.cuda.empty_cache()
            model.eval()
            with torch.set_grad_enabled(graded):
                loss_of(model)
            if is_named:
                with torch.no_grad():
                    mean_loss(model)
            if written == "empty_cache":
                torch.cuda.empty_cache()
            model.train()
        if written.startswith("micro_batches"):
            parts = int(written.rpartition(":")[2])
            tokens = gpt_batch()
            for x, y in zip(tokens[:, :-1].chunk(parts), tokens[:, 1:].contiguous().chunk(parts)):
                (model(x, y)[1] / parts).backward()
        elif is_named:
            tokens, targets = gpt_pair()
            if written == "unread_output:GPT":
                loss = model(tokens, targets)[1]
            else:
                logits, loss = model(tokens, targets)  # these are live until the next ones are there
            loss.backward()
        elif name == "reading":
            tokens, targets = gpt_pair()
            logits, loss = model(tokens, targets)
            print((logits.argmax(-1) == targets).float().mean())
            loss.backward()
        else:
            with torch.autocast("cuda", dtype=torch.float16) if is_scaled else contextlib.nullcontext():
                loss = loss_of(model)
            scaler.scale(loss).backward()
            del loss
        if is_scaled:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        elif written != "step_in_backward:AdamW":
            optimizer.step()
            optimizer.zero_grad(set_to_none=written == "set_to_none")


def main():
    global change, written
    for word in sys.argv[2:]:
        child = os.fork()
        if child != 0:
            print(child, word, flush=True)
            if os.waitpid(child, 0)[1] != 0:
                sys.exit(f"{word} failed")
            continue
        name, _, change = word.partition("/")
        try:
            if sys.argv[1] == "written":
                written = change
            elif change:
                from memreplay_record import remedies
                met = remedies.apply(torch, [change])
            train(name)
            assert sys.argv[1] == "written" or not change or met.met == [change], met.met
            status = 0
        except BaseException:  # the parent's frames are not the child's
            traceback.print_exc()
            status = 1
        os._exit(status)


if sys.argv[1] == "train":
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else batch
    train(sys.argv[2])
else:
    main()
