"""Uses four cards in one process: DataParallel, and a pipeline by hand."""
import torch

assert torch.cuda.device_count() == 4
model = torch.nn.DataParallel(torch.nn.Linear(1024, 1024).cuda())
model(torch.randn(64, 1024, device="cuda")).sum().backward()
first, last = torch.nn.Linear(1024, 4096).to("cuda:0"), torch.nn.Linear(4096, 1024).to("cuda:3")
last(first(torch.randn(512, 1024, device="cuda:0")).to("cuda:3")).sum().backward()
assert all(torch.cuda.max_memory_allocated(i) > 0 for i in (0, 1, 2, 3))
