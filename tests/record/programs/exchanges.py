"""Sends values between ranks that are processes: each value here is what NCCL brings on cards."""
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
make = lambda *values, dtype=torch.float32: torch.tensor(values, dtype=dtype, device="cuda")


def same(found, *expected):
    found = found.flatten().tolist()
    assert found == list(expected), (rank, found, expected)


ranks = list(range(world))
for operation, expected in ((dist.ReduceOp.SUM, sum(r + 1 for r in ranks)), (dist.ReduceOp.MAX, world),
                            (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (world + 1) / 2)):
    value = make(rank + 1.0)
    dist.all_reduce(value, operation)
    same(value, expected)
value = make(2, rank + 2, dtype=torch.int64)
dist.all_reduce(value, dist.ReduceOp.PRODUCT)
same(value, 2 ** world, torch.tensor([r + 2 for r in ranks]).prod().item())
flag = make(rank == world - 1, dtype=torch.bool)
dist.all_reduce(flag, dist.ReduceOp.MAX)
same(flag, True)

value = make(10 + rank, dtype=torch.int32)
dist.broadcast(value, world - 1)
same(value, 10 + world - 1)
value = make(1 + rank)
dist.reduce(value, 0)
if rank == 0:
    same(value, sum(r + 1 for r in ranks))

parts = [make(0, 0) for _ in ranks]
dist.all_gather(parts, make(rank, 5))
same(torch.stack(parts), *(x for r in ranks for x in (r, 5)))
whole = torch.empty(world, dtype=torch.int64, device="cuda")
dist.all_gather_into_tensor(whole, make(rank * 3, dtype=torch.int64))
same(whole, *(r * 3 for r in ranks))
parts = [make(0) for _ in ranks] if rank == 0 else None
dist.gather(make(rank + 7), parts, 0)
if rank == 0:
    same(torch.stack(parts), *(r + 7 for r in ranks))
value = make(0)
dist.scatter(value, [make(r * 2) for r in ranks] if rank == 0 else None, 0)
same(value, rank * 2)
value = make(0)
dist.reduce_scatter_tensor(value, make(*(rank + r for r in ranks)))
same(value, sum(r + rank for r in ranks))

counts = torch.empty(world, dtype=torch.int64, device="cuda")  # as experts say how many tokens come
dist.all_to_all_single(counts, make(*(rank + r + 1 for r in ranks), dtype=torch.int64))
same(counts, *(rank + r + 1 for r in ranks))
tokens = torch.empty(int(counts.sum()), device="cuda")
given = [rank + r + 1 for r in ranks]
dist.all_to_all_single(tokens, make(*[rank] * sum(given)), counts.tolist(), given)
same(tokens, *(r for r in ranks for _ in range(rank + r + 1)))

value = make(rank)
after, before = (rank + 1) % world, (rank - 1) % world
came = make(-1)
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, value, after), dist.P2POp(dist.irecv, came, before)]):
    work.wait()
same(came, before)
if rank == 0:
    dist.send(make(42), 1)
elif rank == 1:
    value = make(0)
    dist.recv(value, 0)
    same(value, 42)

pair = dist.new_group([0, 1])
if rank < 2:
    value = make(rank + 1)
    dist.all_reduce(value, group=pair)
    same(value, 3)
unknown = torch.randn(4096, 4096, device="cuda").sum()  # it is unknown, here and there
dist.all_reduce(unknown)

file = os.path.join(sys.argv[1], "written-by-rank-0")
if rank == 0:
    time.sleep(1)
    open(file, "w").close()
dist.barrier()
assert os.path.exists(file)
print(f"rank {rank} of {world}: all true", flush=True)
dist.destroy_process_group()
