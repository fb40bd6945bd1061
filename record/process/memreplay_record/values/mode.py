"""The mode that computes small calls once more on the CPU."""
import os
import sys

import torch
from torch.overrides import TorchFunctionMode

from memreplay_record import _lost, card
from memreplay_record.values import memory, ranges, sizes, unknown

# Calls that touch no values. They only run.
_PASSING = set("""
    __get__ __set__ __delete__ __len__ __dir__ __hash__ __torch_dispatch__ __dlpack__ __dlpack_device__
    __reduce_ex__ __deepcopy__ __setstate__ _typed_storage untyped_storage storage storage_type set_
    size stride dim ndimension nelement numel element_size storage_offset data_ptr get_device type
    is_contiguous is_pinned is_shared is_set_to is_same_size is_conj is_neg is_inference
    is_floating_point is_complex is_signed is_tensor is_storage is_coalesced is_sparse is_distributed
    requires_grad_ detach detach_ retain_grad register_hook register_post_accumulate_grad_hook
    backward grad record_stream pin_memory share_memory_ has_names names refine_names rename
    view view_as expand expand_as permute transpose t mT T H swapaxes swapdims movedim moveaxis
    squeeze unsqueeze narrow select unbind split chunk split_with_sizes unflatten diagonal unfold
    as_strided broadcast_to broadcast_tensors real imag view_as_real view_as_complex
    empty empty_like empty_strided new_empty new_empty_strided resize_ resize_as_
    result_type can_cast promote_types get_default_dtype set_default_dtype manual_seed seed
    is_grad_enabled _set_grad_enabled is_autocast_enabled apply_ map_ _make_subclass _make_wrapper_subclass
    _version __torch_function__ is_nested numpy_T dense_dim sparse_dim _nnz _is_view
""".split())
_ZEROING = {"zeros", "zeros_like", "new_zeros", "zero_"}
_MADE_LIKE = {"new_zeros", "new_ones", "new_full", "new_tensor"}  # their values do not depend on the first argument's
_RANDOM = set("""
    rand randn randint randperm rand_like randn_like randint_like normal normal_ uniform_ bernoulli
    bernoulli_ multinomial exponential_ cauchy_ log_normal_ geometric_ random_ poisson dropout
    dropout_ native_dropout alpha_dropout feature_dropout feature_alpha_dropout rrelu rrelu_
    binomial _standard_gamma _sample_dirichlet
""".split())
_READING = set("""
    item tolist __bool__ __int__ __float__ __index__ __complex__ __array__ numpy cpu is_nonzero
    __contains__ __format__ _local_scalar_dense
""".split())
# Operators of libraries that exchange values between ranks: the simulated GPU's NCCL does it, the CPU has none.
_EXCHANGING = {"c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem"}
# Checks on tensors with unknown values answer that nothing is wrong.
_CHECKS = {"all": True, "allclose": True, "_is_all_true": True, "any": False, "_is_any_true": False}
_ARE_ALL_TRUE = {"all", "_is_all_true"}
_DISTRIBUTIONS = os.path.dirname(torch.distributions.__file__) + os.sep  # which checks its arguments
# Host code continues with numbers that a kernel counted, in forms that are not modelled here.
_COUNTED = {"mode": "along more than 2,048 values", "matrix_exp": "of a batch", "linalg_matrix_exp": "of a batch"}
_EQUAL = {"eq", "__eq__"}  # a tensor is equal to itself where it is a number
# Calls that are not computed, but whose result is known or better guessed.
_MARKED = {*_ZEROING, *_CHECKS, *ranges.CHOOSING, *_EQUAL}

_PLAIN = {torch.Tensor, torch.nn.Parameter}
if hasattr(torch.nn, "Buffer"):
    _PLAIN.add(torch.nn.Buffer)
_STRIDED = torch.strided


def _on_card(value):
    """Returns whether `value` is a tensor of the simulated GPU that can have values."""
    return type(value) in _PLAIN and value.is_cuda and value.layout is _STRIDED


class _Skip(Exception):
    """Raised for a call that is not computed, because it has another kind of tensor."""


_SCALARS = {int, float, bool, str, type(None), torch.dtype, torch.device}


def _tensors(values, found):
    """Appends the tensors among arguments: themselves, and in lists, tuples and dicts."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            if value.layout is not _STRIDED:
                raise _Skip
            found.append(value)
        elif kind in _SCALARS:
            continue
        elif kind is list or kind is tuple:
            _tensors(value, found)
        elif isinstance(value, torch.Tensor):
            raise _Skip
        elif isinstance(value, (list, tuple)):
            _tensors(value, found)
        elif isinstance(value, dict):
            _tensors(value.values(), found)


def _on_cpu(value, twins):
    """Returns the same arguments for the CPU."""
    if type(value) in _PLAIN:  # that _tensors() found
        return twins.get(id(value), value)
    if isinstance(value, (list, tuple)):
        changed = [_on_cpu(entry, twins) for entry in value]
        return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    if isinstance(value, torch.Generator):
        return None
    return value


def _version(tensor):
    return 0 if tensor.is_inference() else tensor._version


# Under vmap() and grad(), tensors stand for others and have no memory of their own.
_transforms = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_tracing_state = torch._C._get_tracing_state
own_dispatch_modes = 0  # those that let the CPU's calls pass


def _undisturbed():
    """Returns whether the CPU may compute next to the real call: nothing traces or watches dispatch."""
    return _tracing_state() is None and _dispatch_modes() == own_dispatch_modes


def _namespace(func):
    """Returns the namespace of an operator of torch.ops, or None. Packets of overloads raise for missing attributes."""
    if isinstance(func, torch._ops.OpOverloadPacket):
        return func._qualified_op_name.partition("::")[0]
    return func.namespace if isinstance(func, torch._ops.OpOverload) else None


class _Call:
    """The script's own call: whether it was made, and what it returned."""
    __slots__ = ("func", "done", "raised", "result")

    def __init__(self, func):
        self.func, self.done, self.raised, self.result = func, False, False, None

    def __call__(self, *args, **kwargs):
        try:
            self.result = self.func(*args, **kwargs)
        except BaseException:
            self.raised = True
            raise
        self.done = True
        return self.result


class _Values(TorchFunctionMode):
    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.handlers = {}  # function -> how it is called
        self.reading_index = False  # of overrides.show_indices()
        self.random_state = torch.Generator().get_state()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        try:
            handler = self.handlers.get(func) or self._classify(func)
        except TypeError:  # it has no hash
            handler = _run
        try:
            if handler is _run or _transforms() is not None:
                return func(*args, **kwargs) if kwargs else func(*args)
            call = _Call(func)
            try:
                return handler(self, call, args, kwargs or {})
            except BaseException as error:
                if call.raised or type(error) is unknown.EndlessWait or not _lost.keep("values of a call", error):
                    raise
            return call.result if call.done else func(*args, **(kwargs or {}))
        except BaseException:
            # A traceback keeps frames alive, which must not keep tensors alive.
            del args, kwargs
            raise

    def _classify(self, func):
        name = getattr(func, "__name__", "")
        if name in _PASSING or _namespace(func) in _EXCHANGING:
            handler = _run
        elif name in _READING:
            handler = _Values._read
        elif name == "to" or name == "copy_":
            handler = _Values._move
        elif name in sizes.ANSWERS:
            handler = _Values._sized
        elif name in _COUNTED:
            handler = _Values._counted
        elif name in _ARE_ALL_TRUE:
            handler = _Values._checked
        else:
            handler = _Values._compute
        self.handlers[func] = handler
        return handler

    def _ready(self, tensor):
        """Returns whether the values of a small tensor of the simulated GPU are true; unknown ones get stand-ins."""
        state = memory.state(tensor)
        if state == memory.UNKNOWN:
            self.policy.fill(tensor)
        return state == memory.TRUE

    def _read(self, call, args, kwargs):
        func = call.func
        tensor = args[0] if args else None
        true, twin = True, None
        if _on_card(tensor) and memory.is_small(tensor):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                true = self._ready(tensor)
                if func.__name__ == "__contains__" or not tensor.is_contiguous():
                    twin = memory.twin(tensor)
        del tensor
        result = call(*args, **kwargs)
        if twin is not None:
            result = self._read_twin(func, args, kwargs, twin, result)
        if not true:
            answer = "a tensor" if isinstance(result, torch.Tensor) else str(result)[:40]
            self.policy.count(func.__name__.strip("_"), answer)
        return result

    def _read_twin(self, func, args, kwargs, twin, result):
        """Returns what is read if a kernel gathers or compares before the copy to the host."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if isinstance(result, torch.Tensor):
                return result.copy_(twin)
            if func.__name__ == "__format__" or any(isinstance(arg, torch.Tensor) for arg in args[1:]):
                return result
            return func(twin, *args[1:], **kwargs)

    def _move(self, call, args, kwargs):
        """Handles to() and copy_(): copies to the host read, those from the host are known, and the others compute."""
        func = call.func
        source = args[1] if func.__name__ == "copy_" and len(args) > 1 else args[0]
        if _on_card(source):
            if func.__name__ == "copy_":
                to_host = type(args[0]) in _PLAIN and args[0].device.type == "cpu"
            else:
                wish = kwargs.get("device", args[1] if len(args) > 1 else None)
                to_host = (isinstance(wish, torch.device) and wish.type == "cpu" or
                           isinstance(wish, str) and wish == "cpu" or
                           isinstance(wish, torch.Tensor) and wish.device.type == "cpu")
            if to_host:
                true, twin = True, None
                if memory.is_small(source):
                    with torch._C.DisableTorchFunction(), torch.no_grad():
                        true = self._ready(source)
                        others = (args[0],) if func.__name__ == "copy_" else (*args[1:], *kwargs.values())
                        if not source.is_contiguous() or _converts(source, others):
                            twin = memory.twin(source)
                del source
                result = call(*args, **kwargs)
                if twin is not None:
                    with torch._C.DisableTorchFunction(), torch.no_grad():
                        result.copy_(twin)  # a kernel gathers or converts before the copy
                if not true:
                    self.policy.count("a copy to the host", "a tensor")
                return result
        del source
        return self._compute(call, args, kwargs)

    def _sized(self, call, args, kwargs):
        """Runs a call whose host code reads a size back."""
        func = call.func
        subject = args[0] if args else kwargs.get("input", kwargs.get("condition"))
        if not _on_card(subject) or not _undisturbed():
            return call(*args, **kwargs)
        del subject
        if func.__name__ in ("__getitem__", "__setitem__") and not sizes.has_tensor(args[1]):
            if func.__name__ == "__getitem__":
                return call(*args)  # a view
            return self._compute(call, args, kwargs)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            numbers = sizes.ANSWERS[func.__name__](self.policy, args, kwargs)
        if not numbers:
            return self._compute(call, args, kwargs)
        return self._compute(lambda *a, **k: sizes.call(call, a, k, numbers), args, kwargs, func)

    def _checked(self, call, args, kwargs):
        """Runs all(): what torch.distributions asks of values that were never computed is the case."""
        result = self._compute(call, args, kwargs)
        # Frame 0 is this one, 1 that of __torch_function__(), which the caller's follows.
        if sys._getframe(2).f_code.co_filename.startswith(_DISTRIBUTIONS) and _on_card(result) and \
                memory.is_small(result) and memory.state(result) != memory.TRUE:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                memory.write(result, torch.full(result.shape, True), memory.ASSUMED)
        return result

    def _counted(self, call, args, kwargs):
        func = call.func
        subject = args[0] if args else kwargs.get("input", kwargs.get("A"))
        why = f"torch.{func.__name__} {_COUNTED[func.__name__]} is not supported on a simulated GPU"
        if "matrix_exp" in func.__name__ and _on_card(subject) and subject.dim() > 2:
            call.raised = True
            raise RuntimeError(why)  # some releases continue with a batch of no matrices
        del subject
        try:
            return self._compute(call, args, kwargs)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RuntimeError(f"{why} ({str(error).splitlines()[0]})") from None

    def _compute(self, call, args, kwargs, func=None):
        func = func or call.func
        result = self._computed(call, args, kwargs, func)
        try:
            if _undisturbed():
                ranges.follow(getattr(func, "__name__", ""), args, kwargs, result)
        except Exception as error:  # of arguments of another kind, nothing is known
            if _lost.is_by_signal(error):
                raise
        return result

    def _computed(self, call, args, kwargs, func):
        name = getattr(func, "__name__", "")
        found, on_card, large = [], [], []
        try:
            _tensors(args, found)
            if kwargs:
                _tensors(kwargs.values(), found)
        except _Skip:
            return call(*args, **kwargs)
        like = args[0] if name in _MADE_LIKE and args else None
        for tensor in found:
            if tensor.is_cuda and tensor is not like:
                (on_card if memory.is_small(tensor) else large).append(tensor)
        if large or not _undisturbed():
            result = self._uncomputed(call, args, kwargs, on_card, large)
            if name in _MARKED:
                self._fill_with_zeros(func, result)
                self._guess(func, args, kwargs, result)
            return result
        if found and not on_card and (like is None or not like.is_cuda):
            result = call(*args, **kwargs)
            if not _on_card(result):
                return result
        else:
            result = None
        if result is not None:
            if memory.is_small(result):
                if card.known(result.data_ptr(), memory.extent(result)):
                    memory.settle(result)
                else:
                    self._twice(func, args, kwargs, (), {}, memory.TRUE, result, ())
            return result
        if not found and not _makes_on_card(args, kwargs):
            return call(*args, **kwargs)
        how_true = memory.TRUE
        with memory.Aside():
            twins = {} if like is None else {id(like): torch.empty(0, dtype=like.dtype)}
            try:
                for tensor in on_card:
                    if tensor.is_conj() or tensor.is_neg():
                        raise _Skip
                    twins[id(tensor)], state = memory.true_twin(tensor, self.policy.fill)
                    how_true = min(how_true, state)
            except (_Skip, RuntimeError):
                twins = None
        result = call(*args, **kwargs)
        if _on_card(result) and not memory.is_small(result):
            self._fill_with_zeros(func, result)
        elif twins is not None:
            blocks = set() if result is None else {tensor.untyped_storage().data_ptr() for tensor in on_card}
            self._twice(func, args, kwargs, on_card, twins, how_true, result, blocks)
        else:
            for tensor in on_card:
                memory.assume_as_is(tensor)
        return result

    def _uncomputed(self, call, args, kwargs, on_card, large):
        """Makes a call that is not computed, and marks what it changed: the small `on_card` and the `large` ones."""
        zeros = memory.made_of_zeros(large)
        if not on_card and not zeros:
            return call(*args, **kwargs)
        versions = [_version(tensor) for tensor in (*on_card, *zeros)]
        result = call(*args, **kwargs)
        for tensor, version in zip(on_card, versions):
            if _version(tensor) != version:
                memory.assume_as_is(tensor)
        for tensor, version in zip(zeros, versions[len(on_card):]):
            if _version(tensor) != version or tensor.is_inference():
                memory.forget(tensor)
        return result

    def _fill_with_zeros(self, func, result):
        """Remembers that a call filled a larger tensor with zeros, if it did."""
        if getattr(func, "__name__", "") in _ZEROING and _on_card(result) and not memory.is_small(result):
            with torch._C.DisableTorchFunction():
                memory.fill_with_zeros(result, func.__name__ != "zero_")

    def _twice(self, func, args, kwargs, on_card, twins, how_true, result, blocks):
        """Computes a call on the CPU and writes its results and the arguments of `on_card` that it changed."""
        random = func.__name__ in _RANDOM
        if random:
            how_true = memory.ASSUMED
            before = torch.get_rng_state()
            torch.set_rng_state(self.random_state)
        try:
            with memory.Aside():
                computed = func(*_on_cpu(args, twins),
                                **{key: _on_cpu(value, twins) for key, value in kwargs.items()})
                for tensor in on_card:
                    twin = twins[id(tensor)]
                    if twin._version != 0:  # which is that of a new one
                        memory.write(tensor, twin, how_true)
                _write_all(result, computed, how_true, blocks)
        except Exception as error:  # the CPU has no such operation, or not for these types
            if _lost.is_by_signal(error):
                raise
            found = []
            try:
                _tensors((args, kwargs), found)
            except _Skip:
                pass
            if func.__name__.endswith("_"):
                for tensor in found:
                    if tensor.is_cuda and memory.is_small(tensor):
                        memory.assume_as_is(tensor)
        finally:
            if random:
                self.random_state = torch.get_rng_state()
                torch.set_rng_state(before)

    def _guess(self, func, args, kwargs, result):
        """Writes stand-ins for small results of large tensors that have a better one than others."""
        name = func.__name__ if hasattr(func, "__name__") else ""
        checked = _CHECKS.get(name, True if name in _EQUAL and len(args) > 1 and args[0] is args[1] else None)
        if checked is not None and _on_card(result) and result.dtype == torch.bool and memory.is_small(result):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                memory.write(result, torch.full(result.shape, checked), memory.ASSUMED)
        elif name in ranges.CHOOSING:
            chosen = ranges.indices(name, args, kwargs, result)
            if chosen is None or not _on_card(chosen[0]) or not memory.is_small(chosen[0]):
                return
            indices, dim, size = chosen
            source = args[0] if args else kwargs["input"]
            with torch._C.DisableTorchFunction(), torch.no_grad():
                along = dim if dim is not None and indices.dim() == source.dim() else None
                memory.write(indices, unknown.spread(indices.shape, along, size), memory.ASSUMED)


def _run(values, func, args, kwargs):
    return func(*args, **kwargs)


def _converts(source, others):
    """Returns whether a copy of `source` with these arguments has another dtype."""
    dtypes = [other if isinstance(other, torch.dtype) else getattr(other, "dtype", source.dtype)
              for other in others]
    return any(dtype != source.dtype for dtype in dtypes)


def _makes_on_card(args, kwargs):
    """Returns whether a call without tensors makes one on the simulated GPU."""
    device = kwargs.get("device")
    if device is None:
        return False
    return str(device).startswith("cuda") or isinstance(device, int)


def _write_all(real, computed, how_true, blocks):
    if isinstance(real, torch.Tensor):
        if (_on_card(real) and isinstance(computed, torch.Tensor) and
                real.shape == computed.shape and memory.is_small(real) and
                real.untyped_storage().data_ptr() not in blocks):
            memory.write(real, computed, how_true)
    elif isinstance(real, (list, tuple)) and isinstance(computed, (list, tuple)):
        for one, other in zip(real, computed):
            _write_all(one, other, how_true, blocks)


def make(policy):
    return _Values(policy)
