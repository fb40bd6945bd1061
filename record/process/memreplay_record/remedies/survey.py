"""What a script is made of, as far as remedies need it: models, repeated modules, optimizers and loss.

The notes (notes.py) see all of it anyway, so a survey changes no event.
"""
import ast
import functools
import itertools
import os
import sys
import weakref

from memreplay_record import frames, notes, on_import
from memreplay_record._holders import CYCLE
from memreplay_record._lost import fields_of, name_of, quietly
from memreplay_record._request import statement_at, tree_of
from memreplay_record.remedies import (
    chunked_loss,
    edits,
    fused_head,
    last_logits,
    micro_batches,
    reads,
    sdp_kernel,
)
from memreplay_record.remedies.change import class_of
from memreplay_record.remedies.edits import place

_MAX_CALLS = 8  # of the script, one inside the other, in which something is made or called
_NOTED = "noted"  # what runs in place of __init__() of Optimizer


def _is_own_class(cls):
    code = getattr(cls.forward, "__code__", None)
    return code is not None and frames.is_own(code.co_filename)


class Call:
    """A line of the script, and the call in it that runs if the frame's code and instruction are known."""

    def __init__(self, path, line, code=None, instruction=-1):
        self.path, self.line = path, line
        self._code, self._instruction = code, instruction

    @functools.cached_property
    def ends(self):
        """Where the call ends, as a tree has it: (line, column). None: unknown."""
        if self._code is None or not hasattr(self._code, "co_positions"):  # 3.11
            return None
        found = next(itertools.islice(self._code.co_positions(), self._instruction // 2, None), (None,) * 4)
        return (found[1], found[3]) if None not in found else None

    @property
    def place(self):
        return place(self.path, self.line) if self.path else ""

    @functools.cached_property
    def statement(self):
        """The simple statement around the line as a tree, or None."""
        return statement_at(tree_of(self.path), self.line)

    def with_call(self, name, change):
        """Returns the statement with the text change(call) in place of its one call of a function `name`, or ""."""
        found = [node for node in ast.walk(self.statement) if isinstance(node, ast.Call) and
                 ast.unparse(node.func).rpartition(".")[2] == name] if self.statement is not None else []
        after = change(found[0]) if len(found) == 1 else None
        return ast.unparse(self.statement).replace(ast.unparse(found[0]), after) if after else ""


def own_frame():
    """Returns the innermost frame of the script, or None."""
    frame = sys._getframe(1)
    while frame is not None and not frames.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _keywords_of(module):
    """Returns the keyword arguments of the running call of a module, which its global hooks do not get."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_call_impl" and frame.f_locals.get("self") is module:
            return frame.f_locals.get("kwargs") or {}
        frame = frame.f_back
    return {}


def call_of(frame):
    return Call(frame.f_code.co_filename, frame.f_lineno, frame.f_code, frame.f_lasti) if frame is not None \
        else Call("", 0)


def calls_of(frame):
    """Returns the Calls of the script around a frame, innermost first."""
    found = []
    while frame is not None and len(found) < _MAX_CALLS:
        if frames.is_own(frame.f_code.co_filename):
            found.append(call_of(frame))
        frame = frame.f_back
    return found


class Making:
    """Where an object is made: the Calls of the script, innermost first, and the file that calls its class."""

    def __init__(self, made):
        frame, inside = sys._getframe(1), False
        while frame is not None:
            code = frame.f_code
            is_its = code.co_argcount > 0 and frames.locals_of(frame).get(code.co_varnames[0]) is made
            if inside and not is_its:
                break
            inside = inside or is_its and code.co_name in ("__init__", _NOTED)
            frame = frame.f_back
        self.made = weakref.ref(made)
        self.path = frame.f_code.co_filename if frame is not None else ""
        self.calls = calls_of(frame)

    @property
    def call(self):
        return self.calls[0] if self.calls else Call("", 0)

    def source(self):
        """Returns the Source of the file whose line makes it. Raises Unwritten if that is a library's."""
        if self.path and not frames.is_own(self.path):
            raise edits.Unwritten(f"it is made in a library, {os.path.basename(self.path)}")
        return edits.source_of(self.path)

    def binding(self, what):
        return edits.binding_of(self.calls, what)


def _name_of(value, frame):
    """Returns the script's name for `value`."""
    while frame is not None and frames.is_own(frame.f_code.co_filename):
        variables = frames.locals_of(frame)
        for name, found in [*variables.items(), *frame.f_globals.items()]:
            if found is value and name.isidentifier():
                return name
        owner = variables.get("self")
        for name, found in [*getattr(owner, "__dict__", {}).items(), *getattr(owner, "_modules", {}).items()]:
            if found is value:
                return f"self.{name}"
        frame = frame.f_back
    return "model"


class Repeated:
    """A class of modules of which a model has several, one after the other, or one that is large."""

    def __init__(self, cls, modules, path, share):
        self.cls, self.number = cls, len(modules)
        self.path = path  # of the ModuleList or Sequential that has all of them; "": there is none
        self.share = share  # of the model's parameters
        inside = [each for module in modules for _, each in notes.modules_of(module)]
        self.classes = {name_of(type(each)) for each in inside}
        self.tracks = any(fields_of(each).get("track_running_stats", False) for each in inside)

    @property
    def name(self):
        return name_of(self.cls)

    def place(self, model):
        """Returns the line of forward(), or that of the script which calls the model if that is a library's."""
        code = getattr(self.cls.forward, "__code__", None)
        return place(code.co_filename, code.co_firstlineno) if _is_own_class(self.cls) else model.call.place


class Model:
    """A class of modules that the script itself calls, or DDP for it."""

    def __init__(self, torch, called, frame, making):
        module = _replicated(torch, called)
        self.made = making  # the Making of it, or None
        self.cls, self.call, self.variable = class_of(module), call_of(frame), _name_of(called, frame)
        self.ddp, self.ddp_made = called if called is not module else None, None
        self.is_sharded = class_of(module) is not type(module)
        self.in_job = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.trained = self.evaluated = False  # called with gradients and without
        self.passes = set()  # (id of the module, whether it was trained)
        self.training_lines = set()  # (file, line) of the script around a call in training
        # (file, line) of a call in evaluation that keeps activations for a backward -> the Calls around it
        self.needless_gradients = {}
        self.unread = {}  # (file, line) of a call -> (the Call, the line that drops what nothing reads of its output)
        self.last_logits = None  # (the Call, an argument of it that is 1): the model makes no logits that nothing reads
        self.differentiated_in_evaluation = False
        self.autocast = False
        self.fills_cache = False  # whether its forward() fills a cache of keys and values of Transformers in training
        parameters = notes.parameters_of(module)
        modules = [each for _, each in notes.modules_of(module)]
        self.parameter_bytes = sum(p.numel() * p.element_size() for p in parameters)
        self.trained_bytes = sum(p.numel() * p.element_size() for p in parameters if p.requires_grad)
        self.dtypes = {str(p.dtype).removeprefix("torch.") for p in parameters}  # and that of autocast
        self.checkpointing = Checkpointing.of(module)  # None: it has none of its own
        self.repeated = _repeated(torch, module)
        self.large = _large(torch, module, {each.cls for each in self.repeated})
        # The class of a model of Transformers that could use scaled_dot_product_attention() and does not.
        self.attends_by_hand = next(
            (name_of(type(m)) for m in modules if getattr(type(m), "_supports_sdpa", False) and
             getattr(getattr(m, "config", None), "_attn_implementation", "") == "eager"), "")
        self.batch = 0  # the first dimension of all tensors that it was trained with
        self.returns_loss = False
        self.takes_floats = False
        self.head = None  # (path, the Call of cross_entropy(), whether it has a bias, ignore_index) of its last layer
        self.module = weakref.ref(module)
        self.is_own = _is_own_class(self.cls)
        self.own_classes = [cls for cls in {id(type(m)): type(m) for m in modules}.values() if _is_own_class(cls)]
        # Whether the result for a sample depends on the others.
        self.moves = set()  # names of classes whose forward() changes buffers, except running statistics
        self.draws = False  # whether its forward() draws random numbers
        self.mixes_samples = any(issubclass(type(m), torch.nn.modules.batchnorm._BatchNorm) for m in modules)
        # Whether it has layers that compute in another way where there are no gradients.
        self.has_fast_path = any(issubclass(type(m), (torch.nn.TransformerEncoderLayer, torch.nn.MultiheadAttention))
                                 for m in modules)

    @property
    def name(self):
        return name_of(self.cls)

    @property
    def is_evaluated_itself(self):
        """Whether what was trained was also evaluated, and not just another of its class: a reference model of DPO."""
        return any((module, not is_trained) in self.passes for module, is_trained in self.passes)

    @property
    def is_trained(self):
        return self.trained or self.differentiated_in_evaluation

    def binding(self):
        """Returns the Binding of the model. Raises edits.Unwritten if no statement of the script makes it."""
        if self.made is None:
            raise edits.Unwritten(f"no line of the script is known that makes {self.name}")
        return self.made.binding(self.name)

    def see_autocast(self, torch):
        if torch.is_autocast_enabled():
            self.autocast = True
            self.dtypes.add(str(torch.get_autocast_gpu_dtype()).removeprefix("torch."))


class Checkpointing:
    """The checkpointing that a model of Transformers or Diffusers has, by the method that turns it on."""

    def __init__(self, module, path, method):
        self.cls, self.path, self.method = type(module), path, method
        self.is_on = bool(getattr(module, "is_gradient_checkpointing", False))

    @classmethod
    def of(cls, model):
        """Returns that of the outermost module in a model that has one, or None."""
        for path, module in notes.modules_of(model):
            for method, supports in (("gradient_checkpointing_enable", "supports_gradient_checkpointing"),
                                     ("enable_gradient_checkpointing", "_supports_gradient_checkpointing")):
                if callable(getattr(type(module), method, None)) and \
                        fields_of(module).get(supports, getattr(type(module), supports, False)):
                    return cls(module, "" if type(model).__module__.startswith("peft.") else path, method)
        return None


def _replicated(torch, module):
    """Returns the model that DDP calls, or the module itself."""
    return module.module if issubclass(type(module), torch.nn.parallel.DistributedDataParallel) else module


def _repeated(torch, model):
    """Returns the outermost repeated classes, largest share first."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)
    places, found, sizes, inside = {}, {}, {}, set()
    for path, module in notes.modules_of(model):
        if any(path.startswith(outer) for outer in inside):
            continue
        if not issubclass(type(module), lists):
            continue
        for name, child in notes.entries(module, "_modules"):
            parameters = notes.parameters_of(child)
            if issubclass(type(child), lists) or not notes.entries(child, "_modules") or not parameters:
                continue
            cls = class_of(child)
            is_all = not issubclass(type(module), torch.nn.ModuleDict) and \
                len({class_of(each) for _, each in notes.entries(module, "_modules")}) == 1
            places.setdefault(cls, []).append(path if is_all else "")
            found.setdefault(cls, []).append(child)
            sizes[cls] = sizes.get(cls, 0) + sum(p.numel() for p in parameters)
            inside.add(f"{path}.{name}." if path else f"{name}.")
    total = max(sum(p.numel() for p in notes.parameters_of(model)), 1)
    repeated = [Repeated(cls, found[cls], paths[0] if len(set(paths)) == 1 else "", sizes[cls] / total)
                for cls, paths in places.items() if len(paths) > 1]
    return sorted(repeated, key=lambda each: -each.share)


def _large(torch, model, repeated):
    """Returns classes of which the model has one module, with several layers and outside the repeated ones, largest
    share first."""
    total = max(sum(p.numel() for p in notes.parameters_of(model)), 1)
    of_class = {}
    for _, module in notes.modules_of(model):
        of_class.setdefault(class_of(module), []).append(module)
    found = []
    for cls, modules in of_class.items():
        inside = [each for _, each in notes.modules_of(modules[0])]
        layers = sum(bool(notes.entries(each, "_parameters")) for each in inside)
        if len(modules) == 1 and modules[0] is not model and layers > 1 and not cls.__module__.startswith("torch.nn.") \
                and not repeated & {class_of(each) for each in inside}:
            share = sum(p.numel() for p in notes.parameters_of(modules[0])) / total
            found.append(Repeated(cls, modules, "", share))
    return sorted(found, key=lambda each: -each.share)


class Optimizer:
    def __init__(self, optimizer, made):
        self.cls, self.made = type(optimizer), made
        self.call = made.call if made is not None else Call("", 0)
        self.stepped = call_of(own_frame())
        groups = fields_of(optimizer).get("param_groups")
        group = groups[0] if groups else {}
        self.foreach, self.fused = group.get("foreach"), group.get("fused")
        self.is_pytorch = type(optimizer).__module__.startswith("torch.optim")
        self.arguments = set(group)

    @property
    def name(self):
        return name_of(self.cls)


class _State:
    """What a forward pass of a model may change apart from its outputs: buffers and the GPU's random numbers."""

    def __init__(self, torch, model):
        self._owners = [each for _, each in notes.modules_of(model)]
        self._buffers = [self._of(each) for each in self._owners]
        self._random = torch.cuda.get_rng_state()

    @staticmethod
    def _of(module):
        return [(name, id(each), each._version) for name, each in notes.entries(module, "_buffers")]

    def moved(self):
        """Returns the names of the classes whose buffers have changed, except running statistics."""
        return {name_of(type(each)) for each, before in zip(self._owners, self._buffers)
                if not fields_of(each).get("track_running_stats", False) and self._of(each) != before}

    def has_drawn(self, torch):
        return not torch.equal(torch.cuda.get_rng_state(), self._random)


class Seen:
    """What propose() of the remedies reads."""

    def __init__(self, torch):
        self.torch = torch
        self.models = {}  # class -> Model
        self.classes = set()  # names of those of modules and optimizers, which changes may name
        self.optimizers = {}  # class -> Optimizer
        self.generation = None  # the Call of generate() of Transformers, without a cache of the script
        self.leaves_garbage = False  # cycles of references kept tensors beyond a step
        self.compiled = False  # torch.compile(): modules were not looked at
        self.backward = False  # there was a backward pass
        self.forbids_kernels = None  # the Call that keeps scaled_dot_product_attention() from kernels without scores
        self.keeps_gradients = None  # the Call of zero_grad(set_to_none=False)
        self.mode_changes = {}  # (file, line) -> the Call that changes a module between training and evaluation
        self.plain_loss = None  # the Call that computes the mean or sum of a loss over rows of logits
        self.cross_entropy = None  # the Call that computes a loss of logits on the GPU
        self.loss_is_in_library = False  # which the Call calls, and which calls cross_entropy()
        self.lines = set()  # (file, line) of the script that allocated, itself or what it called
        # Gradients are clipped, scaled, or added over several backward passes before a step.
        self.needs_all_gradients = False

    def trained(self):
        return [model for model in self.models.values() if model.is_trained and self.backward]

    def read(self, snapshot):
        """Reads the stacks of a snapshot."""
        done = set()
        for trace in snapshot["device_traces"]:
            for event in trace:
                stack = event.get("frames", ())
                if event["action"] != "alloc" or id(stack) in done:
                    continue
                done.add(id(stack))
                self.lines.update((frame["filename"], frame["line"]) for frame in stack
                                  if frames.is_own(frame["filename"]))
                if self.cross_entropy is not None:
                    continue
                at = next((i for i, frame in enumerate(stack) if frame["name"] == "cross_entropy" and
                           frame["filename"].endswith(os.path.join("nn", "functional.py"))), None)
                if at is not None:
                    own = next((frame for frame in stack[at:] if frames.is_own(frame["filename"])), None)
                    self.cross_entropy = Call(own["filename"], own["line"]) if own else Call("", 0)
                    caller = next((frame for frame in stack[at:] if f"{os.sep}torch{os.sep}" not in frame["filename"]),
                                  None)
                    self.loss_is_in_library = caller is not None and not frames.is_own(caller["filename"])


class SurveyingNotes(notes.Notes):
    """Notes that also look at the models and the optimizers."""

    def __init__(self, torch, watch, count):
        self.seen = Seen(torch)
        self._made = {}  # id of a module or an optimizer -> its Making
        self._before = None  # the _State before the call of a model that is trained
        self._waiting = None  # a Model that ran in evaluation with gradients, while no backward followed
        super().__init__(torch, watch, count)
        on_import.after("transformers.generation.utils", self._see_generation)
        optimizer = torch.optim.Optimizer
        optimizer.zero_grad = self._noting_zero_grad(optimizer.zero_grad)
        optimizer.__init__ = self._noting_made(optimizer.__init__)
        self._backwards = 0  # since the last step
        hooks = torch.nn.modules.module
        hooks.register_module_parameter_registration_hook(self._see_making)
        hooks.register_module_module_registration_hook(self._see_making)
        torch.nn.Module.train = self._noting_mode(torch.nn.Module.train)
        sdp_kernel.around(torch, self._noting_forbidden)
        torch.nn.functional.cross_entropy = self._noting_head(torch.nn.functional.cross_entropy)
        self._scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
        for owner, name in ((torch.nn.utils, "clip_grad_norm_"), (torch.nn.utils, "clip_grad_value_"),
                            (self._scaler, "unscale_"), (self._scaler, "step")):
            setattr(owner, name, self._noting_all_gradients(getattr(owner, name)))

    def _see_generation(self, module):
        generate = module.GenerationMixin.generate

        @functools.wraps(generate)
        def noted(model, *args, **kwargs):
            note(kwargs)
            return generate(model, *args, **kwargs)

        @quietly("what generate() is called with")
        def note(kwargs):
            if self.seen.generation is None and kwargs.get("use_cache", True) and \
                    not {"past_key_values", "cache_implementation"} & kwargs.keys():
                self.seen.generation = call_of(own_frame())

        module.GenerationMixin.generate = noted

    def _noting_zero_grad(self, zero_grad):
        @functools.wraps(zero_grad)
        def noted(optimizer, set_to_none=True):
            if not set_to_none and self.seen.keeps_gradients is None:
                self.seen.keeps_gradients = call_of(own_frame())
            return zero_grad(optimizer, set_to_none)
        return noted

    def _noting_mode(self, train):
        inside = []  # modules

        @functools.wraps(train)
        def noted(module, mode=True):
            if not inside:
                note(module, mode)
            inside.append(module)
            try:
                return train(module, mode)
            finally:
                inside.pop()

        @quietly("where a module changes between training and evaluation")
        def note(module, mode):
            frame = own_frame()
            if frame is not None and module.training != mode and self.torch.cuda.is_initialized():
                call = call_of(frame)
                self.seen.mode_changes[call.path, call.line] = call
        return noted

    def _noting_head(self, cross_entropy):
        @functools.wraps(cross_entropy)
        def noted(input, target, *args, **kwargs):
            note(input, target, args, kwargs)
            return cross_entropy(input, target, *args, **kwargs)

        @quietly("what the logits of a loss come from")
        def note(input, target, args, kwargs):
            with self.torch._C.DisableTorchFunction():
                model = self.seen.models.get(class_of(_replicated(self.torch, self._open[0].module))) \
                    if self._open else None
                if model is not None:
                    model.see_autocast(self.torch)  # inside its forward()
                if not args and self.seen.plain_loss is None and issubclass(type(input), self.torch.Tensor) and \
                        chunked_loss.is_plain_or_sum(input, target, **kwargs):
                    self.seen.plain_loss = call_of(own_frame())
                if not args and issubclass(type(input), self.torch.Tensor) and \
                        fused_head.is_plain(input, target, **kwargs):
                    self._see_head(input, kwargs.get("ignore_index", -100))
        return noted

    def _see_head(self, logits, ignore_index):
        weight = fused_head.weight_of(logits)
        for model in self.seen.models.values():
            module = model.module()
            if weight is None or module is None or model.head is not None:
                continue
            for path, each in notes.modules_of(module):
                if type(each) is self.torch.nn.Linear and each.weight is weight:
                    model.head = path, call_of(own_frame()), each.bias is not None, ignore_index

    def _noting_forbidden(self, function, forbids):
        @functools.wraps(function)
        def noted(*args, **kwargs):
            result = function(*args, **kwargs)
            if forbids(*args, **kwargs) and self.seen.forbids_kernels is None and \
                    sdp_kernel.all_are_off(self.torch, function):
                self.seen.forbids_kernels = call_of(own_frame())
            return result
        return noted

    def _noting_all_gradients(self, function):
        @functools.wraps(function)
        def noted(*args, **kwargs):
            note(args)
            return function(*args, **kwargs)

        @quietly("whether gradients are scaled", otherwise=True)
        def note(args):
            is_off = bool(args) and issubclass(type(args[0]), self._scaler) and not self._scaler.is_enabled(args[0])
            self.seen.needs_all_gradients = self.seen.needs_all_gradients or not is_off
        return noted

    def _noting_made(self, init):
        @functools.wraps(init)
        def noted(optimizer, *args, **kwargs):
            note(optimizer)
            return init(optimizer, *args, **kwargs)

        @quietly("where an optimizer is made")
        def note(optimizer):
            self._made[id(optimizer)] = Making(optimizer)
            self.seen.classes.update(map(name_of, type.mro(type(optimizer))))
        return noted

    @quietly("where a module is made")
    def _see_making(self, module, name, member):
        known = self._made.get(id(module))
        if known is None or known.made() is not module:
            self._made[id(module)] = Making(module)

    def _before_module(self, module, args):
        self._see_class(module)
        if not self._open and self._backward == 0 and self._ready():
            self._see_call(module, args)
        super()._before_module(module, args)

    def _after_module(self, module, args, output):
        self._see_result(module, args, output)
        super()._after_module(module, args, output)

    @quietly("the class of a module")
    def _see_class(self, module):
        self.seen.classes.add(name_of(class_of(module)))
        model = self.seen.models.get(class_of(_replicated(self.torch, self._open[0].module))) if self._open else None
        if model is not None and not model.autocast:
            model.see_autocast(self.torch)  # inside its forward(), where accelerate turns it on

    @quietly("what a model returns to the script")
    def _see_result(self, module, args, output):
        model = self.seen.models.get(class_of(_replicated(self.torch, module)))
        if model is not None and self._open and self._open[0].module is module:
            torch = self.torch
            if model.trained and model.batch == 0:
                with torch._C.DisableTorchFunction():
                    if self._before is not None:
                        model.moves, model.draws = self._before.moved(), self._before.has_drawn(torch)
                    model.batch = micro_batches.batch_of(torch, args, _keywords_of(module))
                    model.returns_loss = micro_batches.find_loss(torch, output) is not None
                    cache = dict.get(output, "past_key_values") if issubclass(type(output), dict) else None
                    model.fills_cache = cache is not None and not issubclass(type(cache), tuple)
            self._see_output(model, module, args, output)

    def _see_output(self, model, module, args, output):
        frame = reads.caller(module)
        call = call_of(frame)
        if (call.path, call.line) in model.unread:
            return
        found = reads.output_of(module, frame) if frame is not None else None
        if found is None:
            return
        with self.torch._C.DisableTorchFunction():
            parts = found.unread(self.torch, output)
            if parts:
                model.unread[call.path, call.line] = call, found.drop(parts, output)
            argument = last_logits.argument_of(module, args, _keywords_of(module))
            if argument and model.last_logits is None and found.reads_last_logits and \
                    last_logits.makes_others(self.torch, output):
                model.last_logits = call, argument

    @quietly("what a model that the script calls is made of")
    def _see_call(self, module, args):
        torch = self.torch
        with torch._C.DisableTorchFunction():
            cls, frame = class_of(_replicated(torch, module)), own_frame()
            model = self.seen.models.get(cls)
            if model is None:
                making = self._made.get(id(_replicated(torch, module)))
                model = self.seen.models[cls] = Model(torch, module, frame, making)
                model.ddp_made = self._made.get(id(module)) if model.ddp is not None else None
                self.seen.classes.update(name_of(class_of(each)) for _, each in notes.modules_of(module))
            graded = torch.is_grad_enabled() and \
                any(p.requires_grad for p in notes.parameters_of(module))
            model.see_autocast(torch)
            model.passes.add((id(_replicated(torch, module)), module.training and graded))
            if module.training and graded:
                if not model.trained:  # the line to change is that of the training
                    model.call, model.variable = call_of(frame), _name_of(module, frame)
                model.trained = True
                model.training_lines.update((call.path, call.line) for call in calls_of(frame))
                self._before = _State(torch, _replicated(torch, module)) if model.batch == 0 else None
                model.takes_floats = model.takes_floats or any(
                    torch.is_tensor(value) and value.is_floating_point() for value in args)
            else:
                model.evaluated = True
            self._waiting = None
            if graded and not module.training:
                if frame is not None:
                    model.needless_gradients.setdefault((frame.f_code.co_filename, frame.f_lineno), calls_of(frame))
                self._waiting = model

    def _begin_backward(self, args):
        self.seen.backward = True
        self._backwards += self._backward == 0
        if self._backwards > 1:
            self.seen.needs_all_gradients = True
        if self._waiting is not None:  # the last call
            self._waiting.differentiated_in_evaluation = True
        super()._begin_backward(args)

    def _see_optimizer(self, optimizer):
        self._see_class_of(optimizer)
        self._backwards = 0
        super()._see_optimizer(optimizer)

    @quietly("how an optimizer was made")
    def _see_class_of(self, optimizer):
        if type(optimizer) not in self.seen.optimizers:
            self.seen.optimizers[type(optimizer)] = Optimizer(optimizer, self._made.get(id(optimizer)))

    def taken(self):
        self.seen.compiled = bool(self._is_compiled)
        self.seen.leaves_garbage = any(row["path"].startswith(CYCLE) for row in self.holders.found().get("kept", ()))
        return super().taken()
