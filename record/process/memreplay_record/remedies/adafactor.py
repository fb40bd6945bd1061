"""Adafactor in place of Adam: of each matrix it keeps the sums of squares by row and by column, and no first moment."""
from memreplay_record.remedies import optimizer

NAME = "adafactor"
_KEPT = ("lr", "weight_decay")


def propose(seen):
    if not hasattr(seen.torch.optim, "Adafactor"):  # 2.5
        return ()
    return optimizer.in_place_proposals(seen, NAME, "Adafactor", _KEPT, cost_rank=5, named_only=True,
                                        preserves_text="another optimizer, without a first moment")


def apply(change, argument):
    optimizer.put_in_place(change, argument, change.torch.optim.Adafactor, _KEPT)
