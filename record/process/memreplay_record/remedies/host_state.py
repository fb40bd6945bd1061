"""Keeps the optimizer's state in pinned memory of the host between its steps."""
from memreplay_record.remedies import optimizer

NAME = "host_state"
LINES = '''\
def to_gpu(optimizer, *_):
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.is_pinned():
                state[name] = value.to("cuda", non_blocking=True)

def to_host(optimizer, *_):
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.is_cuda:
                host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
                state[name] = host.copy_(value, non_blocking=True)

optimizer.register_step_pre_hook(to_gpu)
optimizer.register_step_post_hook(to_host)
'''


def propose(seen):
    return optimizer.state_proposals(
        seen, NAME, "on the host between steps", LINES,
        cost="the state goes over PCIe twice in each step and takes as much pinned memory of the host", cost_rank=2.6,
        preserves_text="the same; a checkpoint that is loaded brings the state back to the GPU until the next step")


def apply(change, argument):
    optimizer.run_for(change, argument, LINES)
