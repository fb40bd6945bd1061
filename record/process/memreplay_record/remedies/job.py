"""What the remedies that use the GPUs of a job share: its process group, its models, and what its ranks exchange."""
import ast
import functools
import os

from memreplay_record.remedies import checkpoint, edits, micro_batches

UNWRITTEN = edits.unwritten("it makes the script a job of several processes, which torchrun starts")
SPLIT = "split"  # the last word of an argument: each rank takes its part of the batch


def ranks():
    """Returns how many ranks the job has."""
    return int(os.environ.get("WORLD_SIZE", 1))


def begin(torch):
    """Makes the process group, if the script has none."""
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl")


def lines_before(model):
    """Returns the lines of begin(), for a script that is not a job yet."""
    return [] if model.in_job else ['torch.distributed.init_process_group("nccl")  # with torchrun',
                                    'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))']


def can_split(model):
    """Returns whether each rank can take its part of the batch, which the script now gives to one GPU."""
    return not model.in_job and model.returns_loss and not model.mixes_samples and not model.moves and \
        model.batch >= ranks() and model.batch % ranks() == 0


def lines_of_split(model):
    """Returns the lines by which each rank takes its part of the batch."""
    text = model.call.with_call(model.variable.rpartition(".")[2], _with_parts)
    return ["", f"# each rank trains on its {model.batch // ranks()} samples of {model.batch}:",
            "rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()",
            text or f"# {model.variable}(x.chunk(ranks)[rank], ...)"]


def _with_parts(call):
    def part(value):
        return ast.unparse(value) if isinstance(value, ast.Constant) else f"{ast.unparse(value)}.chunk(ranks)[rank]"

    if any(isinstance(value, ast.Starred) for value in call.args) or any(each.arg is None for each in call.keywords):
        return None
    arguments = [*(part(value) for value in call.args), *(f"{each.arg}={part(each.value)}" for each in call.keywords)]
    return f"{ast.unparse(call.func)}({', '.join(arguments)})"


def preserved(model):
    """Says what a step of all ranks computes."""
    if model.in_job:
        return "the same up to rounding"
    if can_split(model):
        return micro_batches.EQUAL_WEIGHTS + micro_batches.other_numbers(model)
    return f"the same as a batch of {ranks()} times as many samples: each rank has a batch of the script's size" + \
        ("; batch normalisation sees one rank's" if model.mixes_samples else "") + \
        (f"; {checkpoint.what_moves(model.moves)} is changed by one rank's" if model.moves else "")


def exchanged(size, times=1):
    """Returns in words what a rank receives if `size` bytes that all ranks share go around `times` times."""
    return f"{times * size * (ranks() - 1) / ranks() / 2 ** 20:,.0f} MiB"


def split_batch(change, name):
    """Gives the class `name` of modules this rank's part of each batch that it is trained with."""
    torch = change.torch

    def around(forward, module, args, kwargs):
        if not module.training or not torch.is_grad_enabled() or \
                micro_batches.batch_of(torch, args, kwargs) % ranks() != 0:
            return forward(module, *args, **kwargs)
        rank = torch.distributed.get_rank()
        return forward(module, *(micro_batches.part_of(torch, value, ranks(), rank) for value in args),
                       **{key: micro_batches.part_of(torch, value, ranks(), rank) for key, value in kwargs.items()})

    change.around_forward(name, around)


def before_optimizer(change, name, prepare):
    """Calls prepare(model) once for each model of the class `name`, before an optimizer is made.

    prepare() may replace parameters, which are then replaced in the optimizer's arguments as well.
    """
    models, prepared = change.instances(name), set()  # ids
    optimizer = change.torch.optim.Optimizer
    init = optimizer.__init__

    @functools.wraps(init)
    def made(this, params, defaults):
        replaced = {}  # id of a parameter -> the one in its place
        for model in [model for model in models() if id(model) not in prepared]:
            prepared.add(id(model))
            names = {id(parameter): path for path, parameter in model.named_parameters(remove_duplicate=False)}
            prepare(model)
            now = dict(model.named_parameters(remove_duplicate=False))
            replaced.update({old: now[path] for old, path in names.items()})
        init(this, _replaced(params, replaced), defaults)

    optimizer.__init__ = made


def _replaced(params, replaced):
    """Returns an optimizer's argument with other parameters. A generator that was not run yet will find them itself."""
    if isinstance(params, dict):
        return {**params, "params": _replaced(params["params"], replaced)}
    if isinstance(params, (list, tuple)):
        return [_replaced(each, replaced) for each in params]
    return replaced.get(id(params), params)
