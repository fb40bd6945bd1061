"""Works on a side stream while its memory is freed: when the work is done decides what is reserved."""
import torch

side = torch.cuda.Stream()
weights = torch.randn(1024, 1024, device="cuda")
for _ in range(20):
    batch = torch.empty(8 << 20, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        batch.sum()
    batch.record_stream(side)
    del batch
    weights = weights @ weights
torch.cuda.synchronize()
