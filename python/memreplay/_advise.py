"""memreplay.advise(): which changes to a script make it fit a GPU. Recordings have a method of that name."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from memreplay._answer import Answer
from memreplay._load import _flags
from memreplay._program import run


def advise(*words: str, card: str, argument: Optional[Mapping[str, Union[int, str]]] = None, **flags: Any) -> Answer:
    """Runs a script on a simulated GPU as it is and with each change that may help.

    `words` are the script and its arguments, `flags` those of `memreplay advise` with _ for - (`try_=` for --try).

        answer = memreplay.advise("train.py", "--batch_size=16", card="rtx-4070")
        answer.advice.rows[0].lines   # the best change, to paste
        answer.to_pandas()            # all of them

    `argument={"batch_size": 64}` asks what makes it fit with that argument of the script, `{"batch_size": "?"}` also
    for the largest value that each change allows (`rows[0].largest`).

    `is_good` says whether anything makes it fit. Errors: memreplay.Error with memreplay's message.
    """
    values = [f"--{name}={value}" for name, value in (argument or {}).items()]
    done = run(["advise", *_flags(card=card, **flags), *values, "--json", "--", *words])
    return Answer.parse(done.stdout, done.returncode == 0)
