"""Keyword arguments of frameworks' constructors, in the calls that stand in the script's own files.

A value that is an expression of the script stays one: batch_size=args.batch_size becomes args.batch_size // 2.
"""
import ast
import functools
import inspect

from memreplay_record import frames, on_import
from memreplay_record._lost import name_of, quietly
from memreplay_record.remedies import bf16, edits, hf_checkpoint, option
from memreplay_record.remedies.change import Proposal

NAME = "constructor"  # constructor:CLASS:KEYWORD, or constructor:CLASS:KEYWORD:VALUE

# Of each class, the method that runs when an object has its arguments; that of a dataclass runs for its subclasses too.
_WATCHED = (("transformers.training_args", "TrainingArguments", "__post_init__"),
            ("accelerate.accelerator", "Accelerator", "__init__"),
            ("lightning.pytorch.trainer.trainer", "Trainer", "__init__"),
            ("pytorch_lightning.trainer.trainer", "Trainer", "__init__"),
            ("torch.utils.data.dataloader", "DataLoader", "__init__"))

_TIME_OF_HEAD = {"cost": "nothing; it is faster", "cost_rank": 0.46, "group": "chunked_loss",
                 "preserves_text": "the same up to rounding"}
# The class, its keyword and the value, the library that is needed, and what is said.
_SWITCHES = (
    ("TrainingArguments", "use_liger_kernel", "True", "liger_kernel", _TIME_OF_HEAD),
    ("TrainingArguments", "prediction_loss_only", "True", "",
     {"cost": "nothing", "cost_rank": 3.8, "preserves": False,
      "preserves_text": "the same training; an evaluation gives its loss and no metrics", "of_evaluation": True}))

_made = []


class Made:
    """A call of the script that made an object of a framework, with the values that the object has."""

    def __init__(self, this, frame):
        from memreplay_record.remedies import survey
        self.cls, self.call = type(this), survey.call_of(frame)
        self.path, self.line = self.call.path, self.call.line
        self.names = {name for name, value in [*frame.f_globals.items(), *frames.locals_of(frame).items()]
                      if value is self.cls} | {name_of(self.cls)}
        self.parameters = list(inspect.signature(self.cls).parameters)
        self.values = {}  # of its parameters
        self.shuffles = False

    def see(self, this):
        for name in self.parameters:
            value = getattr(this, name, None)
            if value is None or isinstance(value, (bool, int, float, str)):
                self.values[name] = getattr(value, "value", value)  # of an Enum
        self.shuffles = name_of(type(getattr(this, "sampler", None))) in ("RandomSampler", "DistributedSampler")

    def is_a(self, name):
        return name in map(name_of, self.cls.__mro__)

    def _find(self):
        """Returns (Source, call) of it."""
        source = edits.source_of(self.path)
        call = source.call(self.call)
        if ast.unparse(call.func).rpartition(".")[2] not in self.names:
            raise edits.Unwritten(f"a library makes {name_of(self.cls)}")
        return source, call

    def change(self, name, value):
        """Returns the edits that give it a keyword, and the text of that.

        `value` is a text, for a keyword that is off, or ("//", number) or ("*", number), by which its number is
        divided or multiplied. Raises Unwritten.
        """
        source, call = self._find()
        if any(isinstance(each, ast.Starred) for each in call.args):
            raise edits.Unwritten("its arguments are given by *")
        if name not in self.parameters:
            raise edits.Unwritten(f"{name_of(self.cls)} takes no {name}")
        position = self.parameters.index(name)
        node = call.args[position] if position < len(call.args) else \
            next((each.value for each in call.keywords if each.arg == name), None)
        is_constant = node is None or isinstance(node, ast.Constant)
        if isinstance(value, tuple):
            operator, number = value
            now = self.values[name] or 1
            value = str(now // number if operator == "//" else now * number) if is_constant else \
                f"{self._factor(source, node)} {operator} {number}"
        elif not is_constant:
            raise edits.Unwritten(f"{name} is an expression of the script")
        found = source.replace(node, value) if node is not None else source.set_keyword(call, name, value)
        return found, f"{name}={value}"

    @staticmethod
    def _factor(source, node):
        is_simple = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        return source.text(node) if is_simple else f"({source.text(node)})"


def begin():
    """Watches the classes that the script may use."""
    for module, cls, method in _WATCHED:
        on_import.after(module, functools.partial(_watch, cls, method))


def _watch(name, method, module):
    cls = getattr(module, name)
    run = getattr(cls, method)

    @functools.wraps(run)
    def noted(this, *args, **kwargs):
        made = note(this)
        result = run(this, *args, **kwargs)
        if made is not None:
            see(made, this)
        return result

    @quietly("how objects of frameworks are made")
    def note(this):
        from memreplay_record.remedies import survey
        frame = survey.own_frame()
        if frame is None or any((made.path, made.line, made.cls) == (
                frame.f_code.co_filename, frame.f_lineno, type(this)) for made in _made):
            return None
        _made.append(Made(this, frame))
        return _made[-1]

    @quietly("how objects of frameworks are made")
    def see(made, this):
        made.see(this)

    setattr(cls, method, noted)


def apply(change, argument):
    raise ValueError(f"{change.name} is an edit of the script, which advise prints")


def propose(seen):
    """Yields what no option of the script does and what can be written into its files."""
    offered = {}  # the group -> the smallest rank
    for each in option.propose(seen):
        offered[each.group] = min(each.cost_rank, offered.get(each.group, each.cost_rank))
    for proposal in _all(seen) if seen.trained() else ():
        # A batch with accumulation is better than a smaller one.
        if proposal is not None and (
                proposal.group not in offered or proposal.cost_rank < 3 <= offered[proposal.group]):
            yield proposal


def _all(seen):
    trainings = [made for made in _made if made.is_a("TrainingArguments")]
    evaluates = any(model.evaluated for model in seen.models.values())
    by_trainer = any(model.is_evaluated_itself for model in seen.trained())
    for made in trainings:
        yield from _of_trainer(seen, made, by_trainer)
    for made in _made:
        for cls, name, value, library, more in _SWITCHES:
            if made.is_a(cls) and option.has_library(library) and is_off(made, name, value):
                more = dict(more)
                if not more.pop("of_evaluation", False) or by_trainer:
                    yield _of(made, name, (made, name, value), **more)
    if not trainings:
        yield from _of_loops(seen, evaluates)


def is_off(made, name, value="True"):
    return name in made.values and made.values[name] in ((None, False) if value == "True" else (made.values[name],)) \
        and str(made.values[name]) != value


def _of(made, name, *changes, **more):
    """Returns the Proposal of changes (Made, keyword, value) of calls, or None: they cannot be written."""
    found, texts = [], {}  # the class -> its keywords
    try:
        for other, keyword, value in changes:
            its_edits, text = other.change(keyword, value)
            found += its_edits
            texts.setdefault(name_of(other.cls), []).append(text)
    except edits.Unwritten:
        return None
    from memreplay_record.remedies import survey
    calls = [f"{cls}({', '.join(keywords)})" for cls, keywords in texts.items()]
    return Proposal(f"{NAME}:{name_of(made.cls)}:{name}", ", ".join(calls),
                    place=survey.place(made.path, made.line), edits=found, **more)


def _of_trainer(seen, made, evaluates):
    model, values = seen.trained()[0], made.values
    if is_off(made, "gradient_checkpointing") and model.checkpointing and not model.checkpointing.is_on:
        yield _of(
            made, "gradient_checkpointing", (made, "gradient_checkpointing", "True"),
            (made, "gradient_checkpointing_kwargs", '{"use_reentrant": False}'),
            cost="a second forward pass of each layer", cost_rank=1.9, group="checkpoint",
            **hf_checkpoint.preserved(model))
    for value, library in option.OPTIMIZERS.items():
        if str(values.get("optim")).startswith("adamw_torch") and values["optim"] != value and \
                option.has_library(library):
            yield _of(made, f"optim:{value}", (made, "optim", f'"{value}"'), **option.optimizer(value))
    is_fast = bf16.is_fast(seen.torch)
    kind = "bf16" if is_fast else "fp16"
    if is_off(made, "bf16") and is_off(made, "fp16") and model.dtypes == {"float32"}:
        yield _of(made, kind, (made, kind, "True"), **option.in_16_bits("bfloat16" if is_fast else "float16", is_fast))
    yield from _in_parts(model, made, "per_device_train_batch_size", made, "gradient_accumulation_steps")
    if evaluates:
        yield from _evaluation(made, "per_device_eval_batch_size")
        if is_off(made, "eval_accumulation_steps"):
            yield _of(made, "eval_accumulation_steps", (made, "eval_accumulation_steps", "1"),
                      **option.predictions_on_host())


def _in_parts(model, made, batch, other, accumulation):
    for parts in (2, 4):
        value = made.values.get(batch) or 0
        if value >= parts and value % parts == 0 and other.values.get(accumulation):
            yield _of(made, f"{batch}:{value // parts}", (made, batch, ("//", parts)),
                      (other, accumulation, ("*", parts)),
                      **option.accumulated(model, parts))


def _evaluation(made, name):
    for parts in (2, 4):
        value = made.values.get(name) or 0
        if value >= parts:
            yield _of(made, f"{name}:{value // parts}", (made, name, ("//", parts)),
                      **option.in_evaluation(parts))


def _of_loops(seen, evaluates):
    """Of Accelerate, Lightning and DataLoader."""
    model, is_fast = seen.trained()[0], bf16.is_fast(seen.torch)
    loaders = [made for made in _made if made.is_a("DataLoader") and made.values.get("batch_size")]
    of_training = [made for made in loaders if made.shuffles] or loaders[:1]
    adders = []  # (Made, keyword) of what adds gradients
    for made in _made:
        if made.is_a("Accelerator"):
            if made.values.get("mixed_precision") == "no" and model.dtypes == {"float32"}:
                kind = "bf16" if is_fast else "fp16"
                yield _of(made, "mixed_precision", (made, "mixed_precision", f'"{kind}"'),
                          **option.in_16_bits("bfloat16" if is_fast else "float16", is_fast))
            if any(isinstance(node, ast.Attribute) and node.attr == "accumulate" for node in _nodes(made.path)):
                adders.append((made, "gradient_accumulation_steps"))
        elif made.is_a("Trainer"):
            now = str(made.values.get("precision"))
            if now in ("32", "32-true") and model.dtypes == {"float32"}:
                kind = ("bf16" if is_fast else "16") + ("-mixed" if "-" in now else "")
                yield _of(made, "precision", (made, "precision", f'"{kind}"'),
                          **option.in_16_bits("bfloat16" if is_fast else "float16", is_fast))
            adders.append((made, "accumulate_grad_batches"))
    for made in of_training:
        for other, accumulation in adders[:1]:
            yield from _in_parts(model, made, "batch_size", other, accumulation)
        if not adders:
            for parts in (2, 4):
                if made.values["batch_size"] >= parts:
                    yield _of(made, f"batch_size:{made.values['batch_size'] // parts}",
                              (made, "batch_size", ("//", parts)), **option.other_training(parts))
    for made in loaders if evaluates else ():
        if made not in of_training:
            yield from _evaluation(made, "batch_size")


def _nodes(path):
    try:
        return ast.walk(edits.source_of(path).tree)
    except edits.Unwritten:
        return ()
