"""Keeps what a forward pass saves for backward in pinned memory of the host."""
from memreplay_record.remedies.change import Proposal

NAME = "offload"


def propose(seen):
    for model in seen.trained():
        text = model.call.text or f"... = {model.variable}(...)"
        yield Proposal(
            f"{NAME}:{model.name}", f"saved tensors of {model.name} on the host",
            ["with torch.autograd.graph.save_on_cpu(pin_memory=True):", f"    {text}"],
            cost="what backward needs goes over PCIe twice and takes as much pinned memory of the host", cost_rank=2.5,
            place=model.call.place, group="checkpoint", preserves_text="the same")


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    def around(forward, module, args, kwargs):
        if not module.training or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
