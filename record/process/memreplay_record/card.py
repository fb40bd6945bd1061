"""The simulated GPU: loads its libraries in place of NVIDIA's and calls its functions."""
import ctypes
import hashlib
import json
import os
import re
import sys

from memreplay_record import frames

_core = None
_counters = {}  # index of a card -> where its allocator's calls are counted


def give_up(settings, why):
    """Ends the process when the simulated GPU cannot be used; the command reports why."""
    with open(os.path.join(settings.folder, "unusable"), "w", encoding="utf-8") as file:
        file.write(why)
    os._exit(2)


def _installed():
    """Yields each folder of sys.path that packages are installed into, and the names in it."""
    for folder in sys.path:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        if any(name.endswith((".dist-info", ".egg-info")) for name in names):
            yield folder, sorted(names)


def _stub_folder(settings, folders, names):
    """Returns the folder of the cache with the libraries that torch and the other packages need."""
    try:
        built = os.stat(os.path.join(folders[0], "lib", "libtorch_cuda.so"))
    except OSError:
        give_up(settings, f"{folders[0]} is a PyTorch without CUDA; install a CUDA build of torch "
                           "(no GPU is needed for that)")
    key = f"{folders} {names} {built.st_size} {built.st_mtime_ns}"
    return os.path.join(settings.cache, "torch-" + hashlib.sha256(key.encode()).hexdigest()[:16])


def load(settings, torch_folder):
    """Loads the simulated GPU before torch looks for NVIDIA's libraries. Children inherit the environment."""
    global _core
    core = ctypes.CDLL(settings.core, mode=ctypes.RTLD_GLOBAL)
    for name in ("memreplay_card_error", "memreplay_card_summary"):
        getattr(core, name).restype = ctypes.c_char_p
    for name in ("memreplay_card_read", "memreplay_card_write"):
        getattr(core, name).argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    for name in ("memreplay_card_known", "memreplay_card_fill_with_zeros", "memreplay_card_forget"):
        getattr(core, name).argtypes = [ctypes.c_uint64, ctypes.c_size_t]
    core.memreplay_card_allocator_calls.restype = ctypes.c_void_p
    installed = list(_installed())  # any package may have libraries that link NVIDIA's
    folders = [torch_folder, *(folder for folder, _ in installed)]
    folder = _stub_folder(settings, folders, [names for _, names in installed])
    listed = os.path.join(folder, "libraries")
    if not os.path.exists(listed):
        os.makedirs(folder, exist_ok=True)
        if core.memreplay_card_prepare(":".join(folders).encode(), folder.encode()) != 0:
            give_up(settings, core.memreplay_card_error().decode(errors="replace"))
    with open(listed, encoding="utf-8") as file:
        for line in file.read().splitlines():
            ctypes.CDLL(line, mode=ctypes.RTLD_GLOBAL)
    problem = core.memreplay_card_error()
    if problem:
        give_up(settings, problem.decode(errors="replace"))
    os.environ["TRITON_LIBCUDA_PATH"] = folder
    _core = core


class _Pinned:
    """The lines of the script that requested pinned memory."""

    def __init__(self):
        self.places = {}  # place -> number
        self.line = ctypes.CFUNCTYPE(ctypes.c_int)(self._line)  # called by threads that may not hold Python's lock

    def _line(self):
        return self.places.setdefault(frames.place(), len(self.places))


_pinned = None


def follow_pinned(conf):
    """Makes the simulated GPU follow PyTorch's allocator of pinned memory, which has the settings `conf`."""
    global _pinned
    if _core is None or _pinned is not None:
        return
    _pinned = _Pinned()
    _core.memreplay_card_follow_pinned(_pinned.line, os.fsencode(conf))


def forget_lines():
    """Makes the simulated GPU call no function of Python any more, because Python ends."""
    if _core is not None:
        _core.memreplay_card_forget_lines()


def summary():
    """Returns the counters and notes of the simulated GPU as a dict; None if the GPU is a real one."""
    if _core is None:
        return None
    counted = json.loads(_core.memreplay_card_summary())
    places = list(_pinned.places) if _pinned is not None else []
    for line in counted["pinned"]["lines"]:
        line["place"] = places[line.pop("line")]
    return counted


def passed():
    """Returns what `record --outside` counted on a real GPU, as rows; [] without it."""
    count = getattr(ctypes.CDLL(None), "memreplay_pass_summary", None)
    if count is None:
        return []
    count.restype = ctypes.c_char_p
    return json.loads(count())


def read(address, host, size):
    """Copies `size` bytes of the simulated GPU's memory to the host address; returns whether all are known.

    Unknown ones are 0.
    """
    return _core.memreplay_card_read(address, host, size) != 0


def write(address, host, size):
    """Copies `size` bytes from the host address to the simulated GPU's memory, where they are known from then on."""
    _core.memreplay_card_write(address, host, size)


def fill_with_zeros(address, size):
    """Fills the simulated GPU's memory with zeros, which are known from then on and take no memory of the host."""
    _core.memreplay_card_fill_with_zeros(address, size)


def forget(address, size):
    """Makes the bytes unknown."""
    _core.memreplay_card_forget(address, size)


def known(address, size):
    """Returns whether a known operation wrote each byte since PyTorch handed the block out."""
    return _core.memreplay_card_known(address, size) != 0


def mark(address):
    """Marks an address until PyTorch hands its block out again."""
    _core.memreplay_card_mark(ctypes.c_uint64(address))


def marked(address):
    return _core.memreplay_card_marked(ctypes.c_uint64(address)) != 0


def allocator_calls(index):
    """Returns how many allocations and frees PyTorch's allocator has made on a card."""
    counter = _counters.get(index)
    if counter is None:
        counter = ctypes.c_uint64.from_address(_core.memreplay_card_allocator_calls(index))
        _counters[index] = counter
    return counter.value


def answer(content):
    """Provides the bytes for this thread's next copy of this size to the host."""
    _core.memreplay_card_answer(content, ctypes.c_size_t(len(content)))


class _Overrides(ctypes.Structure):
    """TorchOverrides of record/card/hooks/torch_overrides.h."""
    METHODS = ("many", "one", "several", "length", "pop", "push")
    _fields_ = [(name, ctypes.c_void_p) for name in (*METHODS, "mode", "yes", "as_long", "release")]


def hide_mode(mode, methods):
    """Makes PyTorch's built-in functions `methods` ignore a mode of torch.overrides; returns whether it could."""
    given = _Overrides(mode=id(mode), yes=id(True), **{
        name: ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value
        for name, function in (("as_long", "PyLong_AsLong"), ("release", "Py_DecRef"))})
    for name in given.METHODS:  # the PyMethodDef of a built-in function comes first
        definition = ctypes.c_void_p.from_address(id(methods[name]) + object.__basicsize__)
        setattr(given, name, definition.value)
    hide = ctypes.PyDLL(_core._name).memreplay_card_hide_mode  # keeps Python's lock
    return hide(ctypes.byref(given)) != 0


def explain(error):
    """Returns the text of an error, with the reason if the simulated GPU lacks something."""
    if _core is None:
        return error
    unknown = [f"{call['name']} in {call['library']}" if call["name"] == "CUDA's runtime" else call["name"]
               for call in summary().get("unknown", ())]
    if "operation not supported" in error and unknown:
        first, *rest = error.split("\n")
        return "\n".join([f"{first} (on the simulated GPU, which does not support {', '.join(unknown)})", *rest])
    missing = re.search(r"undefined symbol: ((?:__cuda|cu|nccl|nv)\w+)", error)
    if missing is None:
        return error
    return f"the simulated GPU lacks {missing[1]}, which is not in the public headers of CUDA 13.0: {error}"


def begin_heap_anew():
    """Makes host addresses from here on independent of environment, arguments and paths."""
    _core.memreplay_card_begin_heap_anew()


def next_communicator(ranks, rank):
    """Sets how large the next part of an NCCL communicator is that this thread splits off."""
    _core.memreplay_card_next_communicator(ranks, rank)


def answer_clear():
    _core.memreplay_card_answer_clear()
