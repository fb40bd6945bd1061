"""Writes what Dynamo made of each compiled function here as a line of JSON, the same with and without a recording.

    compiled.py OUT [NAME...]

A line has the number of graphs, of graph breaks, of frames that were compiled, and of recompilations, each guard, and a
digest of the graphs' code. What is traced otherwise (FX, export, vmap, TorchScript) has its text in place of graphs.
"""
import collections
import hashlib
import json
import os
import re
import sys
import types

import torch
import torch._dynamo
import torch._dynamo.guards
import torch.nn.functional as F
from torch import nn
from torch._dynamo.backends.registry import lookup_backend

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
PROGRAMS = {}


def program(since=(2, 1)):
    def add(function):
        if RELEASE >= since:
            PROGRAMS[function.__name__] = function
        return function
    return add


class Seen:
    """Collects what is compiled from now on."""

    def __init__(self):
        self.graphs, self.guards, self.entries, self.texts = [], [], collections.Counter(), []

    def backend(self, name):
        inner = lookup_backend(name)

        def counting(graph, inputs, **more):
            self.graphs.append(graph.print_readable(print_output=False))
            return inner(graph, inputs, **more)
        return counting

    def row(self):
        code = "\n".join([*self.graphs, *self.texts])
        counters = torch._dynamo.utils.counters
        return {"graphs": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values()),
                "frames": dict(counters["frames"]),
                "recompilations": sum(self.entries.values()) - len(self.entries), "guards": sorted(self.guards),
                "code": hashlib.sha256(code.encode()).hexdigest()[:16]}


seen = Seen()


def name_of(guard):
    name = guard.name if isinstance(guard.name, str) else guard.name()
    return re.sub(r"\d{6,}", "ADDRESS", name)


def kind_of(guard):
    function = guard.create_fn
    return getattr(function, "func", function).__name__


def watch_guards():
    manager = torch._dynamo.guards.CheckFunctionManager
    init = manager.__init__

    def __init__(self, *args, **kwargs):
        given = (*args, *kwargs.values())
        code = next((each for each in given if isinstance(each, types.CodeType)), None)  # 2.1 does not say
        for graph in given:
            if hasattr(graph, "guards") and hasattr(graph, "root_tx"):
                seen.entries[code] += 1
                seen.guards += [f"{name_of(guard)} {kind_of(guard)}" for guard in graph.guards]
                seen.guards.append(f"modes {len(getattr(graph, 'torch_function_mode_stack', ()))}")
        init(self, *args, **kwargs)

    manager.__init__ = __init__


def compiled(function, backend="aot_eager", **more):
    return torch.compile(function, backend=seen.backend(backend), **more)


def numbers(*size, **more):
    return torch.randn(*size, device="cuda", **more)


def trained(model, *inputs):
    model(*inputs).float().sum().backward()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = layers()

    def forward(self, x):
        return x + F.dropout(self.layers(x), 0.1, self.training)


def layers(width=32):
    return nn.Sequential(
        nn.Linear(width, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, width)).cuda()


@program()
def module():
    trained(compiled(layers()), numbers(8, 32))


@program((2, 4))
def loss_of_softcapped_logits():
    @torch.compile(fullgraph=True, backend=seen.backend("aot_eager"))
    def run(x, w, t):
        x = F.rms_norm(x, (x.size(-1),))
        logits = F.linear(x, w).float()
        return F.cross_entropy(15 * logits * torch.rsqrt(logits.square() + 225), t)
    weight = numbers(100, 32, requires_grad=True)
    run(numbers(64, 32), weight, torch.zeros(64, dtype=torch.long, device="cuda")).backward()


@program()
def functions_that_ask_for_overrides():
    def run(x, w):
        x = F.dropout(F.embedding(x, w), 0.1)
        x = F.layer_norm(F.normalize(x), (32,)) + F.softmax(x, -1)
        return F.binary_cross_entropy_with_logits(x, torch.ones_like(x)) + F.mse_loss(x, F.pad(x[..., 1:], (0, 1)))
    weight = numbers(10, 32, requires_grad=True)
    compiled(run, fullgraph=True)(torch.zeros(4, 6, dtype=torch.long, device="cuda"), weight).backward()


@program()
def transformer_layer():
    trained(compiled(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).cuda()), numbers(2, 8, 32))
    with torch.no_grad():
        compiled(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).cuda().eval())(numbers(2, 8, 32))


@program()
def attention():
    layer = nn.MultiheadAttention(32, 4, batch_first=True).cuda()
    x = numbers(2, 8, 32)
    compiled(lambda x: layer(x, x, x)[0])(x).sum().backward()
    compiled(F.scaled_dot_product_attention)(*(numbers(2, 4, 8, 8) for _ in range(3)))


@program()
def convolution():
    trained(compiled(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)).cuda()),
            numbers(2, 3, 16, 16))


@program()
def recurrent():
    layer = nn.LSTM(16, 16).cuda()
    compiled(lambda x: layer(x)[0].sum())(numbers(4, 2, 16))


@program()
def optimizers():
    for kind, more in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {"foreach": True})):
        model = layers()
        optimizer = kind(model.parameters(), lr=0.01, **more)
        trained(model, numbers(4, 32))
        compiled(optimizer.step)()


@program()
def clipping():
    model = layers()
    trained(model, numbers(4, 32))
    compiled(lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))()


@program()
def whole_step():
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    run = compiled(step)
    run(numbers(4, 32)), run(numbers(4, 32))


@program()
def dynamic_shapes():
    run = compiled(lambda x: F.softmax(x @ x.T, -1).sum(), dynamic=True, fullgraph=True)
    for length in (4, 5, 9):
        run(numbers(length, 8))


@program()
def shapes_that_change():
    run = compiled(layers())
    for length in (4, 5, 9, 1):
        run(numbers(length, 32))
    run(numbers(3, 32, dtype=torch.float32).requires_grad_())


@program()
def breaks():
    def run(x):
        x = x * 2
        print("a break", file=sys.stderr)
        x = F.dropout(x, 0.5) + 1
        if x.sum() > 1e9:
            x = x - 1
        return x.relu()
    compiled(run)(numbers(4, 4))


@program()
def values_that_are_read():
    def run(x):
        count = int(x.nonzero().size(0))
        return x * count + x.sum().item()
    compiled(run)(torch.ones(4, 4, device="cuda"))


@program()
def compiled_within_compiled():
    inner = compiled(lambda x: F.gelu(x) + 1)

    def outer(x):
        x = inner(x) * 2
        print("a break", file=sys.stderr)
        return inner(x)
    compiled(outer)(numbers(4, 4))


@program()
def left_out():
    @torch._dynamo.disable
    def eager(x):
        return F.layer_norm(x, (4,))
    compiled(lambda x: eager(x * 2) + 1)(numbers(4, 4))


@program((2, 2))
def regions():
    model = nn.Sequential(*(Block() for _ in range(3)))
    for part in model:
        part.compile(backend=seen.backend("aot_eager"))
    trained(model, numbers(4, 32))


@program()
def checkpointing():
    from torch.utils.checkpoint import checkpoint
    model = layers()
    model[3].p = 0.0
    trained(compiled(lambda x: checkpoint(model, x, use_reentrant=False)), numbers(4, 32, requires_grad=True))


@program()
def own_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * 2 + x * 0
    trained(compiled(lambda x: Double.apply(x).relu()), numbers(4, 4, requires_grad=True))


@program()
def autocast():
    model = layers()

    def run(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x)
    trained(compiled(run), numbers(4, 32))


@program((2, 5))
def flex_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention as attend
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    q, k, v = (numbers(1, 2, 256, 16, requires_grad=True) for _ in range(3))
    run = compiled(lambda q, k, v: attend(q, k, v, block_mask=mask), fullgraph=True)
    run(q, k, v).sum().backward()


@program()
def transforms():
    model = layers()
    model[3].p = 0.0
    compiled(lambda x: torch.func.vmap(lambda row: F.gelu(row).sum())(x))(numbers(4, 8))
    compiled(lambda x: torch.func.grad(lambda y: F.softplus(y).sum())(x))(numbers(8))


@program((2, 4))
def branches():
    compiled(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), fullgraph=True)(numbers(4))


@program()
def memory_figures():
    def run(x):
        x = x * 2
        torch.cuda.reset_peak_memory_stats()
        return x * (torch.cuda.max_memory_allocated() > 0)
    compiled(run)(numbers(4))


@program()
def modes_of_the_program():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    run = compiled(lambda x: F.relu(x) + torch.ones(4, device=x.device))
    with Mode():
        run(numbers(4))
    with torch.device("cuda"):
        run(numbers(4))
    run(numbers(4))


@program()
def subclass():
    class Marked(torch.Tensor):
        pass
    compiled(lambda x: F.layer_norm(x, (4,)).sum())(numbers(4, 4).as_subclass(Marked))


@program((2, 4))  # Triton before 3 looks for the driver where ldconfig says
def inductor():
    """Runs kernels of Triton, forward and backward."""
    trained(compiled(layers(), "inductor"), numbers(8, 32))


@program((2, 4))
def reduce_overhead():
    model = torch.compile(layers(), mode="reduce-overhead")
    for _ in range(3):
        model.zero_grad()
        trained(model, numbers(8, 32))


@program()
def cuda_graph():
    model = compiled(layers().eval())
    x = numbers(8, 32)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        graph.replay()


@program((2, 4))
def compiled_autograd():
    from torch._dynamo import compiled_autograd as autograd
    enable = getattr(autograd, "_enable", None) or autograd.enable
    model = layers()
    loss = model(numbers(4, 32)).sum()
    with enable(lambda graph: compiled(graph, "eager", dynamic=True)):
        loss.backward()


@program()
def ranks_ddp():
    import torch.distributed as dist
    model = nn.parallel.DistributedDataParallel(layers(), device_ids=[0])
    trained(compiled(model), numbers(4, 32))

    def calls(x):
        dist.all_reduce(x)
        return x * 2
    compiled(calls)(numbers(4))


@program((2, 6))
def ranks_fsdp():
    from torch.distributed.fsdp import fully_shard
    model = nn.Sequential(*(Block() for _ in range(2)))
    for part in model:
        part.compile(backend=seen.backend("aot_eager"))
        fully_shard(part)
    fully_shard(model)
    trained(model, numbers(4, 32))


@program()
def traced_otherwise():
    """Adds the text of what FX, make_fx, export and TorchScript write down."""
    from torch.fx.experimental.proxy_tensor import make_fx
    model = layers().eval()
    x = numbers(4, 32)
    seen.texts.append(torch.fx.symbolic_trace(model).code)
    for kind in ("real", "fake", "symbolic"):
        seen.texts.append(make_fx(lambda x: F.dropout(F.layer_norm(x, (32,)), 0.1), tracing_mode=kind)(x).code)
    traced = torch.jit.trace(model, x)
    seen.texts.append(str(traced.inlined_graph))  # with the line of each operation
    seen.texts.append(str(torch.jit.trace(lambda x: F.softmax(F.normalize(x), -1), x).graph))
    seen.texts.append(str(torch.jit.script(F.dropout).graph))
    if RELEASE >= (2, 6):
        for strict in (True, False):
            exported = torch.export.export(model, (x,), strict=strict)
            seen.texts += [str(exported), *(node.meta.get("stack_trace", "") for node in exported.graph.nodes)]


@program((2, 9))
def ahead_of_time():
    """Compiles ahead of time, writes to a file, reads it back and calls it."""
    with torch._dynamo.config.patch(enable_aot_compile=True):
        run = torch.compile(lambda x: F.layer_norm(x, (4,)) + 1, fullgraph=True,
                            backend="aot_eager" if RELEASE < (2, 9) else "inductor")
        made = run.aot_compile(((numbers(4, 4),), {}))
        made.save_compiled_function(os.path.join(os.environ["TMPDIR"], "compiled.bin"))
        made(numbers(4, 4))
        with open(os.path.join(os.environ["TMPDIR"], "compiled.bin"), "rb") as file:
            torch.compiler.load_compiled_function(file)(numbers(4, 4))


def begin_ranks():
    """Begins a job of one rank: under --ranks 1 by what stands for the others, else by NCCL alone."""
    import torch.distributed as dist
    more = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group("nccl", **more)


def main():
    out, *names = sys.argv[1:]
    global seen
    watch_guards()
    with open(out, "w", encoding="utf-8") as file:
        for name in names or PROGRAMS:
            if name not in PROGRAMS:
                continue
            if name.startswith("ranks_") and not torch.distributed.is_initialized():
                begin_ranks()
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            torch.manual_seed(0)
            seen = Seen()
            try:
                PROGRAMS[name]()
                error = ""
            except Exception as caught:
                error = f"{type(caught).__name__}: {str(caught)[:300]}"
            file.write(json.dumps({"name": name, **seen.row(), "error": error}) + "\n")
            file.flush()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


main()
