"""Changes nothing but estimates how long the script's training steps take on the simulated GPU, as a roofline.

Each operation takes the longer of its FLOPs at the GPU's peak rate and of the bytes that it reads and writes at the
bandwidth of memory, or of PCI Express, and LAUNCH. This is a run of its own, since observing each operation may change
how autograd computes a gradient.
"""
import functools
import inspect
import threading

from memreplay_record import steps

NAME = "roofline"
LAUNCH = 5e-6  # seconds until PyTorch has launched an operation
_EMPTY = ("empty", "new_empty")  # these allocate and compute nothing
_IDLE = {"detach_", "record_stream", "resize_", "set_"}  # these change a tensor, but none of its values
_PICKING = {"embedding", "gather", "index", "index_select"}  # these read as much of their first argument as they return
_OVERWRITING = {"copy_", "fill_", "zero_", "_foreach_copy_", "_foreach_zero_"}


def propose(seen):
    return ()


class Work:
    """What the training steps of a script take: those operations that autograd sees, its own, and those of optimizers.

    What comes after the last step is not counted.

    Without `rates` (operations and bytes per second, by name), no time is estimated.
    """

    def __init__(self, torch, rates):
        from torch.utils import _pytree, flop_counter
        self.torch, self.rates = torch, rates
        self.flops, self.seconds, self.operations = 0, 0.0, 0
        self._leaves, self._formulas = _pytree.tree_flatten, flop_counter.flop_registry
        self._written = {}  # operation -> the places and names of the arguments that it changes
        self._steps = steps.Steps()
        self._until_step = {}  # what was counted up to the end of the last step
        self._inside = 0  # how many steps of optimizers and of autograd's functions are running
        self._main = threading.get_ident()  # the engine has threads of its own for GPUs

    def summary(self):
        return {**(self._until_step or self._counted()), "steps": self._steps.most}

    def _counted(self):
        return {"flops": self.flops, "seconds": self.seconds, "operations": self.operations}

    def before_step(self, optimizer, args, kwargs):
        self._inside += 1

    def after_step(self, optimizer, args, kwargs):
        self._inside -= 1
        self._until_step = self._counted()

    def around(self, function):
        """Returns `function` as a part of training where it is called in one, although it runs without gradients."""
        @functools.wraps(function)
        def counted(*args, **kwargs):
            within = self.torch.is_grad_enabled()
            self._inside += within
            try:
                return function(*args, **kwargs)
            finally:
                self._inside -= within
        return counted

    def is_training(self):
        return self.torch.is_grad_enabled() or self._inside > 0 or threading.get_ident() != self._main

    def add(self, op, args, kwargs, output):
        """Adds an operation; returns whether there is anything to compute."""
        tensor = self.torch.Tensor
        read = [each for each in self._leaves((args, kwargs))[0] if isinstance(each, tensor)]
        made = [each for each in self._leaves(output)[0] if isinstance(each, tensor)]
        name = op._overloadpacket.__name__
        if name.startswith(_EMPTY) or name in _IDLE or not any(each.is_cuda for each in (*read, *made)):
            return False
        written = self._written_by(op, args, kwargs)
        known = {_key(each) for each in read}
        new = [each for each in made if _key(each) not in known]
        if not written and not new:
            return False  # a view
        if name in _OVERWRITING:
            overwritten = {id(each) for each in written}
            read = [each for each in read if id(each) not in overwritten]
        elif name in _PICKING:
            read = [*read[1:], *new]
        used = [*read, *written, *new]
        formula = self._formulas.get(op._overloadpacket)
        flops = formula(*args, **kwargs, out_val=output) if formula is not None else 0
        self.flops += flops
        self.operations += 1
        if self.rates:
            if any(not each.is_cuda and each.dim() > 0 for each in used):
                seconds = sum(map(_bytes, [*written, *new])) / self.rates["host"]
            else:
                seconds = sum(map(_bytes, used)) / self.rates["memory"]
            rate = self._rate(name, read) if flops else None
            self.seconds += max(seconds, flops / rate if rate else 0) + LAUNCH
        return True

    def _written_by(self, op, args, kwargs):
        """Returns the tensors among the arguments that the operation changes."""
        places = self._written.get(op)
        if places is None:
            places = self._written[op] = [(place, argument.name) for place, argument in enumerate(op._schema.arguments)
                                          if argument.alias_info is not None and argument.alias_info.is_write]
        values = [args[place] if place < len(args) else kwargs.get(name) for place, name in places]
        return [each for each in self._leaves(values)[0] if isinstance(each, self.torch.Tensor)]

    def _rate(self, name, tensors):
        """Returns the FLOPs per second of a product, or None where the type's rate is unknown."""
        kind = str(next((each.dtype for each in tensors if each.is_floating_point()), "")).removeprefix("torch.")
        if kind == "float32" and self._uses_tf32("convolution" in name):
            kind = "tf32"
        return self.rates.get(kind)

    def _uses_tf32(self, is_convolution):
        try:
            if is_convolution:
                return self.torch.backends.cudnn.allow_tf32
            return self.torch.backends.cuda.matmul.allow_tf32
        except RuntimeError:  # set by names that these do not stand for
            backends = self.torch.backends
            return (backends.cudnn.conv if is_convolution else backends.cuda.matmul).fp32_precision == "tf32"


def _storage(tensor):
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse
        return None


def _key(tensor):
    storage = _storage(tensor)
    return id(tensor) if storage is None else storage._cdata


def _bytes(tensor):
    """Returns how much memory an operation reads or writes of a tensor; what an expanded one repeats counts once."""
    size, storage = tensor.numel() * tensor.element_size(), _storage(tensor)
    return size if storage is None else min(size, storage.nbytes())


def apply(change, argument):
    from torch.utils._python_dispatch import TorchDispatchMode
    meet, work, disabled = change.meeting(), Work(change.torch, change.rates), change.torch._C.DisableTorchFunction
    change.work = work

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            with disabled():  # modes of functions have seen the call that led here
                output = func(*args, **(kwargs or {}))
                if work.is_training() and work.add(func, args, kwargs or {}, output):
                    meet()
            return output

    from torch.optim import optimizer as hooks
    function = change.torch.autograd.Function
    theirs = inspect.getattr_static(function, "apply")
    function.apply = classmethod(work.around(lambda cls, *args, **kwargs: theirs.__get__(None, cls)(*args, **kwargs)))
    hooks.register_optimizer_step_pre_hook(work.before_step)
    hooks.register_optimizer_step_post_hook(work.after_step)
    Watching().__enter__()  # to the end of the process
    from memreplay_record.values import mode
    mode.own_dispatch_modes = 1
