"""torch.compile and the values' mode: the compiler must not trace the mode.

The mode is taken off while a compiled function runs, so the compiler sees the program as it is
without us, and its code runs as compiled. Eager pieces between the graphs of one compiled function
run without values too; what the function returns is unknown, unless a known copy made it. Measuring of
kernels has values: where torch.set_default_device() is on, its times are a tensor of the card.
"""
import functools

from memreplay_record import on_import


def _take_off(C, mode):
    """Takes the mode from the stack of modes; how many stood above it, None if it was not there."""
    taken = []
    while C._len_torch_function_stack() and (not taken or taken[-1] is not mode):
        taken.append(C._pop_torch_function_stack())
    found = bool(taken) and taken[-1] is mode
    for other in reversed(taken[:-1] if found else taken):
        C._push_on_torch_function_stack(other)
    return len(taken) - 1 if found else None


def _put_on(C, mode, above):
    """Puts it back below so many modes."""
    taken = [C._pop_torch_function_stack() for _ in range(min(above, C._len_torch_function_stack()))]
    for other in (mode, *reversed(taken)):
        C._push_on_torch_function_stack(other)


def stand_aside(torch, values):
    """Arranges it for every function that torch.compile makes from now on."""
    C = torch._C

    def without_values(compiled):
        @functools.wraps(compiled)
        def run(*args, **kwargs):
            above = _take_off(C, values)
            if above is None:
                return compiled(*args, **kwargs)
            try:
                return compiled(*args, **kwargs)
            finally:
                _put_on(C, values, above)
        return run

    def after_import(eval_frame):
        context = eval_frame._TorchDynamoContext
        wrap = context.__call__

        def call(self, fn):
            made = wrap(self, fn)
            # A module is compiled by its forward(), which comes by here as a function.
            return without_values(made) if callable(made) and hasattr(made, "__code__") else made

        context.__call__ = call

    def measuring(testing):
        for name in ("do_bench", "do_bench_cudagraph"):
            if hasattr(testing, name):
                setattr(testing, name, with_values(getattr(testing, name)))

    def with_values(measure):
        @functools.wraps(measure)
        def run(*args, **kwargs):
            above = _take_off(C, values)  # it may be on
            _put_on(C, values, above or 0)
            try:
                return measure(*args, **kwargs)
            finally:
                if above is None:
                    _take_off(C, values)
        return run

    on_import.watch("triton.testing", lambda spec: None, measuring)
    on_import.watch("torch._dynamo.eval_frame", lambda spec: None, after_import)
