"""Keeps what a forward pass saves for backward in pinned memory of the host: all of it, or large tensors alone."""
import functools

from memreplay_record.remedies.change import Proposal

NAME = "offload"  # offload:MODEL, offload:MODEL:large
# What was transposed comes back in one piece, and a product of matrices is then another kernel's.
_SAME = "the same up to rounding"
_ALL = '''\
def with_saved_on_host(forward, *args, **kwargs):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        return forward(*args, **kwargs)
'''
_LARGE = '''\
def to_host(x):
    if not x.is_cuda or x.numel() * x.element_size() < 2**20:
        return x.detach()
    return torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x), x.device


def to_gpu(saved):
    return saved if torch.is_tensor(saved) else saved[0].to(saved[1], non_blocking=True)


def with_saved_on_host(forward, *args, **kwargs):
    with torch.autograd.graph.saved_tensors_hooks(to_host, to_gpu):
        return forward(*args, **kwargs)
'''


def propose(seen):
    for model in seen.trained():
        if model.ddp is not None:
            continue
        yield Proposal(
            f"{NAME}:{model.name}", f"saved tensors of {model.name} on the host",
            edits=functools.partial(_edits, model, _ALL),
            cost="what backward needs goes over PCIe twice and takes as much pinned memory of the host", cost_rank=2.5,
            transfers=True, place=model.call.place, group="checkpoint", preserves_text=_SAME)
        yield Proposal(
            f"{NAME}:{model.name}:large", f"saved tensors of {model.name} of 1 MiB and more on the host",
            edits=functools.partial(_edits, model, _LARGE),
            cost="what backward needs of it goes over PCIe twice and takes as much pinned memory of the host",
            cost_rank=2.4, transfers=True, place=model.call.place, group="checkpoint", preserves_text=_SAME,
            named_only=True)


def _edits(model, definition):
    """Returns the edits that run forward() under the hooks. A copy of the model gets a forward() of its own."""
    found = model.binding()
    return found.after(
        [f"{found.name}.forward = functools.update_wrapper("
         f"functools.partial(with_saved_on_host, {found.name}.forward), {found.name}.forward)"],
        ["import functools", "import torch"], definition.splitlines())


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, _, large = argument.partition(":")
    made = {"torch": torch}
    exec(_LARGE if large else _ALL, made)

    def around(forward, module, args, kwargs):
        if not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        return made["with_saved_on_host"](forward, module, *args, **kwargs)

    change.around_forward(name, around)
