"""Takes and frees pinned memory at random, and holds PyTorch's statistics against a model of its host allocator.

The model is what docs/record.md says of pinned memory. Arguments: the seed; pinned_max_cached_size_mb, if it is set.
"""
import random
import sys

import torch

MIB = 1 << 20


class Model:
    """Blocks are rounded up to a power of two, never split, and kept when they are freed."""

    def __init__(self, kept_up_to):
        self.kept_up_to = kept_up_to  # larger ones are neither rounded nor kept
        self.free = {}  # size -> number of free blocks
        self.made = self.released = 0
        self.active = self.owned = self.peak = 0  # bytes

    def take(self, size):
        """Returns the size of the block."""
        block = size if size > self.kept_up_to else 1 << (size - 1).bit_length()
        if self.free.get(block):
            self.free[block] -= 1
        else:
            self.made += 1
            self.owned += block
            self.peak = max(self.peak, self.owned)
        self.active += block
        return block

    def give(self, block):
        self.active -= block
        if block > self.kept_up_to:
            self.released += 1
            self.owned -= block
        else:
            self.free[block] = self.free.get(block, 0) + 1

    def empty(self):
        self.released += sum(self.free.values())
        self.owned -= sum(block * number for block, number in self.free.items())
        self.free.clear()


numbers = random.Random(int(sys.argv[1]))
model = Model(kept_up_to=int(sys.argv[2]) * MIB if sys.argv[2:] else float("inf"))
torch.empty(1, device="cuda")
has_statistics = hasattr(torch.cuda, "host_memory_stats")  # from 2.7 on
held = []


def check(what):
    if not has_statistics:
        return
    found = torch.cuda.host_memory_stats()
    owned = "allocated_bytes.current" if "active_bytes.current" in found else "reserved_bytes.current"
    active = "active_bytes.current" if "active_bytes.current" in found else "allocated_bytes.current"
    found = tuple(found[key] for key in ("num_host_alloc", "num_host_free", owned, active))
    expected = (model.made, model.released, model.owned, model.active)
    assert found == expected, f"{what}: expected {expected}, found {found}"


for number in range(400):
    if held and numbers.random() < 0.48:
        block, tensor = held.pop(numbers.randrange(len(held)))
        del tensor
        model.give(block)
        check(f"free {number}")
    elif numbers.random() < 0.02:
        torch._C._host_emptyCache()
        model.empty()
        check(f"empty {number}")
    else:
        most = numbers.choice([600, 70_000, 3 * MIB, 40 * MIB])
        size = numbers.choice([numbers.randrange(1, most), 1 << numbers.randrange(25), 16 * MIB, 16 * MIB + 1])
        held.append((model.take(size), torch.empty(size, dtype=torch.uint8, pin_memory=True)))
        check(f"take {number} of {size}")
print("pinned", model.peak, "compared" if has_statistics else "")
