"""The means by which a remedy changes a script, and its proposals."""
import functools
import sys
import weakref

from memreplay_record._lost import keep, name_of
from memreplay_record.remedies.edits import Unwritten, checked


def class_of(module):
    """Returns the class of a module as the script has it: FSDP2 makes a class of its own of it."""
    bases = type(module).__bases__
    return bases[1] if name_of(bases[0]) == "FSDPModule" and len(bases) > 1 else type(module)


def module_text(owner, path):
    """Returns what a script writes for a module: "model.stages[2].mlp"."""
    return owner + "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in path.split(".") if name)


class Proposal:
    """A change that may help.

    `cost_rank` orders proposals: below 1 it costs next to nothing, below 3 time, above that other results. Of several
    with the same `group`, one at a time is made. One that is `named_only` is tried only if it is named, and with no
    other.

    `edits` makes the change in the script's own files: a list of edits (edits.py), or a function that returns it or
    raises Unwritten. `arguments` makes it by words at the end of the command. Without both it is made from outside.
    With `transfers`, memory goes to the host and back in each step.
    """

    def __init__(self, name, change, cost, cost_rank, lines=(), preserves=True, preserves_text="", place="", group="",
                 named_only=False, edits=(), arguments=(), transfers=False):
        self.name, self.change, self.lines, self.place = name, change, lines, place
        self.arguments, self.edits, self.unwritten = list(arguments), [], ""
        try:
            self.edits = checked(edits() if callable(edits) else edits)
        except Unwritten as reason:
            self.unwritten = str(reason)
        except Exception as error:  # the script goes on, and so does what else may help it
            keep(f"how {name} is written", error)
            self.unwritten = "it could not be written"
        self.cost, self.cost_rank = cost, cost_rank
        self.preserves, self.preserves_text = preserves, preserves_text
        self.group = group or name.partition(":")[0]
        self.named_only, self.transfers = named_only, transfers

    def plain(self):
        return {**vars(self), "lines": list(self.lines)}


class Change:
    """Changes PyTorch's and the script's functions, and notes which remedies were met."""

    def __init__(self, torch, rates=None):
        self.torch = torch
        self.rates = rates  # of the simulated GPU, as roofline.py takes them
        self.name = ""  # of the remedy that is being applied
        self.met = []  # names of remedies that the script has run into
        self.work = None  # what roofline.py counts
        self._classes = {}  # name of a class of modules -> functions that change the class
        self._instances = {}  # name of a class of modules -> its modules, as weak references

    def meeting(self):
        """Returns a function that notes that the remedy being applied was met."""
        name = self.name

        def meet():
            if name not in self.met:
                self.met.append(name)
        return meet

    def module_class(self, name, change):
        """Calls change(cls) for each class `name` of modules, before the first of them is made."""
        self._watch_modules()
        self._classes.setdefault(name, []).append(change)

    def instances(self, name):
        """Returns a function that returns the modules of the class `name` that exist when it is called."""
        self._watch_modules()
        modules = self._instances.setdefault(name, [])
        return lambda: [module for module in (reference() for reference in modules) if module is not None]

    def _watch_modules(self):
        if self._classes or self._instances:
            return
        module, classes, seen = self.torch.nn.Module, self._classes, {}
        init = module.__init__

        @functools.wraps(init)
        def made(this, *args, **kwargs):
            cls = type(this)
            name = name_of(cls)
            if id(cls) not in seen:
                seen[id(cls)] = cls
                for change in classes.get(name, ()):
                    change(cls)
            if name in self._instances:
                self._instances[name].append(weakref.ref(this))
            init(this, *args, **kwargs)

        module.__init__ = made

    def around_forward(self, name, around):
        """Replaces forward() of the class `name` of modules by around(forward, module, args, kwargs)."""
        def change(cls):
            forward = cls.forward

            @functools.wraps(forward)
            def changed(this, *args, **kwargs):
                return around(forward, this, args, kwargs)

            cls.forward = changed
        self.module_class(name, change)

    def around_call(self, name, around):
        """Replaces each call of a module of the class `name`, or of DDP for one, by around(call, module, args, kwargs,
        frame); `frame` makes the call. Hooks of the module run within call().
        """
        replicated = self.torch.nn.parallel.DistributedDataParallel

        def change(cls):
            call = cls.__call__

            @functools.wraps(call)
            def changed(this, *args, **kwargs):
                if class_of(this.module if cls is replicated else this).__name__ != name:
                    return call(this, *args, **kwargs)
                return around(call, this, args, kwargs, sys._getframe(1))

            cls.__call__ = changed
        self.module_class(name, change)
        change(replicated)
