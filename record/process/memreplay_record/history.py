"""Turns PyTorch's own recording on as soon as the script uses CUDA, and writes it when the script ends."""
import atexit
import contextlib
import ctypes
import gc
import json
import os
import pickle
import resource
import signal
import sys
import threading
import time

from memreplay_record import (
    _ending,
    _lost,
    card,
    edited,
    frames,
    notes,
    on_import,
    own_recording,
    peaks,
    ranks,
)
from memreplay_record._lost import quietly

_MAX_TEXT = 2000  # characters of an error
_WRITE = signal.SIGRTMAX  # asks a process for its recording, before it is killed


class _Left:
    """The paths of what a process leaves, by the names in Wishes.Files of proto/record.proto."""

    def __init__(self, settings, pid):
        self._begin, self._ends = os.path.join(settings.folder, str(pid)), settings.files

    def __getattr__(self, name):
        return self._begin + getattr(self._ends, name)

    def leave_problem(self, why):
        for path in (self.snapshot, self.part):  # these make room for the reason on a full disk
            with contextlib.suppress(OSError):
                os.unlink(path)
        with contextlib.suppress(OSError), open(self.problem, "w", encoding="utf-8", errors="replace") as file:
            file.write(why[:_MAX_TEXT])  # no folder, no room: the reason is missing, the file may be there


class History:
    """The recording of one process."""

    def __init__(self, torch, settings):
        self.torch, self.settings = torch, settings
        self.pid = None  # of the process that records; a fork of it starts anew
        self.began = time.time()
        self.script = getattr(sys.modules.get("__main__"), "__file__", None)  # Python forgets it at the script's end
        self.values = None  # counts the stand-in values that the script read
        self.compilations = None  # counts graphs, breaks and recompilations
        self.steps = None  # ends the script after as many as were requested
        self.changes = None  # counts the remedies that the script met
        self.proposals, self.classes = [], []  # remedies that could help it, and classes that one may name
        self.peaks = peaks.Peaks(torch)
        self.own = own_recording.OwnRecording(torch, self)
        self.notes = _notes_for(torch, settings)

    def on_cuda(self):
        """Begins when CUDA has come up in this process, before anything is allocated."""
        if self.records():
            return
        if self.torch.cuda.get_allocator_backend() != "native":
            card.give_up(self.settings,
                         "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync: PyTorch keeps no record of memory there; "
                         "record without it, then ask memreplay replay FILE --conf backend:cudaMallocAsync")
        self.pid = os.getpid()
        left = _Left(self.settings, self.pid)
        if os.path.exists(left.recording):
            left.leave_problem("it became another program (exec), which is recorded")
        with contextlib.suppress(OSError), open(left.recording, "wb"):
            pass  # if it cannot be written, the script goes on
        try:
            self._begin()
        except Exception as error:
            self.pid = None
            left.leave_problem(f"{type(error).__name__}: {error}")
            return
        self._start_notes()

    @quietly("notes of modules, backward passes and optimizers")
    def _start_notes(self):
        if self.notes is not None:
            self.notes.start()
            self.torch._C._cuda_attach_out_of_memory_observer(
                lambda device, size, *more: self.notes.ran_out(size))

    def records(self):
        return self.pid == os.getpid()

    def record_all_stacks(self):
        """Adds C++ frames to stacks from here on; what is recorded stays."""
        self.settings.stacks = "all"
        if self.records():
            self.own.keep_events(self._begin)

    def _begin(self):
        try:
            self.own.record("all", context="all", stacks=self.settings.stacks, max_entries=sys.maxsize)
        except TypeError:  # torch 2.0
            self.own.record(True, trace_alloc_max_entries=2**31 - 1,
                            trace_alloc_record_context=True)

    def write(self):
        """Writes the snapshot and the summary once, or what prevents that."""
        if not self.records():
            return
        self.pid = None
        left = _Left(self.settings, os.getpid())
        try:
            self._write(left)
        except BaseException as error:  # the script's exit status is its own
            left.leave_problem(f"{type(error).__name__}: {error}")
        if isinstance(_ended_by(), KeyboardInterrupt):
            _end_by_interrupt()

    def _write(self, left):
        gc.disable()  # nothing is recorded any more, and Python collects once more when it ends
        card.forget_lines()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a second one must not cut it short
                signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError, ValueError):  # a script may have used up its descriptors
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        with open(left.snapshot, "wb"):  # the command waits for those that write
            pass
        snapshot = self.own.take()
        self._take_notes(snapshot)
        simulated = card.summary()
        if simulated is not None and simulated["addresses"] == "up":  # what-ifs follow it
            snapshot.setdefault(notes.KEY, {"version": notes.VERSION, "kinds": [], "names": [], "devices": []})
            snapshot[notes.KEY]["addresses"] = "up"
        frames.drop_own(snapshot)
        if self.settings.survey:
            self.proposals = _proposals(self.notes, snapshot)
            self.classes = _classes(self.notes)
        self.own.record(None)
        conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        if conf and "allocator_settings" not in snapshot:  # torch 2.1 leaves them out
            snapshot["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": conf}
        snapshot["torch_version"] = str(self.torch.__version__)  # readers need not infer the release
        if not any(snapshot["device_traces"]) and not snapshot["segments"] and not _ended_by():
            os.unlink(left.snapshot)
            os.unlink(left.recording)
            return  # a worker of torch.compile, say
        with open(left.snapshot, "wb") as file:
            pickle.dump(snapshot, file)
        with open(left.part, "w", encoding="utf-8", errors="replace") as file:  # words may be no text
            json.dump({"version": self.settings.VERSION, "process": self._summary()}, file, ensure_ascii=False)
        os.rename(left.part, left.summary)

    @quietly("all notes")
    def _take_notes(self, snapshot):
        if self.notes is not None:
            snapshot[notes.KEY] = self.notes.taken()
            self.notes.stop()

    def _summary(self):
        from memreplay_record import servers
        torch = self.torch
        ended = _ended_by()
        cards = []
        for index in range(torch.cuda.device_count()):
            cards.append({
                "name": torch.cuda.get_device_name(index),
                "capacity": torch.cuda.get_device_properties(index).total_memory,
                **self.peaks.of(index),
            })
        return {
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "command": [_lost.text_of(word) for word in sys.argv],
            "rank": int(os.environ.get("RANK", ranks.rank if ranks.largest_group > 1 else -1)),
            "group": ranks.largest_group,
            "seconds": time.time() - self.began,
            **(_error_of(ended) if ended is not None else {}),
            "sources": _sources(self.script, self.began),
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
            "cards": cards,
            "randomized": _is_randomized(),
            "card": card.summary(),
            "outside": card.passed(),
            "cache": servers.cache(),
            "stopped_after_steps": self.steps.limit if self.steps is not None and self.steps.stopped else 0,
            "holding": self.notes.holders.found() if self.notes is not None else {},
            "late_state": self.notes.late_state() if self.notes is not None else 0,
            "values": self.values.summary() if self.values is not None else None,
            "compilations": self.compilations.summary(),
            "proposals": self.proposals,
            "classes": self.classes,
            "met": (self.changes.met if self.changes is not None else []) + edited.met,
            "lost": _lost.texts(),
            "work": self.changes.work.summary() if self.changes is not None and self.changes.work is not None else None,
        }


def _end_by_interrupt():
    """Makes Python end by SIGINT, as after a KeyboardInterrupt, which it forgets once text is compiled and run."""
    sys.excepthook = lambda *error: None  # it was shown already
    ctypes.pythonapi.PyRun_SimpleString(b"raise KeyboardInterrupt")


@quietly("all notes")
def _notes_for(torch, settings):
    kind = notes.Notes if settings.notes else None
    if settings.survey:
        from memreplay_record.remedies import survey
        kind = survey.SurveyingNotes
    if kind is None:
        return None
    return kind(torch, on_import.watch, card.allocator_calls if settings.core else None)


@quietly("changes that may help", otherwise=())
def _proposals(noted, snapshot):
    from memreplay_record import remedies
    noted.seen.read(snapshot)
    return remedies.proposals(noted.seen)


def _classes(noted):
    """Returns names of classes, or none where others may be used: nothing looks into what is compiled."""
    return [] if noted is None or noted.seen.compiled else sorted(noted.seen.classes)


def _ended_by():
    """Returns the uncaught exception, or None."""
    return getattr(sys, "last_value", None)


def _error_of(error):
    """Returns what a summary says of the exception that ended the process."""
    frames_of_it = _ending.frames_of(error)
    line = _ending.line_of(frames_of_it) or _ending.Frame("", 0, "", "")
    return {
        "error": _lost.name_of(type(error)),
        "error_text": card.explain(_ending.message_of(error, line)[:_MAX_TEXT]),
        "error_place": f"{line.file}:{line.line}" if line.file else "",
        "error_function": line.function,
        "error_frames": [each._asdict() for each in frames_of_it],
    }


def _sources(script, began):
    """Returns the source files of the script: a run can be answered from an earlier one if none changed.

    What was changed since the run began has the time 0, as which text was read is unknown.
    """
    installed = [sys.prefix + os.sep, sys.base_prefix + os.sep, frames.FOLDER]
    # torch.distributed writes a module into a temporary folder, which goes with the process.
    written = getattr(sys.modules.get("torch.distributed.nn.jit.instantiator"), "INSTANTIATED_TEMPLATE_DIR_PATH", None)
    if written is not None:
        installed.append(os.path.abspath(written) + os.sep)
    torch = sys.modules["torch.version"]
    found = {torch.__file__, *([os.path.abspath(script)] if isinstance(script, str) else ())}
    for module in list(sys.modules.values()):
        try:
            file = os.path.abspath(_lost.fields_of(module)["__file__"])
        except (AttributeError, KeyError, TypeError, OSError):  # none, or the script removed its working directory
            continue
        if not file.startswith(tuple(installed)):
            found.add(file)
    rows = []
    for path in sorted(found):
        try:
            status = os.stat(path)
        except OSError:
            continue
        modified = status.st_mtime_ns if status.st_mtime < began else 0
        rows.append({"path": path, "size": status.st_size, "modified": modified})
    return rows


def _is_randomized():
    """Returns whether the kernel gives this process random addresses."""
    try:
        with open("/proc/self/personality", encoding="ascii") as file:
            return not int(file.read(), 16) & 0x0040000  # ADDR_NO_RANDOMIZE
    except (OSError, ValueError):
        return True


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _let_write(settings, pid):
    """Waits until a process that was asked to has written its recording, or has ended.

    It waits for ten seconds, or for a minute if the process has begun to write by then.
    """
    left, begin = _Left(settings, pid), time.monotonic()
    while os.path.exists(left.recording) and _runs(pid) and \
            time.monotonic() - begin < (60 if os.path.exists(left.snapshot) else 10) and \
            not (os.path.exists(left.summary) or os.path.exists(left.problem)):
        time.sleep(0.05)


def _kill_after_writing(history):
    """Makes os.kill() let a process that records write its recording before SIGKILL.

    vLLM's server sends its engine SIGTERM and SIGKILL at once. SGLang's sends SIGKILL alone, to its processes and to
    itself; they are asked by a signal that nobody else uses.
    """
    kill, asked = os.kill, set()

    def kill_after_writing(pid, number):
        if number == signal.SIGTERM:
            asked.add(pid)
        elif number == signal.SIGKILL and pid == os.getpid():
            history.write()
        elif number == signal.SIGKILL and os.path.exists(_Left(history.settings, pid).recording):
            if pid not in asked:
                kill(pid, _WRITE)
            _let_write(history.settings, pid)
        kill(pid, number)

    os.kill = kill_after_writing  # multiprocessing, subprocess and psutil call it too


def _end_by(history, leave):
    """Returns a handler of signals that ends the process by an exception, so that it writes its recording.

    Imports and scripts that go on after any exception swallow it: it is raised again, and in the end not waited for.
    """
    raised = []

    def raise_again(number):
        if history.records():
            signal.pthread_kill(threading.main_thread().ident, number)

    def end(number, frame):
        raised.append(number)
        if len(raised) > 3:
            leave(128 + number)
        with contextlib.suppress(RuntimeError):  # no thread can be started any more
            again = threading.Timer(5, raise_again, (number,))
            again.daemon = True
            again.start()
        sys.exit(128 + number)

    return end


def begin(torch, settings):
    history = History(torch, settings)
    torch.cuda._lazy_call(history.on_cuda)
    atexit.register(history.write)
    leave = os._exit

    def leave_after_writing(status):
        history.write()
        leave(status)

    os._exit = leave_after_writing  # multiprocessing's children end with it
    _kill_after_writing(history)
    if threading.current_thread() is threading.main_thread():
        for asked in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(asked) is signal.SIG_DFL:
                signal.signal(asked, _end_by(history, leave_after_writing))
        signal.signal(_WRITE, lambda number, frame: history.write())
    return history
