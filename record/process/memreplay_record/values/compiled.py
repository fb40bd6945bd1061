"""torch.compile and the values' mode: the compiler must not trace the mode.

The mode is taken off while a compiled function runs, so the compiler sees the program as it is
without us, and its code runs as compiled. Eager pieces between the graphs of one compiled function
run without values too; what the function returns is unknown, unless a known copy made it.
"""
import functools

from memreplay_record import on_import


def stand_aside(torch, values):
    """Arranges it for every function that torch.compile makes from now on."""
    C = torch._C

    def without_values(compiled):
        @functools.wraps(compiled)
        def run(*args, **kwargs):
            top = C._len_torch_function_stack() - 1
            if top < 0 or C._get_function_stack_at(top) is not values:
                return compiled(*args, **kwargs)
            C._pop_torch_function_stack()
            try:
                return compiled(*args, **kwargs)
            finally:
                C._push_on_torch_function_stack(values)
        return run

    def after_import(eval_frame):
        context = eval_frame._TorchDynamoContext
        wrap = context.__call__

        def call(self, fn):
            made = wrap(self, fn)
            # A module is compiled by its forward(), which comes by here as a function.
            return without_values(made) if callable(made) and hasattr(made, "__code__") else made

        context.__call__ = call

    on_import.watch("torch._dynamo.eval_frame", lambda spec: None, after_import)
