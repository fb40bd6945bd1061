"""Copies from pinned memory to the GPU without waiting, so that freed blocks stay in use. Argument: the seed."""
import random
import sys

import torch

numbers = random.Random(int(sys.argv[1]))
held = []
for number in range(600):
    size = numbers.choice([numbers.randrange(1, 3 << 20), numbers.randrange(1 << 20, 24 << 20)])
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    if numbers.random() < 0.7:
        torch.empty(size, dtype=torch.uint8, device="cuda").copy_(host, non_blocking=True)
    held.append(host)
    del host
    while held and numbers.random() < 0.5:
        held.pop(numbers.randrange(len(held)))
    if numbers.random() < 0.03:
        torch.cuda.synchronize()
