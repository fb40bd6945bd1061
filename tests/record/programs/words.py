"""Prints its words, and the variable WORD; takes 64 MiB for each piece of the word --pieces=N, which may be 1."""
import os
import sys

import torch

print(sys.argv[1:], os.environ.get("WORD"))
pieces = int(next((word.split("=")[1] for word in sys.argv if word.startswith("--pieces=")), "1"))
held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(pieces)]
