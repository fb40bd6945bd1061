"""Keeps PyTorch's compiler from being imported until something needs it, which takes longer than a short script.

Each optimizer, and each function of PyTorch that the compiler must not trace, imports torch._dynamo to call disable()
or graph_break(), although these do nothing until something is compiled. Here the module stands in sys.modules without
having run, and answers these two callers. Whatever else is read from it makes it run first.

On a GPU the disabled functions are called by one of torch._dynamo, whose frame is in the stacks. So the function that
calls them here has its name, file and line.
"""
import bisect
import dis
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types

_NAME = "torch._dynamo"
_RELEASES = ("2.6.",)  # whose stacks were compared with those of a script that imports the compiler first
_OF_ITSELF = {"__class__", "__file__", "__loader__", "__name__", "__package__", "__spec__"}  # read without running it


def begin(torch):
    """Defers the import of the compiler, in releases of PyTorch for which this was tested."""
    folder = os.path.dirname(torch.__file__)
    if _NAME in sys.modules or not torch.__version__.startswith(_RELEASES):
        return
    call = _disabled_call(os.path.join(folder, "_dynamo"))
    spec = importlib.util.find_spec(_NAME)
    if call is None or spec is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Deferred
    _Deferred.later = _Later(module, {
        (os.path.join(folder, "_compile.py"), "disable"): _disabling(call),
        (os.path.join(folder, "optim", "optimizer.py"), "graph_break"): lambda *args: None,
    })
    sys.modules[_NAME] = torch._dynamo = module


class _Later:
    """What is done when the compiler is imported after all."""

    def __init__(self, module, answers):
        self.module, self.answers = module, answers
        self.lock, self.thread = threading.Lock(), None  # the thread that imports it

    def run(self):
        """Runs the module as any import does; a thread that comes second waits until it has run."""
        with self.lock:
            is_first = self.thread is None
            if is_first:
                self.thread = threading.get_ident()
                sys.meta_path.insert(0, self)
                sys.modules.pop(_NAME, None)
        importlib.import_module(_NAME)

    def find_spec(self, name, path=None, target=None):
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.loader.create_module = lambda spec: self.module
        run = spec.loader.exec_module

        def exec_module(module):
            for function in _disabled:
                vars(function).pop("__dynamo_disable", None)
            _disabled.clear()
            run(module)
            module.__class__ = types.ModuleType

        spec.loader.exec_module = exec_module
        return spec


class _Deferred(types.ModuleType):
    """torch._dynamo before it has run."""
    later = None

    def __getattribute__(self, name):
        get = super().__getattribute__
        if name in _OF_ITSELF:
            return get(name)
        later = _Deferred.later
        if later.thread is None:
            answer = later.answers.get((sys._getframe(1).f_code.co_filename, name))
            if answer is not None:
                return answer
        if later.thread != threading.get_ident():
            later.run()
        return get(name)


_disabled = []  # functions that keep what disable() returned


def _disabling(call):
    def disable(function, recursive=True, **options):
        """Returns what calls the function until the compiler is there, which is then asked anew."""
        _disabled.append(function)
        return call(function) if recursive else function
    return disable


def _disabled_call(folder):
    """Returns what makes a function that calls another one, as a disabled one is called; None if that is unknown."""
    name = f"{_NAME}.eval_frame"
    spec = importlib.machinery.PathFinder.find_spec(name, [folder])
    code = spec.loader.get_code(name) if spec is not None else None
    own = _inside(_inside(_inside(code, "DisableContext"), "__call__"), "_fn") or \
        _inside(_inside(_inside(code, "_TorchDynamoContext"), "__call__"), "_fn")
    calls = [made.offset for made in dis.get_instructions(own) if made.opname == "CALL_FUNCTION_EX"] if own else []
    if not calls:
        return None
    starts = [start for start in dis.findlinestarts(own) if start[1] is not None]
    line = max(starts[bisect.bisect([offset for offset, _ in starts], at) - 1][1] for at in calls)
    made = {}
    text = "def call(function):\n def _fn(*args, **kwargs): return function(*args, **kwargs)\n return _fn\n"
    exec(compile("\n" * (line - 2) + text, own.co_filename, "exec"), made)
    return made["call"]


def _inside(code, name):
    """Returns the code of a class or function within another one; None if there is none."""
    return next((made for made in getattr(code, "co_consts", ()) if getattr(made, "co_name", "") == name), None)
