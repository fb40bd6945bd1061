"""Lets scaled_dot_product_attention() choose a kernel that keeps no scores, where the script forbids it."""
import contextlib
import functools

from memreplay_record.remedies.change import Proposal

NAME = "sdp_kernel"
_SWITCHES = ("enable_flash_sdp", "enable_mem_efficient_sdp")


def propose(seen):
    if seen.forbids_kernels is not None:
        text = seen.forbids_kernels.text
        yield Proposal(
            NAME, "a kernel of scaled_dot_product_attention() that keeps no scores",
            [f"# without: {text}" if text else "# without the line that forbids these kernels"],
            cost="nothing; it is faster", cost_rank=0.25, place=seen.forbids_kernels.place,
            preserves_text="the same up to rounding; the kernel may have been forbidden for a reason, and dropout in "
                           "it draws other numbers")


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
