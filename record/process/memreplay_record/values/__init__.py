"""True values for small tensors on a card whose kernels do nothing.

A TorchFunctionMode (mode.py) sees each call of PyTorch's Python API. Where all tensors of a call are
small, it computes the call once more on the CPU and writes the result into the memory of the real
one. It stands above the dispatcher: the real call, its allocations and the lifetimes of tensors are
what they are without it. memory.py reads and writes the card's memory, sizes.py serves calls whose
result's size depends on values, unknown.py is the policy where nothing is known, overrides.py
keeps PyTorch's Python functions from being called differently because a mode is there, and
tracing.py takes the mode away while PyTorch traces or compiles.
"""


def begin(torch, settings):
    """Turns values on in this thread, for good. Returns the policy, which counts (unknown.py)."""
    from memreplay_record.values import mode, overrides, tracing, unknown
    policy = unknown.Policy(settings)
    values = mode.make(policy)
    overrides.see_through(torch, values)
    values.__enter__()
    overrides.show_indices(torch, values)
    tracing.stand_aside(torch, values)
    return policy
