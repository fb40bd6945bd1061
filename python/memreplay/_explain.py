"""memreplay.explain(): explains an error about memory from its text or from the exception."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, Dict, Union

from memreplay import report_types as types
from memreplay._program import Error, run

_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


class Explanation(types.Explanation):
    """What ran out, why, and what to do: `Explanation` of proto/explanation.proto as attributes; str() is for people.

    `verdict` is one of the names in docs/oom.md, `actions` what to do next, in order, each with `kind` and `sentence`;
    `evidence` the sums behind it, with `sentence`, `bytes` and `rounding_bytes`.
    """

    def __init__(self, data: Dict[str, Any], text: bytes) -> None:
        super().__init__(data)
        self._text = text

    def __str__(self) -> str:
        return run(["explain", "-"], input=self._text).stdout.decode("utf-8").rstrip("\n")

    def __repr__(self) -> str:
        return f"<memreplay.Explanation {self.verdict}: {self.sentence}>"


def _text_of(error: BaseException) -> str:
    """Returns the traceback, with the current settings."""
    settings = "".join(f"{name}={os.environ[name]}\n" for name in _SETTINGS if os.environ.get(name))
    return settings + "".join(traceback.format_exception(type(error), error, error.__traceback__))


def explain(error: Union[str, bytes, BaseException]) -> Explanation:
    """Explains an error about memory: its text, a log, or the exception itself.

    >>> found = explain("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 10.20 GiB "
    ...                 "already allocated; 512.00 MiB free; 14.50 GiB reserved in total by PyTorch)")
    >>> found.verdict, found.actions[0].kind
    ('fragmentation', 'setting')

    Errors: memreplay.Error if nothing in it is about memory.
    """
    text = _text_of(error) if isinstance(error, BaseException) else error
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if not data:
        raise Error("explain: expected an error text, found an empty one")
    return Explanation(json.loads(run(["explain", "-", "--json"], input=data).stdout)["explanation"], data)


def tell(error: BaseException) -> None:
    """Prints the explanation of an error about memory on stderr, and nothing for other errors. Raises nothing."""
    try:
        if not (isinstance(error, MemoryError) or "memory" in f"{type(error).__name__} {error}".lower()
                or "ALLOC_FAILED" in str(error)):
            return
        print(f"memreplay: {explain(error)}", file=sys.stderr)
    except Exception:  # the script's own error is what counts
        pass
