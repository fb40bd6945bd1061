"""Trains with what PyTorch hides from its compiler, an optimizer and a checkpoint: late_compiler.py never|first|last
says when the compiler is needed."""
import sys

import torch
from torch.utils.checkpoint import checkpoint

when = sys.argv[1]
if when == "first":
    import torch._dynamo.eval_frame
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step():
    checkpoint(model, torch.randn(64, 512, device="cuda"), use_reentrant=False).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(3):
    step()
print("the compiler was imported:", "torch._dynamo.eval_frame" in sys.modules)
if when == "last":
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend)
    def function(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    function(torch.zeros(4))
    assert len(graphs) == 2, graphs
    torch.compile(step, backend=backend)()  # what is hidden from it stays hidden
    assert all("zero_grad" not in str(graph.code) for graph in graphs)
    step()
