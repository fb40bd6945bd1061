"""Allocations and frees under a share of the GPU that changes on the way, also below what is in use."""
import random

import torch

MIB = 1 << 20
numbers = random.Random(5)
held = []
refused = 0


def work(steps):
    global refused
    for _ in range(steps):
        if held and numbers.random() < 0.45:
            held.pop(numbers.randrange(len(held)))
            continue
        most = numbers.choice([4096, MIB, 8 * MIB, 40 * MIB])
        try:
            held.append(torch.empty(numbers.randrange(1, most), dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            refused += 1


total = torch.cuda.get_device_properties(0).total_memory
work(100)
for mib in (100000, 300, 600, 150, 100000):
    torch.cuda.set_per_process_memory_fraction(min(1.0, mib * MIB / total))
    work(150)
held.clear()
reserved = torch.cuda.memory_reserved()
torch.cuda.set_per_process_memory_fraction(64 * MIB / total)
print("set below what is reserved releases", reserved - torch.cuda.memory_reserved())
cached = torch.empty(MIB, dtype=torch.uint8, device="cuda")  # a cached block serves it, whatever the limit
print("served from the cache", torch.cuda.memory_reserved() == reserved)
del cached
large = torch.empty(48 * MIB, dtype=torch.uint8, device="cuda")  # no cached block serves it, so all are released
print("reserved MiB then", torch.cuda.memory_reserved() // MIB)
try:
    torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    print("refused", refused, "and then")
