"""Records a script's GPU memory with torch.cuda.memory._record_memory_history."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import pathlib
import pickle
import sys
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from memreplay import _ending, _lost, _notes, _on_import, _output
from memreplay._explain import tell
from memreplay._report_oom import report_oom

_step: Optional[Any] = None  # the range of the step that runs
_blocks: List[Optional[_notes.Notes]] = []  # the notes of each recording() that runs
_watch: Optional[Tuple[Optional[int], str]] = None  # what on_oom() records with; it writes and explains alone
_DEFAULT = pathlib.PurePath("snapshot.pickle")


def _rank() -> Optional[int]:
    """Returns the rank of this process if there are several: torch.distributed's, torchrun's, srun's or mpirun's."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    for rank, ranks in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        if int(os.environ.get(ranks) or 1) > 1 and os.environ.get(rank):
            return int(os.environ[rank])
    return None


def _named(path: pathlib.Path, part: str) -> pathlib.Path:
    """out.pickle -> out.PART.pickle"""
    return path.with_name(_output.file_name(path.stem, f".{part}{path.suffix}"))


def _warn(text: str) -> None:
    """Warns of what is missing in a recording. Raises nothing, even where warnings are errors."""
    try:
        warnings.warn(text, stacklevel=4)
    except Exception:
        with contextlib.suppress(Exception):
            print(f"memreplay: {text}", file=sys.stderr or None)


def _drop_own_frames(snapshot: Dict[str, Any]) -> None:
    """Removes the frames of the notes from stacks under backward."""
    done = set()
    for trace in snapshot["device_traces"]:
        for event in trace:
            stack = event.get("frames")
            if stack and id(stack) not in done:
                done.add(id(stack))
                if any(frame["filename"] == _notes.__file__ for frame in stack):
                    stack[:] = [frame for frame in stack if frame["filename"] != _notes.__file__]


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Makes Python collect no garbage meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _of_rank(path: pathlib.Path) -> pathlib.Path:
    rank = _rank()
    return path if rank is None else _named(path, f"rank{rank}")


@_lost.quietly("the file of a module")
def _file_of(module: Any) -> Any:
    try:
        return _lost.fields_of(module).get("__file__")
    except AttributeError:  # sys.modules has libraries of cffi, too
        return None


def _check(path: Union[str, "os.PathLike[str]"], default: pathlib.PurePath = _DEFAULT) -> pathlib.Path:
    """Returns the path of snapshots. Errors: OSError if they cannot be written there, or would replace a script."""
    sources = [file for file in map(_file_of, list(sys.modules.values())) if isinstance(file, str)]
    found = pathlib.Path(path)
    _output.check(_of_rank(found), sources, _output.SNAPSHOT_MARK if path is default else None)
    return found


@_lost.quietly("all notes")
def _take_notes(snapshot: Dict[str, Any], notes: _notes.Notes) -> None:
    snapshot[_notes.KEY] = notes.taken()


def _free(path: pathlib.Path) -> pathlib.Path:
    """Returns the path, or the first of NAME.2.pickle and so on, where nothing would be lost of what a script wrote."""
    number, free = 1, path
    while True:
        try:
            _output.check(free, mark=_output.SNAPSHOT_MARK)
            return free
        except FileExistsError:
            number, free = number + 1, _named(path, str(number + 1))


def _ran_out(snapshot: Dict[str, Any]) -> bool:
    return any(event["action"] == "oom" for trace in snapshot["device_traces"] for event in trace)


def _dump(path: pathlib.Path, notes: Optional[_notes.Notes], ended: str = "") -> pathlib.Path:
    """Writes the snapshot, with what ended its block. Returns its path."""
    import torch

    with _without_collection():  # what it frees would be counted in the notes and missing in the snapshot
        snapshot = torch.cuda.memory._snapshot()
        if notes is not None:
            _take_notes(snapshot, notes)
            _drop_own_frames(snapshot)
    if ended and not _ran_out(snapshot):
        snapshot["memreplay_ended"] = ended
    snapshot["torch_version"] = str(torch.__version__)  # the last key: readers need not infer the release
    with _output.written(path) as file:
        pickle.dump(snapshot, file)
    return path


def _start(max_entries: Optional[int], stacks: str) -> None:
    """Starts recording, with the arguments that the release takes."""
    from torch.cuda import memory

    call: Any = memory._record_memory_history
    known = inspect.signature(call).parameters
    if "enabled" not in known or "context" not in known:
        known = inspect.signature(getattr(memory, "_record_memory_history_impl", call)).parameters
    if "context" in known:
        wanted: Dict[str, Any] = {"enabled": "all", "context": "all", "stacks": stacks, "clear_history": True,
                                  "global_record_annotations": True, "max_entries": max_entries}
    else:  # 2.0
        wanted = {"enabled": True, "record_context": True, "trace_alloc_record_context": True,
                  "trace_alloc_max_entries": max_entries or 2**31 - 1, "record_context_cpp": stacks == "all"}
    call(**{name: found for name, found in wanted.items() if name in known and found is not None})


@_lost.quietly("all notes")
def _start_notes() -> Optional[_notes.Notes]:
    """Starts notes, unless this release of PyTorch lacks what they are taken from."""
    import torch

    with contextlib.suppress(AttributeError):
        notes = _notes.Notes(torch, _on_import.watch)
        notes.start()
        return notes
    return None


def _stop() -> None:
    from torch.cuda import memory

    try:
        memory._record_memory_history(enabled=None)
    except TypeError:  # 2.0
        memory._record_memory_history(False)


@contextlib.contextmanager
def recording(path: Union[str, "os.PathLike[str]"] = _DEFAULT, *, on_oom: bool = True,
              max_entries: Optional[int] = None, stacks: str = "python") -> Iterator[None]:
    """Records what the block requests of GPU memory and writes it as a memory snapshot when the block ends, or fails.

    Each of several ranks writes its own: out.pickle becomes out.rank3.pickle.

    Args:
      on_oom: also write out.oom.pickle at the moment when memory runs out (the last one of several), before what the
        error unwinds is freed.
      max_entries: how many events PyTorch keeps; without it all, at some hundred bytes of host memory each. A
        recording without its beginning still shows much, but less exactly.
      stacks: "python" frames, or "all" for C++ frames too.

    What grows from step to step, and which variables hold memory, is printed on stderr (docs/causes.md).

    If the block ends by an error about memory, it is explained on stderr. Where memory of the GPU ran out, that is why,
    what would have helped, and the page of out.oom.pickle (report_oom()). Where memreplay.on_oom() was called, it does
    all of that instead, into its own files.

    Errors: RuntimeError on a machine without a GPU. OSError, before the block runs, if `path` is a directory, a script
    or not writable, and without a path if there is a snapshot.pickle that memreplay did not write; where the block
    writes one, the recording is snapshot.2.pickle. A snapshot that cannot be written later is a warning, so that a run
    is not lost for its recording.
    """
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("memreplay.recording: PyTorch finds no GPU here, so there is nothing to record; "
                           "memreplay record --card runs a script on a simulated one")
    is_default = path is _DEFAULT
    path = _check(path)
    torch.cuda.init()
    _start(max_entries, stacks)
    notes: Optional[_notes.Notes] = _start_notes()
    _blocks.append(notes)
    is_on = True
    ran_out: Optional[pathlib.Path] = None  # what was written where memory ran out

    ended, is_explained = "", False

    def write(to: pathlib.Path) -> Optional[pathlib.Path]:
        try:
            return _dump(_free(_of_rank(to)) if is_default else _of_rank(to), notes, ended)
        except Exception as error:  # whatever it was, the recorded script continues
            _warn(f"memreplay.recording: {to} was not written: {_lost.text_of(error)}")
            return None

    def observe(device: int, size: int, device_total: int, device_free: int) -> None:
        nonlocal ran_out
        if is_on and notes is not None:
            notes.ran_out(size)
        if is_on and _watch is None:
            ran_out = write(_named(path, "oom"))

    if on_oom:
        torch._C._cuda_attach_out_of_memory_observer(observe)  # PyTorch has no way to detach it
    try:
        yield
    except BaseException as error:
        ended = _ending.words_for(error)
        if ran_out is not None and type(error).__name__ == "OutOfMemoryError":
            is_explained = True
            _lost.quietly("why memory ran out")(report_oom)(ran_out)
        elif _watch is None or type(error).__name__ != "OutOfMemoryError":
            tell(error)
        raise
    finally:
        is_on = False
        _lost.quietly("where the last step ends")(_end_step)()
        write(path)
        if notes is not None:
            _lost.quietly("where the notes end")(notes.stop)()
            for text in notes.holders.sentences():
                print("  " if is_explained else "memreplay: ", text, sep="", file=sys.stderr or None)
        _blocks.remove(notes)
        _lost.quietly("where PyTorch's recording ends")(_stop)()
        if _watch is not None:
            _start(*_watch)
        for text in _lost.texts():
            _warn(f"memreplay.recording: not noted: {text}")


def step(number: int) -> None:
    """Marks where a step of the loop begins; the one before ends there.

    The mark is a range named "memreplay.step#NUMBER". Snapshots keep it from PyTorch 2.6 on, and profilers show it.
    """
    from torch.autograd.profiler import record_function

    global _step
    _end_step()
    _step = record_function(f"memreplay.step#{number}")
    _step.__enter__()


def _end_step() -> None:
    global _step
    if _step is not None:
        _step.__exit__(None, None, None)
        _step = None
