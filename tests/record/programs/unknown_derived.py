"""Requests values that nobody computed, and what follows from such values."""
import torch

rows = torch.randn(1024, 1024, device="cuda").sum(1)  # small, of large: they are unknown
first = rows[0].item()
print("a number", 0 < first < 1)
print("its double", (rows[0] * 2).item() == 2 * first > 1)
print("how many are positive", (rows > 0).sum().item())
print("all below 2", bool((rows < 2).all()))
print("an integer", torch.randint(5, 9, (1 << 20,), device="cuda").max().item())
print("its successor", (torch.randint(5, 9, (1 << 20,), device="cuda").max() + 1).item())
