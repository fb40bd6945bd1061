"""Changes nothing but counts the FLOPs of the script's training passes, to compute what a second forward pass costs.

This is a run of its own, since observing each op may change how autograd computes a gradient.
"""
import threading

from memreplay_record.remedies.change import class_of

NAME = "flops"


def propose(seen):
    return ()


def apply(change, argument):
    """Sums FLOPs in change.flops: "" for all training passes, the name of a class for its forward passes."""
    torch, meet, counts = change.torch, change.meeting(), change.flops
    from torch.utils import flop_counter
    from torch.utils._python_dispatch import TorchDispatchMode
    main, running = threading.get_ident(), []  # classes of the modules whose forward() runs

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            output = func(*args, **(kwargs or {}))
            formula = flop_counter.flop_registry.get(func._overloadpacket)
            is_forward = threading.get_ident() == main  # the engine has threads of its own for GPUs
            if formula is not None and (torch.is_grad_enabled() or not is_forward):
                meet()
                for name in {"", *(running if is_forward else ())}:
                    counts[name] = counts.get(name, 0) + formula(*args, **(kwargs or {}), out_val=output)
            return output

    def enter(module, args):
        if threading.get_ident() == main:
            running.append(class_of(module).__name__)

    def leave(module, args, output):
        if threading.get_ident() == main:
            running.pop()

    hooks = torch.nn.modules.module
    hooks.register_module_forward_pre_hook(enter)
    hooks.register_module_forward_hook(leave)
    Counting().__enter__()  # to the end of the process
