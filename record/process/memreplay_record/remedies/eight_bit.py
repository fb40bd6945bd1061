"""bitsandbytes' optimizer, whose two moments take a byte each."""
import functools
import importlib.util

from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "eight_bit"
_THEIRS = {"Adam": "Adam8bit", "AdamW": "AdamW8bit"}
_KEPT = {"params", "lr", "betas", "eps", "weight_decay"}


def propose(seen):
    if importlib.util.find_spec("bitsandbytes") is None:
        return
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in _THEIRS:
            ours = _THEIRS[each.name]
            yield Proposal(
                f"{NAME}:{each.name}", f"{ours} of bitsandbytes",
                edits=functools.partial(optimizer.edits_of_class, each, f"bitsandbytes.optim.{ours}", _KEPT,
                                        ["import bitsandbytes"]),
                cost="about the same time", cost_rank=4, preserves=False,
                preserves_text="other results: the moments of large parameters are rounded to 8 bits",
                place=each.call.place,
                group="optimizer")


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    import inspect
    theirs = getattr(torch.optim, argument)

    def made(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=None, **ignored):
        import bitsandbytes
        meet()
        decay = {"Adam": 0, "AdamW": 1e-2}[argument] if weight_decay is None else weight_decay
        return getattr(bitsandbytes.optim, _THEIRS[argument])(params, lr=lr, betas=betas, eps=eps, weight_decay=decay)

    made.__signature__ = inspect.signature(theirs)
    setattr(torch.optim, argument, made)
