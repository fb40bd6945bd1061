"""FSDP2: parameters, gradients and the optimizer's state are divided among the ranks of a job (`--ranks N`)."""
import contextlib
import importlib.util

from memreplay_record.remedies import job
from memreplay_record.remedies.change import Proposal

NAME = "fsdp"  # fsdp:MODEL:CLASS, whose modules are sharded one by one; fsdp:MODEL:CLASS:split


def propose(seen):
    if job.ranks() < 2 or importlib.util.find_spec("torch.distributed.fsdp._fully_shard") is None:
        return
    for model in seen.trained():
        if model.is_sharded:
            continue
        block = model.repeated[0] if model.repeated else None
        split = job.can_split(model)
        name = ":".join([NAME, model.name, block.name if block else "", *([job.SPLIT] if split else [])])
        twice = int(model.parameter_bytes * block.share) if block else 0
        yield Proposal(
            name, f"FSDP2 of {f'each {block.name} and of ' if block else ''}{model.name} on {job.ranks()} GPUs",
            lines=_lines(model, block, split), edits=job.UNWRITTEN,
            cost=f"each pass and rank receives {job.exchanged(model.parameter_bytes + twice)} of parameters by "
                 f"all-gather and {job.exchanged(model.trained_bytes)} of gradients by reduce-scatter",
            cost_rank=1.2, place=model.call.place, group="job", preserves_text=job.preserved(model))


def _lines(model, block, split):
    blocks = "" if block is None else f"{model.variable}.{block.path}" if block.path else \
        f"[m for m in {model.variable}.modules() if isinstance(m, {block.name})]"
    return ["from torch.distributed.fsdp import fully_shard", *job.lines_before(model),
            *([f"for block in {blocks}:", "    fully_shard(block)"] if block else []),
            f"fully_shard({model.variable})  # before the optimizer is made; without DDP",
            *(job.lines_of_split(model) if split else [])]


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, block, *split = argument.split(":")
    if split:
        job.split_batch(change, name)

    def prepare(model):
        from torch.distributed.fsdp import fully_shard
        meet()
        job.begin(torch)
        for module in model.modules():
            if type(module).__name__ == block:
                fully_shard(module)
        fully_shard(model)

    job.before_optimizer(change, name, prepare)
    _leave_out_ddp(torch)


def _leave_out_ddp(torch):
    from torch.nn.parallel import distributed

    class Unreplicated(torch.nn.Module):
        """Stands where the script has DDP. FSDP itself averages the gradients."""

        def __init__(self, module, *args, **kwargs):
            super().__init__()
            self.module = module

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

        def no_sync(self):
            return contextlib.nullcontext()

    torch.nn.parallel.DistributedDataParallel = distributed.DistributedDataParallel = Unreplicated
