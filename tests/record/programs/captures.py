"""Captures graphs as a server of a mixture of experts does: of varying sizes, into one pool and into pools of their
own, with tensors freed during the capture and after it, some of them used on another stream; drops some graphs with
their pools, and goes on.

    captures.py [SEED]
"""
import random
import sys

import torch

KIB, MIB = 1 << 10, 1 << 20
numbers = random.Random(int(sys.argv[1]) if sys.argv[1:] else 1)


def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def experts(tokens):
    """What each expert gets of the tokens: a few much, most of them little."""
    left, shares = tokens, []
    for _ in range(7):
        share = int(left * numbers.betavariate(1, 3))
        shares.append(share)
        left -= share
    return [share for share in (*shares, left) if share]


def shuffle(tokens):
    """Uses memory of one stream on the other, both ways."""
    current = torch.cuda.current_stream()
    sent = take(tokens * 2 * KIB)
    side.wait_stream(current)
    sent.record_stream(side)
    with torch.cuda.stream(side):
        received = take(tokens * KIB)
        if numbers.random() < 0.5:
            received.record_stream(current)
    current.wait_stream(side)


def run(tokens, kept):
    """A layer: its inputs outlive the experts, whose results are freed one after the other."""
    hidden = take(tokens * 4 * KIB)
    for share in experts(tokens):
        up = take(share * 14 * KIB)
        if numbers.random() < 0.2:
            up.record_stream(side)
        down = take(share * 4 * KIB)
        del up
        if numbers.random() < 0.3:
            kept.append(down)
        del down
        if numbers.random() < 0.2:
            shuffle(tokens)
    workspace = take(numbers.choice([512, 64 * KIB, 3 * MIB, 24 * MIB]))
    del workspace
    kept.append(hidden)
    if len(kept) > 3 and numbers.random() < 0.6:
        del kept[numbers.randrange(len(kept))]


def capture(tokens, pool=None):
    graph, kept = torch.cuda.CUDAGraph(), []
    layers = numbers.randrange(1, 5)
    if numbers.random() < 0.5:
        with torch.cuda.graph(graph, pool=pool):  # empties the cache first
            for _ in range(layers):
                run(tokens, kept)
    else:
        graph.capture_begin(*([pool] if pool is not None else []))
        for _ in range(layers):
            run(tokens, kept)
        graph.capture_end()
    return graph, kept[-1:]


def outside(held):
    for _ in range(numbers.randrange(3, 20)):
        if held and numbers.random() < 0.5:
            del held[numbers.randrange(len(held))]
        else:
            held.append(take(int(numbers.choice([KIB, MIB, 30 * MIB]) * (1 + numbers.random()))))


side = torch.cuda.Stream()
weights = [take(n * MIB) for n in (40, 3, 25, 90)]
held = []
profile = []
run(4096, profile)
del profile
torch.cuda.empty_cache()
torch.cuda.synchronize()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    graphs = []
    for _ in range(numbers.randrange(1, 4)):  # measures what the graphs need, as vLLM does
        run(256, [])
        tried = capture(numbers.choice([512, 256, 64]))
        outside(held)
        del tried
        if numbers.random() < 0.7:
            torch.cuda.empty_cache()
        outside(held)
    pool = torch.cuda.graph_pool_handle()
    for tokens in (512, 384, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        run(tokens, [])  # to warm up
        if numbers.random() < 0.3:
            torch.cuda.empty_cache()
        graphs.append(capture(tokens, pool))
        if numbers.random() < 0.3:
            outside(held)
        if numbers.random() < 0.3:
            own = capture(tokens)
            outside(held)
            if numbers.random() < 0.5:
                graphs.append(own)
            del own
    while graphs and numbers.random() < 0.8:
        del graphs[numbers.randrange(len(graphs))]
        if numbers.random() < 0.5:
            torch.cuda.empty_cache()
        outside(held)
    if numbers.random() < 0.3:
        del graphs
        torch.cuda.empty_cache()
    for _ in range(20):
        outside(held)
        run(numbers.randrange(1, 600), [])
print(torch.cuda.memory_reserved())
