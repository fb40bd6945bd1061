"""Computes the cross entropy of logits some rows at a time, with the gradient in the place of the logits."""
import ast
import functools
import inspect
import types

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "chunked_loss"
_IN_LIBRARY = '''\
plain_cross_entropy = F.cross_entropy


def chunked_cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                          reduction="mean", label_smoothing=0.0):
    if (weight is not None or size_average is not None or reduce is not None or reduction == "none"
            or label_smoothing > 0 or input.dim() != 2 or target.dim() != 1):
        return plain_cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction,
                                   label_smoothing)
    loss = ChunkedCrossEntropy.apply(input, target, ignore_index)
    if reduction != "sum":
        return loss
    count = (target != ignore_index).sum()
    return (loss * count).where(count > 0, 0)


F.cross_entropy = chunked_cross_entropy
'''


def propose(seen):
    call = seen.cross_entropy
    if call is not None and seen.backward:
        yield Proposal(
            NAME, "cross entropy in chunks of rows",
            edits=functools.partial(
                edits_of_loss, seen, ["import torch", "import torch.nn.functional as F"],
                source_of(_make, "ChunkedCrossEntropy"), _applied,
                _IN_LIBRARY.splitlines()),
            cost="nothing", cost_rank=0.4, place=call.place,
            preserves_text="the same up to rounding; the backward pass overwrites the logits with their gradient, so "
                           "nothing may read them after it")


def edits_of_loss(seen, imports, definition, applied, in_library):
    """Returns the edits that compute the loss in another way: in place of the script's call of cross_entropy(), by
    applied(source, call), or with the lines `in_library`, which put it into PyTorch."""
    call = seen.plain_loss
    if call is None:
        raise edits.Unwritten("no mean over rows of logits is computed")
    source = edits.source_of(call.path)
    node = source.call(call)
    anchor = source.statement_of(node)
    made = applied(source, node) if ast.unparse(node.func).rpartition(".")[2] == "cross_entropy" else None
    if made is None:
        definition = [*definition, *([""] * 2 if definition else []), *in_library]
    return [*source.above(anchor, imports, definition), *(made or ())]


def _applied(source, call):
    """Returns the edits that call the class below, or None if it cannot do what the call says."""
    if len(call.args) != 2 or any(keyword.arg != "ignore_index" for keyword in call.keywords):
        return None
    named = [source.edit(source.span(each)[0], source.span(each.value)[0], "") for each in call.keywords]
    return [*source.replace(call.func, "ChunkedCrossEntropy.apply"), *named]


def source_of(make, name):
    """Returns the class `name` that make() makes, as a script would have it."""
    lines = inspect.getsource(make).splitlines()
    first, last = (next(i for i, line in enumerate(lines) if line.startswith(f"    {word} {name}"))
                   for word in ("class", "return"))
    return "\n".join(line[4:] for line in lines[first:last]).rstrip().splitlines()


def _make(torch, F):
    class ChunkedCrossEntropy(torch.autograd.Function):
        """The mean cross entropy of logits; they hold their gradient after the backward pass."""

        @staticmethod
        def forward(ctx, logits, targets, ignore_index=-100, rows=1024):
            count = (targets != ignore_index).sum()
            loss = torch.zeros((), device=logits.device)
            for part, wanted in zip(logits.split(rows), targets.split(rows)):
                log_p = F.log_softmax(part, dim=-1, dtype=torch.float32)
                loss += F.nll_loss(log_p, wanted, ignore_index=ignore_index, reduction="sum")
            ctx.save_for_backward(logits, targets, count)
            ctx.options = ignore_index, rows
            return loss / count

        @staticmethod
        def backward(ctx, scale):
            logits, targets, count = ctx.saved_tensors
            ignore_index, rows = ctx.options
            gradient = logits.detach()
            for part, wanted in zip(gradient.split(rows), targets.split(rows)):
                kept = (wanted != ignore_index)[:, None]
                p = F.softmax(part, dim=-1, dtype=torch.float32)
                p.scatter_add_(1, wanted[:, None].where(kept, 0), -kept.float())
                part.copy_(p.mul_(kept * (scale / count.clamp(min=1))))
            return gradient, None, None, None

    return ChunkedCrossEntropy


def is_plain(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
             label_smoothing=0.0):
    """Returns whether the mean of class indices is computed, which is what these arguments of cross_entropy() say."""
    return weight is None and size_average is None and reduce is None and reduction == "mean" and \
        label_smoothing == 0 and input.dim() == 2 and target.dim() == 1 and input.is_cuda


def is_plain_or_sum(input, target, reduction="mean", **others):
    """The same, but the loss may also be the sum."""
    return reduction in ("mean", "sum") and is_plain(input, target, **others)


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    functional = torch.nn.functional
    made = {"F": types.SimpleNamespace(cross_entropy=functional.cross_entropy),
            "ChunkedCrossEntropy": _make(torch, functional)}
    exec(_IN_LIBRARY, made)
    cross_entropy = functional.cross_entropy

    @functools.wraps(cross_entropy)
    def chunked(input, target, *args, **kwargs):
        if args or not is_plain_or_sum(input, target, **kwargs):
            return cross_entropy(input, target, *args, **kwargs)
        meet()
        return made["chunked_cross_entropy"](input, target, **kwargs)

    functional.cross_entropy = chunked
