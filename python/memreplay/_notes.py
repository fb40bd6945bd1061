"""Notes what Python knows of a script's memory while PyTorch records it: which module runs, where backward and the
optimizer begin and end, which addresses are parameters, gradients or the optimizer's state, and where the script
changes the allocator's settings, limits PyTorch to a share of the GPU or makes a MemPool with options.

A note makes no event. Its place is the number of allocations and frees that PyTorch has made so far
(torch.cuda.memory_stats(): "allocation.all.allocated" and "freed"), which is a position in the recording. The notes are
written under one key of the snapshot, KEY, which PyTorch's own tools ignore (docs/formats.md).

A note changes nothing that a script does: it runs no method that a class of the script may have overridden, and where
something fails all the same, _lost.py keeps the reason.

`memreplay record` puts this file into the processes that it starts, and memreplay.recording() uses it from the package,
so it imports nothing of either but _holders.py and _lost.py, which both have.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import threading
import weakref
from array import array
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from ._holders import Holders
from ._lost import fields_of, name_of, quietly

KEY = "memreplay"
_COLUMNS = 5  # of a row of the notes
VERSION = 1

# The snapshot has these texts; a reader ignores unknown ones.
KINDS = ("forward", "evaluation", "module", "backward", "optimizer", "end", "parameter", "buffer", "gradient",
         "optimizer_state", "input", "output", "loss", "settings", "memory_fraction", "mem_pool", "holding", "oom")
_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
# The functions of torch._C that change the allocator's settings, by release.
_SETTERS = ("_cuda_cudaCachingAllocator_set_allocator_settings", "_accelerator_setAllocatorSettings")
_LIMITER = "_cuda_setMemoryFraction"  # what torch.cuda.set_per_process_memory_fraction() calls
_POOL_OPTIONS = ("no_split", "use_on_oom")  # of torch.cuda.MemPool
_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # before 2.10 the first alone
_MAX_DEPTH = 4  # of containers in what a module takes and returns
_NO_MEMORY = (RuntimeError, AttributeError, NotImplementedError, TypeError)  # what tensors without memory raise


def tensors(value: Any, tensor: type, depth: int = 0) -> Iterator[Any]:
    """Yields the tensors in tuples, lists, dicts and dataclasses."""
    kind = type(value)
    if issubclass(kind, tensor):
        yield value
    elif depth < _MAX_DEPTH:
        inside: Any = ()
        if issubclass(kind, dict):
            inside = dict.values(value)
        elif issubclass(kind, (tuple, list)):
            inside = (tuple if issubclass(kind, tuple) else list).__iter__(value)
        elif hasattr(kind, "__dataclass_fields__"):
            inside = [_field(value, name) for name in kind.__dataclass_fields__]
        for one in inside:
            yield from tensors(one, tensor, depth + 1)


def _field(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:  # it is not set
        return None


def entries(module: Any, field: str) -> List[Tuple[str, Any]]:
    """Returns the names and values of a module's `field`: "_modules", "_parameters" or "_buffers"."""
    found = fields_of(module).get(field, {})
    is_scripted = issubclass(type(found), sys.modules["torch.jit._script"].OrderedDictWrapper)
    items = found.items() if is_scripted else dict.items(found)
    return [(name, value) for name, value in items if value is not None]


def modules_of(module: Any) -> Iterator[Tuple[str, Any]]:
    """Yields what named_modules() of torch.nn.Module does."""
    seen: Set[int] = set()
    waiting = [("", module)]
    while waiting:
        path, found = waiting.pop()
        if id(found) not in seen:
            seen.add(id(found))
            yield path, found
            at = path + "." if path else ""
            waiting += [(at + name, child) for name, child in reversed(entries(found, "_modules"))]


def parameters_of(module: Any) -> List[Any]:
    """Returns what parameters() of torch.nn.Module yields."""
    found = {id(each): each for _, inner in modules_of(module) for _, each in entries(inner, "_parameters")}
    return list(found.values())


def _local(tensor: Any) -> Any:
    """Returns the own part of a DTensor, and any other tensor itself."""
    return tensor._local_tensor if hasattr(type(tensor), "_local_tensor") else tensor


def _nothing() -> None:
    pass


def settings_at_start(torch: Any) -> str:
    """Returns the allocator's settings as the environment has them, by the variables that this release reads."""
    known = _VARIABLES if hasattr(torch._C, "_accelerator_setAllocatorSettings") else _VARIABLES[:1]
    return next((os.environ[name] for name in known if name in os.environ), "")


class _Open:
    """A module whose forward() runs."""

    def __init__(self, module: Any, is_model: bool, row: int) -> None:
        self.module = module
        self.is_model = is_model  # no other module runs it
        self.row = row  # of its beginning; -1 if more than modules was noted since


class _Engine:
    """autograd's engine, with notes where backward begins and ends."""

    def __init__(self, notes: Notes, engine: Any) -> None:
        self._notes, self._engine = notes, engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        notes = self._notes
        notes._begin_backward(args)
        notes._backward += 1
        try:
            return self._engine.run_backward(*args, **kwargs)
        finally:
            notes._backward -= 1
            notes._end_backward()


class Notes:
    """Takes notes from start() to stop(), in this process.

    `watch(name, before, after)` calls after(module) when the module `name` has been imported. What is compiled after
    that is seen. `count(device)` returns how many allocations and frees PyTorch has made; without it, PyTorch's
    statistics are read for each note.
    """

    def __init__(self, torch: Any, watch: Callable[[str, Any, Any], None],
                 count: Optional[Callable[[int], int]] = None) -> None:
        self.torch = torch
        self._place = count or self._place_by_statistics
        # Five numbers a row: device, kind, place, name, address. Tuples would move the collections of Python, which
        # counts what it has to look at, and with them what the script's garbage frees.
        self._rows = array("q")
        self._names: Dict[str, int] = {"": 0}
        self._devices: List[int] = [0]  # that have memory
        self._places: Dict[int, int] = {}  # of the last note, by device
        self._open: List[_Open] = []
        self._thread = threading.get_ident()
        self._backward = 0  # how many run, one inside the other
        self._paths: Dict[int, str] = {}  # of modules, by id
        self._models: Dict[int, Tuple[Any, int]] = {}  # by id: a weak reference, and how many modules it had
        self._known: Dict[Tuple[int, str], int] = {}  # addresses of what usually stays where it is
        self._parameters: Dict[int, Tuple[Any, str]] = {}  # by id: weak references and names
        # By the id of a module: weak references to it, and to its parameters and buffers by their keys in _known.
        self._members: Dict[int, Tuple[Any, Dict[Tuple[int, str], Any]]] = {}
        self._freed: List[Any] = []  # weak references to modules that are gone
        self._member_hooks: List[Any] = []
        self._module_hooks: List[Any] = []
        self._optimizer_hooks: List[Any] = []
        self._late_state: Dict[int, int] = {}  # optimizers whose state no backward pass has met -> its bytes
        self._met_state: Set[int] = set()  # those whose state one has met
        self.holders = Holders(torch, modules_of)
        self._engine: Optional[_Engine] = None
        self._undo_watching: Optional[Callable[[], Any]] = None
        self._is_compiled: Set[str] = set()  # "module", "function"
        self._settings: List[str] = []  # the first that held, and those that were set before start()
        self._setters: List[Tuple[str, Any]] = []
        self._make_pool: Optional[Callable[..., None]] = None  # MemPool.__init__
        self._pools: List[Tuple[str, int]] = []  # not noted yet: options and number
        self._is_on = False
        self._is_late = bool(torch.cuda.is_initialized())  # the script may have limited itself before
        dynamo = sys.modules.get("torch._dynamo.eval_frame")
        if dynamo is None:
            watch("torch._dynamo.eval_frame", lambda spec: None, self._before_compiling)
        else:
            backends = [*getattr(dynamo, "cached_backends", {}).values(), getattr(dynamo, "most_recent_backend", None)]
            if any(callable(backend) for backend in backends):  # None is that of torch._dynamo.disable()
                self._is_compiled.add("function")  # whatever it was
            self._before_compiling(dynamo)
        self._watch_settings()

    # On and off.

    def start(self) -> None:
        """Starts, and sets nothing that torch.compile would see: where something was compiled, less is noted."""
        torch = self.torch
        self._is_on = True
        self._note_fractions_at_start()
        self._note_pools()
        self._watch_members()
        if not self._is_compiled:
            hooks = torch.nn.modules.module
            self._module_hooks = [hooks.register_module_forward_pre_hook(self._before_module),
                                  hooks.register_module_forward_hook(self._after_module)]
        if "function" in self._is_compiled:
            return
        hooks = sys.modules["torch.optim.optimizer"]  # torch.optim has no such attribute
        if hasattr(hooks, "register_optimizer_step_pre_hook"):  # 2.0 has none
            self._optimizer_hooks = [hooks.register_optimizer_step_pre_hook(self._before_step),
                                     hooks.register_optimizer_step_post_hook(self._after_step)]
        variable = torch.autograd.Variable
        self._engine = variable._execution_engine = _Engine(self, variable._execution_engine)

    def stop(self) -> None:
        self._is_on = False
        self._leave_modules()
        self._leave_functions()
        for hook in self._member_hooks:
            hook.remove()
        if self._before_collection in gc.callbacks:
            gc.callbacks.remove(self._before_collection)
        self._member_hooks, self._members, self._freed = [], {}, []
        for name, setter in self._setters:
            setattr(self.torch._C, name, setter)
        self._setters = []
        if self._make_pool is not None:
            self.torch.cuda.MemPool.__init__ = self._make_pool
        if self._undo_watching is not None:
            self._undo_watching()

    def _leave_modules(self) -> None:
        for hook in self._module_hooks:
            hook.remove()
        self._module_hooks, self._open = [], []

    def _leave_functions(self) -> None:
        for hook in self._optimizer_hooks:
            hook.remove()
        self._optimizer_hooks = []
        variable = self.torch.autograd.Variable
        if self._engine is not None and variable._execution_engine is self._engine:
            variable._execution_engine = self._engine._engine

    def _before_compiling(self, eval_frame: Any) -> None:
        """Makes notes of modules end before a compiler traces one, which would trace and guard what takes the notes.

        A compiled function may hold backward and optimizers as well. One that is never called, such as those that
        bitsandbytes decorates when it is imported, is not traced.
        """
        context = eval_frame.OptimizeContext
        own = vars(context).get("__call__")  # some releases inherit it

        def call(this: Any, function: Any) -> Any:
            hooks = getattr(this, "enter_exit_hooks", None)  # since 2.3
            if hooks is None or self._is_module(function):
                self._leave_to_compiler(function)
            else:
                hooks.append(functools.partial(self._leave_to_compiler, function))
            return own(this, function) if own is not None else \
                super(context, this).__call__(function)  # type: ignore[misc]

        context.__call__ = call
        self._undo_watching = lambda: \
            setattr(context, "__call__", own) if own is not None else delattr(context, "__call__")

    def _is_module(self, function: Any) -> bool:
        return issubclass(type(getattr(function, "__self__", function)), self.torch.nn.Module)

    @quietly("where torch.compile begins", otherwise=_nothing)
    def _leave_to_compiler(self, function: Any) -> Callable[[], None]:
        """Returns what runs when the compiled function has returned."""
        is_module = self._is_module(function)
        self._is_compiled.add("module" if is_module else "function")
        self._watch_freed()
        self._leave_modules()
        if not is_module:
            self._leave_functions()
        return _nothing

    # Settings.

    def _watch_settings(self) -> None:
        for name in _SETTERS:
            setter = getattr(self.torch._C, name, None)
            if setter is not None:
                self._setters.append((name, setter))
                setattr(self.torch._C, name, self._noting(setter))
        limiter = getattr(self.torch._C, _LIMITER, None)
        if limiter is not None:
            self._setters.append((_LIMITER, limiter))
            setattr(self.torch._C, _LIMITER, self._noting_fraction(limiter))

        pool = getattr(self.torch.cuda, "MemPool", None)
        if pool is not None:  # came with 2.5
            self._make_pool = pool.__init__
            pool.__init__ = self._noting_pool(pool.__init__)

    def _noting_pool(self, make: Callable[..., None]) -> Callable[..., None]:
        known = inspect.signature(make)

        @functools.wraps(make)
        def noted(*args: Any, **kwargs: Any) -> None:
            make(*args, **kwargs)
            note(args, kwargs)

        @quietly("the options of a MemPool")
        def note(args: Any, kwargs: Any) -> None:
            given = known.bind(*args, **kwargs).arguments
            options = ",".join(name for name in _POOL_OPTIONS if given.get(name))
            if options:
                self._pools.append((options, args[0].id[1]))
                self._note_pools()
        return noted

    def _note_pools(self) -> None:
        if self._pools and self._ready():  # the script may make one before it uses CUDA
            device = self.torch.cuda.current_device()
            place = self._places[device] = self._place(device)
            for options, number in self._pools:
                text = self._names.setdefault(options, len(self._names))
                self._rows.extend((device, _NUMBER["mem_pool"], place, text, number))
            self._pools = []

    def _noting(self, setter: Callable[[str], Any]) -> Callable[[str], Any]:
        @functools.wraps(setter)
        def noted(settings: str) -> Any:
            try:
                return setter(settings)  # what it refuses, it may apply in part
            finally:
                self._note_settings(settings)
        return noted

    def _noting_fraction(self, limiter: Callable[[float, int], Any]) -> Callable[[float, int], Any]:
        @functools.wraps(limiter)
        def noted(fraction: float, device: int) -> Any:
            done = limiter(fraction, device)
            if self._ready():
                self._note_fraction(device, fraction)
            return done
        return noted

    @quietly("a share of the GPU that the script chose")
    def _note_fraction(self, device: int, fraction: float) -> None:
        self._places[device] = self._place(device)
        text = self._names.setdefault(repr(fraction), len(self._names))
        total = self.torch.cuda.get_device_properties(device).total_memory
        self._rows.extend((device, _NUMBER["memory_fraction"], self._places[device], text, total))

    def _note_fractions_at_start(self) -> None:
        """Notes what the script set before the notes began; what the environment sets is in the settings."""
        fraction_of = getattr(self.torch._C, "_cuda_getMemoryFraction", None)
        if fraction_of is None or not self._is_late or "memory_fraction" in settings_at_start(self.torch):
            return
        for device in range(self.torch.cuda.device_count()):
            if fraction_of(device) < 1:
                self._note_fraction(device, fraction_of(device))

    @quietly("the allocator's settings that the script chose")
    def _note_settings(self, settings: str) -> None:
        if not self._settings:
            self._settings.append(settings_at_start(self.torch))
        if not self._ready():
            self._settings.append(settings)
            return
        text = self._names.setdefault(settings, len(self._names))
        for device in range(self.torch.cuda.device_count()):
            self._places[device] = self._place(device)
            self._rows.extend((device, _NUMBER["settings"], self._places[device], text, 0))

    def _first_settings(self) -> Iterator[int]:
        """Yields rows of what held at the start, if it did not hold to the end."""
        texts = [self._names.setdefault(settings, len(self._names)) for settings in self._settings]
        for device in {device for device, kind in zip(self._rows[::_COLUMNS], self._rows[1::_COLUMNS])
                       if kind == _NUMBER["settings"]}:
            for text in texts:
                yield from (device, _NUMBER["settings"], 0, text, 0)

    # Places and rows.

    def _place_by_statistics(self, device: int) -> int:
        counted = self.torch._C._cuda_memoryStats(device)["allocation"]["all"]
        return int(counted["allocated"]) + int(counted["freed"])

    def _ready(self) -> bool:
        return self._is_on and bool(self.torch.cuda.is_initialized())

    def _look_for_devices(self) -> None:
        self._devices = [d for d in range(self.torch.cuda.device_count()) if self._place(d) > 0] or [0]

    def _note(self, kind: str, name: str = "") -> None:
        """Notes what begins or ends, on each device."""
        text = self._names.setdefault(name, len(self._names))
        for device in self._devices:
            place = self._places[device] = self._place(device)
            self._rows.extend((device, _NUMBER[kind], place, text, 0))

    def _note_tensor(self, kind: str, name: str, tensor: Any) -> None:
        """Notes what the storage of a tensor is, at the place of the last note."""
        of, tensor = self.torch.Tensor, _local(tensor)  # a class of the script's may have other methods
        try:
            if not of.is_cuda.__get__(tensor):
                return
            address = of.data_ptr(tensor) - of.storage_offset(tensor) * of.element_size(tensor)
            device = of.get_device(tensor)
        except _NO_MEMORY:
            return
        if address <= 0:
            return
        place = self._places.get(device)
        if place is None:
            place = self._places[device] = self._place(device)
        self._rows.extend((device, _NUMBER[kind], place, self._names.setdefault(name, len(self._names)), address))

    def _note_gradient(self, name: str, tensor: Any) -> None:
        of = self.torch.Tensor
        if of.is_leaf.__get__(tensor) or of.retains_grad.__get__(tensor):  # PyTorch warns of other reads
            gradient = of.grad.__get__(tensor)
            if gradient is not None:
                self._note_tensor("gradient", name, gradient)

    def _note_if_moved(self, kind: str, key: Tuple[int, str], name: str, tensor: Any) -> None:
        try:
            address = self.torch.Tensor.data_ptr(_local(tensor))
        except _NO_MEMORY:
            return
        if self._known.get(key) != address:
            self._known[key] = address
            self._note_tensor(kind, name, tensor)

    # Modules.

    @quietly("where a module begins")
    def _before_module(self, module: Any, args: Any) -> None:
        if not self._ready() or (self._backward == 0 and threading.get_ident() != self._thread):
            return
        self._close_left(module)
        row = len(self._rows)
        if self._open or self._backward > 0:
            self._note("module", self._paths.get(id(module)) or name_of(type(module)))
            self._open.append(_Open(module, False, row))
            return
        with self.torch._C.DisableTorchFunction():
            self._look_for_devices()
            self._places.clear()
            is_training = self.torch.is_grad_enabled()
            self._note("forward" if is_training else "evaluation", name_of(type(module)))
            self._open.append(_Open(module, True, row))
            self.holders.model_called(module, is_training)
            noted = len(self._rows)
            self._see_model(module)
            self._note_tensors("input", args)
            if len(self._rows) != noted:
                self._open[-1].row = -1

    @quietly("what a model takes or returns")
    def _note_tensors(self, kind: str, value: Any) -> None:
        for tensor in tensors(value, self.torch.Tensor):
            is_loss = kind == "output" and self.torch.Tensor.dim(tensor) == 0
            self._note_tensor("loss" if is_loss else kind, "", tensor)

    @quietly("where a module ends")
    def _after_module(self, module: Any, args: Any, output: Any) -> None:
        if not self._open or (self._backward == 0 and threading.get_ident() != self._thread):
            return
        for position in range(len(self._open) - 1, -1, -1):
            opened = self._open[position]
            if opened.module is module:
                self._close(position)
                if opened.is_model:
                    with self.torch._C.DisableTorchFunction():
                        self._note_tensors("output", output)
                return

    def _close_left(self, module: Any) -> None:
        """Closes modules that an exception has left: `module` is called anew, or the outermost one no longer runs."""
        if self._open and self._backward == 0:
            for position, opened in enumerate(self._open):
                if opened.module is module:
                    self._close(position)
                    return
            if id(module) not in self._paths and not self._runs(self._open[0].module):
                self._close(0)

    def _runs(self, module: Any) -> bool:
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "_call_impl" and frame.f_locals.get("self") is module:
                return True
            frame = frame.f_back
        return False

    def _close(self, position: int) -> None:
        while len(self._open) > position:
            row = self._open.pop().row
            places = [(device, self._place(device)) for device in self._devices]
            if row >= 0 and list(zip(self._rows[row::_COLUMNS], self._rows[row + 2::_COLUMNS])) == places:
                del self._rows[row:]  # nothing was allocated or freed meanwhile
                continue
            for device, place in places:
                self._places[device] = place
                self._rows.extend((device, _NUMBER["end"], place, 0, 0))

    @quietly("the modules, parameters and buffers of a model")
    def _see_model(self, model: Any) -> None:
        """Notes the paths of a model's modules, and where its parameters and buffers lie."""
        modules = list(modules_of(model))
        known = self._models.get(id(model))
        if known is None or known[0]() is not model or known[1] != len(modules):
            own = name_of(type(model))
            others = any(other() is not None and other() is not model for other, _ in self._models.values())
            prefix = own + "." if others else ""
            for path, module in modules:
                self._paths[id(module)] = prefix + path if path else own
            self._models[id(model)] = (weakref.ref(model), len(modules))
        for path, module in modules:
            at = path + "." if path else ""
            for name, parameter in entries(module, "_parameters"):
                # A parameter that is tied to another module's keeps the name that it was first seen by.
                named = self._parameters.get(id(parameter))
                if named is None or named[0]() is not parameter or not named[1]:
                    named = self._parameters[id(parameter)] = (weakref.ref(parameter), at + name)
                self._note_if_moved("parameter", (id(parameter), ""), named[1], parameter)
            for name, buffer in entries(module, "_buffers"):
                self._note_if_moved("buffer", (id(module), name), at + name, buffer)

    # Backward and the optimizer.

    @quietly("where a backward pass begins")
    def _begin_backward(self, args: Any) -> None:
        if self._ready():
            self._met_state.update(self._late_state)
            self._late_state.clear()
            with self.torch._C.DisableTorchFunction():
                if self._backward == 0:
                    if self._open and threading.get_ident() == self._thread and not self._runs(self._open[0].module):
                        self._close(0)
                    self._look_for_devices()
                self._note("backward")
                if self._backward == 0:
                    self._note_tensors("loss", args[:1])
            self.holders.backward_begins(*args)

    @quietly("where memory runs out")
    def ran_out(self, size: int) -> None:
        """Notes that a request of `size` bytes is refused: what runs then is still open."""
        if self._ready():
            self._note("oom")
        self.holders.ran_out(size)

    @quietly("gradients after a backward pass")
    def _end_backward(self) -> None:
        if self._ready():
            with self.torch._C.DisableTorchFunction():
                self._note("end")
                if self._backward == 0:
                    for key, (reference, name) in list(self._parameters.items()):
                        parameter = reference()
                        if parameter is None:
                            del self._parameters[key]
                        else:
                            self._note_gradient(name, parameter)
                    self.holders.step_ended("backward pass")

    @quietly("where an optimizer's step begins")
    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._ready():
            with self.torch._C.DisableTorchFunction():
                self._note("optimizer", name_of(type(optimizer)))
                self._see_optimizer(optimizer)

    @quietly("where an optimizer's step ends")
    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._ready():
            with self.torch._C.DisableTorchFunction():
                self._note("end")
                self._see_optimizer(optimizer)
                self.holders.optimizer_stepped(optimizer)
                if id(optimizer) not in self._met_state:
                    states = [value for _, value in dict.items(fields_of(optimizer).get("state", {}))]
                    self._late_state[id(optimizer)] = sum(
                        t.numel() * t.element_size() for t in tensors(states, self.torch.Tensor) if t.is_cuda)

    def late_state(self) -> int:
        """Returns the bytes of optimizers' state that a first step made, if no backward pass came after it."""
        return sum(self._late_state.values())

    @quietly("the parameters and the state of an optimizer")
    def _see_optimizer(self, optimizer: Any) -> None:
        fields = fields_of(optimizer)
        for group in fields.get("param_groups", ()):
            for parameter in group["params"]:
                name = self._name_of(parameter)
                self._note_if_moved("parameter", (id(parameter), ""), name, parameter)
                self._note_gradient(name, parameter)
        for parameter, state in list(dict.items(fields.get("state", {}))):
            if issubclass(type(state), dict):
                at = self._name_of(parameter)
                for key, value in dict.items(state):
                    word = str(key) if type(key) in (str, int) else name_of(type(key))
                    for tensor in tensors(value, self.torch.Tensor):
                        self._note_if_moved("optimizer_state", (id(parameter), word),
                                            f"{at}.{word}" if at else word, tensor)

    # What is freed before the end, and was never seen to run as it is compiled.

    def _watch_members(self) -> None:
        hooks = self.torch.nn.modules.module
        self._member_hooks = [hooks.register_module_parameter_registration_hook(self._see_parameter),
                              hooks.register_module_buffer_registration_hook(self._see_buffer),
                              hooks.register_module_module_registration_hook(self._see_child)]
        if self._is_compiled:
            self._watch_freed()

    def _watch_freed(self) -> None:
        """Sees modules as they are freed, from where something was compiled.

        Python drops what a signal's handler raises in a function of ours that it calls then: no sooner.
        """
        if self._member_hooks and self._before_collection not in gc.callbacks:
            gc.callbacks.append(self._before_collection)
            for reference, members in list(self._members.values()):
                module = reference()
                if module is not None:
                    self._watch_module(module, members)

    @quietly("which parameters a module has")
    def _see_parameter(self, module: Any, name: str, parameter: Any) -> None:
        if parameter is not None:
            self._members_of(module)[id(parameter), ""] = weakref.ref(parameter)

    @quietly("which buffers a module has")
    def _see_buffer(self, module: Any, name: str, buffer: Any) -> None:
        if buffer is not None:
            self._members_of(module)[id(module), name] = weakref.ref(buffer)

    @quietly("which modules a module has")
    def _see_child(self, module: Any, name: str, child: Any) -> None:
        """Sees the modules of a copy, which have registered nothing."""
        waiting = [child]
        while waiting:
            found = waiting.pop()
            if found is not None and not self._is_watched(found):
                self._members_of(found).update((key, weakref.ref(each)) for key, _, each in self._owned_by(found))
                waiting += [each for _, each in entries(found, "_modules")]

    @staticmethod
    def _owned_by(module: Any) -> List[Tuple[Tuple[int, str], str, Any]]:
        """Returns the parameters and buffers of a module, with their keys in _known and their kinds."""
        return [((id(each), ""), "parameter", each) for _, each in entries(module, "_parameters")] + \
            [((id(module), name), "buffer", each) for name, each in entries(module, "_buffers")]

    def _is_watched(self, module: Any) -> bool:
        return id(module) in self._members and self._members[id(module)][0]() is module

    def _watch_module(self, module: Any, members: Dict[Tuple[int, str], Any]) -> None:
        seen = self._see_freed if self._is_compiled else self._freed.append
        self._members[id(module)] = weakref.KeyedRef(module, seen, id(module)), members

    def _members_of(self, module: Any) -> Dict[Tuple[int, str], Any]:
        while self._freed:
            reference = self._freed.pop()
            known = self._members.get(reference.key)
            if known is not None and known[0] is reference:
                del self._members[reference.key]
        if not self._is_watched(module):
            self._watch_module(module, {})
        return self._members[id(module)][1]

    @quietly("the parameters and buffers of a module that is freed")
    def _see_freed(self, reference: Any) -> None:
        """Notes where they lie, as the weak references to a module end before it lets go of them."""
        members = self._members.pop(reference.key)[1]
        if self._ready():
            found = [(key, reference()) for key, reference in members.items()]
            self._note_members([(key, "parameter" if key[1] == "" else "buffer", each)
                                for key, each in found if each is not None])
            for key in members:
                self._known.pop(key, None)  # another may get its id and its address

    @quietly("the parameters and buffers of modules before garbage is collected")
    def _before_collection(self, phase: str, info: Dict[str, int]) -> None:
        """Notes where they lie before modules in a cycle are freed, to which all weak references end at once."""
        if phase == "start" and info["generation"] == 2 and self._ready():
            for module in [reference() for reference, _ in list(self._members.values())]:
                if module is not None:
                    self._note_members(self._owned_by(module))

    def _note_members(self, members: List[Tuple[Tuple[int, str], str, Any]]) -> None:
        with self.torch._C.DisableTorchFunction():
            self._places.clear()
            for key, kind, tensor in members:
                noted = len(self._rows)
                self._note_if_moved(kind, key, self._name_of(tensor) if kind == "parameter" else "", tensor)
                if len(self._rows) > noted:
                    self._note_gradient("", tensor)

    def _name_of(self, parameter: Any) -> str:
        """Returns the model's name for a parameter; "" if no model has run."""
        known = self._parameters.setdefault(id(parameter), (weakref.ref(parameter), ""))
        return known[1] if known[0]() is parameter else ""

    # The result.

    @quietly("what exists at the end")
    def _see_all(self) -> None:
        """Notes everything that exists now, whether it was ever called or not."""
        module, optimizer = self.torch.nn.Module, self.torch.optim.Optimizer
        objects = gc.get_objects()
        kinds = {id(kind) for kind in {id(kind): kind for kind in map(type, objects)}.values()
                 if issubclass(kind, (module, optimizer))}
        for found in [each for each in objects if id(type(each)) in kinds]:
            if issubclass(type(found), optimizer):
                self._see_optimizer(found)
            else:
                self._see_module(found)

    @quietly("the parameters and buffers of a module that exists at the end")
    def _see_module(self, module: Any) -> None:
        for _, parameter in entries(module, "_parameters"):
            name = self._name_of(parameter)
            self._note_tensor("parameter", name, parameter)
            self._note_gradient(name, parameter)
        for _, buffer in entries(module, "_buffers"):
            self._note_tensor("buffer", "", buffer)

    def taken(self) -> Dict[str, Any]:
        """Returns what goes under KEY into a snapshot that was just taken: plain lists, one for each field."""
        with self.torch._C.DisableTorchFunction():
            end = {device: self._place(device) for device in range(self.torch.cuda.device_count())}
            holding = self.holders.noted()
            before, self._rows = self._rows, self._rows[:]
            known, self._known = self._known, {}
            self._places = dict(end)
            self._see_all()
            rows = array("q", self._first_settings()) + self._rows
            self._rows, self._known = before, known
        names = list(self._names)
        if holding:
            names.append(holding)
            for device, place in end.items():
                rows.extend((device, _NUMBER["holding"], place, len(names) - 1, 0) if place > 0 else ())
        columns = [rows[column::_COLUMNS] for column in range(_COLUMNS)]
        devices = []
        for device in sorted(set(columns[0])):
            own = [[value for of, value in zip(columns[0], column) if of == device] for column in columns]
            devices.append({"device": device, "end": end[device],
                            **dict(zip(("kind", "place", "name", "address"), own[1:]))})
        return {"version": VERSION, "kinds": list(KINDS), "names": names, "devices": devices}
