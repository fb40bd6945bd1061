"""Records the memory of a PyTorch script from inside its processes.

`memreplay record` puts the folder of this package on PYTHONPATH and its settings, a JSON object, into MEMREPLAY_RECORD.
sitecustomize then calls start() in the script and in every child of it that runs Python: DataLoader workers, torchrun's
ranks, compile workers. Nothing happens before `import torch`, so that children that never import it cost nothing.
"""
import json
import os
import sys

from memreplay_record import on_import


def read_wishes(text):
    """Returns Wishes (proto/record.proto). Ends the process if they are those of another version of memreplay."""
    from memreplay_record._contract import Wishes
    wishes = Wishes(json.loads(text))
    unknown = wishes.unknown()
    if unknown or wishes.version != Wishes.VERSION:
        ours = os.path.dirname(os.path.abspath(__file__))
        older = "that memreplay" if wishes.version < Wishes.VERSION else "this folder"
        print(f"{ours}: expected wishes of version {Wishes.VERSION}, found version {wishes.version}"
              f"{' with ' if unknown else ''}{', '.join(unknown)}: {older} is the older", file=sys.stderr, flush=True)
        os._exit(2)
    return wishes


def start():
    settings = read_wishes(os.environ["MEMREPLAY_RECORD"])
    if settings.edits:
        from memreplay_record import edited
        edited.begin(settings.edits)
    if settings.survey:
        from memreplay_record.remedies import constructor, parsers
        parsers.begin()
        constructor.begin()
    on_import.watch("torch", lambda spec: _before_torch(spec, settings),
                    lambda torch: _after_torch(torch, settings))


def _before_torch(spec, settings):
    if settings.core:
        from memreplay_record import card, ranks
        ranks.begin(settings)
        card.load(settings, os.path.dirname(spec.origin))


def _after_torch(torch, settings):
    if torch.__version__.startswith(("0.", "1.")):
        from memreplay_record import card
        card.give_up(settings, f"PyTorch {torch.__version__} is too old; record needs 2.1 or later")
    from memreplay_record import frames, history, servers
    frames.hide_own()
    servers.begin()
    limited = None
    if settings.steps:
        from memreplay_record import steps
        limited = steps.Steps(settings.steps)
    changes = None
    if settings.remedies:
        from memreplay_record import remedies
        try:
            changes = remedies.apply(torch, settings.remedies, settings.rates)
        except ValueError as error:
            from memreplay_record import card
            card.give_up(settings, str(error))
    if settings.core:
        from memreplay_record import card, notes
        card.follow_pinned(notes.settings_at_start(torch))  # whose first request initialises CUDA
    recording = history.begin(torch, settings)
    recording.changes, recording.steps = changes, limited
    from memreplay_record import compilations
    recording.compilations = compilations.begin()
    if settings.core and settings.fast_init:
        from memreplay_record import fast_init
        fast_init.begin(torch)
    if settings.core and settings.values:
        from memreplay_record import values
        recording.values = values.begin(torch, settings)
    if settings.core:
        from memreplay_record import card
        card.begin_heap_anew()
