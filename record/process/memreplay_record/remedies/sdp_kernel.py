"""Lets scaled_dot_product_attention() choose a kernel that keeps no scores, where the script forbids it."""
import ast
import contextlib
import functools

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "sdp_kernel"
_SWITCHES = ("enable_flash_sdp", "enable_mem_efficient_sdp")


def propose(seen):
    if seen.forbids_kernels is not None:
        yield Proposal(
            NAME, "a kernel of scaled_dot_product_attention() that keeps no scores",
            edits=functools.partial(_edits, seen.forbids_kernels),
            cost="nothing; it is faster", cost_rank=0.25, place=seen.forbids_kernels.place,
            preserves_text="the same up to rounding; the kernel may have been forbidden for a reason, and dropout in "
                           "it draws other numbers")


def _edits(call):
    source = edits.source_of(call.path)
    node = source.call(call)
    if ast.unparse(node.func).rpartition(".")[2] not in _SWITCHES:
        return [*source.add_import("import contextlib", node), *source.replace(node, "contextlib.nullcontext()")]
    found = [each for each in ast.walk(source.tree) if isinstance(each, ast.Call) and len(each.args) == 1 and
             ast.unparse(each.func).rpartition(".")[2] in _SWITCHES and ast.unparse(each.args[0]) == "False"]
    if node not in found:
        source.refuse(node, "decides it elsewhere")
    return [edit for each in found for edit in source.replace(each.args[0], "True")]


def around(torch, replaced):
    """Replaces each function that can forbid kernels by replaced(function, forbids), where forbids(*args) returns
    whether a call does."""
    cuda = torch.backends.cuda
    for name in _SWITCHES:
        setattr(cuda, name, replaced(getattr(cuda, name), lambda enabled: not enabled))
    attention = getattr(torch.nn, "attention", None)
    if attention is not None:  # 2.3
        attention.sdpa_kernel = replaced(attention.sdpa_kernel, functools.partial(_is_math, attention.SDPBackend.MATH))


def all_are_off(torch, function):
    """Returns whether a call of `function`, which forbids one, has left no such kernel."""
    cuda = torch.backends.cuda
    return function.__name__ not in _SWITCHES or not (cuda.flash_sdp_enabled() or cuda.mem_efficient_sdp_enabled())


def _is_math(math, backends, *_, **__):
    return (list(backends) if isinstance(backends, (list, tuple)) else [backends]) == [math]


@contextlib.contextmanager
def _nothing():
    yield


def apply(change, argument):
    meet = change.meeting()

    def replaced(function, forbids):
        @functools.wraps(function)
        def allowed(*args, **kwargs):
            if not forbids(*args, **kwargs):
                return function(*args, **kwargs)
            meet()
            return None if function.__name__ in _SWITCHES else _nothing()
        return allowed

    around(change.torch, replaced)
