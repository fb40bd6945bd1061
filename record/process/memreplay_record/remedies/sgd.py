"""SGD in place of an optimizer with state: a bound for what optimizers can save."""
from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "sgd"


def propose(seen):
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in optimizer.WITH_STATE:
            yield Proposal(
                f"{NAME}:{each.name}", f"SGD in place of {each.name}", ["torch.optim.SGD(..., lr=...)"],
                cost="another training: learning rates must be found anew", cost_rank=9, preserves=False,
                preserves_text="another optimizer; it stands here as the bound of what any can save",
                place=each.call.place,
                group="optimizer")


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    class Plain(torch.optim.SGD):
        def __init__(self, params, lr=1e-3, **ignored):
            meet()
            super().__init__(params, lr=lr)

    Plain.__name__ = Plain.__qualname__ = argument
    theirs = getattr(torch.optim, argument)
    Plain.__init__.__signature__ = _signature(theirs)
    setattr(torch.optim, argument, Plain)


def _signature(cls):
    """Returns the constructor's signature, which scripts read: nanoGPT for "fused"."""
    import inspect
    return inspect.signature(cls.__init__)
