"""Computes the last layer, logits = head(x), together with their cross entropy, some rows at a time: no logits exist.

The layer returns a stand-in for its logits, which knows x. Views of it are stand-ins too, cross_entropy() of one is
computed from x, and whatever else a script does with one makes the logits.
"""
import ast
import functools
import weakref

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal, module_text
from memreplay_record.remedies.chunked_loss import is_plain, source_of

NAME = "fused_head"  # fused_head:MODEL:lm_head


def found(seen):
    """Yields (Model, path of its last layer, the layer as the script writes it, Call of the loss, whether the layer has
    a bias, ignore_index)."""
    for model in seen.trained():
        if model.head is not None and not model.is_sharded:
            path, *others = model.head
            yield model, path, module_text("self" if model.is_own else model.variable, path), *others


def propose(seen):
    for model, path, layer, call, has_bias, ignore_index in found(seen):
        def applied(x, targets, layer=layer, has_bias=has_bias, ignore_index=ignore_index):
            bias = f"{layer}.bias" if has_bias else "None"
            return f"FusedCrossEntropy.apply({x}.flatten(0, -2), {targets}, {layer}.weight, {bias}, {ignore_index})"

        yield Proposal(
            f"{NAME}:{model.name}:{path}", f"the last layer ({layer}) and cross entropy in chunks of rows",
            edits=functools.partial(edits_of, call, layer, applied, ["import torch", "import torch.nn.functional as F"],
                                    source_of(_make, "FusedCrossEntropy")),
            cost="nothing", cost_rank=0.45, place=call.place, group="chunked_loss",
            preserves_text="the same up to rounding")


def edits_of(call, layer, applied, imports, definition=()):
    """Returns the edits that put None in place of the logits and applied(x, targets) in that of their loss."""
    source = edits.source_of(call.path)
    loss = source.call(call, "cross_entropy")
    logits = loss.args[0] if len(loss.args) == 2 else source.refuse(loss, "names its arguments")
    while isinstance(logits, ast.Call) and isinstance(logits.func, ast.Attribute) and \
            logits.func.attr in ("view", "reshape", "flatten", "float", "contiguous"):
        logits = logits.func.value
    scope = source.scope_of(loss)
    heads = [node for node in ast.walk(scope) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and
             ast.unparse(node.value.func) == layer and len(node.value.args) == 1 and isinstance(logits, ast.Name) and
             ast.unparse(node.targets[0]) == logits.id and node.lineno < loss.lineno]
    block = source.block_of(source.statement_of(loss))
    if not heads or heads[-1] not in block:
        source.refuse(loss, f"is not preceded by the line that calls {layer} in its block")
    head, x = heads[-1], heads[-1].value.args[0]
    between = block[block.index(head) + 1:block.index(source.statement_of(loss))]
    names = {node.id for node in ast.walk(x) if isinstance(node, ast.Name)} | {logits.id}
    if any(isinstance(node, ast.Name) and node.id in names for each in between for node in ast.walk(each)):
        source.refuse(loss, "uses logits that something else reads or changes")
    return [*source.above(loss, imports, definition),
            *source.replace(head.value, "None"),
            *source.replace(loss, applied(f"({source.text(x)})" if isinstance(x, ast.BinOp) else source.text(x),
                                          source.text(loss.args[1])))]


def _make(torch, F):
    class FusedCrossEntropy(torch.autograd.Function):
        """The mean cross entropy of F.linear(x, weight, bias), whose gradients are computed with it.

        They are divided by the number of rows in backward, when the scale of the loss is known: float16 has no smaller
        ones.
        """

        @staticmethod
        def forward(ctx, x, targets, weight, bias=None, ignore_index=-100, rows=1024):
            ctx.dtypes = [each.dtype if each is not None else None for each in (x, weight, bias)]
            if torch.is_autocast_enabled():
                dtype = torch.get_autocast_gpu_dtype()
                x, weight, bias = (each.to(dtype) if each is not None else None for each in (x, weight, bias))
            needs = [ctx.needs_input_grad[at] and each is not None for at, each in ((0, x), (2, weight), (3, bias))]
            dx = torch.empty_like(x) if needs[0] else None
            dw, db = (torch.zeros_like(each, dtype=torch.float32) if need else None
                      for need, each in zip(needs[1:], (weight, bias)))
            count = (targets != ignore_index).sum()
            loss = torch.zeros((), device=x.device)
            for i, (part, wanted) in enumerate(zip(x.split(rows), targets.split(rows))):
                kept = (wanted != ignore_index)[:, None]
                log_p = F.log_softmax(F.linear(part, weight, bias), dim=-1, dtype=torch.float32)
                loss += F.nll_loss(log_p, wanted, ignore_index=ignore_index, reduction="sum")
                if any(needs):
                    gradient = log_p.exp_().scatter_add_(1, wanted[:, None].where(kept, 0), -kept.float())
                    gradient = gradient.mul_(kept).to(x.dtype)
                    if dx is not None:
                        dx[i * rows:(i + 1) * rows] = gradient @ weight
                    if dw is not None:
                        dw += gradient.T @ part
                    if db is not None:
                        db += gradient.sum(0, dtype=torch.float32)
            ctx.save_for_backward(dx, dw, db, count)
            return loss / count

        @staticmethod
        def backward(ctx, scale):
            *gradients, count = ctx.saved_tensors
            dx, dw, db = (each.mul_(scale / count.clamp(min=1)).to(dtype) if each is not None else None
                          for each, dtype in zip(gradients, ctx.dtypes))
            return dx, None, dw, db, None, None

    return FusedCrossEntropy


class _Logits:
    """Stands for the logits head(x), or for a view of them that keeps their last dimension."""

    def __init__(self, torch, fused, head, x, family):
        self._torch, self._fused, self._head, self._x = torch, fused, head, x
        self._autocast = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
        self._grad = torch.is_grad_enabled()
        self._family = family  # all stand-ins for these logits
        family.append(weakref.ref(self))
        self._made = None

    def _view(self, x):
        return _Logits(self._torch, self._fused, self._head, x, self._family)

    @property
    def shape(self):
        return self._torch.Size([*self._x.shape[:-1], self._head.weight.shape[0]])

    @property
    def device(self):
        return self._x.device

    @property
    def is_cuda(self):
        return self._x.is_cuda

    @property
    def ndim(self):
        return self._x.dim()

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return self._x.dim()

    def __len__(self):
        return len(self._x)

    def view(self, *sizes):
        sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        if isinstance(sizes, self._torch.dtype):
            return self.logits().view(sizes)
        shape = self._torch.empty(self.shape, device="meta").view(*sizes).shape
        if shape[-1] != self.shape[-1]:
            return self.logits().view(*sizes)
        return self._view(self._x.reshape(*shape[:-1], self._x.shape[-1]))

    reshape = view

    def flatten(self, start=0, end=-1):
        if self.ndim < 2 or end in (-1, self.ndim - 1):
            return self.logits().flatten(start, end)
        return self._view(self._x.flatten(start, end))

    def contiguous(self):
        return self._view(self._x.contiguous())

    def float(self):  # the loss is computed in float32 in any case
        return self

    def __getitem__(self, index):
        indices = list(index) if isinstance(index, tuple) else [index]
        if not all(each is Ellipsis or isinstance(each, (int, slice)) for each in indices):
            return self.logits()[index]
        if Ellipsis in indices:
            at = indices.index(Ellipsis)
            indices[at:at + 1] = [slice(None)] * (self.ndim - len(indices) + 1)
        if len(indices) == self.ndim and indices.pop() != slice(None):
            return self.logits()[index]
        return self._view(self._x[tuple(indices)])

    def logits(self):
        """Returns the logits, which are made now if they are not there yet."""
        if self._x is None:
            raise RuntimeError("the script reads logits after their loss, which was computed without them")
        if self._made is None:
            enabled, dtype = self._autocast
            with self._torch.autocast("cuda", dtype=dtype, enabled=enabled), self._torch.set_grad_enabled(self._grad):
                self._made = self._torch.nn.functional.linear(self._x, self._head.weight, self._head.bias)
        return self._made

    def loss(self, targets, ignore_index):
        enabled, dtype = self._autocast
        with self._torch.autocast("cuda", dtype=dtype, enabled=enabled):
            result = self._fused(self._x, targets, self._head.weight, self._head.bias, ignore_index)
        for reference in self._family:
            stand_in = reference()
            if stand_in is not None:
                stand_in._x = None
        return result

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.logits(), name)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def made(value):
            if isinstance(value, (list, tuple)):
                return type(value)(made(each) for each in value)
            return value.logits() if isinstance(value, cls) else value

        return function(*made(args), **{name: made(value) for name, value in (kwargs or {}).items()})


def _delegate(name):
    def operator(stand_in, *args):
        return getattr(stand_in.logits(), name)(*args)
    return operator


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "matmul", "pow", "neg", "eq", "ne", "lt", "le",
              "gt", "ge", "setitem", "iter"):
    setattr(_Logits, f"__{_name}__", _delegate(f"__{_name}__"))
_Logits.__hash__ = object.__hash__


def apply(change, argument):
    function = _make(change.torch, change.torch.nn.functional)
    put_in_place(change, argument, lambda *args: function.apply(*args))  # as roofline.py has replaced it by then


def put_in_place(change, argument, fused):
    """Computes fused(x, targets, weight, bias, ignore_index) in place of a model's last layer and its loss."""
    torch, meet = change.torch, change.meeting()
    functional = torch.nn.functional
    name, _, path = argument.partition(":")
    heads = weakref.WeakSet()

    def around(forward, module, args, kwargs):
        head = module.get_submodule(path)
        if head not in heads:
            heads.add(head)
            head.forward = functools.partial(stand_in, weakref.ref(head))
        return forward(module, *args, **kwargs)

    def stand_in(head, x):
        return _Logits(torch, fused, head(), x, [])

    change.around_forward(name, around)
    cross_entropy = functional.cross_entropy

    @functools.wraps(cross_entropy)
    def fusing(input, target, *args, **kwargs):
        if not isinstance(input, _Logits):
            return cross_entropy(input, target, *args, **kwargs)
        if args or not is_plain(input, target, **kwargs):
            return cross_entropy(input.logits(), target, *args, **kwargs)
        meet()
        return input.loss(target, kwargs.get("ignore_index", -100))

    functional.cross_entropy = fusing


_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SliceBackward0", "CloneBackward0",
          "ToCopyBackward0", "TBackward0")


def weight_of(logits):
    """Returns the weight of the layer that made the logits, or None."""
    node = _behind_views(logits.grad_fn)
    if type(node).__name__ not in ("AddmmBackward0", "MmBackward0"):
        return None
    leaves = [_behind_views(each) for each, _ in node.next_functions]
    weights = [leaf.variable for leaf in leaves if type(leaf).__name__ == "AccumulateGrad" and leaf.variable.dim() == 2]
    return weights[0] if len(weights) == 1 else None


def _behind_views(node):
    while type(node).__name__ in _VIEWS:
        node = node.next_functions[0][0]
    return node
