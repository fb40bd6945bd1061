"""Takes and frees pinned memory at random, and holds PyTorch's statistics against a model of its host allocator.

The model is what docs/record_internals.md says of pinned memory. Arguments: the seed; settings, as PyTorch reads them.
"""
import random
import sys

import torch

MIB = 1 << 20
GIB = 1 << 30


class Model:
    """Blocks are never split, and kept when they are freed.

    A free block serves a request for which a block of the same power of two would be made, if it is large enough; of
    several, the one that was freed last.
    """

    def __init__(self, settings):
        keys = dict(part.split(":") for part in settings.split(",") if part)
        self.kept_up_to = int(keys.get("pinned_max_cached_size_mb", GIB)) * MIB
        self.rounded_up_to = min(int(keys.get("pinned_max_round_threshold_mb", GIB)) * MIB, self.kept_up_to)
        self.free = {}  # power of two -> [(address, bytes)], the last freed one last
        self.made = self.released = 0
        self.active = self.owned = self.peak = 0  # bytes

    def take(self, size):
        """Returns the address of the free block that serves the request, or None, and the size of the block."""
        block = size if size > self.rounded_up_to else 1 << (size - 1).bit_length()
        free = self.free.get((block - 1).bit_length(), [])
        found = next((one for one in reversed(free) if one[1] >= block), None) if size <= self.kept_up_to else None
        if found:
            free.remove(found)
            block = found[1]
        else:
            self.made += 1
            self.owned += block
            self.peak = max(self.peak, self.owned)
        self.active += block
        return found[0] if found else None, block

    def give(self, address, block):
        self.active -= block
        if block > self.kept_up_to:
            self.released += 1
            self.owned -= block
        else:
            self.free.setdefault((block - 1).bit_length(), []).append((address, block))

    def empty(self):
        self.released += sum(len(blocks) for blocks in self.free.values())
        self.owned -= sum(block for blocks in self.free.values() for _, block in blocks)
        self.free.clear()


numbers = random.Random(int(sys.argv[1]))
model = Model(sys.argv[2] if sys.argv[2:] else "")
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
        address = tensor.data_ptr()
        del tensor
        model.give(address, block)
        check(f"free {number}")
    elif numbers.random() < 0.02:
        torch._C._host_emptyCache()
        model.empty()
        check(f"empty {number}")
    else:
        most = numbers.choice([600, 70_000, 3 * MIB, 40 * MIB])
        size = numbers.choice([numbers.randrange(1, most), 1 << numbers.randrange(25), 16 * MIB, 16 * MIB + 1])
        address, block = model.take(size)
        held.append((block, torch.empty(size, dtype=torch.uint8, pin_memory=True)))
        assert address in (None, held[-1][1].data_ptr()), f"take {number} of {size}: another free block was expected"
        check(f"take {number} of {size}")
print("pinned", model.peak, "compared" if has_statistics else "")
