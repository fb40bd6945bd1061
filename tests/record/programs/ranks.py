"""Runs one rank of a job: ranks.py ddp|fsdp1|fsdp2|tensor|calls [left]

"left" leaves the process group as it is at the end, as many scripts do.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

mode = sys.argv[1]
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("cpu:gloo,cuda:nccl" if mode == "calls" else "nccl")
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(x)


def exchanged_without_exceptions():
    """Checks that functional collectives raise nothing in PyTorch's operators: a debugger would keep its frames."""
    from torch.distributed import _functional_collectives as functional
    functional.all_reduce(torch.ones(4, device="cuda"), "sum", dist.group.WORLD)  # imports what it needs
    left = []

    def trace(frame, event, argument):
        if event == "exception":
            left.append((frame.f_code.co_filename, argument[0].__name__))
        return trace

    sys.settrace(trace)
    summed = functional.all_reduce(torch.ones(4, device="cuda"), "sum", dist.group.WORLD)
    parts = functional.all_gather_tensor(torch.ones(4, device="cuda"), 0, dist.group.WORLD)
    sys.settrace(None)
    assert not [file for file, kind in left if file.endswith("torch/_ops.py")], left
    assert summed.tolist() == [world] * 4, summed
    assert parts.shape == (4 * world,)


def calls():
    """Makes the calls to a process group that scripts make in addition to training."""
    exchanged_without_exceptions()
    one = torch.ones(4, device="cuda")
    dist.all_reduce(one)
    assert one.tolist() == [world] * 4, one
    count = torch.full((1,), 7, device="cuda", dtype=torch.int64)
    dist.all_reduce(count, op=dist.ReduceOp.MAX)
    assert count.item() == 7
    all_of = [torch.empty(2, device="cuda") for _ in range(world)]
    dist.all_gather(all_of, torch.tensor([1.0, 2.0], device="cuda"))
    assert all(part.tolist() == [1.0, 2.0] for part in all_of)
    said = [None] * world
    dist.all_gather_object(said, {"rank": rank})
    assert said[rank] == {"rank": rank}
    wish = [{"seed": 1}]
    dist.broadcast_object_list(wish, src=0)
    assert wish == [{"seed": 1}]
    half = dist.new_group([r for r in range(world) if r % 2 == rank % 2])
    part = torch.ones(1, device="cuda")
    dist.all_reduce(part, group=half)
    assert part.item() == world // 2
    host = torch.ones(3)
    dist.all_reduce(host)
    gloo = dist.new_group(backend="gloo")
    dist.barrier(group=gloo)
    large = torch.empty(64 << 20, device="cuda")
    work = dist.all_reduce(large, async_op=True)
    work.wait()


def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
    model = parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert model[0].weight.to_local().shape == (1024, 512)
    return model


def sharded():
    model = nn.Sequential(*[Layer() for _ in range(3)]).cuda()
    if mode == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if mode == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Layer}),
                                        use_orig_params=True)
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return model


if mode == "calls":
    calls()
else:
    torch.manual_seed(0)
    model = tensor_parallel() if mode == "tensor" else sharded()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for step in range(3):
        x = torch.randn(64, 512, device="cuda") if mode == "tensor" else \
            torch.randn(4, 256, 256, device="cuda")
        loss = model(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: {loss.item():.3f}")
    dist.barrier()
if "left" not in sys.argv:
    dist.destroy_process_group()
print(f"rank {rank} of {world} is done")
