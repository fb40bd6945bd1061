"""Keeps the peaks of PyTorch's counters when the script resets them, as training loops do that log each step's peak."""

from memreplay_record._lost import quietly


class Peaks:
    PEAKS = {"peak_allocated": "allocated_bytes.all.peak", "peak_reserved": "reserved_bytes.all.peak"}
    COUNTS = {"retries": "num_alloc_retries", "ooms": "num_ooms"}

    def __init__(self, torch):
        self.torch = torch
        self.before = {}  # index of a card -> figures before the last reset
        for name, note in (("_cuda_resetPeakMemoryStats", self._note_peaks),
                           ("_accelerator_resetPeakStats", self._note_peaks),
                           ("_cuda_resetAccumulatedMemoryStats", self._note_counts),
                           ("_accelerator_resetAccumulatedStats", self._note_counts)):
            if hasattr(torch._C, name):
                setattr(torch._C, name, self._noting(getattr(torch._C, name), note))

    def _noting(self, reset, note):
        @quietly("peaks before the script resets them")
        def noted(device):
            note(device, self.of(device))

        def called(device):
            noted(device)
            return reset(device)
        return called

    def _note_peaks(self, index, now):
        self.before.setdefault(index, {}).update({name: now[name] for name in self.PEAKS})

    def _note_counts(self, index, now):
        self.before.setdefault(index, {}).update({name: now[name] for name in self.COUNTS})

    def of(self, index):
        """Returns what memory_stats() would report for a card without any resets."""
        stats, before = self.torch.cuda.memory_stats(index), self.before.get(index, {})
        figures = {name: max(stats.get(key, 0), before.get(name, 0)) for name, key in self.PEAKS.items()}
        for name, key in self.COUNTS.items():
            figures[name] = stats.get(key, 0) + before.get(name, 0)
        return figures
