"""What simulate() and estimate() run as a script under `memreplay record`: it calls what lies pickled in a file.

Usage: _simulated.py FILE. It imports nothing of memreplay.
"""

import importlib
import importlib.util
import os
import pickle
import sys
from typing import Any, Tuple


def _main_module(name: str, path: str) -> Any:
    """Imports the main file of the process that sent the function, without its part for __name__ == "__main__"."""
    if name not in sys.modules and path:
        spec: Any = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return importlib.import_module(name)


class _Loader(pickle.Unpickler):
    main: Tuple[str, str] = ("", "")

    def find_class(self, module: str, name: str) -> Any:
        found: Any = _main_module(*self.main) if module == "__main__" else None
        if found is None:
            return super().find_class(module, name)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _on_gpu(found: Any) -> Any:
    """Returns tensors and shapes as tensors of the GPU, in the same tuples, lists and dicts."""
    import torch

    if isinstance(found, torch.Tensor):
        return torch.zeros_like(found, device="cuda") if found.is_meta else found.cuda()
    if isinstance(found, dict):
        return {name: _on_gpu(part) for name, part in found.items()}
    if not isinstance(found, (tuple, list)):
        return found
    shape, kind = found if len(found) == 2 and isinstance(found[1], str) else (found, "float32")
    if shape and all(isinstance(size, int) for size in shape):
        return torch.zeros(tuple(shape), dtype=getattr(torch, kind), device="cuda")
    return [_on_gpu(part) for part in found]


def _loss_of(output: Any) -> Any:
    found = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if found is None and not hasattr(output, "backward"):
        raise TypeError(f"estimate(): the model returned {type(output).__name__}, which has no loss and is no tensor; "
                        "give loss=, a function of the output")
    return output.sum() if found is None else found


def _estimate(model: Any, sample_input: Any, optimizer: Any, loss: Any) -> None:
    import torch

    if not isinstance(model, torch.nn.Module):
        model = model()
    is_meta = any(tensor.is_meta for tensor in [*model.parameters(), *model.buffers()])
    model = model.to_empty(device="cuda") if is_meta else model.cuda()
    inputs = _on_gpu(sample_input)
    made = optimizer(model.parameters()) if optimizer is not None else None

    def forward() -> Any:
        if isinstance(inputs, dict):
            return model(**inputs)
        return model(*inputs) if isinstance(inputs, list) else model(inputs)

    def step() -> None:
        if made is None:
            with torch.inference_mode():
                forward()
            return
        made.zero_grad()
        (loss or _loss_of)(forward()).backward()
        made.step()

    for _ in range(2):
        step()


def _run(path: str) -> None:
    with open(path, "rb") as file:
        folders, main, steps = pickle.load(file)
        own = os.path.dirname(os.path.abspath(__file__))
        sys.path[:] = [folder for folder in sys.path if folder != own and folder not in folders] + folders
        loader = _Loader(file)
        loader.main = main
        loaded = loader.load()
    for _ in range(steps or 0):
        loaded()
    if steps is None:
        _estimate(*loaded)


if __name__ == "__main__":
    _run(sys.argv[1])
