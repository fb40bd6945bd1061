"""SGD in place of an optimizer with state: a bound for what optimizers can save."""
from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "sgd"
_KEPT = ("lr",)


def propose(seen):
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in optimizer.WITH_STATE:
            yield Proposal(
                f"{NAME}:{each.name}", f"SGD in place of {each.name}",
                optimizer.lines_in_place(each, "torch.optim.SGD", _KEPT),
                cost="another training: learning rates must be found anew", cost_rank=9, preserves=False,
                preserves_text="another optimizer; it stands here as the bound of what any can save",
                place=each.call.place, group="optimizer")


def apply(change, argument):
    optimizer.put_in_place(change, argument, change.torch.optim.SGD, _KEPT)
