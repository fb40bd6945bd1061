"""The policy for values that were never computed: stand-ins, and the lines that read them.

A floating-point value is positive, finite and below 1, and neighbours differ; an integer is 0, a truth value False.
all() and allclose() are true, any() is false: checks find nothing wrong. A size that depends on unknown values is
--dynamic-fraction of its upper bound.
"""
import math

import torch

from memreplay_record import frames
from memreplay_record.values import generations, memory, ranges

_GOLDEN = 0.6180339887498949
_FEW = 1024  # more are a vocabulary, rather than experts, levels or classes


def spread(shape, dim, size):
    """Returns indices along a dimension of `size`, as of the largest values along it: one, or a row along `dim`.

    Neighbours differ, and so do those of a row. Few possible ones are all used equally, as by a balanced router. Of
    many, those at the ends are avoided, where a vocabulary has the tokens that end or fill a text. They do not begin in
    the middle, because the vocabularies of two beams meet there if a search chooses among all beams at once.
    """
    indices = torch.empty(shape, dtype=torch.int64)
    rows = indices if dim is None else indices.transpose(dim, -1)
    longest = 1 if dim is None else rows.size(-1)
    edge = max(min(size // 8, (size - longest) // 2), 0) if size > _FEW else 0
    within = size - 2 * edge
    first = int(within * _GOLDEN) if size > _FEW else 0
    steps = torch.arange(rows.numel())
    if longest % within == 0:
        steps += steps // longest  # each row has all of them, beginning with the next one
    rows.copy_((edge + (first + steps) % within).reshape(rows.shape))
    return indices


class EndlessWait(BaseException):
    """Raised when one line read unknown values too often: it is taken for a loop that waits for them."""


class Policy:
    def __init__(self, settings):
        self.fraction = settings.dynamic_fraction
        self.limit = settings.unknown_limit
        self.asked = {}  # (place, what) -> [times, answer]
        self.generations = generations.Generations()
        self.numbers = {}  # dtype -> the stand-in of a tensor of one element

    def fill(self, tensor):
        """Gives a small unknown tensor a stand-in."""
        count = tensor.numel()
        few = ranges.few(tensor)
        if few is not None:
            values = few[0] + spread((count,), None, few[1] - few[0] + 1)
            memory.write(tensor, values.reshape(tensor.size()).to(tensor.dtype), memory.ASSUMED)
            return
        if count == 1 and tensor.dtype in self.numbers:
            memory.write(tensor, self.numbers[tensor.dtype].reshape(tensor.size()), memory.ASSUMED)
            return
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            steps = torch.arange(1, count + 1, dtype=torch.float64)
            values = (steps * _GOLDEN) % 1.0
        else:
            values = torch.zeros(count)
        values = values.reshape(tensor.size()).to(tensor.dtype)
        if count == 1:
            self.numbers[tensor.dtype] = values
        memory.write(tensor, values, memory.ASSUMED)

    def size(self, most):
        return math.ceil(most * self.fraction)

    def count(self, what, answer, values=1):
        """Counts a stand-in that the script reads, perhaps once for each of some values.

        Raises EndlessWait beyond the limit.
        """
        place = frames.place()
        seen = self.asked.setdefault((place, what), [0, answer])
        seen[0] += 1
        if seen[0] > self.limit * values:
            raise EndlessWait(
                f"{place} read {seen[0] - 1:,} times a value that no kernel computed on this "
                f"simulated GPU ({what}); a loop that waits for it would never end. "
                "--unknown-limit N allows more")

    def summary(self):
        rows = sorted(self.asked.items(), key=lambda row: (-row[1][0], row[0]))
        return {"asked": [{"place": place, "what": what, "times": times, "answer": str(answer)}
                          for (place, what), (times, answer) in rows],
                "generations": self.generations.summary()}

