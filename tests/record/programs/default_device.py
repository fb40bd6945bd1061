"""Uses torch.compile where tensors are the card's by default, and the times of kernels that are measured."""
import torch

torch.set_default_device("cuda")


@torch.compile(options={"coordinate_descent_tuning": True})
def normed(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


for _ in range(2):
    x = torch.randn(512, 1024)
    assert normed(x).shape == x.shape
print("compiled")
