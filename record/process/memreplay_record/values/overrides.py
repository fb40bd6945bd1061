"""PyTorch's Python functions run as they do without a mode.

Functions such as torch.nn.functional.dropout ask has_torch_function() and, told yes, call
themselves again through the mode, which keeps their arguments alive for longer; modules such as
torch.nn.TransformerEncoderLayer take another path altogether. So that question is answered as if
the values' mode were not there. The built-in operations below still see it.
"""
import sys


def see_through(torch):
    overrides, C = torch.overrides, torch._C
    modes = C._len_torch_function_stack
    plain = {torch.Tensor, torch.nn.Parameter, type(None), int, float, bool, str, tuple, list}
    no_override = C._disabled_torch_function_impl
    of_tensor = torch.Tensor.__torch_function__
    many, one, several = (overrides.has_torch_function, overrides.has_torch_function_unary,
                          overrides.has_torch_function_variadic)

    def overridden(kind):
        if kind in plain:
            return False
        own = getattr(kind, "__torch_function__", None)
        if own is None or own is no_override:
            plain.add(kind)
            return False
        return getattr(own, "__func__", own) is not getattr(of_tensor, "__func__", of_tensor) or \
            kind is not torch.Tensor

    def has_torch_function(relevant_args):
        if modes() > 1:
            return many(relevant_args)
        return any([overridden(type(arg)) for arg in relevant_args]) and many(relevant_args)

    def has_torch_function_unary(tensor):
        if modes() > 1:
            return one(tensor)
        return overridden(type(tensor)) and one(tensor)

    def has_torch_function_variadic(*args):
        if modes() > 1:
            return several(*args)
        for arg in args:
            if overridden(type(arg)):
                return several(*args)
        return False

    replaced = {many: has_torch_function, one: has_torch_function_unary,
                several: has_torch_function_variadic}
    for new in replaced.values():  # TorchScript has its own answer to the question
        torch.jit._builtins._register_builtin(new, "aten::has_torch_function")
    for name, module in list(sys.modules.items()):
        if name != "torch" and not name.startswith("torch."):
            continue
        for attribute, old in list(vars(module).items()):
            if attribute.startswith("has_torch_function") and callable(old) and old in replaced:
                setattr(module, attribute, replaced[old])


def show_indices(torch, values):
    """Before some release after 2.1 a mode is not told of tensor[index], which reads sizes back."""
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
