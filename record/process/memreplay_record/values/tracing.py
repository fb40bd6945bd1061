"""Removes the values' mode while PyTorch traces or compiles.

What a compiler sees, guards on, keeps or writes down is then the script as it is without memreplay, and its code runs
as compiled. Eager pieces between the graphs of one compiled function run without values too; what the function returns
is unknown, unless a known copy made it. Measurements of kernels have values: if torch.set_default_device() is on, the
times are a tensor of the GPU.

Under vmap() and similar functions the mode stays and passes every call on unchanged (mode.py): a compiler recognizes
the functions that begin them by identity, so they cannot be wrapped.
"""
import contextlib
import functools
import threading

from memreplay_record import on_import


class Absence:
    """Takes the mode off this thread's stack of modes, wherever it is in it, and puts it back."""

    def __init__(self, C, mode):
        self.C, self.mode = C, mode

    def begin(self):
        """Returns how many modes stood above it; None if it was not there, and then nothing changes."""
        C, taken = self.C, []
        while C._len_torch_function_stack() and (not taken or taken[-1] is not self.mode):
            taken.append(C._pop_torch_function_stack())
        found = bool(taken) and taken[-1] is self.mode
        for other in reversed(taken[:-1] if found else taken):
            C._push_on_torch_function_stack(other)
        return len(taken) - 1 if found else None

    def end(self, above):
        """Puts it back below `above` modes, which is what begin() returned."""
        if above is None:
            return
        C = self.C
        taken = [C._pop_torch_function_stack() for _ in range(min(above, C._len_torch_function_stack()))]
        for other in (self.mode, *reversed(taken)):
            C._push_on_torch_function_stack(other)

    def during(self, function):
        """Returns the same function, which runs without the mode."""
        @functools.wraps(function)
        def run(*args, **kwargs):
            above = self.begin()
            try:
                return function(*args, **kwargs)
            finally:
                self.end(above)
        return run

    def wrap(self, owner, *names):
        """Wraps those of the functions that `owner` has."""
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, self.during(getattr(owner, name)))


def stand_aside(torch, mode):
    """Arranges this for every function that traces or compiles."""
    absence = Absence(torch._C, mode)
    # For torch.jit.trace() and ONNX's exporter, whose graphs name the line of each operation.
    absence.wrap(torch._C, "_create_function_from_trace", "_create_graph_by_tracing")
    absence.wrap(torch._C.ScriptModule, "_create_method_from_trace")
    for module, arrange in (
            ("torch._dynamo.eval_frame", _contexts),
            # torch.export, and code compiled ahead of time, whose guards are checked at each call
            ("torch._dynamo.convert_frame", lambda made, absence: absence.wrap(made, "fullgraph_capture")),
            ("torch._dynamo.aot_compile", _ahead_of_time),
            ("torch.export._trace", lambda made, absence: absence.wrap(made, "_export", "_export_for_training")),
            # make_fx(), and everything else that traces a script with tensors without memory
            ("torch._subclasses.fake_tensor", lambda made, absence: _modes(absence, made.FakeTensorMode)),
            ("torch.fx.experimental.proxy_tensor", lambda made, absence: _modes(absence, made.ProxyTorchDispatchMode)),
            ("torch.fx._symbolic_trace", lambda made, absence: absence.wrap(made.Tracer, "trace")),
            ("torch.autograd.function", _compiled_backward),
            ("triton.testing", lambda made, absence: _measuring(torch._C, made, absence))):
        on_import.after(module, functools.partial(_call, arrange, absence))


def _call(arrange, absence, module):
    arrange(module, absence)


def _contexts(eval_frame, absence):
    """Removes the mode in whatever torch.compile() makes, by the hooks of the context that it enters.

    What torch.compile() returns stays as it is.
    """
    context = eval_frame._TorchDynamoContext
    init = context.__init__

    def enter():
        return functools.partial(absence.end, absence.begin())

    class Aside:
        def __enter__(self):
            self.above = absence.begin()

        def __exit__(self, *error):
            absence.end(self.above)

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if self.callback is None:
            return  # torch.compiler.disable()
        if hasattr(self, "enter_exit_hooks"):
            self.enter_exit_hooks.append(enter)
            return
        theirs = self.extra_ctx_ctor  # torch 2.1 to 2.3

        def both():
            stack = contextlib.ExitStack()
            stack.enter_context(Aside())
            stack.enter_context(theirs())
            return stack

        self.extra_ctx_ctor = both

    context.__init__ = __init__


def _ahead_of_time(aot_compile, absence):
    absence.wrap(aot_compile, "aot_compile_fullgraph", "aot_compile_module")
    for name in ("AOTCompiledFunction", "AOTCompiledModel"):
        if hasattr(aot_compile, name):
            absence.wrap(getattr(aot_compile, name), "__call__")


def _modes(absence, kind):
    """Removes the mode while a dispatch mode is on, which is there while something is traced."""
    enter, leave, local = kind.__enter__, kind.__exit__, threading.local()

    @functools.wraps(enter)
    def __enter__(self):
        if not hasattr(local, "taken"):
            local.taken = []
        local.taken.append(absence.begin())
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self, *error):
        try:
            return leave(self, *error)
        finally:
            absence.end(local.taken.pop())

    kind.__enter__, kind.__exit__ = __enter__, __exit__


def _compiled_backward(function, absence):
    """Removes the mode in the backward of a compiled graph, which is compiled when it is first called."""
    node = function.BackwardCFunction
    apply = node.apply
    without = absence.during(apply)

    @functools.wraps(apply)
    def run(self, *args):
        of = self._forward_cls
        if of.__name__ == "CompiledFunction" and of.__module__.startswith("torch._functorch"):
            return without(self, *args)
        return apply(self, *args)

    node.apply = run


def _measuring(C, testing, absence):
    def with_values(measure):
        @functools.wraps(measure)
        def run(*args, **kwargs):
            above = absence.begin()  # it may be on
            absence.end(above or 0)
            try:
                return measure(*args, **kwargs)
            finally:
                if above is None:
                    absence.begin()
        return run

    for name in ("do_bench", "do_bench_cudagraph"):
        if hasattr(testing, name):
            setattr(testing, name, with_values(getattr(testing, name)))
