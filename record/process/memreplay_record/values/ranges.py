"""Between which two numbers values lie that nobody computed.

A level, a class or an index is unknown, but one of few. That follows from the call that made it (a clamp, a remainder,
the indices of a dimension): there are at most so many different values, and each is taken to be as frequent as any
other. A range holds for a whole storage, until PyTorch's allocator hands its block out again or something else is
written there.
"""
import math

import torch

from memreplay_record import card
from memreplay_record.values import memory

# Functions that return indices along a dimension: where it is among their arguments, and which it is otherwise.
_INDICES = {"topk": (2, -1), "kthvalue": (2, -1), "sort": (1, -1), "argsort": (1, -1), "argmax": (1, None),
            "argmin": (1, None), "multinomial": (None, -1),
            **dict.fromkeys(("max", "min", "median", "nanmedian"), (1, None))}  # of values alone without one
CHOOSING = _INDICES.keys()
_OF_DTYPE = {torch.bool: (0, 1), torch.uint8: (0, 255)}

_noted = {}  # address of a storage -> lowest value, highest, and which share of truth values is True (None: unknown)


def few(tensor):
    """Returns the lowest and the highest value of a tensor of integers if its range is noted, else None."""
    noted = None if tensor.dtype.is_floating_point else _note_on(tensor)
    return None if noted is None else noted[:2]


def share(tensor):
    """Returns which share of a tensor of truth values is taken to be True, or None if nothing is known."""
    noted = _note_on(tensor)
    return None if noted is None else noted[2]


def indices(name, args, kwargs, result):
    """Returns the indices that a call of one of CHOOSING made, their dimension (None: all) and its size; or None."""
    at, dim = _INDICES[name]
    dim = kwargs.get("dim", kwargs.get("axis", args[at] if at is not None and len(args) > at else dim))
    source = args[0] if args else kwargs.get("input")
    chosen = result[-1] if isinstance(result, tuple) else result
    if chosen.dtype != torch.int64 or isinstance(dim, torch.Tensor) or source.dim() == 0 or \
            chosen is result and at is not None and not name.startswith("arg"):
        return None  # of two tensors, or values alone
    return chosen, dim, max(source.numel() if dim is None else source.size(dim), 1)


def follow(name, args, kwargs, result):
    """Notes the range of what a call made or changed, unless its values are true."""
    plain = name.strip("_")
    plain = _SAME.get(plain, plain)
    if name == "__setitem__" or name.endswith("_") and (not name.endswith("__") or name.startswith("__i")):
        changed = args[0]
        if not isinstance(changed, torch.Tensor):
            return  # several at once, of which none has a range
        found = _RULES[plain](args, kwargs) if plain in _RULES else None
        if found is not None and (plain == "setitem" or memory.extent(changed) == changed.untyped_storage().nbytes()):
            _note(changed, *found)
        elif _noted:
            _noted.pop(changed.untyped_storage().data_ptr(), None)
        return
    if plain in _INDICES:
        chosen = indices(name, args, kwargs, result)
        if chosen is not None and not _is_true(chosen[0]):
            _note(chosen[0], 0, chosen[2] - 1)
    rule = _RULES.get(plain)
    if rule is None:
        return
    made = result[0] if isinstance(result, tuple) else result
    if made.is_cuda and not _is_true(made):
        found = rule(args, kwargs)
        if found is not None and not _is_view(made, args):  # a view has the range of what it shows
            _note(made, *found)


def _is_true(tensor):
    return memory.is_small(tensor) and memory.state(tensor) == memory.TRUE


def _is_view(tensor, args):
    block = tensor.untyped_storage().data_ptr()
    return any(isinstance(each, torch.Tensor) and each.untyped_storage().data_ptr() == block for each in args)


def _note(tensor, low, high, true=None):
    if not math.isfinite(low) or not math.isfinite(high):
        return
    if not tensor.dtype.is_floating_point:
        low, high = int(low), int(high)
    block = tensor.untyped_storage().data_ptr()
    _noted[block] = low, high, true
    card.mark(block)


def _note_on(tensor):
    if not _noted or not tensor.is_cuda:
        return None
    block = tensor.untyped_storage().data_ptr()
    if block in _noted and not card.marked(block):
        del _noted[block]
    return _noted.get(block)


def _of(value):
    """Returns the range of a number or of a tensor's elements, or None."""
    if isinstance(value, (int, float)):
        return value, value
    if not isinstance(value, torch.Tensor):
        return None
    noted = _note_on(value)
    if noted is not None:
        return noted[:2]
    if value.dtype in _OF_DTYPE or value.dtype.is_floating_point or not value.numel():
        return _OF_DTYPE.get(value.dtype)
    if value.is_cuda and not _is_true(value):
        return None
    with torch._C.DisableTorchFunction(), torch.no_grad():
        here = memory.twin(value) if value.is_cuda else value
        return int(here.min()), int(here.max())


def _union(*values):
    ranges = [_of(value) for value in values]
    return None if None in ranges or not ranges else (min(low for low, _ in ranges), max(high for _, high in ranges))


def _clamped(x, low=None, high=None):
    within, low, high = _of(x) or (-math.inf, math.inf), _of(low), _of(high)
    lowest = within[0] if low is None else max(within[0], low[0])
    return lowest, max(lowest, within[1] if high is None else min(within[1], high[1]))


def _each(function):
    """Makes the rule of a function of one or two values that is monotone in each, from one of numbers."""
    def rule(one, other=0, more=None):
        one, other = _of(one), _of(other)
        if one is None or other is None:
            return None
        ends = [function(a, b, more) for a in one for b in other]
        return min(ends), max(ends)
    return rule


def _divided(one, other, rounding):
    return math.floor(one / other) if rounding == "floor" else int(one / other) if rounding == "trunc" else one / other


def _remainder(one, by):
    by = _of(by)
    if by is None or by[0] <= 0:
        return None
    return 0, by[1] if isinstance(by[1], float) or one.dtype.is_floating_point else by[1] - 1


def _equal(one, other):
    found = few(one) or (few(other) if isinstance(other, torch.Tensor) else None)
    return None if found is None else (0, 1, 1 / (found[1] - found[0] + 1))


def _drawn(*args, low=0, high=None):
    numbers = [value for value in args if isinstance(value, int)]
    return (numbers[0] if len(numbers) > 1 else low), (numbers[-1] if numbers else high) - 1


def _counted(*args, end=None):
    first, last = (0, args[0] if args else end) if len(args) < 2 else args[:2]
    return min(first, last), max(first, last)


def _rule(function, *names):
    """Makes a rule of the arguments from one of those with these names, or of these at the front."""
    def rule(args, kwargs):
        return function(*args, **{name: kwargs[name] for name in names if name in kwargs})
    return rule


_SAME = {"radd": "add", "iadd": "add", "isub": "sub", "rmul": "mul", "imul": "mul", "floordiv": "floor_divide",
         "mod": "remainder", "fmod": "remainder", "truediv": "div", "clip": "clamp", "concat": "cat",
         "index_put": "setitem", "concatenate": "cat", "unique2": "unique"}
_first = _rule(lambda x, *more: _of(x))
_RULES = {
    **dict.fromkeys(("getitem", "index_select", "gather", "take", "take_along_dim", "masked_select", "clone",
                     "contiguous", "reshape", "flatten", "repeat", "flip", "sort", "unique", "unique_consecutive",
                     "repeat_interleave", "to", "type_as", "long", "int", "float", "double", "half"), _first),
    **dict.fromkeys(("cat", "stack"), _rule(lambda tensors, *more: _union(*tensors))),
    "where": _rule(lambda condition, *values: _union(*values)),
    "setitem": _rule(lambda x, index, value, *more: _union(x, value)),
    "masked_fill": _rule(lambda x, mask, value: _union(x, value)),
    "full": _rule(lambda *args, fill_value=None: _of(args[-1] if fill_value is None else fill_value), "fill_value"),
    "fill": _rule(lambda x, value: _of(value)),
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero"), _rule(lambda *args: (0, 0))),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _rule(lambda *args: (1, 1))),
    **dict.fromkeys(("rand", "rand_like", "sigmoid", "softmax", "one_hot"), _rule(lambda *args: (0, 1))),
    "randint": _rule(_drawn, "low", "high"), "arange": _rule(_counted, "end"),
    "clamp": lambda args, kwargs: _clamped(args[0], *(
        args[at] if len(args) > at else kwargs.get(name) for at, name in ((1, "min"), (2, "max")))),
    "floor": _rule(_each(lambda a, b, _: math.floor(a))), "ceil": _rule(_each(lambda a, b, _: math.ceil(a))),
    "round": _rule(_each(lambda a, b, _: round(a))), "trunc": _rule(_each(lambda a, b, _: int(a))),
    "neg": _rule(_each(lambda a, b, _: -a)), "mul": _rule(_each(lambda a, b, _: a * b)),
    "add": _rule(_each(lambda a, b, _: a + b)), "sub": _rule(_each(lambda a, b, _: a - b)),
    "floor_divide": _rule(_each(lambda a, b, _: math.floor(a / b))),
    "div": lambda args, kwargs: _each(_divided)(args[0], args[1], kwargs.get("rounding_mode")),
    "remainder": _rule(_remainder), "eq": _rule(_equal),
    "bucketize": _rule(lambda x, boundaries, *more: (0, boundaries.size(-1))),
}
for _name in ("full_like", "new_full"):
    _RULES[_name] = _RULES["full"]
