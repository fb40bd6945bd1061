"""Records the memory of a PyTorch script from inside its processes.

`memreplay record` puts the folder of this package on PYTHONPATH and its settings, a JSON object, into MEMREPLAY_RECORD.
sitecustomize then calls start() in the script and in every child of it that runs Python: DataLoader workers, torchrun's
ranks, compile workers. Nothing happens before `import torch`, so that children that never import it cost nothing.
"""
import json
import os

from memreplay_record import on_import


class Settings:
    """The fields of MEMREPLAY_RECORD, all optional except the folder."""

    def __init__(self, text):
        asked = json.loads(text)
        self.folder = asked["folder"]  # where each process leaves its snapshot and its summary
        self.core = asked.get("core", "")  # the simulated GPU's library; empty: record on the real GPU
        self.cache = asked.get("cache", "")  # a folder for what the core writes for one build of torch
        self.stacks = asked.get("stacks", "python")
        self.values = asked.get("values", True)
        self.notes = asked.get("notes", True)
        self.dynamic_fraction = asked.get("dynamic_fraction", 1.0)
        self.unknown_limit = asked.get("unknown_limit", 10_000)
        self.ranks = asked.get("ranks", 0)  # 0: the processes that there are
        self.rank = asked.get("rank", 0)
        self.fast_init = asked.get("fast_init", False)
        self.steps = asked.get("steps", 0)  # after which the script ends; 0: by itself
        self.remedies = asked.get("remedies", [])  # names of changes (remedies/)
        self.rates = asked.get("rates", {})  # of the simulated GPU: operations and bytes per second
        self.survey = asked.get("survey", False)  # whether to find out which changes could help


def start():
    settings = Settings(os.environ["MEMREPLAY_RECORD"])
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
