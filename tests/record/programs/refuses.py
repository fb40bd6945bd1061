"""A script that ends as its argument says."""
import subprocess
import sys

import torch

REFUSAL = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
way = sys.argv[1]
held = torch.zeros(1 << 28, device="cuda")
if way == "raised":
    raise ValueError(REFUSAL)
if way == "printed":
    print(f"ValueError: {REFUSAL}", file=sys.stderr)
    sys.exit(1)
if way == "child":
    sys.exit(subprocess.call([sys.executable, "-c", f"import sys; print('ValueError: {REFUSAL}'); sys.exit(1)"]))
if way == "other":
    raise KeyError(way)
if way == "status":
    sys.exit(1)
if way == "caught":
    try:
        torch.zeros(1 << 30, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        print(error)
if way == "prints":
    print("out", sys.stdout.isatty(), flush=True)
    print("err", sys.stderr.isatty(), file=sys.stderr, flush=True)
