"""Explains the snapshots that verl writes where GPU memory runs out. With this file on PYTHONPATH, set

    VERL_USE_EXTERNAL_MODULES=verl_oom    and in the configuration    global_profiler.tool=torch_memory
"""

import memreplay
from verl.utils.memory_utils import MemorySnapshotSampler

_dump = MemorySnapshotSampler.dump_memory_snapshot


def _dump_and_explain(self, *args, tag="snapshot", **options):
    path = _dump(self, *args, tag=tag, **options)
    if path is not None and tag == "torch_memory_oom":  # not those of each step
        memreplay.report_oom(path)
    return path


MemorySnapshotSampler.dump_memory_snapshot = _dump_and_explain
