"""Calls whose host code reads a value back from the GPU before it can continue.

The size of nonzero's result, for example, is counted by a kernel and copied to the host. Each function here returns
what the copies deliver: a list of numbers, in order, which the simulated GPU provides to the next copies of 1, 4 and 8
bytes; truth values only to those of 1 byte. So the real call makes the allocations that it makes on a real GPU.
"""
import ctypes
import math

import torch

from memreplay_record import card
from memreplay_record.values import memory, ranges

_KINDS = (ctypes.c_uint8, ctypes.c_int32, ctypes.c_int64)
_REPEATS = 4  # host code may read the same number more than once


class _Known:
    """A tensor's values, if it is small; `true` is False if they are stand-ins."""

    def __init__(self, policy, tensor):
        self.tensor, self.values, self.true = tensor, None, False
        if not tensor.is_cuda:
            self.values, self.true = tensor, True
        elif memory.is_small(tensor):
            now = memory.state(tensor)
            if now == memory.UNKNOWN:
                policy.fill(tensor)
            self.true = now == memory.TRUE
            self.values = memory.twin(tensor)

    def count(self, policy, what, counted):
        """Returns `counted` of the values if they are true, else the policy's share of all."""
        if self.true:
            return counted(self.values)
        size, why, values = policy.size(self.tensor.numel()), "--dynamic-fraction", 1
        few, share = ranges.few(self.tensor), ranges.share(self.tensor)
        if share is not None:
            values = round(1 / share)
            size, why = math.ceil(self.tensor.numel() * share), f"each of {values:,} values as often"
        elif what == "unique" and few is not None and few[1] - few[0] < size:
            size, why = few[1] - few[0] + 1, f"{few[0]:,} to {few[1]:,}"
        policy.count(what, f"{size:,} of {self.tensor.numel():,} ({why})", values)
        if self.values is not None and self.tensor.dtype in (torch.bool, torch.uint8):
            # The stand-in has as many, spread evenly: what is selected by it has that size, and values.
            steps = torch.arange(self.tensor.numel() + 1) * size // max(self.tensor.numel(), 1)
            memory.write(self.tensor, steps.diff().reshape(self.tensor.shape), memory.ASSUMED)
        return size


def _first(args, kwargs, name="input"):
    return args[0] if args else kwargs.get(name, kwargs.get("self"))


def _nonzeros(policy, tensor, what):
    return _Known(policy, tensor).count(policy, what, lambda values: int(values.count_nonzero()))


def _nonzero(policy, args, kwargs):
    return [_nonzeros(policy, _first(args, kwargs), "nonzero")]


def _where(policy, args, kwargs):
    if len(args) + len(kwargs) > 1:
        return []
    return [_nonzeros(policy, _first(args, kwargs, "condition"), "where")]


def _masked_select(policy, args, kwargs):
    values, mask = args[0], args[1] if len(args) > 1 else kwargs["mask"]
    times = 1
    for size in torch.broadcast_shapes(values.shape, mask.shape):
        times *= size
    times //= max(mask.numel(), 1)
    return [_nonzeros(policy, mask, "masked_select") * times]


def has_tensor(index):
    """Returns whether an index has more than numbers and slices, which make a view."""
    entries = index if isinstance(index, (tuple, list)) else (index,)
    return any(isinstance(entry, (torch.Tensor, list)) for entry in entries)


def _masks(index):
    entries = index if isinstance(index, (tuple, list)) else (index,)
    return [entry for entry in entries if isinstance(entry, torch.Tensor) and
            entry.dtype in (torch.bool, torch.uint8) and entry.is_cuda]


def _index(policy, args, kwargs):
    index = args[1] if len(args) > 1 else kwargs.get("indices", ())
    if len(args) > 2 and _fills(index, args[2]):
        return []
    return [_nonzeros(policy, mask, "an index of truth values") for mask in _masks(index)]


def _fills(index, value):
    """Returns whether values are assigned to one mask by masked_fill(), which counts nothing."""
    entries = index if isinstance(index, (tuple, list)) else (index,)
    at = [entry for entry in entries if isinstance(entry, (torch.Tensor, list))]
    if len(at) != 1 or len(_masks(index)) != 1:
        return False
    return not isinstance(value, torch.Tensor) or value.numel() == 1 and not value.is_cuda


def _unique(policy, args, kwargs):
    counted = lambda values: int(values.unique().numel())
    return [_Known(policy, _first(args, kwargs)).count(policy, "unique", counted)]


def _unique_consecutive(policy, args, kwargs):
    counted = lambda values: int(values.unique_consecutive().numel())
    return [_Known(policy, _first(args, kwargs)).count(policy, "unique_consecutive", counted)]


def _lowest_and_highest(policy, args, kwargs):
    known = _Known(policy, _first(args, kwargs))
    if known.values is None or known.values.numel() == 0:
        policy.count("the range of integers", 0)
        return [0, 0]
    if not known.true:
        policy.count("the range of integers", int(known.values.max()))
    return [int(known.values.min()), int(known.values.max())]


def _highest(policy, args, kwargs):
    given = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    return _lowest_and_highest(policy, args, kwargs)[1:] if given == -1 else []


def _sum_of_repeats(policy, args, kwargs):
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0] if args else None)
    if not isinstance(repeats, torch.Tensor) or kwargs.get("output_size") is not None:
        return []
    known = _Known(policy, repeats)
    if not known.true:
        policy.count("repeat_interleave", 0)
    return [int(known.values.sum())] if known.values is not None else [0]


def _valid(policy, args, kwargs):
    """Answers calls that check their arguments: values are finite, lengths have the right sum."""
    return [True]


def _decomposed(policy, args, kwargs):
    """Answers that the argument is finite, and that cuSOLVER reports 0."""
    return [True, 0]


def _distribution(policy, args, kwargs):
    """Answers multinomial()'s checks, which before some release after 2.1 include whether the sum is zero."""
    return [True, False]


def _alike(function):
    """Makes the answer for equal() and allclose() of two tensors."""
    def answer(policy, args, kwargs):
        known = [_Known(policy, tensor) for tensor in args[:2] if isinstance(tensor, torch.Tensor)]
        if len(known) < 2 or any(k.values is None for k in known):
            policy.count(function.__name__, True)
            return [1]
        same = function(known[0].values, known[1].values, *args[2:], **kwargs)
        if not all(k.true for k in known):
            policy.count(function.__name__, same)
        return [int(same)]
    return answer


ANSWERS = {
    "nonzero": _nonzero, "argwhere": _nonzero, "where": _where, "masked_select": _masked_select,
    "__getitem__": _index, "__setitem__": _index, "index_put_": _index, "index_put": _index,
    "index": _index, "unique": _unique, "_unique": _unique, "_unique2": _unique,
    "unique_dim": _unique, "unique_consecutive": _unique_consecutive,
    "bincount": _lowest_and_highest, "one_hot": _highest, "repeat_interleave": _sum_of_repeats,
    "multinomial": _distribution, "normal": _valid, "linalg_eig": _decomposed, "linalg_eigvals": _decomposed,
    "segment_reduce": _valid, "equal": _alike(torch.equal),
    "allclose": _alike(torch.allclose),
}


def call(func, args, kwargs, numbers):
    """Makes the real call, with `numbers` for what its host code reads back."""
    for number in numbers:
        for kind in _KINDS[:1] if isinstance(number, bool) else _KINDS:
            for _ in range(_REPEATS if len(numbers) == 1 else 1):
                card.answer(memory.bytes_of(number, kind))
    try:
        return func(*args, **kwargs)
    finally:
        card.answer_clear()
