"""Keeps what a forward pass saves for backward in pinned memory of the host: all of it, or large tensors alone."""
from memreplay_record.remedies.change import Proposal

NAME = "offload"  # offload:MODEL, offload:MODEL:large
_LARGE = '''\
def to_host(x):
    if not x.is_cuda or x.numel() * x.element_size() < 2**20:
        return x.detach()
    return torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x), x.device

def to_gpu(saved):
    return saved if torch.is_tensor(saved) else saved[0].to(saved[1], non_blocking=True)
'''


def propose(seen):
    for model in seen.trained():
        text = model.call.text or f"... = {model.variable}(...)"
        yield Proposal(
            f"{NAME}:{model.name}", f"saved tensors of {model.name} on the host",
            ["with torch.autograd.graph.save_on_cpu(pin_memory=True):", f"    {text}"],
            cost="what backward needs goes over PCIe twice and takes as much pinned memory of the host", cost_rank=2.5,
            transfers=True, place=model.call.place, group="checkpoint", preserves_text="the same")
        yield Proposal(
            f"{NAME}:{model.name}:large", f"saved tensors of {model.name} of 1 MiB and more on the host",
            [*_LARGE.splitlines(), "",
             "with torch.autograd.graph.saved_tensors_hooks(to_host, to_gpu):", f"    {text}"],
            cost="what backward needs of it goes over PCIe twice and takes as much pinned memory of the host",
            cost_rank=2.4, transfers=True, place=model.call.place, group="checkpoint", preserves_text="the same",
            named_only=True)


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, _, large = argument.partition(":")
    hooks = {"torch": torch}
    exec(_LARGE, hooks)

    def around(forward, module, args, kwargs):
        if not module.training or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        with torch.autograd.graph.saved_tensors_hooks(hooks["to_host"], hooks["to_gpu"]) if large \
                else torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(module, *args, **kwargs)

    change.around_forward(name, around)
