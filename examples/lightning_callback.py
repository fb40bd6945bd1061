"""Records the GPU memory of a Lightning Trainer: Trainer(callbacks=[MemoryRecording("snapshot.pickle")])."""

import contextlib

import memreplay
from lightning.pytorch.callbacks import Callback


class MemoryRecording(Callback):
    def __init__(self, path="snapshot.pickle", **options):
        self.recording, self.stack = memreplay.recording(path, **options), contextlib.ExitStack()

    def on_train_start(self, trainer, pl_module):
        self.stack.enter_context(self.recording)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        memreplay.step(trainer.global_step)

    def on_train_end(self, trainer, pl_module):
        self.stack.close()

    def on_exception(self, trainer, pl_module, exception):
        self.stack.__exit__(type(exception), exception, exception.__traceback__)
