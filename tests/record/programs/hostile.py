"""Trains small models whose classes break whatever a class can override, and prints what each of them came to:
hostile.py DEVICE [recording]. What it prints must be the same whether anything records it.
"""
import contextlib
import dataclasses
import signal
import sys
import time
import warnings

import torch
from torch import nn

device = sys.argv[1]
warnings.simplefilter("always")
warnings.simplefilter("ignore", ResourceWarning)  # of temporary folders
warnings.showwarning = lambda message, category, *more: print("warning", category.__name__, message)
kept = []  # to the end, where notes look at all that exists

# Without these there is no object, or no traceback of one.
ESSENTIAL = {"__new__", "__init__", "__class__", "__dict__", "__weakref__", "__module__", "__doc__", "__annotations__",
             "__getattribute__", "__init_subclass__", "__subclasshook__", "__slots__", "__static_attributes__",
             "__firstlineno__"}


class Broken(Exception):
    def __str__(self):
        raise ValueError("no text")


def raising(name, error):
    def method(*args, **kwargs):
        print("called", name)
        raise error
    return method


def overridable(cls):
    return sorted(name for name in dir(cls) if name not in ESSENTIAL)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.other = nn.Linear(3, 3), nn.Linear(3, 1)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        return self.other(self.inner(x))


def outcome(name, run):
    try:
        came = type(run()).__name__
    except BaseException as error:
        came = type.__dict__["__name__"].__get__(type(error))
    print(name, came, flush=True)


def train(model, optimizer=None, x=None):
    kept.append(model)
    if optimizer is None:
        optimizer = torch.optim.AdamW([p for each in (vars(model)["_modules"] or {}).values()
                                       for p in vars(each)["_parameters"].values()])
    kept.append(optimizer)
    for _ in range(2):
        y = model(torch.ones(2, 3, device=device) if x is None else x)
        if isinstance(y, torch.Tensor):
            y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return y


def on_device(model):
    for each in vars(model)["_modules"].values():
        each.to(device)
    return model


def modules():
    for error in (Broken(), SystemExit(3), KeyboardInterrupt()):
        for name in overridable(nn.Module):
            for kind in ("method", "property") if type(error) is Broken else ("method",):
                made = raising(name, error)
                cls = type("Hostile", (Base,), {})
                inner = type("HostileLinear", (nn.Linear,), {})

                def run(cls=cls, inner=inner, name=name, kind=kind, made=made):
                    model, layer = cls(), inner(3, 3)
                    vars(model)["_modules"]["inner"] = layer
                    on_device(model)
                    for each in (cls, inner):
                        setattr(each, name, property(made) if kind == "property" else made)
                    return train(model)

                outcome(f"module {type(error).__name__} {kind} {name}", run)


def optimizers():
    for name in [*overridable(torch.optim.SGD), "param_groups", "state"]:
        for kind in ("method", "property"):
            cls = type("Hostile", (torch.optim.SGD,), {})

            def run(cls=cls, name=name, kind=kind):
                model = Base().to(device)
                optimizer = cls(model.parameters(), lr=0.1, momentum=0.9)
                optimizer.step()
                made = raising(name, Broken())
                setattr(cls, name, property(made) if kind == "property" else made)
                return train(model, optimizer)

            outcome(f"optimizer {kind} {name}", run)


class HostileType(type):
    """A metaclass; what it breaks is broken once a class of it is there."""
    broken = False

    @property
    def __name__(cls):
        return raising("__name__", Broken())() if HostileType.broken else "Hostile"

    def __hash__(cls):
        return raising("hash of a class", Broken())() if HostileType.broken else type.__hash__(cls)

    def __eq__(cls, other):
        return raising("== of a class", Broken())() if HostileType.broken else cls is other

    def __getattr__(cls, name):
        if HostileType.broken and not name.startswith("__"):
            raise Broken
        raise AttributeError(name)

    def __instancecheck__(cls, value):
        return raising("isinstance() of a class", Broken())() if HostileType.broken else type.__instancecheck__(
            cls, value)


def methods_of(base, *but):
    return {name: raising(name, Broken()) for name in dir(base) if name not in {*ESSENTIAL, *but}}


Anything = type("Anything", (), {**methods_of(dict, "__setattr__", "__repr__"),
                                 "__class__": property(raising("__class__", Broken())), "__str__": lambda self: 3})


@dataclasses.dataclass
class Plain:
    first: object
    second: object = None


@dataclasses.dataclass
class Computed(Plain):
    __dict__ = property(raising("__dict__", Broken()))


class Slots:
    __slots__ = ("first", "second")
    __dataclass_fields__ = {"first": 1, "second": 2}

    def __init__(self, first):
        self.first = first


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise Broken


class NoGradient(nn.Parameter):
    grad = property(raising("grad", Broken()))
    data_ptr = is_cuda = raising("data_ptr", Broken())


class Echo(Base):
    """Returns what it gets, with a result."""

    def forward(self, x):
        super().forward(torch.ones(2, 3, device=device))
        return x


def values():
    tensor = torch.ones(2, 3, device=device)
    for base in (dict, list, tuple, str, int):
        cls = type("Hostile" + base.__name__, (base,), methods_of(base))
        outcome(f"value {base.__name__}", lambda cls=cls, base=base: train(Echo().to(device), x=cls(
            {"a": 1} if base is dict else "12" if base in (str, int) else [1])))
    nested = [tensor]
    nested.append(nested)
    with torch._C.DisableTorchFunction():
        refusing = tensor.as_subclass(Refusing)
    for name, value in (("anything", Anything()), ("plain", Plain(tensor)), ("slots", Slots(tensor)),
                        ("computed", Computed.__new__(Computed)), ("nested", nested), ("none", None),
                        ("refusing", refusing), ("in a list", [Anything(), refusing, {3: Anything()}]),
                        ("type", HostileType), ("meta", torch.ones(2, device="meta")),
                        ("sparse", tensor.to_sparse())):
        outcome(f"value {name}", lambda value=value: train(Echo().to(device), x=value))
        hooked = Base().to(device)
        hooked.inner.register_forward_hook(lambda module, args, output, value=value: value)
        outcome(f"hooked {name}", lambda hooked=hooked: train(hooked))
        hooked = Base().to(device)
        hooked.register_forward_hook(lambda module, args, output, value=value: value)
        outcome(f"output {name}", lambda hooked=hooked: train(hooked))


def parameters():
    for name in ("weight", "bias"):
        for cls in (Refusing, NoGradient):
            model = Base().to(device)
            with torch._C.DisableTorchFunction():
                made = vars(model.inner)["_parameters"][name].detach().as_subclass(cls)
            vars(model.inner)["_parameters"][name] = made
            outcome(f"parameter {cls.__name__} {name}",
                    lambda model=model: train(model, torch.optim.SGD(model.other.parameters(), lr=0.1)))
    for field in ("_parameters", "_buffers", "_modules"):
        for value in (None, [], Anything(), {3: Anything()}, {"x": 3}):
            model = Base().to(device)
            optimizer = torch.optim.SGD(list(model.parameters()), lr=0.1)
            vars(model)[field] = value
            outcome(f"{field} {type(value).__name__}", lambda model=model, optimizer=optimizer: train(model, optimizer))
    optimizer = torch.optim.SGD(Base().to(device).parameters(), lr=0.1)
    optimizer.state = {3: Anything(), torch.ones(1): {(1, 2): torch.ones(1), "a": Anything()}}
    outcome("state", lambda: train(Base().to(device), optimizer))
    model = Base().to(device)
    other = {name: each * 2 for name, each in model.named_parameters()}  # no leaves, so they have no gradients
    outcome("functional", lambda: kept.append(torch.func.functional_call(
        model, other, (torch.ones(2, 3, device=device),)).sum().backward()))


def classes():
    class Hostile(Base, metaclass=HostileType):
        pass

    @dataclasses.dataclass(eq=True)
    class Unhashable(Base):
        def __post_init__(self):
            super().__init__()

    class Optimizer(torch.optim.SGD):
        __hash__ = None

        def __eq__(self, other):
            raise Broken

    model, optimizer = Hostile(), Optimizer(Base().to(device).parameters(), lr=0.1)
    on_device(model)
    plain = torch.optim.SGD(list(model.inner.parameters()), lr=0.1)
    HostileType.broken = True
    outcome("metaclass", lambda: train(model, plain))
    outcome("unhashable optimizer", lambda: train(on_device(Unhashable()), optimizer))


def signals():
    def handler(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, handler)
    end = time.monotonic() + 60
    signal.setitimer(signal.ITIMER_REAL, 0.2)

    def run():
        model = Base().to(device)
        while time.monotonic() < end:
            model(torch.ones(2, 3, device=device))

    outcome("alarm", run)

    def collect():  # Python collects garbage while the signal waits for the end of list()
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        list(zip(range(2_000_000)))

    def free():
        modules = [Base() for _ in range(2_000)]
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        modules.clear()
        time.sleep(1)

    outcome("alarm in a collection", collect)
    outcome("alarm as modules are freed", free)


def main():
    for part in (modules, optimizers, values, parameters, signals, classes):
        part()


with contextlib.ExitStack() as stack:
    if "recording" in sys.argv:
        import memreplay
        stack.enter_context(memreplay.recording("recording.pickle"))
    main()
    if "recording" in sys.argv:
        warnings.simplefilter("error", UserWarning)  # also where the recording says what it lost
sys.argv[:] = [Anything(), 3]
sys.modules["hostile_module"] = type("Module", (), {"__getattr__": raising("__getattr__", Broken())})()
raise Broken
