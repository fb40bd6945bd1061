"""Takes so many pieces of 64 MiB: takes.py --pieces=N; 13 fails for another reason"""
import sys

import torch

pieces = int(sys.argv[1].split("=")[1])
if pieces == 13:
    raise ValueError("an unlucky number")
held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(pieces)]
