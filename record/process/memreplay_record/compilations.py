"""Notes what torch.compile does with a script: graphs, graph breaks and recompilations.

Dynamo's own methods run unchanged and also report here. No frame of this package is ever compiled: Dynamo is made to
skip them.
"""
import functools
import os
import sys
import types

from memreplay_record import frames, on_import
from memreplay_record._lost import quietly

_WHAT = "what torch.compile did"
_LONGEST = 300  # maximum characters of a reason


class Compilations:
    def __init__(self):
        self.graphs = 0
        self.breaks = {}  # (place, reason) -> times
        self.recompilations = {}

    def _count(self, rows, place, reason):
        reason = " ".join(str(reason).split(" Hint:")[0].split(" Developer debug context:")[0].split())[:_LONGEST]
        rows[place, reason] = rows.get((place, reason), 0) + 1

    def summary(self):
        if not self.graphs and not self.breaks:
            return None
        return {"graphs": self.graphs, "breaks": _rows(self.breaks), "recompilations": _rows(self.recompilations)}

    @quietly(_WHAT)
    def watch_graphs(self, output_graph):
        graph, reason = output_graph.OutputGraph, output_graph.GraphCompileReason
        compile_graph, note_reason = graph.call_user_compiler, reason.__post_init__

        @functools.wraps(compile_graph)
        def call_user_compiler(*args, **kwargs):
            self.graphs += 1
            return compile_graph(*args, **kwargs)

        @functools.wraps(note_reason)
        def __post_init__(made):
            note_reason(made)
            note_break(made)

        @quietly(_WHAT)
        def note_break(made):
            if made.graph_break:
                self._count(self.breaks, _innermost(made.user_stack), made.reason)

        graph.call_user_compiler, reason.__post_init__ = call_user_compiler, __post_init__

    @quietly(_WHAT)
    def watch_frames(self, convert_frame):
        names = [name for name in ("get_and_maybe_log_recompilation_reasons", "get_and_maybe_log_recompilation_reason")
                 if hasattr(convert_frame, name)]
        for name in names:
            setattr(convert_frame, name, self._noting_recompilations(getattr(convert_frame, name)))
        if not names and hasattr(convert_frame, "is_recompilation"):  # torch 2.1
            convert_frame.is_recompilation = self._noting_that_it_is_one(convert_frame.is_recompilation)
        convert = getattr(convert_frame, "ConvertFrameAssert", None)  # torch 2.1 has functions
        if convert is None:
            return
        call = convert.__call__

        @functools.wraps(call)
        def __call__(converter, frame, *args, **kwargs):
            try:
                return call(converter, frame, *args, **kwargs)
            except (convert_frame.Unsupported, convert_frame.exc.SkipFrame) as error:
                note_skipped(converter, frame, error)
                raise

        @quietly(_WHAT)
        def note_skipped(converter, frame, error):
            # A function that has nothing to compile is skipped too.
            why = error if isinstance(error, convert_frame.Unsupported) else error.__cause__
            if isinstance(why, convert_frame.Unsupported) and not getattr(converter, "_one_graph", False):
                stack = getattr(why, "real_stack", None) or ()
                self._count(self.breaks, _innermost(stack) or _begin(frame),
                            f"{frame.f_code.co_name}() is not compiled: {why}")

        convert.__call__ = __call__

    def _noting_that_it_is_one(self, is_recompilation):
        @functools.wraps(is_recompilation)
        def run(cache_size):
            again = is_recompilation(cache_size)
            frame = sys._getframe(1).f_locals.get("frame")
            if again and frame is not None:
                self._count(self.recompilations, _begin(frame), "a guard failed")
            return again
        return run

    def _noting_recompilations(self, find_reasons):
        @functools.wraps(find_reasons)
        def run(entries, frame, *args, **kwargs):
            reasons = find_reasons(entries, frame, *args, **kwargs)
            if not kwargs.get("skip_logging"):
                note(frame, reasons)
            return reasons

        @quietly(_WHAT)
        def note(frame, reasons):
            last = (reasons if isinstance(reasons, str) else reasons[0] if reasons else "") or "no reason was found"
            self._count(self.recompilations, _begin(frame), last)
        return run


def _rows(counted):
    rows = sorted(counted.items(), key=lambda row: (-row[1], row[0]))
    return [{"place": place, "reason": reason, "times": times} for (place, reason), times in rows]


def _begin(frame):
    return f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno}"


def _innermost(stack):
    """Returns the innermost line of a stack outside of PyTorch, else its innermost line; "" if it has none."""
    torch = os.path.dirname(sys.modules["torch"].__file__) + os.sep
    stack = [frame for frame in stack if not frame.filename.startswith(frames.FOLDER)]
    own = [frame for frame in stack if not frame.filename.startswith(torch)]
    for frame in reversed(own or stack):
        return f"{frame.filename}:{frame.lineno}"
    return ""


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@quietly(_WHAT)
def _leave_alone(eval_frame):
    """Makes Dynamo skip every frame of this package, whenever it runs."""
    from memreplay_record import collectives, fast_init, ranks  # noqa: F401  so that all are here
    for name, module in list(sys.modules.items()):
        if not name.startswith("memreplay_record"):
            continue
        holders = [module, *(made for made in vars(module).values() if isinstance(made, type))]
        for holder in holders:
            for made in list(vars(holder).values()):
                function = getattr(made, "__func__", made)
                while isinstance(function, types.FunctionType):
                    if function.__code__.co_filename.startswith(frames.FOLDER):
                        for code in _codes(function.__code__):
                            eval_frame.skip_code(code)
                    function = vars(function).get("__wrapped__")


def begin():
    made = Compilations()
    on_import.after("torch._dynamo.eval_frame", _leave_alone)
    on_import.after("torch._dynamo.output_graph", made.watch_graphs)
    on_import.after("torch._dynamo.convert_frame", made.watch_frames)
    return made
