"""Fails after an allocation."""
import torch

x = torch.ones(1 << 20, device="cuda")
raise ValueError("this program fails")
