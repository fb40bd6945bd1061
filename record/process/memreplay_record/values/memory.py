"""CPU copies (twins) of small tensors of the simulated GPU, and how true their values are.

UNKNOWN: no known operation wrote all of it. ASSUMED: it depends on a stand-in. TRUE: the values that a real GPU would
hold. The simulated GPU itself forgets what a block held when PyTorch hands it out again; this module remembers which
blocks hold stand-ins. Larger tensors have no values, but zeros that fill one are known until something else is written
to it, so that its small parts have them.
"""
import ctypes

import torch

from memreplay_record import card

UNKNOWN, ASSUMED, TRUE = 0, 1, 2
LIMIT = 64 << 10  # maximum bytes of a tensor that has values
INDEX_LIMIT = 1 << 20  # the same for integers and truth values, which steer scripts most

_INDEX_TYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_assumed = set()  # addresses of storages
_made_of_zeros = set()  # addresses of storages of larger tensors that were made by zeros()


class Aside:
    """A with block for our own computations: no mode sees them, and tensors have versions."""

    def __enter__(self):
        self.guards = [torch._C.DisableTorchFunction()]
        if torch.is_inference_mode_enabled():
            self.guards.append(torch._C._InferenceMode(False))  # begins here
        for guard in self.guards:
            guard.__enter__()
        self.had_grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)

    def __exit__(self, *error):
        torch._C._set_grad_enabled(self.had_grad)
        for guard in reversed(self.guards):
            guard.__exit__(*error)


def extent(tensor):
    """Returns the bytes of memory from the first element of a tensor to the end of its last one."""
    if tensor.is_contiguous():
        return tensor.numel() * tensor.element_size()
    last = 0
    for size, stride in zip(tensor.size(), tensor.stride()):
        if size == 0:
            return 0
        last += (size - 1) * stride
    return (last + 1) * tensor.element_size()


def is_small(tensor):
    size = tensor.numel() * tensor.element_size()
    if size > INDEX_LIMIT or size > LIMIT and tensor.dtype not in _INDEX_TYPES:
        return False
    return tensor.is_contiguous() or \
        extent(tensor) <= (INDEX_LIMIT if tensor.dtype in _INDEX_TYPES else LIMIT)


def state(tensor):
    size = extent(tensor)
    if size == 0:
        return TRUE
    return _state_of_known(tensor) if card.known(tensor.data_ptr(), size) else UNKNOWN


def _state_of_known(tensor):
    return ASSUMED if _assumed and tensor.untyped_storage().data_ptr() in _assumed else TRUE


def _like(tensor):
    """Returns a CPU tensor of the same shape and strides, of any values."""
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)


def _copy(tensor, size):
    """Returns a CPU tensor with the `size` bytes that a tensor of the simulated GPU extends over."""
    copy = _like(tensor)
    if size:
        card.read(tensor.data_ptr(), copy.data_ptr(), size)
    return copy


def twin(tensor):
    """Returns a CPU tensor of the same shape, strides and bytes, with a storage of its own."""
    result = _copy(tensor, extent(tensor))
    if tensor.is_conj():
        result = result.conj()
    return result.neg() if tensor.is_neg() else result


def true_twin(tensor, fill):
    """Returns a twin of a small tensor and how true it is, after fill(tensor) if its values are unknown."""
    size = extent(tensor)
    copy = _like(tensor)
    if size == 0:
        return copy, TRUE
    if card.read(tensor.data_ptr(), copy.data_ptr(), size):
        return copy, _state_of_known(tensor)
    del copy  # so that fill() finds the host's memory as it was
    fill(tensor)
    return _copy(tensor, size), ASSUMED


def _lies_like(values, tensor):
    """Returns whether the bytes of `values` are those that the tensor will have."""
    return values.dtype is tensor.dtype and values.is_cpu and values.layout is torch.strided and \
        values.size() == tensor.size() and values.stride() == tensor.stride() and \
        not values.is_conj() and not values.is_neg()


def write(tensor, values, how_true):
    """Writes `values`, a CPU tensor of the same shape, into a small tensor of the simulated GPU."""
    size = extent(tensor)
    if size == 0:
        return
    if size != tensor.numel() * tensor.element_size():  # there are gaps, which stay what they are
        how_true = min(how_true, state(tensor))
        values = _copy(tensor, size).copy_(values)
    elif not _lies_like(values, tensor):
        values = _like(tensor).copy_(values)
    card.write(tensor.data_ptr(), values.data_ptr(), size)
    if how_true != TRUE:
        _assumed.add(tensor.untyped_storage().data_ptr())
    elif _assumed and size >= tensor.untyped_storage().nbytes():
        _assumed.discard(tensor.untyped_storage().data_ptr())


def assume_as_is(tensor):
    """Marks a small tensor as a stand-in after a kernel changed it in a way that was not computed."""
    if card.known(tensor.data_ptr(), extent(tensor)):
        _assumed.add(tensor.untyped_storage().data_ptr())


def settle(tensor):
    """Forgets what the block held before a copy from the host filled the tensor."""
    if _assumed and tensor.untyped_storage().nbytes() == extent(tensor):
        _assumed.discard(tensor.untyped_storage().data_ptr())


def fill_with_zeros(tensor, is_new):
    """Makes the bytes of a larger tensor known, which takes no memory, if it is or was made by zeros().

    Others may be gradients, to which a backward pass adds what no mode sees.
    """
    size = extent(tensor)
    block = tensor.untyped_storage().data_ptr()
    if is_new:
        _made_of_zeros.add(block)
    if block in _made_of_zeros and size == tensor.numel() * tensor.element_size():
        card.fill_with_zeros(tensor.data_ptr(), size)


def made_of_zeros(tensors):
    """Returns those of the tensors whose bytes may be known by fill_with_zeros()."""
    if not _made_of_zeros:
        return ()
    return [tensor for tensor in tensors if tensor.untyped_storage().data_ptr() in _made_of_zeros]


def forget(tensor):
    """Makes the bytes of a larger tensor unknown after a kernel changed it in a way that was not computed."""
    card.forget(tensor.data_ptr(), extent(tensor))


def bytes_of(value, ctype):
    return ctypes.string_at(ctypes.byref(ctype(value)), ctypes.sizeof(ctype))
