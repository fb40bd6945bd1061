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
generator_optimizer, critic_optimizer = Halves(generator.parameters()), torch.optim.AdamW(discriminator.parameters())
for number in rounds:
    critic_optimizer.zero_grad()
    discriminator(generator(torch.randn(256, 64, device="cuda")).detach()).mean().backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    discriminator(generator(torch.randn(256, 64, device="cuda"))).mean().neg().backward()
    generator_optimizer.step()
    print(f"round {number} is done", flush=True)
