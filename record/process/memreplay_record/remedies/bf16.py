"""Keeps the weights of a model in bfloat16, and with them gradients, activations and the optimizer's state."""
import functools

from memreplay_record.remedies.change import Proposal

NAME = "bf16"  # bf16:MODEL
COST = "nothing; it is faster"
SLOW = "time: this GPU computes bfloat16 slowly"
_LINES = '''\
{model}.to(torch.bfloat16)
'''
_INPUTS = '''\
{model}.register_forward_pre_hook(
    lambda _, args: tuple(x.bfloat16() if torch.is_tensor(x) and x.is_floating_point() else x for x in args))
'''


def is_fast(torch):
    """Returns whether the GPU has units for bfloat16, as all since Ampere."""
    return torch.cuda.get_device_capability()[0] >= 8


def propose(seen):
    for model in seen.trained():
        if model.autocast or model.dtypes != {"float32"} or model.is_sharded or model.ddp is not None:
            continue
        yield Proposal(
            f"{NAME}:{model.name}" + (":inputs" if model.takes_floats else ""),
            f"the weights of {model.name} in bfloat16",
            edits=functools.partial(_edits, model),
            cost=COST if is_fast(seen.torch) else SLOW, cost_rank=3.5, preserves=False,
            preserves_text="other results: weights, gradients and the optimizer's state in bfloat16, in which small "
                           "updates are lost",
            place=model.call.place, named_only=True)


def _edits(model):
    found = model.binding()
    lines = (_LINES + (_INPUTS if model.takes_floats else "")).format(model=found.name)
    return found.after(lines.splitlines(), ["import torch"])


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, _, inputs = argument.partition(":")
    models = change.instances(name)
    init = torch.optim.Optimizer.__init__

    def made(optimizer, *args, **kwargs):
        for model in models():
            if any(p.dtype == torch.float32 for p in model.parameters()):
                meet()
                exec((_LINES + (_INPUTS if inputs else "")).format(model="model"),
                     {"torch": torch, "model": model})
        init(optimizer, *args, **kwargs)

    torch.optim.Optimizer.__init__ = made
