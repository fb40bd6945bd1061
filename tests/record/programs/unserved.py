"""Uses what a simulated GPU does not serve, for what is said about it."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # of whose pieces no other process has the handles
import torch
from torch.multiprocessing.reductions import reduce_tensor

for call in (lambda: torch.arange(5000, device="cuda").mode(),
             lambda: torch.matrix_exp(torch.ones(8, 16, 16, device="cuda"))):
    try:
        call()
    except RuntimeError as error:
        print(error)
assert torch.tensor([1, 2, 2, 3], device="cuda").mode().values.item() == 2
reduce_tensor(torch.zeros(1000, device="cuda"))
