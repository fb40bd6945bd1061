"""One rank of a job: ranks.py ddp|fsdp1|fsdp2"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

mode = sys.argv[1]
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(x)


model = nn.Sequential(*[Layer() for _ in range(3)]).cuda()
if mode == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
elif mode == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Layer}),
                                     use_orig_params=True)
else:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for step in range(3):
    model(torch.randn(4, 256, 256, device="cuda")).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
print(f"rank {rank} of {world} is done")
