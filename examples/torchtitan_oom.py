"""Explains the snapshot that torchtitan writes where GPU memory runs out. With this file on PYTHONPATH, add

    --profiler.enable_memory_snapshot --override.imports torchtitan_oom.explained
"""

import pathlib
from dataclasses import dataclass

import memreplay
import torch
from torchtitan.config import derive, override
from torchtitan.tools.profiler import Profiler


class ExplainingProfiler(Profiler):
    @dataclass(kw_only=True, slots=True)
    class Config(Profiler.Config):
        pass

    def __exit__(self, kind, error, traceback):
        super().__exit__(kind, error, traceback)  # writes FOLDER/step_N_exit/RANK_step_N.pickle
        if self._config.enable_memory_snapshot and isinstance(error, torch.OutOfMemoryError):
            folder = pathlib.Path(self._base_folder, self._config.save_memory_snapshot_folder)
            written = folder.rglob(f"{torch.distributed.get_rank():06d}_step_*.pickle")
            memreplay.report_oom(max(written, key=lambda path: path.stat().st_mtime))
        return False


@override(target=Profiler.Config, description="explains snapshots by memreplay")
def explained(config):
    return derive(config, ExplainingProfiler.Config)
