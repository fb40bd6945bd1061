"""Takes a share of the GPU as a server does: share.py [--serve] --memory-fraction=X

16 MiB are its weights, and it ends where less than 8 MiB are left for anything else. With --serve it goes on until it
is stopped.
"""
import sys
import time

import torch

room = int(float(sys.argv[-1].split("=")[1]) * torch.cuda.get_device_properties(0).total_memory) - (16 << 20)
held = [torch.empty(16 << 20, dtype=torch.uint8, device="cuda")]
if room < 8 << 20:
    raise ValueError("No available memory for the cache blocks, so try increasing `memory_fraction`")
held.append(torch.empty(room, dtype=torch.uint8, device="cuda"))
print("it serves", flush=True)
while "--serve" in sys.argv:
    time.sleep(0.1)
