"""Jobs of several processes on simulated GPUs.

With --ranks N --rank K, one process stands for one rank. It gets the environment that torchrun would give it, and a
store in which all other ranks have already written what this one waits for. NCCL is PyTorch's own process group over
the simulated GPU's library, which needs no peers; gloo, which would look for them, is PyTorch's fake process group.
Under torchrun, whose processes are real, the store is torchrun's and gloo is gloo.
"""
import os

from memreplay_record import card, collectives, on_import

largest_group, rank = 0, -1  # ranks of the largest process group that was made, and this process' number in it
_store = None  # the C++ side does not keep it alive
_IDENTITY = 128  # bytes of an NCCL identity


def begin(settings):
    if settings.ranks:
        if "TORCHELASTIC_RUN_ID" in os.environ:
            card.give_up(settings, "--ranks is for a script of one process; torchrun starts all "
                                   "ranks itself, so leave --ranks out and give --cards")
        cards = int(os.environ.get("MEMREPLAY_CARD_COUNT", "1"))  # of each machine
        os.environ.update({
            "RANK": str(settings.rank), "WORLD_SIZE": str(settings.ranks),
            "LOCAL_RANK": str(settings.rank % cards), "LOCAL_WORLD_SIZE": str(min(cards, settings.ranks)),
            "GROUP_RANK": str(settings.rank // cards), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500"})
    else:
        os.environ["MEMREPLAY_CARD_EXCHANGE"] = settings.folder
    on_import.watch("torch.distributed.distributed_c10d", lambda spec: None,
                    lambda c10d: _after_c10d(c10d, settings))
    on_import.watch("torch.nn.parallel.distributed", lambda spec: None,
                    collectives.agree_on_parameters)


def _after_c10d(c10d, settings):
    make = c10d._new_process_group_helper

    def new_process_group(group_size, group_rank, *args, **kwargs):
        global largest_group, rank
        if group_rank is not None and group_size > largest_group:
            largest_group, rank = group_size, group_rank
        # NCCL would ask the other ranks how many of them a part of a communicator has.
        if group_size > 0 and group_rank is not None and group_rank >= 0:
            card.next_communicator(group_size, group_rank)
        return make(group_size, group_rank, *args, **kwargs)

    c10d._new_process_group_helper = new_process_group
    collectives.Objects(c10d, settings.ranks > 0)
    if not settings.ranks:
        return
    if settings.values:
        collectives.give_values(c10d)

    def rendezvous(*args, **kwargs):
        yield _lone_store(c10d), settings.rank, settings.ranks

    c10d.rendezvous = rendezvous
    init = c10d.init_process_group

    def init_process_group(*args, **kwargs):
        for name in ("rank", "world_size", "store"):
            kwargs.pop(name, None)
        return init(*args[:3], **kwargs)

    c10d.init_process_group = init_process_group  # torch.distributed takes it from here
    c10d.monitored_barrier = lambda *args, **kwargs: None

    fake = getattr(c10d.torch._C._distributed_c10d, "FakeProcessGroup", None)
    gloo = c10d.ProcessGroupGloo
    if fake is not None:
        fake._set_sequence_number_for_group = lambda self: None

    class Kind(type):
        def __instancecheck__(cls, made):
            return isinstance(made, fake or gloo)

    class LoneGloo(metaclass=Kind):
        """A process group in place of gloo's. Calls end at once, and other ranks seem to send what this one has."""

        def __new__(cls, store, rank, size, *args, **kwargs):
            if fake is None:  # torch 2.1: gloo itself, of one rank
                return gloo(c10d.torch._C._distributed_c10d.HashStore(), 0, 1, *args, **kwargs)
            try:
                return fake(rank, size)
            except TypeError:
                return fake._create_internal(rank, size)

        create_default_device = create_device = staticmethod(lambda *args, **kwargs: None)

    c10d.ProcessGroupGloo = LoneGloo


def _lone_store(c10d):
    """Returns a store in which every other rank has done its part."""
    global _store
    if _store is not None:
        return _store
    world = int(os.environ["WORLD_SIZE"])

    class LoneStore(c10d.Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            return self.values.get(key, bytes(_IDENTITY))

        def add(self, key, amount):
            """Counts the ranks that arrived: all have."""
            total = max(int(self.values.get(key, b"0")) + amount, world if amount == 1 else amount)
            self.values[key] = str(total).encode()
            return total

        def check(self, keys):
            """Returns whether this rank wrote the keys; others, such as a request for help, do not exist."""
            return all(key in self.values for key in keys)

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

        def clone(self):
            return self

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

    _store = LoneStore()
    return _store
