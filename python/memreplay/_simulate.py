"""memreplay.record(), simulate() and estimate(): what a script or a function needs of a GPU that is not there."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import shutil
import sys
import tempfile
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from memreplay import report_types as types
from memreplay._load import Recording, _flags
from memreplay._program import Error, failure, run, start
from memreplay._words import category_noun, diagnosis_text, size_text

Path = Union[str, "os.PathLike[str]"]
_SIMULATED = str(pathlib.Path(__file__).with_name("_simulated.py"))
_WORTH_SAYING = 1 << 20  # bytes of late state: kWorthSaying of report/words/record_faults.cc
_MAX_OUTPUT = 20_000  # letters of what a script printed that an error has


class _Folder:
    """A temporary folder that is removed with this object."""

    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="memreplay-"))
        weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)


class _Snapshot(Recording):
    """A recording that keeps its folder."""

    def __init__(self, path: str, folder: _Folder) -> None:
        super().__init__(path)
        self._folder = folder


class Simulation(types.RecordReport):
    """What record(), simulate() and estimate() found: `RecordReport` of proto/record.proto as attributes.

    print() shows the answer, who holds the memory at the peak, and the figures. `output` is what the code printed.
    """

    def __init__(self, data: Dict[str, Any], name: str, output: str, folder: _Folder) -> None:
        super().__init__(data)
        self.name = name
        self.output = output
        self.recordings: List[Recording] = [_Snapshot(process.snapshot, folder) for process in self.processes]

    @property
    def _process(self) -> types.RecordedProcess:
        if len(self.processes) != 1 or len(self.processes[0].cards) != 1:
            raise Error(f"{self.name}: {len(self.processes)} processes used the GPU, on "
                        f"{sum(len(process.cards) for process in self.processes)} devices; see .processes and "
                        ".recordings")
        return self.processes[0]

    @property
    def recording(self) -> Recording:
        """The snapshot. Errors: memreplay.Error if several processes or devices were used; see `recordings`."""
        return self.recordings[self.processes.index(self._process)]

    @property
    def out_of_memory(self) -> bool:
        """Whether memory ran out on the simulated GPU, even if the code caught that."""
        return bool(self.refusal) or any(process.ooms or process.refusal for process in self.processes)

    @property
    def total_bytes(self) -> int:
        """What the GPU must hold at the peak: what PyTorch reserved and what lies outside of it, as print() says."""
        card = self._process.cards[0]
        return card.capacity - card.spare

    @property
    def breakdown(self) -> Dict[str, int]:
        """Bytes of each category ("parameters", "activations") that are live at the peak, most first."""
        found = self.recording.replay().only_device.categories
        if found is None:
            raise Error(f"{self.name}: the recording does not say what its memory is for")
        return {category_noun(category): size
                for category, size in sorted(found.bytes_by_category.items(), key=lambda item: -item[1])}

    def fits(self, card: Union[int, str]) -> bool:
        """Returns whether the recorded requests survive on a card, of whose memory the CUDA context has its part.

        A size is what is available to PyTorch. That `card` chooses its kernels like the simulated one is assumed.

        Errors: memreplay.Error where this is unknown: the run is not whole and its part fits, the replay does not agree
        with the recording, or it depends on when memory outside of PyTorch is taken.
        """
        process, recording = self._process, self.recording
        own = process.cards[0]
        if not all(replay.agrees for replay in process.replays):
            raise Error(f"fits(): {self.name}: the replay does not agree with the recording")
        device = recording.replay(capacity=card).only_device
        reserve = process.card.reserve if process.card else 0
        if device.ooms or (self.out_of_memory and device.capacity_bytes <= own.capacity - reserve):
            return False
        if self.out_of_memory or self.is_lower_bound:
            why = "ran out of memory" if self.out_of_memory else f"was ended by {self.stopped_by or process.ended}"
            raise Error(f"fits(): {self.name} {why} on {own.name}, and the whole run may need more; simulate it with "
                        f"card={card!r}")
        late = process.late_state if process.late_state >= _WORTH_SAYING else 0
        pinned = process.card.pinned.from_gpu if process.card and process.card.pinned else 0
        more = own.outside + late + pinned
        if not more:
            return True
        left = device.capacity_bytes - more
        if left > 0 and not recording.replay(capacity=left).only_device.ooms:
            return True
        raise Error(f"fits(): {self.name} fits on {card} without {size_text(more)} that lie outside of PyTorch or that "
                    "a second step of the optimizer needs; simulate it there, with two steps")

    def fits_on(self) -> List[str]:
        """Returns the names of the known cards on which it fits, smallest memory first. Errors: as of fits()."""
        cards = json.loads(run(["record", "--card", "list", "--json"]).stdout)
        sizes: Dict[str, int] = {card["name"]: max(card["memory"] or card["nominal"], 0) for card in cards}
        return [name for name in sorted(sizes, key=lambda name: (sizes[name], name)) if self.fits(name)]

    def __str__(self) -> str:
        lines = []
        for process in self.processes:
            for card, replay in zip(process.cards, process.replays):
                end = ("out of memory" if process.ooms or process.refusal or self.refusal
                       else f"the figures are those up to its end by {process.ended or self.stopped_by}"
                       if self.is_lower_bound else f"it fits, {size_text(card.spare)} to spare")
                lines += [f"{self.name}{' ' * bool(process.name)}{process.name} on {card.name} (simulated): {end}.",
                          diagnosis_text(replay.diagnosis)]
                lines += [f"  {name:<18} {size_text(size)} ({size:,} bytes)" for name, size in (
                    ("peak reserved", card.peak_reserved), ("peak allocated", card.peak_allocated),
                    ("outside PyTorch", card.capacity - card.spare - card.peak_reserved), ("card", card.capacity))]
                lines.append(f"  {'replay':<18} {replay.sentence}")
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults)])

    def __repr__(self) -> str:
        return f"<memreplay.Simulation {self.name}{': out of memory' * self.out_of_memory}>"


def record(*words: str, card: str, out: Optional[Path] = None, **flags: Any) -> Simulation:
    """Runs a script with its arguments on a simulated GPU, with this interpreter.

        run = memreplay.record("train.py", "--batch_size=16", card="rtx-4090")
        run.fits("rtx-3060"), run.total_bytes, run.breakdown, run.recording

    `flags` are those of `memreplay record` with _ for -. The snapshot is written to `out`, or lies in a temporary
    folder until the result is collected. A GPU of this machine is not touched.

    Errors: memreplay.Error if the script fails, with what it printed; that memory runs out is a result.
    """
    if not words:
        raise TypeError("record(): expected a script and its arguments")
    return _record(list(words), words[0], card, out, _Folder(), flags)


def _record(words: List[str], name: str, card: str, out: Optional[Path], folder: _Folder,
            flags: Dict[str, Any]) -> Simulation:
    path = str(out if out is not None else folder.path / "snapshot.pickle")
    given = _flags(card=card, python=sys.executable, **flags)
    done = start(["record", *given, f"--out={path}", "--json", "--", *words])
    output = done.stderr.decode("utf-8", "replace")
    try:
        data = json.loads(done.stdout)
    except ValueError:
        raise failure(done) from None
    made = Simulation(data, name, output, folder)
    if made.exit_status and not made.out_of_memory:
        process = next((process for process in made.processes if process.error), None)
        why = f"{process.error}: {process.error_text}" if process else "; ".join(made.faults)
        raise Error(f"{name}: {why}\n\n{output[-_MAX_OUTPUT:]}".rstrip())
    if not made.processes:
        raise Error("; ".join([f"{name}: allocated no memory of the GPU", *made.faults]))
    return made


def simulate(function: Callable[[], Any], *, card: str, steps: int = 1, out: Optional[Path] = None,
             **flags: Any) -> Simulation:
    """Calls a function `steps` times in a process of its own, on a simulated GPU.

        run = memreplay.simulate(train_step, card="rtx-4090", steps=2)

    The function is sent by cloudpickle, if that is installed; otherwise it must be one that a module has, or a script,
    whose file is imported there without what stands below `if __name__ == "__main__"`. Optimizers make their state in
    their first step, so two steps show what they need. Result, `out` and `flags` are those of record().

    Errors: memreplay.Error if the function fails, with its traceback, or if it cannot be sent: what it refers to lies
    on a GPU or cannot be pickled.
    """
    if not callable(function):
        raise TypeError(f"simulate(): expected a function without arguments, found {function!r:.100}")
    if steps < 1:
        raise ValueError(f"simulate(): expected at least one step, found {steps}")
    return _send(function, getattr(function, "__name__", type(function).__name__), steps, card, out, flags)


def estimate(model: Any, sample_input: Any, *, card: str, optimizer: Optional[Callable[..., Any]] = None,
             loss: Optional[Callable[[Any], Any]] = None, out: Optional[Path] = None, **flags: Any) -> Simulation:
    """Runs two training steps of a model on a simulated GPU or, without an optimizer, inference.

        run = memreplay.estimate(make_model, {"input_ids": ((8, 1024), "int64")}, optimizer=torch.optim.AdamW,
                                 card="rtx-4090")

    Args:
      model: a torch.nn.Module on the CPU or the device meta, or a function that makes one.
      sample_input: a tensor, a tuple of tensors, or a dict of tensors by the names of forward()'s arguments. A shape
        with a type such as ((8, 1024), "int64") stands for a tensor of zeros, (8, 1024) for one of float32.
      optimizer: is called with the parameters: a class such as torch.optim.AdamW, or a functools.partial of one.
        None: inference under torch.inference_mode().
      loss: a function of the model's output. Without it, the loss is output.loss (or output["loss"]) if there is one,
        and output.sum() if the output is a tensor.

    Result, `out`, `flags` and errors are those of simulate().
    """
    if not callable(model):
        raise TypeError(f"estimate(): expected a model or a function that makes one, found {model!r:.100}")
    if optimizer is not None and not callable(optimizer):
        raise TypeError("estimate(): expected a class of optimizers such as torch.optim.AdamW, found "
                        f"{optimizer!r:.100}")
    name = getattr(model, "__name__", type(model).__name__)
    return _send((model, sample_input, optimizer, loss), name, None, card, out, flags)


def _send(sent: Any, name: str, steps: Optional[int], card: str, out: Optional[Path],
          flags: Dict[str, Any]) -> Simulation:
    """Records the script that calls what is sent `steps` times, or (None) makes an estimate of it."""
    folder = _Folder()
    main: Any = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    spec = getattr(main, "__spec__", None)
    origin = (spec.name, "") if spec else (pathlib.Path(file).stem, os.path.abspath(file)) if file else ("__main__", "")
    search_path = [os.path.abspath(part) for part in sys.path]
    call = folder.path / "call.pickle"
    call.write_bytes(pickle.dumps((search_path, origin, steps)) + _pickled(sent, name))
    return _record([_SIMULATED, str(call)], name, card, out, folder, flags)


class _OnGpu(Exception):
    pass


def _dumps(sent: Any) -> bytes:
    """Pickles with cloudpickle or, if that is not installed, by reference. Errors: _OnGpu, and any of pickling."""
    try:
        kind: Any = importlib.import_module("cloudpickle").Pickler
    except ImportError:
        kind = pickle.Pickler
    torch = sys.modules.get("torch")

    class Pickler(kind):  # type: ignore[misc]
        def persistent_id(self, found: Any) -> None:
            if torch is not None and isinstance(found, torch.Tensor) and found.is_cuda:
                raise _OnGpu

    buffer = io.BytesIO()
    Pickler(buffer).dump(sent)
    return buffer.getvalue()


def _pickled(sent: Any, name: str) -> bytes:
    try:
        return _dumps(sent)
    except _OnGpu:
        raise Error(f"{name}: {_blamed(sent)} lies on this machine's GPU; make it in a function that is called there, "
                    "or on the CPU or the device meta") from None
    except Exception as error:  # pickling calls code of any class
        advice = ("make it in the function itself" if importlib.util.find_spec("cloudpickle") else
                  "pip install cloudpickle, or define the function at the top level of a module")
        raise Error(f"{name}: {_blamed(sent)} cannot be sent to another process ({error}); {advice}") from None


def _parts(whole: Any) -> Iterator[Tuple[str, Any]]:
    """Yields what pickling an object pickles in turn, with names."""
    if inspect.isfunction(whole):
        used = inspect.getclosurevars(whole)
        for names, kind in ((used.nonlocals, "variable"), (used.globals, "global variable")):
            yield from ((f"{kind} {name!r} of {whole.__qualname__}", part) for name, part in names.items())
    elif inspect.ismethod(whole):
        yield f"the object of {whole.__qualname__}", whole.__self__
    elif isinstance(whole, (tuple, list)):
        yield from ((getattr(part, "__qualname__", type(part).__name__), part) for part in whole)
    elif isinstance(whole, dict):
        yield from ((f"item {name!r}", part) for name, part in whole.items())
    elif hasattr(whole, "named_parameters"):
        yield from ((f"parameter {name!r}", part) for name, part in whole.named_parameters())
        yield from ((f"attribute {name!r}", part) for name, part in vars(whole).items())
    else:
        yield from ((f"attribute {name!r}", part) for name, part in getattr(whole, "__dict__", {}).items())


def _blamed(whole: Any, depth: int = 5) -> str:
    """Returns the name of the innermost part that cannot be pickled."""
    for name, part in _parts(whole) if depth else ():
        try:
            _dumps(part)
        except Exception:
            inner = _blamed(part, depth - 1)
            return name if inner == _called(part) else f"{name}: {inner}"
    return _called(whole)


def _called(found: Any) -> str:
    return str(getattr(found, "__qualname__", f"an object of {type(found).__name__}"))
