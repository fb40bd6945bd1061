"""Adafactor in place of Adam: of each matrix it keeps the sums of squares by row and by column, and no first moment."""
from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "adafactor"
_KEPT = ("lr", "weight_decay")


def propose(seen):
    if not hasattr(seen.torch.optim, "Adafactor"):  # 2.5
        return
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in optimizer.WITH_STATE:
            yield Proposal(
                f"{NAME}:{each.name}", f"Adafactor in place of {each.name}",
                optimizer.lines_in_place(each, "torch.optim.Adafactor", _KEPT),
                cost="another training: learning rates must be found anew", cost_rank=5, preserves=False,
                preserves_text="another optimizer, without a first moment",
                place=each.call.place, group="optimizer", named_only=True)


def apply(change, argument):
    optimizer.put_in_place(change, argument, change.torch.optim.Adafactor, _KEPT)
