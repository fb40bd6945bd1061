"""Takes rows by a mask that depends on values which nobody computed, and continues by what it took."""
import torch

scores = torch.randn(4096, 4096, device="cuda").sum(1)
order = scores.sort(descending=True)[1]
groups = torch.arange(4096, device="cuda") // 512
chosen = order[scores[order] > 0.5]
sizes = torch.zeros(int(groups[chosen].max()) + 1, device="cuda")  # as a pooling layer counts its graphs
sizes.scatter_add_(0, groups[chosen], torch.ones(len(chosen), device="cuda"))
print("taken", len(chosen), "in groups", sizes.numel())
