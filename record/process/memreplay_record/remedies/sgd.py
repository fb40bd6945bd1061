"""SGD in place of an optimizer with state: a bound for what optimizers can save."""
from memreplay_record.remedies import optimizer

NAME = "sgd"
_KEPT = ("lr",)


def propose(seen):
    return optimizer.in_place_proposals(
        seen, NAME, "SGD", _KEPT, cost_rank=9,
        preserves_text="another optimizer; it stands here as the bound of what any can save")


def apply(change, argument):
    optimizer.put_in_place(change, argument, change.torch.optim.SGD, _KEPT)
