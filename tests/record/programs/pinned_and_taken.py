"""Pins 1 GiB of the host's memory and then takes all but 512 MiB of what the GPU had before."""
import torch

GIB = 1 << 30
properties = torch.cuda.get_device_properties(0)
before = torch.cuda.mem_get_info()[0]
host = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
missing = before - torch.cuda.mem_get_info()[0]
integrated = int(properties.is_integrated)
try:
    torch.empty(before - GIB // 2, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    print("out of memory")
print("integrated", integrated, "missing", missing)
