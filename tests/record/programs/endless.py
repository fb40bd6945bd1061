"""Trains a generator and a discriminator for ever; endless.py N ends after N rounds."""
import itertools
import sys

import torch
from torch import nn


class Halves(torch.optim.AdamW):
    """Updates one parameter at a time, each by a step of its base."""

    def step(self, closure=None):
        groups = self.param_groups
        for group in groups:
            for parameter in group["params"]:
                self.param_groups = [{**group, "params": [parameter]}]
                super().step(closure)
        self.param_groups = groups


rounds = range(int(sys.argv[1])) if len(sys.argv) > 1 else itertools.count()
generator, discriminator = nn.Linear(64, 512).cuda(), nn.Linear(512, 1).cuda()
learns, tells = Halves(generator.parameters()), torch.optim.AdamW(discriminator.parameters())
for number in rounds:
    tells.zero_grad()
    discriminator(generator(torch.randn(256, 64, device="cuda")).detach()).mean().backward()
    tells.step()
    learns.zero_grad()
    discriminator(generator(torch.randn(256, 64, device="cuda"))).mean().neg().backward()
    learns.step()
    print(f"round {number} is done", flush=True)
