"""Uses pools that are gone, with their memory, when the snapshot is taken: of a MemPool, of CUDA graphs."""
import torch


def take(mib):
    return torch.empty(int(mib * (1 << 20)), dtype=torch.uint8, device="cuda")


keep = [take(30), take(0.2)]
cached = take(40)
del cached
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    held = [take(n) for n in (1, 3, 30, 0.3)]
    del held[1]
    held.append(take(2))
outside = take(25)
del held
outside_again = take(12)
del pool
torch.cuda.empty_cache()

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
x = torch.randn(256, 512, device="cuda")
model(x).sum().backward()
for _ in range(2):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x).sum()
    graph.replay()
    del graph, y
    model(x).sum().backward()
    torch.cuda.empty_cache()
last = take(100)
