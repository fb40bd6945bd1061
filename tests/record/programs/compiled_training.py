"""Trains a small network of which something is compiled; prints which graphs Dynamo made."""
import hashlib
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block(256) for _ in range(3)), nn.Linear(256, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


graphs = []


def backend(graph, example_inputs):
    graphs.append(graph.code)
    return graph.forward


def main(mode):
    torch.manual_seed(1)
    network = Network().cuda()
    optimizer = torch.optim.AdamW(network.parameters())
    x, y = torch.randn(32, 256, device="cuda"), torch.randint(0, 10, (32,), device="cuda")

    def step(model, update=optimizer.step):
        nn.functional.cross_entropy(model(x), y).backward()
        update()
        optimizer.zero_grad()

    step(network)  # something ran before
    run = lambda: step(network)
    if mode == "module":
        compiled = torch.compile(network, backend=backend)
        run = lambda: step(compiled)
    elif mode == "in-place":
        network.compile(backend=backend)
    elif mode == "blocks":
        for block in network.blocks:
            block.compile(backend=backend)
    elif mode == "step":
        run = torch.compile(lambda: step(network), backend=backend)
    elif mode == "optimizer":
        update = torch.compile(lambda: optimizer.step(), backend=backend)
        run = lambda: step(network, update)
    for _ in range(3):
        run()
    from torch._dynamo.utils import counters
    print("graphs", len(graphs), hashlib.sha256("".join(graphs).encode()).hexdigest()[:16],
          dict(counters["stats"]), dict(counters["frames"]), len(counters["graph_break"]))


main(sys.argv[1])
