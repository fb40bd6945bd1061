"""Uses PyTorch, and no GPU."""
import torch

assert torch.ones(3).sum() == 3
