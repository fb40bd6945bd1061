"""Records the GPU memory of a Hugging Face Trainer: Trainer(..., callbacks=[MemoryRecording("snapshot.pickle")])."""

import atexit
import contextlib

import memreplay
from transformers import TrainerCallback


class MemoryRecording(TrainerCallback):
    def __init__(self, path="snapshot.pickle", **options):
        self.recording, self.stack = memreplay.recording(path, **options), contextlib.ExitStack()
        atexit.register(self.stack.close)  # training that fails has no end

    def on_train_begin(self, args, state, control, **kwargs):
        self.stack.enter_context(self.recording)

    def on_step_begin(self, args, state, control, **kwargs):
        memreplay.step(state.global_step)

    def on_train_end(self, args, state, control, **kwargs):
        self.stack.close()
