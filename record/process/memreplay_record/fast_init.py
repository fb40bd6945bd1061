"""--fast-init: skips the initialisation of weights on the CPU, whose values a simulated GPU does not need."""
from memreplay_record._lost import quietly

_LARGE = 64 << 10  # elements; smaller tensors can steer a script
_METHODS = ("normal_", "uniform_", "log_normal_", "exponential_", "cauchy_", "trunc_normal_")


def begin(torch):
    @quietly("which tensors are too large to initialise", otherwise=False)
    def is_skipped(tensor):
        with torch._C.DisableTorchFunction():
            return tensor.device.type == "cpu" and tensor.numel() > _LARGE

    def skipping(fill):
        def maybe_fill(tensor, *args, **kwargs):
            if is_skipped(tensor):
                return tensor
            return fill(tensor, *args, **kwargs)
        maybe_fill.__name__ = fill.__name__
        return maybe_fill

    for name in _METHODS:
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, skipping(getattr(torch.Tensor, name)))
    init = torch.nn.init
    for name in ("_no_grad_trunc_normal_", "_no_grad_normal_", "_no_grad_uniform_", "orthogonal_"):
        if hasattr(init, name):
            setattr(init, name, skipping(getattr(init, name)))
