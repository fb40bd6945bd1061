"""Keeps the optimizer's state in bfloat16 between its steps."""
from memreplay_record.remedies import optimizer

NAME = "bf16_state"
LINES = '''\
def widen(optimizer, *_):
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.dtype == torch.bfloat16:
                state[name] = value.float()

def narrow(optimizer, *_):
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.dtype == torch.float32 and value.dim() > 0:
                state[name] = value.bfloat16()

optimizer.register_step_pre_hook(widen)
optimizer.register_step_post_hook(narrow)
'''


def propose(seen):
    if any("float32" in model.dtypes for model in seen.trained()):
        yield from optimizer.state_proposals(
            seen, NAME, "in bfloat16 between steps", LINES, cost="two conversions of the state in each step",
            cost_rank=3.8, preserves=False, named_only=True,
            preserves_text="other results: the moments are rounded to 8 bits of precision after each step")


def apply(change, argument):
    optimizer.run_for(change, argument, LINES)
