"""ZeRO's first stage: the optimizer's state is divided among the ranks of a job, each of which has all gradients."""
import ast
import inspect

from memreplay_record.remedies import ddp, job, optimizer
from memreplay_record.remedies.change import Proposal

NAME = "zero"  # zero:OPTIMIZER of a script that has DDP; zero:OPTIMIZER:MODEL, zero:OPTIMIZER:MODEL:split without


def propose(seen):
    models = [model for model in seen.trained() if not model.is_sharded]
    if job.ranks() < 2 or len(models) != 1 or "ZeroRedundancyOptimizer" in [cls.__name__ for cls in seen.optimizers]:
        return
    model, = models
    if model.in_job and model.ddp is None:
        return  # its gradients are averaged in another way
    split = job.can_split(model)
    for each in seen.optimizers.values():
        if not each.is_pytorch or each.name not in optimizer.WITH_STATE:
            continue
        more = [] if model.in_job else [model.name, *([job.SPLIT] if split else [])]
        around = "" if model.in_job else f"DDP of {model.name} and "
        yield Proposal(
            ":".join([NAME, each.name, *more]), f"{around}ZeroRedundancyOptimizer of {each.name} on {job.ranks()} GPUs",
            lines=["from torch.distributed.optim import ZeroRedundancyOptimizer", *job.lines_before(model),
             *([] if model.in_job else ddp.lines_of(model)),
             each.call.with_call(each.name, _sharded) or
             f"ZeroRedundancyOptimizer(params, optimizer_class=torch.optim.{each.name}, ...)",
             *(job.lines_of_split(model) if split else [])],
            edits=job.UNWRITTEN,
            cost=f"each step and rank receives {job.exchanged(model.trained_bytes)} of parameters by broadcast" +
                 ("" if model.in_job else
                  f", and each pass {job.exchanged(model.trained_bytes, 2)} of gradients by all-reduce"),
            cost_rank=1.0, place=each.call.place, group="job", preserves_text=job.preserved(model))


def _sharded(call):
    """Returns the call that makes the optimizer, with ZeRO around it, or None."""
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    arguments = [ast.unparse(call.args[0]), f"optimizer_class={ast.unparse(call.func)}",
                 *(ast.unparse(argument) for argument in call.keywords)]
    return f"ZeroRedundancyOptimizer({', '.join(arguments)})"


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, _, rest = argument.partition(":")
    model, *split = rest.split(":")
    if split:
        job.split_batch(change, model)
    if model:
        ddp.replicate(change, model)
    cls = getattr(torch.optim, name)

    def made(params, *args, **kwargs):
        from torch.distributed.optim import ZeroRedundancyOptimizer
        meet()
        given = inspect.signature(cls).bind(params, *args, **kwargs).arguments
        return ZeroRedundancyOptimizer(**given, optimizer_class=cls)

    made.__signature__ = inspect.signature(cls)  # scripts read it: nanoGPT for "fused"
    setattr(torch.optim, name, made)
