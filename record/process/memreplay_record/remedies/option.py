"""Options that the script has for what saves memory, as words at the end of its command."""
import importlib.util
import re

from memreplay_record.remedies import bf16, hf_checkpoint, micro_batches, parsers
from memreplay_record.remedies.change import Proposal

NAME = "option"  # option:NAME, or option:NAME:VALUE

# The names of options, without what a group of them has in front: "trainer.batch_size" is batch_size.
_CHECKPOINTING = (r"(use_|enable_|with_|do_)?((grad(ient)?s?|act(ivation)?s?)_?(checkpoint(ing|s)?|ckpt(ing)?)|"
                  r"checkpoint_(activation|gradient|grad)s?|checkpointing)|use_checkpoint")
_OF_ONE_PASS = r"(per_(device|gpu|rank)|device|local|micro)_"
_BATCH = (rf"({_OF_ONE_PASS})?(train(ing)?_)?(micro_)?(batch_?size|bs|bsz)(_per_(device|gpu|rank))?(_train)?|"
          r"(train_)?batch")
_ACCUMULATION = (r"grad(ient)?s?_acc(um(ulation|ulate)?)?(_(steps?|iters?|every|batches))?|"
                 r"acc(um(ulation|ulate)?)?_(steps?|iters?|batches|grad(ient)?(_steps?|_batches|s)?)|"
                 r"accum(ulation|ulate)?|iters_to_accumulate")
_TOTAL = r"(total|global|effective)_(train_)?batch_size"
_EVALUATION = (rf"({_OF_ONE_PASS})?(eval(uation)?|val(id(ation)?)?|test|dev)_(micro_)?(batch_?size|bs|batch)"
               r"(_per_(device|gpu|rank))?|batch_?size_(eval|val|test)")
_BF16, _FP16, _AMP = r"(use_)?(bf16|bfloat16)", r"(use_)?(fp16|half)", r"(use_)?(amp|autocast|mixed_precision)"
_PRECISION = r"mixed_precision|precision|((model|train)_)?dtype"
_OPTIMIZER = r"optim(izer)?(_type|_name)?|opt"
_EIGHT_BIT = r"(use_)?(8bit_(adamw?|optim(izer)?)|(adamw?|optim(izer)?)_8bit)"
_FLASH = r"(use_|enable_)?flash(_attn|_attention)?(_2)?"

# Other switches: (the names, the library that they need, what is said of them).
_FASTER = {"cost": "nothing; it is faster", "cost_rank": 0.2, "preserves_text": "the same up to rounding"}
_SWITCHES = (
    (r"set_grads_to_none", "", {"cost": "nothing", "cost_rank": 0.05, "preserves_text": "the same"}),
    (_FLASH, "", {**_FASTER, "group": "attention"}),
    (r"enable_xformers(_memory_efficient_attention)?", "xformers", {**_FASTER, "group": "attention"}),
    (r"use_logits_to_keep", "", {**_FASTER, "group": "logits"}),
    (r"precompute_ref(erence)?_log_?probs", "", {
        "cost": "a pass over all samples before the training, in place of one in each step", "cost_rank": 0.8,
        "preserves_text": "the same up to rounding", "group": "reference model"}),
    (r"use_liger(_kernel)?", "liger_kernel", {**_FASTER, "group": "chunked_loss"}),
    (r"(use_|torch_)?compile(_model)?", "", {**_FASTER, "cost": "minutes of compilation", "cost_rank": 2.9,
                                              "named_only": True}))

# Trainer's, and the libraries that they need.
OPTIMIZERS = {"adamw_torch_fused": "", "adamw_bnb_8bit": "bitsandbytes", "adafactor": ""}

_NOT_ON = (None, False, 0, "no", "none", "None")
_EIGHT_BITS = "other results: the moments of large parameters are rounded to 8 bits"
_FACTORS = "other results: Adafactor keeps the second moments of a matrix as those of its rows and columns"
_TO_BFLOAT16 = {"float32": "bfloat16", "fp32": "bf16", "32": "bf16-mixed", "32-true": "bf16-mixed", "no": "bf16",
                "None": "bf16"}
_SAME_IN_EVALUATION = "the same up to rounding, if the evaluation weighs samples, not batches"


def propose(seen):
    options = {option.name: option for option in reversed(parsers.found())}
    if options and seen.trained():
        for rows in (_checkpointing, _batch, _evaluation, _precision, _optimizer, _switches):
            yield from rows(seen, list(reversed(options.values())))


def apply(change, argument):
    raise ValueError(f"{change.name} is made by words at the end of the command, which advise prints")


def _named(options, pattern):
    return [option for option in options if re.fullmatch(pattern, option.key)]


def _switch_on(option):
    """Returns the words that turn on an option that is off, or []."""
    if option.value not in _NOT_ON or (isinstance(option.value, str) and not option.choices):
        return []
    is_number = type(option.value) is int or option.choices == [0, 1]
    return option.words(1 if is_number else True)


def _of(name, words, **more):
    text = " ".join(words)
    return Proposal(f"{NAME}:{name}", text, arguments=words, **more)


def _checkpointing(seen, options):
    model = seen.trained()[0]
    for option in _named(options, _CHECKPOINTING):
        words = _switch_on(option)
        if words and not (model.checkpointing and model.checkpointing.is_on):
            yield _of(option.name, words, cost="a second forward pass of what is checkpointed", cost_rank=1.9,
                      group="checkpoint", **hf_checkpoint.preserved(model))
    for option in options:
        if option.name.endswith("activation_checkpoint.mode") and option.value in _NOT_ON:
            yield _of(option.name, option.words("full"), cost="a second forward pass of each layer", cost_rank=1.9,
                      group="checkpoint", **hf_checkpoint.preserved(model))


def _number(options, pattern):
    """Returns the option for a number, that of one pass before others, or None."""
    found = [option for option in _named(options, pattern) if type(option.value) is int]
    return min(found, key=lambda option: not re.match(_OF_ONE_PASS, option.key), default=None)


def _batch(seen, options):
    batch, accumulation = _number(options, _BATCH), _number(options, _ACCUMULATION)
    if batch is None:
        return
    model, total = seen.trained()[0], _number(options, _TOTAL)
    for parts in (2, 4):
        value = batch.value // parts
        if value < 1:
            continue
        words, more = batch.words(value), other_training(parts)
        if accumulation is not None and batch.value % parts == 0:
            words = words + accumulation.words(max(accumulation.value, 1) * parts)
            if _is_of_all_passes(seen, batch.value, accumulation.value):
                words = accumulation.words(accumulation.value * parts)
            more = accumulated(model, parts)
        elif total is not None and total.value >= batch.value and batch.value % parts == 0:
            more = accumulated(model, parts, f", if the script adds gradients up to {total.name}={total.value}")
        yield _of(f"{batch.name}:{value}", words, **more)


def _is_of_all_passes(seen, batch, accumulation):
    """Returns whether a batch is that of a step, which the script splits."""
    passes = {model.batch for model in seen.trained()}
    return accumulation > 1 and batch not in passes and batch // accumulation in passes


def accumulated(model, parts, more=""):
    """Returns what is said of a batch in parts, whose gradients are added, as arguments of Proposal."""
    said = micro_batches.preserved(model)
    return {"cost": f"{parts} smaller passes in place of one", "cost_rank": 1.5 + parts / 8, "group": "micro_batches",
            **said, "preserves_text": said["preserves_text"] + more}


def other_training(parts):
    return {"cost": "more steps for the same samples", "cost_rank": 3.4 + parts / 20, "group": "micro_batches",
            "preserves": False, "preserves_text": f"another training: 1/{parts} of the samples in a step"}


def in_evaluation(parts):
    return {"cost": f"{parts} smaller passes in place of one, in evaluation", "cost_rank": 0.5 + parts / 8,
            "group": "evaluation batch", "preserves_text": _SAME_IN_EVALUATION}


def _evaluation(seen, options):
    if not any(model.evaluated for model in seen.models.values()):
        return
    batch = _number(options, _BATCH)
    for option in _named(options, _EVALUATION)[:1]:
        value = option.value if option.value is not None or batch is None else batch.value
        for parts in (2, 4):
            if type(value) is int and value >= parts:
                yield _of(f"{option.name}:{value // parts}", option.words(value // parts), **in_evaluation(parts))
    for option in _named(options, "eval_accumulation_steps"):
        if option.value is None:
            yield _of(option.name, option.words(1), **predictions_on_host())


def predictions_on_host():
    return {"cost": "what the model predicts goes over PCIe, in evaluation", "cost_rank": 0.9,
            "preserves_text": "the same"}


def _precision(seen, options):
    model = seen.trained()[0]
    if any(option.value is True for pattern in (_BF16, _FP16, _AMP) for option in _named(options, pattern)) or \
            model.dtypes != {"float32"}:  # also that of autocast
        return
    is_fast = bf16.is_fast(seen.torch)
    for pattern in (_BF16, _PRECISION, _AMP, _FP16) if is_fast else (_FP16, _AMP, _BF16):
        for option in _named(options, pattern):
            kind = "float16" if pattern == _FP16 else "16 bits" if pattern == _AMP else "bfloat16"
            words = _switch_on(option) if pattern != _PRECISION else _to_bfloat16(option)
            if words:
                yield _of(option.name, words, **in_16_bits(kind, is_fast))
                return


def in_16_bits(kind, is_fast):
    return {"cost": bf16.COST if is_fast or kind == "float16" else bf16.SLOW, "cost_rank": 3, "group": "autocast",
            "preserves": False, "preserves_text": f"other results: the script computes in {kind}"}


def _to_bfloat16(option):
    """Returns the words for bfloat16, in the way of the option's value for float32."""
    now = str(option.value)
    if now not in _TO_BFLOAT16:
        return []
    choices = [each for each in option.choices if str(each) in _TO_BFLOAT16.values()]
    return option.words(choices[0] if choices else _TO_BFLOAT16[now])


def _optimizer(seen, options):
    adams = [each for each in seen.optimizers.values() if each.name in ("Adam", "AdamW")]
    if not adams:
        return
    for option in _named(options, _OPTIMIZER):
        if str(option.value).startswith("adamw_torch") or str(option.value) == "adamw_hf":
            values = [each for each, library in OPTIMIZERS.items() if has_library(library)]
        else:
            values = [each for each in option.choices if re.search("8_?bit|adafactor", str(each))]
        for value in values:
            words = option.words(value)
            if words and value != option.value:
                yield _of(f"{option.name}:{value}", words, **optimizer(value))
    if has_library("bitsandbytes"):
        for option in _named(options, _EIGHT_BIT):
            if _switch_on(option):
                yield _of(option.name, _switch_on(option), **optimizer("8bit"))


def has_library(name):
    return not name or importlib.util.find_spec(name) is not None


def optimizer(value):
    """Returns what is said of an optimizer of that name, as arguments of Proposal."""
    if value.endswith("fused"):
        return {"cost": "nothing; it is faster", "cost_rank": 0.1, "group": "optimizer",
                "preserves_text": "the same up to rounding"}
    return {"cost": "about the same time", "cost_rank": 4, "group": "optimizer", "preserves": False,
            "preserves_text": _FACTORS if "factor" in value else _EIGHT_BITS}


def _switches(seen, options):
    for pattern, library, more in _SWITCHES:
        for option in _named(options, pattern)[:1]:
            if _switch_on(option) and has_library(library):
                yield _of(option.name, _switch_on(option), **more)
    if any(model.attends_by_hand for model in seen.models.values()):
        for option in _named(options, "attn_impl(ementation)?"):
            if option.value in (None, "eager"):
                yield _of(f"{option.name}:sdpa", option.words("sdpa"), **_FASTER, group="hf_attention")
