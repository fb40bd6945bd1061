"""Resets PyTorch's peaks after the most was taken, as a loop does that logs the peak of each step."""
import torch

most = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
del most
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
rest = torch.empty(10 << 20, dtype=torch.uint8, device="cuda")
assert torch.cuda.max_memory_reserved() < 1 << 30
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    torch.cuda.reset_accumulated_memory_stats()
assert torch.cuda.memory_stats()["num_ooms"] == 0
torch.nn.Linear(8, 8).cuda()(torch.zeros(8, device="cuda"))
