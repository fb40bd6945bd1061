"""Short programs whose memory history is recorded on a GPU (record.py), each in a process of its own.

A workload is a function of the torch module; what it returns is kept alive until the snapshot is taken. It calls
begin(torch) where recording starts, mostly before the first allocation. Those that need no kernels are shared with the
recorder that works without a GPU (tests/conformance/recorder).
"""

import dataclasses
import pathlib
import sys
from collections.abc import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conformance" / "recorder"))
import record_fixtures as shared

M = 1 << 20


def begin(torch, entries=1_000_000):
    # Under max_split_size_mb only stacks distinguish an empty_cache from what a malloc released.
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=entries)


@dataclasses.dataclass(frozen=True)
class Workload:
    run: Callable
    conf: str = ""
    # set_per_process_memory_fraction(), so that memory runs out at the same moment everywhere
    limit_bytes: int = 0
    # Recording began after the first allocation, or its ring wrapped: peaks of the statistics are of the whole process.
    partial: bool = False
    oldest: str = "2.1"
    # Nothing is computed: it can be recorded on the fake CUDA runtime too.
    kernels: bool = True


# ---------------------------------------------------------------------------------- something like nanoGPT


def gpt(torch, layers=4, width=384, heads=6, vocabulary=50304):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2)
                       for part in self.qkv(self.before(x)).split(width, dim=2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.between(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens, targets):
            logits = self.head(self.blocks(self.embed(tokens)))
            return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return Gpt(), vocabulary


def train_gpt(torch, steps=4, compiled=False, lengths=(256,), batch=8):
    torch.manual_seed(1)
    model, vocabulary = gpt(torch)
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step_model = torch.compile(model) if compiled else model
    for step in range(steps):
        length = lengths[step % len(lengths)]
        tokens = torch.randint(vocabulary, (batch, length + 1), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return model, optimizer, loss


def eager(torch):
    begin(torch)
    return train_gpt(torch)


def compiled(torch):
    begin(torch)
    return train_gpt(torch, compiled=True)


def varying_lengths(torch):
    begin(torch)
    return train_gpt(torch, steps=8, lengths=(256, 192, 320, 144, 280, 512, 96, 400))


def wrapped_ring(torch):
    begin(torch, entries=500)
    return train_gpt(torch, steps=3)


def evaluation_too(torch):
    """Trains with another shape in between, which leaves holes."""
    begin(torch)
    kept = train_gpt(torch, steps=2)
    model = kept[0]
    with torch.no_grad():
        tokens = torch.randint(50304, (24, 513), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(tokens[:, :-1], tokens[:, 1:])
    return kept, train_gpt(torch, steps=2)


# ------------------------------------------------------------------------------------------ one mechanism each


def two_streams(torch):
    """Copies to a side stream blocks that are used, and freed, while it is busy."""
    begin(torch)
    side = torch.cuda.Stream()
    kept = []
    for i in range(24):
        a = torch.randn(1 + i % 5, 1024, 1024, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b = a @ a.transpose(1, 2)
            kept.append(b[0, :64].clone())
        a.record_stream(side)
        del a, b
    torch.cuda.synchronize()
    kept.append(torch.empty(3 * M, device="cuda", dtype=torch.uint8))
    return kept


def cuda_graph(torch):
    begin(torch)
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
    x = torch.randn(256, 1024, device="cuda")
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = model(x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return graph, x, y, torch.empty(10 * M, device="cuda", dtype=torch.uint8)


def churn(torch):
    """Uses sizes that grow and shrink: garbage collection, splitting and rounding all have something to do."""
    begin(torch)
    kept = []
    for i in range(120):
        size = (37 * i * i) % 90 + 3
        kept.append(shared.tensor(torch, size * M + 512 * i))
        if len(kept) > 12:
            del kept[(7 * i) % len(kept)]
        if i == 80:
            torch.cuda.empty_cache()
    return kept


def out_of_memory(torch):
    begin(torch)
    kept = []
    refused = 0
    for i in range(60):
        try:
            kept.append(shared.tensor(torch, (20 + 7 * (i % 6)) * M))
        except torch.OutOfMemoryError:
            refused += 1
            del kept[::2]
    assert refused > 0, "the limit was never reached"
    return kept


def pools_in_use(torch):
    begin(torch)
    pool = torch.cuda.MemPool()
    outside = [shared.tensor(torch, 40 * M), shared.tensor(torch, M // 2)]
    with torch.cuda.use_mem_pool(pool):
        inside = [shared.tensor(torch, 30 * M), shared.tensor(torch, 700)]
        del inside[0]
        inside.append(shared.tensor(torch, 12 * M))
    return pool, outside, inside, shared.tensor(torch, 25 * M)


GIB = 1 << 30
EXPANDABLE = "expandable_segments:True"
WORKLOADS = {
    "eager": Workload(eager),
    "eager_expandable": Workload(eager, EXPANDABLE),
    "compiled": Workload(compiled, oldest="2.4"),
    "compiled_expandable": Workload(compiled, EXPANDABLE, oldest="2.4"),
    "varying_lengths": Workload(varying_lengths),
    "varying_lengths_expandable": Workload(varying_lengths, EXPANDABLE),
    "evaluation_too": Workload(evaluation_too),
    "two_streams": Workload(two_streams),
    "two_streams_expandable": Workload(two_streams, EXPANDABLE),
    "cuda_graph": Workload(cuda_graph, oldest="2.4"),
    "pools": Workload(pools_in_use, oldest="2.6", kernels=False),
    "churn": Workload(churn, kernels=False),
    "garbage_collection": Workload(churn, "garbage_collection_threshold:0.6", limit_bytes=1 * GIB, kernels=False),
    "roundup": Workload(churn, "roundup_power2_divisions:[64:8,128:4,>:2]", kernels=False),
    "max_split": Workload(churn, "max_split_size_mb:40", kernels=False),
    "oom": Workload(out_of_memory, limit_bytes=GIB // 2, oldest="2.5", kernels=False),
    "oom_expandable": Workload(out_of_memory, EXPANDABLE, limit_bytes=GIB // 2, oldest="2.5", kernels=False),
    "wrapped_ring": Workload(wrapped_ring, partial=True),
    "warm": Workload(shared.scenario_warm, partial=True, kernels=False),
    "empty_cache": Workload(shared.scenario_empty_cache, kernels=False),
}
