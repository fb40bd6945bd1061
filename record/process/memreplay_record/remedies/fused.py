"""Makes the optimizer's step in one kernel for many tensors, without lists of temporaries."""
from memreplay_record.remedies import optimizer

NAME = "fused"


def propose(seen):
    return optimizer.proposals(seen, NAME, True, "foreach", cost="nothing; the step is faster", cost_rank=0.1,
                               preserves_text="the same update by another kernel; the last digits may differ, and of "
                                              "16-bit weights more, as it computes in float32")


def apply(change, argument):
    optimizer.with_arguments(change, argument, foreach=None, fused=True)
