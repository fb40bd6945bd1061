"""Makes the optimizer's step tensor by tensor, so that its temporaries are those of one tensor."""
from memreplay_record.remedies import optimizer

NAME = "foreach"


def propose(seen):
    return optimizer.proposals(seen, NAME, False, "fused", cost="nothing", cost_rank=0.3,
                               preserves_text="the same update, tensor by tensor")


def apply(change, argument):
    optimizer.with_arguments(change, argument, foreach=False, fused=None)
