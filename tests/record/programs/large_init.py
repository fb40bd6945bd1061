"""Initialises weights on the CPU: large ones are left alone, small ones are not."""
import torch

large = torch.empty(1024, 1024).fill_(7.0)
torch.nn.init.normal_(large)
assert bool((large == 7.0).all())
small = torch.empty(8, 8).fill_(7.0)
torch.nn.init.normal_(small)
assert not bool((small == 7.0).any())
torch.nn.Linear(1024, 1024).cuda()(torch.ones(1, 1024, device="cuda"))
