"""Names the cards that it wants, as scripts do that were written for one machine."""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
import torch

count = torch.cuda.device_count()
print("sees", count, "cards", torch.cuda.is_available())
for index in range(count):
    assert torch.ones(1000, device=f"cuda:{index}").sum().item() == 1000
