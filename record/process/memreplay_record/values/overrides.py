"""Makes PyTorch's Python functions run as they do without a mode.

Functions such as torch.nn.functional.dropout call has_torch_function() and, if it returns True, call themselves again
through the mode, which keeps their arguments alive for longer; modules such as torch.nn.TransformerEncoderLayer take
another path altogether. So that check is answered as if the values' mode were not there. The built-in operations below
still see it.
"""
from memreplay_record import card


def see_through(torch, values):
    C = torch._C
    hidden = card.hide_mode(values, {
        "many": C._has_torch_function, "one": C._has_torch_function_unary,
        "several": C._has_torch_function_variadic, "length": C._len_torch_function_stack,
        "pop": C._pop_torch_function_stack, "push": C._push_on_torch_function_stack})
    if not hidden:
        raise RuntimeError(f"torch {torch.__version__} asks in a way that is not known here whether a call is "
                           "overridden; --no-values records without values")


def show_indices(torch, values):
    """Shows tensor[index], which reads sizes back, to the mode: before some release after 2.1 it does not see it."""
    C, get = torch._C, torch.Tensor.__getitem__
    seen = []

    class Probe(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Probe():
        torch.zeros(1)[0]
    if any(func is get for func in seen):
        return

    def __getitem__(self, index):
        top = C._len_torch_function_stack() - 1
        if top < 0 or C._get_function_stack_at(top) is not values or values.reading_index:
            return get(self, index)
        values.reading_index = True
        try:
            return values.__torch_function__(get, (), (self, index))
        finally:
            values.reading_index = False

    torch.Tensor.__getitem__ = __getitem__
