"""Runs out of memory in one phase: oom.py forward|backward|optimizer|evaluation [catch]"""
import sys

import torch

phase, catch = sys.argv[1], "catch" in sys.argv
layers = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(layers.parameters())
free = torch.cuda.mem_get_info()[0]


def leave(bytes_free):
    """Takes all but so many bytes."""
    torch.cuda.empty_cache()
    free_now = torch.cuda.mem_get_info()[0]
    return torch.empty((free_now - bytes_free) >> 20 << 20, dtype=torch.uint8, device="cuda")


def run():
    x = torch.randn(4096, 4096, device="cuda")
    if phase == "evaluation":
        layers.eval()
        with torch.no_grad():
            held = leave(100 << 20)
            return layers(x), held
    if phase == "optimizer":
        layers(x).sum().backward()
        held = leave(300 << 20)
        optimizer.step()
        return held
    held = leave((200 if phase == "forward" else 700) << 20)
    layers(x).sum().backward()
    return held


try:
    run()
except torch.cuda.OutOfMemoryError as error:
    assert "out of memory" in str(error)
    print("out of memory in", phase)
    if not catch:
        raise
else:
    raise SystemExit(f"memory did not run out in {phase}")
