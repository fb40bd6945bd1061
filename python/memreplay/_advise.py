"""memreplay.advise(): which changes to a script make it fit a GPU. Recordings have a method of that name."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from memreplay._answer import Answer
from memreplay._load import Recording, Source, _flags, load
from memreplay._program import run


def advise(*words: Union[str, Mapping[Union[Recording, Source], Union[int, str]]], card: Union[int, str, None] = None,
           argument: Optional[Mapping[str, Union[int, str]]] = None, **flags: Any) -> Answer:
    """Runs a script on a simulated GPU as it is and with each change that may help.

    `words` are the script and its arguments, `flags` those of `memreplay advise` with _ for - (`try_=` for --try).

        answer = memreplay.advise("train.py", "--batch_size=16", card="rtx-4070")
        answer.advice.rows[0].patch   # the best change, for patch -p1; or .arguments, .environment
        answer.to_pandas()            # all of them

    `argument={"batch_size": 64}` asks what makes it fit with that argument of the script, `{"batch_size": "?"}` also
    for the largest value that each change allows (`rows[0].largest`).

    Of recordings instead of a script, each with its value of the argument, it says what another value needs:

        memreplay.advise({"of16.pickle": 16, "of24.pickle": 24}, argument={"batch_size": "?"}, card="rtx-4070")

    `is_good` says whether anything makes it fit. Errors: memreplay.Error with memreplay's message; TypeError.
    """
    values = [f"--{name}={value}" for name, value in (argument or {}).items()]
    flags_of_all = ["advise", *_flags(card=card, **flags), *values, "--json"]
    recordings = [(load(source), value) for each in words if not isinstance(each, str)
                  for source, value in each.items()]
    script = [each for each in words if isinstance(each, str)]
    if bool(recordings) == bool(script):
        raise TypeError("advise(): expected a script with its arguments or recordings with their values")
    named = [f"{recording._word}={value}" for recording, value in recordings]
    done = run([*flags_of_all, *named] if named else [*flags_of_all, "--", *script])
    return Answer.parse(done.stdout, done.returncode == 0)
