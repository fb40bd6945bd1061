"""Keeps the optimizer's state in pinned memory of the host, and copies that of one parameter at a time to the GPU."""
from memreplay_record.remedies import optimizer

NAME = "host_state"
_WORDS = {"name": "HostState", "where": "in pinned memory of the host", "used": "value.to(p.device, non_blocking=True)",
          "kept": 'torch.empty_like(value, device="cpu", pin_memory=True).copy_(value)'}


def propose(seen):
    if not any(model.is_sharded for model in seen.models.values()):
        yield from optimizer.state_proposals(
            seen, NAME, "on the host", _WORDS,
            cost="the state goes over PCIe twice in each step and takes as much pinned memory of the host; parameters "
                 "are updated one by one", cost_rank=2.6, transfers=True,
            preserves_text="the same update, parameter by parameter; a checkpoint that is loaded brings the state to "
                           "the GPU until the next step")


def apply(change, argument):
    optimizer.keep_state(change, argument, _WORDS)
