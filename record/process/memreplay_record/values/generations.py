"""Texts that models of Transformers generate, and those that end because of a token that nobody computed."""
import functools
import sys

from memreplay_record import frames, on_import
from memreplay_record._lost import quietly
from memreplay_record.values import memory


class Generations:
    """Counts the generations that a made-up token ended early, by the script's line that requested them."""

    def __init__(self):
        self.open = []  # of each call of generate() that runs: the fewest tokens, and what its last step found
        self.ended = {}  # (place, tokens, of) -> times
        on_import.after("transformers.generation.stopping_criteria", self._watch_ends)
        on_import.after("transformers.generation.utils", self._watch_calls)

    def _watch_ends(self, module):
        ends = module.StoppingCriteriaList.__call__

        @functools.wraps(ends)
        def __call__(criteria, input_ids, *args, **kwargs):
            done = ends(criteria, input_ids, *args, **kwargs)
            if self.open:
                note(criteria, input_ids, done)
            return done

        @quietly("where a generated text ends")
        def note(criteria, input_ids, done):
            limits = [each.max_length for each in criteria if hasattr(each, "max_length")]
            length, (first, *_) = input_ids.shape[-1], self.open[-1]
            with memory.Aside():
                made_up = getattr(done, "is_cuda", False) and memory.is_small(done) and \
                    memory.state(done) == memory.ASSUMED and bool(memory.twin(done).any())
            self.open[-1] = first or length - 1, length, min(limits, default=length), made_up

        module.StoppingCriteriaList.__call__ = __call__

    def _watch_calls(self, module):
        generate = module.GenerationMixin.generate

        @functools.wraps(generate)
        def run(model, *args, **kwargs):
            self.open.append((0, 0, 0, False))
            try:
                return generate(model, *args, **kwargs)
            finally:
                first, length, limit, made_up = self.open.pop()
                if made_up and length < limit:
                    what = _place(), length - first, limit - first
                    self.ended[what] = self.ended.get(what, 0) + 1

        module.GenerationMixin.generate = run

    def summary(self):
        return [{"place": place, "tokens": tokens, "of": of, "times": times}
                for (place, tokens, of), times in self.ended.items()]


def _place():
    """Returns the innermost line of the script itself, or of a package if it has none."""
    frame = sys._getframe(1)
    while frame is not None and not frames.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else frames.place()
