"""Takes so many pieces of 64 MiB: takes.py --pieces=N; 13 and 14 fail for another reason."""
import sys

import torch

pieces = int(sys.argv[1].split("=")[1])
if pieces == 13:
    raise ValueError("an unlucky number")
assert pieces != 14
held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(pieces)]
