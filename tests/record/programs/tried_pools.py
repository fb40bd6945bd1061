"""Tries a graph in a pool that is released, keeps others, and goes on for long, as a server does that measures them."""
import torch


def take(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")


def capture(sizes):
    """Does without torch.cuda.graph(), which would release what is cached."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    held = [take(mib) for mib in sizes]
    graph.capture_end()
    return graph, held


torch.cuda.synchronize()
with torch.cuda.stream(torch.cuda.Stream()):
    warm = [take(mib) for mib in range(100, 200, 10)]
    del warm
    tried = capture(range(12, 100, 2))
    del tried
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    warm = take(60)
    del warm
    kept = [capture([mib]) for mib in (12, 14, 16)]
    for _ in range(100_000):
        take(1)
