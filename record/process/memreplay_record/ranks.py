"""Jobs of several processes on imagined cards.

--ranks N --rank K: one process stands for one rank. It gets the environment that torchrun would give
it, and a store in which all other ranks have already written what this one is waiting for; NCCL on
the card needs no peers. Under torchrun, whose processes are real, the store is torchrun's.
"""
import ctypes
import importlib
import os

from memreplay_record import card, on_import

_stores = []  # C++ keeps only its half of one alive

def begin(settings):
    if settings.ranks:
        os.environ.update({
            "RANK": str(settings.rank), "WORLD_SIZE": str(settings.ranks), "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(settings.rank), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500"})
    on_import.watch("torch.distributed.distributed_c10d", lambda spec: None,
                    lambda module: _after_c10d(module, settings))
    on_import.watch("torch.nn.parallel.distributed", lambda spec: None, _after_ddp)


def _after_ddp(module):
    """DDP asks whether all ranks have the same parameters: it counts them over NCCL."""
    verify = getattr(module, "_verify_param_shape_across_processes", None)
    if verify is None:
        return

    def verified(process_group, tensors, logger=None):
        for _ in range(process_group.size()):
            card.answer(bytes(ctypes.c_int64(len(tensors))))
        try:
            return verify(process_group, tensors, logger)
        finally:
            card.answer_clear()

    module._verify_param_shape_across_processes = verified


def _after_c10d(c10d, settings):
    if not settings.ranks:
        return
    init = c10d.init_process_group

    def init_process_group(backend=None, *args, **kwargs):
        for name in ("init_method", "rank", "world_size", "store"):
            kwargs.pop(name, None)
        if backend in (None, "nccl", "gloo", "mpi", "cpu:gloo,cuda:nccl"):
            # Tensors of the CPU go nowhere.
            importlib.import_module("torch.testing._internal.distributed.fake_pg")  # registers it
            backend = "fake" if backend in ("gloo", "mpi") else "cpu:fake,cuda:nccl"
        return init(backend, *args[1:], store=_lone_store(c10d), rank=settings.rank,
                    world_size=settings.ranks, **kwargs)

    c10d.init_process_group = init_process_group  # torch.distributed takes it from here


def _lone_store(c10d):
    """A store in which every other rank has done its part."""

    class LoneStore(c10d.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            return self.values.get(key, bytes(128))  # an identity of NCCL's has 128 bytes

        def add(self, key, amount):
            """Counts of ranks that arrived: all have."""
            world = int(os.environ["WORLD_SIZE"])
            total = max(int(self.values.get(key, b"0")) + amount, world if amount == 1 else amount)
            self.values[key] = str(total).encode()
            return total

        def check(self, keys):
            return True

        def wait(self, keys, timeout=None):
            return None

        def compare_set(self, key, expected, desired):
            self.values.setdefault(key, desired.encode() if isinstance(desired, str) else desired)
            return self.values[key]

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def set_timeout(self, timeout):
            return None

    _stores.append(LoneStore())
    return _stores[-1]
