"""Has a pool whose memory comes from a library that releases it for a while: sleep_mode.py KERNELS.so"""
import ctypes
import sys

import torch

kernels = ctypes.CDLL(sys.argv[1])
allocator = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "pool_malloc", "pool_free")
pool = torch.cuda.MemPool(allocator.allocator())
with torch.cuda.use_mem_pool(pool):
    x = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
assert kernels.sleep_now() == 0
free, _ = torch.cuda.mem_get_info()
assert kernels.wake_up() == 0
assert free - torch.cuda.mem_get_info()[0] == 100 << 20
assert kernels.take_pages(ctypes.c_size_t(10 << 20)) == 0  # not PyTorch's
