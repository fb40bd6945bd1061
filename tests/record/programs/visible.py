"""Names the cards that it needs, as scripts do that were written for one machine."""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
import torch

count = torch.cuda.device_count()
if torch.cuda.is_available():  # so called, neither initialises CUDA: a child may use it, as vLLM's workers do
    child = os.fork()
    if child == 0:
        torch.ones(1000, device="cuda")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("sees", count, "cards", torch.cuda.is_available())
for index in range(count):
    assert torch.ones(1000, device=f"cuda:{index}").sum().item() == 1000
