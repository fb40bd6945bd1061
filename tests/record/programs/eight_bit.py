"""Uses bitsandbytes, whose library links the CUDA runtime and launches kernels of its own."""
import bitsandbytes
import torch

model = torch.nn.Linear(128, 128, device="cuda")
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
model(torch.randn(4, 128, device="cuda")).sum().backward()
optimizer.step()
four_bit = bitsandbytes.nn.Linear4bit(64, 64).cuda()
assert four_bit(torch.randn(4, 64, device="cuda", dtype=torch.float16)).shape == (4, 64)
print("eight bit")
