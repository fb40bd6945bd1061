"""True values for small tensors on a simulated GPU, whose kernels do nothing.

A TorchFunctionMode (mode.py) sees each call of PyTorch's Python API. If all tensors of a call are small, it computes
the call once more on the CPU and writes the result into the memory of the real one. It stands above the dispatcher: the
real call, its allocations and the lifetimes of tensors are what they are without it. memory.py reads and writes the
simulated GPU's memory, sizes.py serves calls whose result's size depends on values, unknown.py is the policy for
unknown values, generations.py says which texts ended by one, overrides.py keeps PyTorch's Python functions from being
called differently because a mode is there, and tracing.py removes the mode while PyTorch traces or compiles.
"""


def begin(torch, settings):
    """Turns values on in this thread, permanently. Returns the policy, which counts (unknown.py)."""
    from memreplay_record.values import mode, overrides, tracing, unknown
    policy = unknown.Policy(settings)
    values = mode.make(policy)
    overrides.see_through(torch, values)
    values.__enter__()
    overrides.show_indices(torch, values)
    tracing.stand_aside(torch, values)
    return policy
