"""Runs kernels that are not PyTorch's: extension.py KERNELS.so [UNKNOWN.so]"""
import ctypes
import sys

import torch

x = torch.ones(1 << 20, device="cuda")
kernels = ctypes.CDLL(sys.argv[1])
data = ctypes.c_void_p(x.data_ptr())
assert kernels.launch(data) == 0 and kernels.launch(data) == 0
assert kernels.launch_of_another_architecture(data) == 209, "no kernel image for the card"
assert kernels.launch_by_driver(data) == 0
assert kernels.multiply() == 0
assert kernels.count_boards() == 15, "not supported"
assert kernels.take(ctypes.c_size_t(100 << 20)) == 0
assert kernels.take_in_order(ctypes.c_size_t(30 << 20)) == 0
assert kernels.take_from_pool(ctypes.c_size_t(20 << 20)) == 0
assert kernels.take_pages(ctypes.c_size_t(10 << 20)) == 0
assert kernels.make_handles() == 0
torch.cuda.synchronize()
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2])
print(x.sum().item())
