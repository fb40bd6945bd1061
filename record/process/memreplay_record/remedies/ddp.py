"""DDP whose gradients are views of the buckets that are exchanged, and a batch that is divided among its ranks."""
import functools

from memreplay_record.remedies import edits, job
from memreplay_record.remedies.change import Proposal

NAME = "ddp"  # of a script that has DDP; ddp:MODEL of one that runs on one GPU


def propose(seen):
    if job.ranks() < 2:
        return
    for model in seen.trained():
        cost = f"each pass and rank receives {job.exchanged(model.trained_bytes, 2)} of gradients by all-reduce"
        if model.ddp is not None and not model.ddp.gradient_as_bucket_view:
            yield Proposal(
                NAME, "DDP(gradient_as_bucket_view=True)",
                edits=functools.partial(_edits, model), cost="nothing", cost_rank=0.03, group="bucket_view",
                place=model.call.place,
                preserves_text="the same; gradients cannot be detached in place")
        elif job.can_split(model):
            yield Proposal(
                f"{NAME}:{model.name}", f"DDP of {model.name} on {job.ranks()} GPUs, which share the batch",
                lines=[*job.lines_before(model), *lines_of(model), *job.lines_of_split(model)], edits=job.UNWRITTEN,
                cost=cost, cost_rank=0.8,
                group="job", place=model.call.place, preserves_text=job.preserved(model))


def _edits(model):
    if model.ddp_made is None:
        raise edits.Unwritten("no line of the script is known that makes DDP")
    return edits.of_keyword(model.ddp_made.call, "gradient_as_bucket_view", "True")


def lines_of(model):
    name = model.variable
    return [f"{name} = torch.nn.parallel.DistributedDataParallel({name}, gradient_as_bucket_view=True)"]


def apply(change, argument):
    if argument:
        job.split_batch(change, argument)
        replicate(change, argument)
        return
    ddp, meet = change.torch.nn.parallel.DistributedDataParallel, change.meeting()
    init = ddp.__init__

    @functools.wraps(init)
    def made(this, *args, **kwargs):
        meet()
        init(this, *args, **{**kwargs, "gradient_as_bucket_view": True})

    ddp.__init__ = made


def replicate(change, name):
    """Calls each model of the class `name` by way of DDP."""
    torch, meet = change.torch, change.meeting()
    replicas, inside = {}, []  # id of a model -> its DDP; the model that DDP calls

    def prepare(model):
        meet()
        job.begin(torch)
        replicas[id(model)] = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)

    def change_calls(cls):
        call = cls.__call__

        def called(model, *args, **kwargs):
            replica = replicas.get(id(model))
            if replica is None or model in inside:
                return call(model, *args, **kwargs)
            inside.append(model)
            try:
                return replica(*args, **kwargs)
            finally:
                inside.pop()

        cls.__call__ = called

    change.module_class(name, change_calls)
    job.before_optimizer(change, name, prepare)
