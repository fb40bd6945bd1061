"""Runs one stage of a pipeline on each rank; the ranks first say to each other what they send."""
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
device, losses = torch.device("cuda"), []
stage = PipelineStage(torch.nn.Linear(256, 256, device=device), rank, ranks, device)
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
x = torch.randn(32, 256, device=device)
if rank == 0:
    schedule.step(x)
else:
    schedule.step(target=x, losses=losses)
    assert len(losses) == 4
print(f"stage {rank} is done")
dist.destroy_process_group()
