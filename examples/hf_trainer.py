"""Records the GPU memory of a Hugging Face Trainer: Trainer(..., callbacks=[MemoryRecording("snapshot.pickle")])."""

import atexit
import contextlib
import sys

import memreplay
from transformers import TrainerCallback


class MemoryRecording(TrainerCallback):
    def __init__(self, path="snapshot.pickle", **options):
        self.recording, self.stack = memreplay.recording(path, **options), contextlib.ExitStack()
        atexit.register(self.fail)  # training that fails has no end

    def fail(self):
        error = getattr(sys, "last_value", None)  # what ended the script
        self.stack.__exit__(error and type(error), error, error and error.__traceback__)

    def on_train_begin(self, args, state, control, **kwargs):
        self.stack.enter_context(self.recording)

    def on_step_begin(self, args, state, control, **kwargs):
        memreplay.step(state.global_step)

    def on_train_end(self, args, state, control, **kwargs):
        self.stack.close()
