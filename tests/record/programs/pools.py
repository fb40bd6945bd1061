"""Allocates in a pool of the script's own, which lives to the end."""
import torch

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    held = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (1, 3, 30)]
outside = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
del held[1]
with torch.cuda.use_mem_pool(pool):
    held.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
print(torch.cuda.memory_reserved())
