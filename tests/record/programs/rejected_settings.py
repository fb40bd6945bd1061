"""Sets the allocator's settings to texts that PyTorch rejects; of the second it applies the beginning."""
import warnings

import torch

MIB = 1 << 20
warnings.simplefilter("ignore")
kept = [torch.empty(MIB, device="cuda")]
for settings in "max_split_size_mb:3", "max_split_size_mb:24,nonsense:1":
    try:
        torch.cuda.memory._set_allocator_settings(settings)
    except (RuntimeError, ValueError) as error:
        print("rejected", type(error).__name__)
    for size in 30, 60, 30, 3, 45:
        kept.append(torch.empty(size * MIB, dtype=torch.uint8, device="cuda"))
    del kept[2], kept[0]
