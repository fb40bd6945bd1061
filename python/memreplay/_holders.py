"""Finds who holds memory of the GPU, by asking the live process: which variables, and by which path of references.

A look is one bounded pass over what the variables of running functions and of modules reach. It is made where memory
runs out, and at a few steps' ends of a script whose live memory grows from step to step, so others cost nothing. A look
allocates nothing on the GPU, runs no code of the script, collects no garbage and keeps nothing of the script alive.

`memreplay record` uses this file as it does _notes.py.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import json
import os
import sys
import threading
import time
import types
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Set, Tuple

from ._lost import fields_of, name_of, quietly
from ._request import reading

_MAX_OBJECTS = 400_000  # that a look visits
_MAX_SECONDS = 2.0  # that a look takes
_MAX_CYCLE = 3_000  # objects among which a cycle of one tensor is searched
_MAX_CYCLE_NAMES = 4
_MAX_ROWS = 3  # holders that are named
_MAX_LOSSES = 16  # of the last backward passes
_MAX_PATH = 60  # characters
_MAX_LEVELS = 10  # of what refers to garbage
_RISES = 3  # that are no accident
_FIELDS = ("_buffers", "_parameters", "_modules")  # of a module: what they have are attributes of it
_LOOKS = (4, 8, 32, 128, 1024)  # after as many steps
_STEPS = ("step", "backward", "call", "evaluation")  # the first of the first three that a script has are its steps
# What grows from call to call may be a text that is generated, unless memory runs out or training comes between.
_TRAINING = _STEPS[:2]
_WORTH_NAMING = 1 << 20  # bytes
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", os.path.dirname(os.__file__) + os.sep)
_NOTHING = "no variable of Python: C++, or a call that runs"
_GRAPH = "the autograd graph of "
CYCLE = "a cycle of references that Python has not collected yet: "
_CYCLE_IN_GRAPH = "a cycle through autograd's graph, which Python cannot collect: "
_EXCEPTION = "exception "
_CACHE = "lru_cache of "
# What ends it, by how a path begins; the first that fits. Where memory runs out only these, as a pass that runs has a
# graph and variables by right.
_REMEDIES_AT_ONCE = (
    (CYCLE, "break the cycle (in an autograd function, ctx.save_for_backward() makes none), or call gc.collect() after "
            "each step"),
    (_CYCLE_IN_GRAPH, "keep no output of a Function as an attribute of its ctx"),
    (_EXCEPTION, "keep str() of the exception instead, and try again after the except block"),
)
_REMEDIES = (
    *_REMEDIES_AT_ONCE,
    (_GRAPH, "keep .item() or .detach() of it, or compute it under torch.no_grad()"),
    ("`self.tensors` of EvalLoopContainer",
     "give Trainer preprocess_logits_for_metrics, or eval_accumulation_steps"),
    (_CACHE, "give it a maxsize that fits, or call its cache_clear()"),
    ("", "drop it, or move what it keeps to the host with .detach().cpu()"),
)
_OPTIMIZED = 1  # of co_flags: the variables of a function
# A function that uses one of these may keep the dict in which releases before 3.13 return a frame's variables.
_LOOKS_AT_ITSELF = {"locals", "vars", "dir", "eval", "exec", "f_locals"}
_NO_MEMORY = (RuntimeError, AttributeError, NotImplementedError, TypeError)  # what tensors without memory raise


def _variables(frame: Any) -> Dict[str, Any]:
    """Returns a function's variables; the frame keeps no copy of them."""
    code, found = frame.f_code, {}
    if not code.co_flags & _OPTIMIZED:
        return frame.f_globals if frame.f_locals is frame.f_globals else {}
    if sys.gettrace() is None and not _LOOKS_AT_ITSELF & set(code.co_names):
        kept = frame.f_locals
        found = dict(kept.items())
        if type(kept) is dict:
            kept.clear()
    return found


def _stack_of(frame: Any) -> Iterator[Any]:
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OWN):
            yield frame
        frame = frame.f_back


def _is_library(file: Any) -> bool:
    return type(file) is not str or file.startswith("<frozen") or any(folder in file for folder in _LIBRARIES)


def _place(code: Any, name: str) -> str:
    """Returns where a variable is set last, as "main() (train.py:12)"."""
    lines, line, found = dict(dis.findlinestarts(code)), 0, 0
    for each in dis.get_instructions(code):
        line = lines.get(each.offset) or line
        if each.opname.startswith("STORE_") and each.argval == name:
            found = line
    file = code.co_filename.rpartition(os.sep)[2] + (f":{found}" if found else "")
    return f"{code.co_name}() ({file})" if code.co_flags & _OPTIMIZED else file


def grows(live: List[int]) -> int:
    """Returns by how many bytes a step what is live grows, once steps have warmed up; 0: it does not."""
    late = live[max(2, len(live) // 4):]
    third = len(late) // 3
    if third < 2:
        return 0
    parts = [late[len(late) - third * k:len(late) - third * (k - 1)] for k in (3, 2, 1)]
    gap = min(min(parts[1]) - max(parts[0]), min(parts[2]) - max(parts[1]))  # 0: such as of growth once an epoch
    if gap < 0 or gap == 0 and sum(new > old for old, new in zip(late, late[1:])) < _RISES:
        return 0
    first, second = sum(parts[1]) - sum(parts[0]), sum(parts[2]) - sum(parts[1])
    return second // third ** 2 if 2 * second >= first and first + second >= third * _WORTH_NAMING else 0


class _Seen(NamedTuple):
    """An object that a look has reached."""

    value: Any
    parent: int  # the id of what refers to it; 0: a running function or a module
    name: str  # of the variable; "" if the parent is no frame
    where: Any  # the variable's code, or the name of its module


class _Look:
    """What Python's variables reach now. It holds on to objects of the script, and lives no longer than its caller."""

    def __init__(self, torch: Any) -> None:
        self._tensor, self._optimizer = torch.Tensor, torch.optim.Optimizer
        self._parameter, self._module = torch.nn.Parameter, torch.nn.Module
        self._seen: Dict[int, _Seen] = {}
        self._waiting: Deque[Any] = deque()
        self._paths: Dict[int, str] = {}  # by id
        self.largest: Any = None  # the tensor whose graph is
        self._next: Dict[int, Any] = {}  # by the id of a class: what reads next_functions; None: it is no node
        end = time.monotonic() + _MAX_SECONDS
        # The script's own names come first, and mostly explain all; of several, those that live longest. There are few
        # tuples at a time: Python keeps freed ones, and counts them until its next collection.
        wheres: List[List[Any]] = [[], [], []]
        variables: List[List[Dict[str, Any]]] = [[], [], []]
        objects = gc.get_objects()
        suspended = [each.gi_frame for each in objects if type(each) is types.GeneratorType and not each.gi_running]
        for frame in [frame for stack in map(_stack_of, [*sys._current_frames().values(), *suspended])
                      for frame in reversed(list(stack))]:
            rank = int(_is_library(frame.f_code.co_filename))
            wheres[rank].append(frame.f_code)
            variables[rank].append(_variables(frame))
        for name in list(sys.modules):
            module = sys.modules.get(name)
            if issubclass(type(module), types.ModuleType) and type(name) is str and not name.startswith("memreplay"):
                fields = fields_of(module)
                rank = 2 * _is_library(fields.get("__file__"))
                wheres[rank].append(name)
                variables[rank].append(fields)
        self._left = [each for each in objects
                      if issubclass(type(each), self._tensor) and self._memory(each)[0] > 0]
        del objects, suspended
        for rank in range(3):
            if rank > 0 and not self._may_lead_on():
                break
            for where, found in zip(wheres[rank], variables[rank]):
                for name in list(found):
                    self._add(dict.get(found, name), 0, name, where)
                while self._waiting and len(self._seen) < _MAX_OBJECTS and time.monotonic() < end:
                    self._spread(self._waiting.popleft())
            self._left[:] = [each for each in self._left if id(each) not in self._seen]

    def _spread(self, value: Any) -> None:
        if type(value) is types.FrameType:
            for name, child in dict.items(_variables(value)):
                self._add(child, id(value), name, value.f_code)
        for child in self._referents(value):
            self._add(child, id(value))

    def _may_lead_on(self) -> bool:
        """Returns whether something in Python that was not reached may lead to much of what is left."""
        largest = sorted(self._left, key=lambda each: self._memory(each)[1])[-3:]
        return any(self._memory(each)[1] >= _WORTH_NAMING and self._cycle(each) == _NOTHING and
                   any(type(found) is not types.FrameType and found is not self._left and found is not largest
                       for found in gc.get_referrers(each)) for each in largest)

    def _add(self, value: Any, parent: int, name: str = "", where: Any = None) -> None:
        if id(value) not in self._seen and gc.is_tracked(value) and not issubclass(type(value), types.ModuleType):
            self._seen[id(value)] = _Seen(value, parent, name, where)
            self._waiting.append(value)

    def _is_node(self, value: Any) -> bool:
        """Returns whether an object is a node of autograd's graph."""
        kind = type(value)
        if id(kind) not in self._next:
            fields = [type.__dict__["__dict__"].__get__(each) for each in type.__dict__["__mro__"].__get__(kind)]
            self._next[id(kind)] = next((each["next_functions"] for each in fields if "next_functions" in each), None)
        return self._next[id(kind)] is not None

    def _next_nodes(self, node: Any) -> List[Any]:
        return [each for each, _ in self._next[id(type(node))].__get__(node) or () if each is not None]

    def _nodes_of(self, roots: List[Any]) -> Dict[int, Any]:
        """Returns the nodes of the graphs of tensors, by id."""
        waiting = [node for node in map(self._tensor.grad_fn.__get__, roots) if node is not None]
        found: Dict[int, Any] = {}
        while waiting and len(found) < _MAX_OBJECTS:
            node = waiting.pop()
            if id(node) not in found and self._is_node(node):
                found[id(node)] = node
                waiting += self._next_nodes(node)
        return found

    def _referents(self, value: Any) -> List[Any]:
        """Returns what an object refers to, without what leads from everything to everything."""
        kind, of = type(value), self._tensor
        if kind is types.FrameType:
            return []
        if kind is types.FunctionType:
            return [value.__closure__, value.__defaults__, value.__kwdefaults__]
        found = gc.get_referents(value)
        if issubclass(kind, type):
            return [each for each in found if type(each) is dict]
        if issubclass(kind, of):
            with contextlib.suppress(RuntimeError):  # such as of a view that was changed
                found.append((of.grad if of.is_leaf.__get__(value) else of.grad_fn).__get__(value))
            return found
        if kind is not dict:
            found = [each for each in found if not issubclass(type(each), type)]
        return found + self._next_nodes(value) if self._is_node(value) else found

    def _memory(self, tensor: Any) -> Tuple[int, int]:
        """Returns the address and the size of a tensor's memory on a GPU; 0 and 0 if it has none."""
        of = self._tensor
        try:
            if type.__getattribute__(type(tensor), "__torch_dispatch__") is not of.__torch_dispatch__:
                return 0, 0  # it stands for other tensors, or for none
            if of.is_cuda.__get__(tensor):
                storage = of.untyped_storage(tensor)
                return storage.data_ptr(), storage.nbytes()
        except _NO_MEMORY:
            pass
        return 0, 0

    def holders(self, live: int, losses: List[Any]) -> Dict[str, List[int]]:
        """Returns how many tensors, bytes and nodes of graphs each path holds of `live` bytes.

        The graphs of `losses` hold nothing more.
        """
        freed = self._nodes_of(losses)
        tensors: Dict[str, Any] = {}  # by path: the first of those whose graphs it holds
        rows: Dict[str, List[int]] = {}
        known: Set[int] = set()
        first: Dict[int, int] = {}  # by the id of what a graph has: the id of the tensor whose graph it is

        def count(path: str, tensor: Any) -> None:
            address, size = self._memory(tensor)
            row = rows.setdefault(path, [0, 0, 0])
            if address not in known:
                known.add(address)
                row[0] += 1
                row[1] += size

        for at, seen in self._seen.items():
            if seen.parent in first:
                first[at] = first[seen.parent]
            if issubclass(type(seen.value), self._tensor):
                first.setdefault(at, at)
                if self._memory(seen.value)[0] > 0:
                    count(self._path(at, first), seen.value)
            elif at in first and at not in freed and self._is_node(seen.value):
                path = self._path(first[at], first)
                tensors.setdefault(path, self._seen[first[at]].value)
                rows.setdefault(path, [0, 0, 0])[2] += 1
        left = {id(each): each for each in self._left if self._memory(each)[0] not in known}
        names = {at: self._cycle(each) for at, each in left.items()}
        names.update(self._around({at: each for at, each in left.items() if names[at] == _NOTHING}))
        for at, each in left.items():
            count(names[at], each)
        largest = max(rows, key=lambda path: rows[path][2], default="")
        if largest and rows[largest][2] > 0 and _NOTHING in rows:  # what only C++ holds, of what Python has made
            rows[_GRAPH + largest] = [*rows.pop(_NOTHING)[:2], rows[largest][2]]
            self.largest = tensors.get(largest)
        rows[_NOTHING] = [0, live - sum(row[1] for row in rows.values()), 0]
        return rows

    def _path(self, at: int, first: Dict[int, int]) -> str:
        if at not in self._paths:
            self._paths[at] = self._path_of(at, first)
        return self._paths[at]

    def _path_of(self, at: int, first: Dict[int, int]) -> str:
        """Returns how a variable leads to an object."""
        inside, before, is_traceback = "", "", False
        seen = self._seen[at]
        what = "parameters" if issubclass(type(seen.value), self._parameter) else ""
        while seen.parent:
            parent = self._seen[seen.parent]
            kind = type(parent.value)
            if kind is types.FrameType:
                before, inside, is_traceback = f"{seen.where.co_name}()'s `{seen.name}{inside}`", "", True
            elif self._is_node(parent.value):
                before = f"attribute `{inside[1:]}` of the autograd context {name_of(kind)} in the graph of "
                return before + self._path(first[seen.parent], first)
            elif issubclass(kind, self._optimizer):
                what, inside = what or f"the state of an optimizer ({name_of(kind)})", ""
            elif kind is types.FunctionType:
                before, inside = "closure of ", ""
            elif kind is functools._lru_cache_wrapper:
                before, inside = _CACHE, ""
            elif issubclass(kind, self._parameter):
                what, inside = what or "gradients", ""
            elif what and issubclass(kind, self._module):
                inside = ""
            elif not is_traceback:
                inside = self._step(parent, seen.value) + inside
            seen = parent
        if what and "[" not in inside:
            return what
        what += " under " * bool(what)
        if len(inside) > _MAX_PATH:
            inside = "..." + inside[-_MAX_PATH:]
        kind = type(seen.value)
        where = f"module {seen.where}" if type(seen.where) is str else _place(seen.where, seen.name)
        variable = f"`{seen.name}{inside}`"
        if is_traceback:
            return f"{what}{_EXCEPTION}{variable} in {where}, whose frames hold {before}"
        if seen.name == "self":
            return f"{what}{before}{variable} of {name_of(kind)}"
        word = name_of(kind) + " " if inside.startswith("[") else ""
        return f"{what}{before}{word}{variable} in {where}"

    def _step(self, parent: _Seen, value: Any) -> str:
        """Returns how an object refers to another one: ".kept", "[]" or, if that says nothing, ""."""
        kind = type(parent.value)
        if issubclass(kind, dict):
            owner = self._seen.get(parent.parent)
            if owner is None or parent.name or issubclass(type(owner.value), (list, tuple, set, deque)):
                return "[]"
            if issubclass(type(owner.value), dict) and \
                    not any(dict.get(owner.value, field) is parent.value for field in _FIELDS):
                return "[]"
            fields = parent.value
        elif issubclass(kind, (list, tuple, set, deque)):
            owner = self._seen.get(parent.parent)
            return "" if owner is not None and type(owner.value) is types.FunctionType else "[]"
        else:
            try:
                fields = fields_of(parent.value)
            except AttributeError:
                return ""
        items = dict.items(fields) if issubclass(type(fields), dict) else fields.items()  # of a class, a mappingproxy
        names = [key for key, each in items if each is value and type(key) is str]
        return f".{names[0]}" if names and names[0] not in _FIELDS else ""

    def _cycle(self, tensor: Any) -> str:
        """Returns the cycle of references that a tensor to which no variable leads is in, or _NOTHING."""
        for words, referents in ((CYCLE, self._collectors), (_CYCLE_IN_GRAPH, self._referents)):
            parents: Dict[int, Any] = {}  # no tuples, see __init__()
            children: List[Any] = []  # so that no other object gets the id of one
            waiting = deque([tensor])
            while waiting and len(parents) < _MAX_CYCLE:
                value = waiting.popleft()
                for child in referents(value):
                    if child is tensor:
                        names: List[str] = []
                        while value is not tensor:
                            kind = type(value)
                            names += [f".{key}" for key, each in dict.items(value) if each is child] \
                                if kind is dict else [" -> " + name_of(kind)]
                            child, value = value, parents[id(value)]
                        return words + name_of(type(tensor)) + "".join(names[:-_MAX_CYCLE_NAMES - 1:-1])
                    if id(child) not in parents and id(child) not in self._seen and gc.is_tracked(child):
                        parents[id(child)] = value
                        children.append(child)
                        waiting.append(child)
        return _NOTHING

    def _around(self, left: Dict[int, Any]) -> Dict[int, str]:
        """Returns the cycle that holds a tensor without going through it, such as that of its module, by its id."""
        found: Dict[int, str] = {}
        level, known = list(left.values()), set(self._seen)
        for _ in range(_MAX_LEVELS):
            known |= {id(left), id(level), id(self._left), *map(id, level)}
            level = [each for each in gc.get_referrers(*level)
                     if id(each) not in known and type(each) is not types.FrameType] if len(found) < len(left) else []
            for each in level[:_MAX_CYCLE]:
                name = self._cycle(each) if type(each) is not dict else _NOTHING
                if name != _NOTHING:
                    waiting, reached = [each], {id(each)}
                    while waiting and len(reached) < _MAX_CYCLE:
                        new = [child for child in self._collectors(waiting.pop()) if id(child) not in reached]
                        waiting += new
                        reached.update(map(id, new))
                    found.update((at, name) for at in left if at in reached and at not in found)
        return found

    @staticmethod
    def _collectors(value: Any) -> List[Any]:
        """Returns what Python's collector sees an object refer to, without what leads to everything."""
        if type(value) is types.FunctionType:
            return [value.__closure__, value.__defaults__, value.__kwdefaults__]
        return [] if issubclass(type(value), (type, types.ModuleType)) else gc.get_referents(value)


class Holders:
    """What grows from step to step in this process, and who holds what is live."""

    def __init__(self, torch: Any, modules_of: Callable[[Any], Iterator[Tuple[str, Any]]]) -> None:
        """`modules_of` yields the paths and modules of a model without running its code."""
        self.torch, self._modules_of = torch, modules_of
        self._live: Dict[str, List[int]] = {}  # by kind of step: bytes at each one's end
        self._trained: Dict[str, int] = {}  # by kind of step: steps of training before the last one
        self._bursts: Dict[str, int] = {}  # by kind of step: how often one came after training
        # Looks are kept as JSON: objects that Python's collector counts would move its collections.
        self._before: Dict[str, str] = {}  # by kind of step: the look before the last one
        self._last: Dict[str, str] = {}
        self._held = ""  # when memory ran out
        self._request = "", ""  # what was refused then, and what to do instead
        self._losses: Deque[Any] = deque(maxlen=_MAX_LOSSES)  # weak references to those whose graphs backward has freed
        self._largest: Any = None  # a weak reference to the tensor whose graph was the largest when a step ended
        self._outlived = False  # whether such a tensor was there when the next step ended
        self._evaluated: Any = None  # a weak reference to the model that was called in eval mode, with gradients
        self._differentiated = False  # whether a backward pass came after that
        self._inactive: Dict[str, bool] = {}  # models that are trained in eval mode: whether they would checkpoint

    def _now(self) -> int:
        return sum(self.torch._C._cuda_memoryStats(device)["allocated_bytes"]["all"]["current"]
                   for device in range(self.torch.cuda.device_count()))

    @quietly("which graphs a backward pass frees")
    def backward_begins(self, losses: Any, _: Any = None, keeps_graph: Any = False, *more: Any) -> None:
        """Takes the arguments of autograd's engine."""
        self._differentiated = self._evaluated is not None
        if not keeps_graph:
            self._losses.extend(weakref.ref(loss) for loss in losses if issubclass(type(loss), self.torch.Tensor))

    def _is_step(self, kind: str) -> bool:
        """Returns whether nothing that a script has is more of a step; evaluation is a step in addition."""
        return not kind.startswith(_STEPS[1:3]) or \
            not any(each.startswith(_STEPS[:_STEPS.index(kind.split()[0])]) for each in self._live)

    @quietly("whether a model is trained in eval mode")
    def model_called(self, module: Any, is_graded: bool) -> None:
        """Notes the call of an outermost module, which ends the step before it."""
        name = name_of(type(module))
        self.step_ended(f"{'call' if is_graded else 'evaluation'} of {name}")
        if is_graded:
            self._evaluated = weakref.ref(module) if fields_of(module).get("training") is False else None

    @quietly("whether a model that is trained in eval mode would checkpoint")
    def optimizer_stepped(self, optimizer: Any) -> None:
        self.step_ended(f"step of {name_of(type(optimizer))}")
        module = self._evaluated() if self._evaluated is not None and self._differentiated else None
        self._evaluated, self._differentiated = None, False
        if module is not None and name_of(type(module)) not in self._inactive:
            self._inactive[name_of(type(module))] = any(fields_of(each).get("gradient_checkpointing") is True
                                                        for _, each in self._modules_of(module))

    @quietly("whether memory grows from step to step")
    def step_ended(self, kind: str) -> None:
        """Notes what is live at the end of a `kind` of step: its first word is one of _STEPS."""
        live = self._live.setdefault(kind, [])
        if not self._is_step(kind):
            return
        live.append(self._now())
        trained = sum(len(each) for name, each in self._live.items() if name.startswith(_TRAINING))
        if trained > self._trained.get(kind, 0):
            self._trained[kind] = trained
            self._bursts[kind] = self._bursts.get(kind, 0) + 1
        number = len(live)
        if self._largest is not None:
            self._outlived = self._outlived or self._largest() is not None
            self._largest = None
        if number in _LOOKS and live[-1] - min(live[number // 4:]) >= _WORTH_NAMING:
            if kind in self._last:
                self._before[kind] = self._last[kind]
            self._last[kind] = self._look()

    @quietly("who holds memory when it runs out")
    def ran_out(self, size: int) -> None:
        """Looks, and reads what the refused request of `size` bytes was for."""
        self._held = self._look()
        self._see_request(size)
        for kind in self._last:
            self._before.setdefault(kind, self._last[kind])
            self._last[kind] = self._held

    @quietly("what the request was for that was refused")
    def _see_request(self, size: int) -> None:
        own = threading.get_ident()
        stacks = [list(_stack_of(frame)) for _, frame in
                  sorted(sys._current_frames().items(), key=lambda each: each[0] != own)]
        with self._undisturbed():
            self._request = next(filter(any, (
                reading(self.torch, size, [(frame, _variables(frame)) for frame in stack])
                for stack in stacks)), ("", ""))

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Keeps Python from collecting because of the objects that are made: what it frees is the script's to free."""
        was_on = gc.isenabled()
        gc.disable()
        try:
            with self.torch._C.DisableTorchFunction():
                yield
        finally:
            if was_on:
                gc.enable()

    def _look(self) -> str:
        """Returns what _Look.holders() does, as JSON, with what is live under ""."""
        with self._undisturbed():
            live = self._now()
            losses = [each for each in (reference() for reference in self._losses) if each is not None]
            look = _Look(self.torch)
            rows = {**look.holders(live, losses), "": [0, live, 0]}
            self._largest = weakref.ref(look.largest) if look.largest is not None else None
            return json.dumps(rows)

    @quietly("who holds memory", otherwise={})
    def found(self) -> Dict[str, Any]:
        """Returns Holding of proto/explanation.proto."""
        growth, held = self._growth(), json.loads(self._held or "{}")
        grown = [row["path"] for row in growth["holders"]] if growth else []
        unnamed = ("", _NOTHING, *grown)
        inactive = [f"{name} is trained in eval mode, where "
                    f"{'its gradient checkpointing does' if checkpoints else 'dropout and most checkpointing do'} "
                    "nothing: call train() on it" for name, checkpoints in self._inactive.items()]
        return {"inactive": inactive, "request": self._request[0], "instead": self._request[1], "growth": growth,
                "kept": [] if growth else self._kept(),
                "held": _largest({path: row for path, row in held.items()
                                  if path not in unnamed and 20 * row[1] > held[""][1]}, _REMEDIES_AT_ONCE)}

    def noted(self) -> str:
        """Returns the same as JSON for a snapshot's notes; "" if there is nothing to say."""
        with self._undisturbed():
            found = self.found()
            text = json.dumps(found, ensure_ascii=False) if any(found.values()) else ""
            return text.encode("utf-8", "replace").decode("utf-8")

    @quietly("who holds memory", otherwise=())
    def sentences(self) -> List[str]:
        """Returns the same for people, with what to do."""
        found = self.found()
        growth = found["growth"]
        parts = [("held when memory ran out", found["held"]), ("kept beyond a step", found["kept"])]
        if growth:
            parts.insert(0, (f"grows {growth['bytes'] / 2**20:.1f} MiB with each {growth['step']}", growth["holders"]))
        texts = [words + ": " + "; ".join(
            f"{row['bytes'] / 2**20:.1f} MiB by {row['path']}" + (f" ({row['remedy']})" if row["remedy"] else "")
            for row in rows) for words, rows in parts if rows]
        if found["request"]:
            texts.append(f"the refused request is {found['request']}: {found['instead']}".rstrip(": "))
        texts += found["inactive"]
        return texts

    def _growth(self) -> Any:
        for kind, live in self._live.items():
            lasts = self._held or kind.startswith(_TRAINING) or self._bursts.get(kind, 0) >= _RISES
            size = grows(live) if self._is_step(kind) and lasts else 0
            holders = self._grown(kind) if size > 0 else []
            if size > 0 and not (holders and holders[0]["path"].startswith(CYCLE)):  # which Python collects in time
                return {"step": kind, "steps": len(live), "bytes": size, "holders": holders}
        return None

    def _grown(self, kind: str) -> List[Dict[str, Any]]:
        if kind not in self._before:
            return []
        before, now = json.loads(self._before[kind]), json.loads(self._last[kind])
        more = {path: [new - old for new, old in zip(row, before.get(path, (0, 0, 0)))] for path, row in now.items()}
        grown = max(more.pop("")[1], 1)
        rows = [path for path in more if 5 * more[path][1] > grown and
                (more[path][2] > 0 or not path.startswith((_GRAPH, _NOTHING)))] or [_NOTHING]
        return _rows(now, sorted(rows, key=lambda path: -more[path][1]))

    def _kept(self) -> List[Dict[str, Any]]:
        """Returns graphs and garbage that live beyond a step, as of the look that found most, if they are much."""
        texts = [*self._before.values(), *self._last.values(), *([self._held] if self._held else [])]
        looks: List[Dict[str, List[int]]] = list(map(json.loads, texts))
        kinds = (CYCLE, _GRAPH) if self._outlived else (CYCLE,)
        found = [{path: row for path, row in look.items() if path.startswith(kinds) and 4 * row[1] > look[""][1] and
                  row[1] >= _WORTH_NAMING} for look in looks]
        return _largest(max(found, key=lambda rows: sum(row[1] for row in rows.values()), default={}))


def _largest(rows: Dict[str, List[int]], remedies: Any = _REMEDIES) -> List[Dict[str, Any]]:
    return _rows(rows, sorted((path for path in rows if rows[path][1] >= _WORTH_NAMING),
                              key=lambda path: -rows[path][1]), remedies)


def _rows(rows: Dict[str, List[int]], paths: List[str], remedies: Any = _REMEDIES) -> List[Dict[str, Any]]:
    return [{"path": path, **dict(zip(("tensors", "bytes", "nodes"), rows[path])),
             "remedy": next((remedy for begin, remedy in remedies if path.startswith(begin)), "")}
            for path in paths[:_MAX_ROWS]]
