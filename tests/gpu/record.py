"""Runs one workload on GPU 0 and leaves NAME.pickle, NAME.stats.json and NAME.info.json: record.py NAME FOLDER."""

import json
import pathlib
import pickle
import sys
import threading

import workloads


class DriverUse:
    """Keeps the maximum of the GPU memory that the driver reports as in use, once a millisecond: what lasts longer is
    seen."""

    def __init__(self, torch):
        self._torch = torch
        self.before = self.now()
        self.peak = self.before
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def now(self):
        free, total = self._torch.cuda.mem_get_info()
        return total - free

    def _watch(self):
        while not self._stop.wait(0.001):
            self.peak = max(self.peak, self.now())

    def stop(self):
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, self.now())


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    workload = workloads.WORKLOADS[name]
    import torch

    torch.cuda.init()
    torch.cuda.current_stream()
    properties = torch.cuda.get_device_properties(0)
    if workload.limit_bytes:
        torch.cuda.set_per_process_memory_fraction(workload.limit_bytes / properties.total_memory)
    use = DriverUse(torch)
    kept = workload.run(torch)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    at_end = use.now()
    use.stop()
    workloads.shared.cut_names(snapshot)
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    (folder / f"{name}.stats.json").write_text(json.dumps(stats, indent=0) + "\n")
    info = {
        "torch": torch.__version__.split("+")[0],
        "cuda": torch.version.cuda,
        "card": properties.name,
        "total_bytes": properties.total_memory,
        "conf": workload.conf,
        "fraction": workload.limit_bytes / properties.total_memory if workload.limit_bytes else None,
        "partial": workload.partial,
        "used_before_bytes": use.before,
        "used_peak_bytes": use.peak,
        "used_at_end_bytes": at_end,
    }
    (folder / f"{name}.info.json").write_text(json.dumps(info, indent=1) + "\n")
    del kept


if __name__ == "__main__":
    main()
