"""Prints a recording of six steps, each of which keeps 12 MiB and frees twice 10 MiB, until 40 MiB are refused."""
import json

KEPT, FREED, FIRST = 12 << 20, 10 << 20, 0x7F0000000000
TEMPORARIES = (FIRST, FIRST + FREED)


def line(kind, address, size, **more):
    print(json.dumps({"k": kind, "addr": address, "b": size, "s": 0, **more}))


def effect(action, address, size):
    line("fx", address, size, a=action)


print(json.dumps({"k": "h", "format": "memsched-flat", "version": 1, "unit": "B", "streams": 1, "devices": 1,
                  "recorded": True, "layout": ["device_traces", "time_us", "block_addresses", "is_expandable"]}))
print(json.dumps({"k": "dev", "final": True}))
addresses = [FIRST - (step + 1) * KEPT for step in range(6)]
for step, kept in enumerate(addresses):
    effect("segment_alloc", kept, KEPT)
    line("a", kept, KEPT)
    for temporary in TEMPORARIES:
        if step == 0:
            effect("segment_alloc", temporary, FREED)
        line("a", temporary, FREED)
    for temporary in TEMPORARIES:
        line("f", temporary, FREED)
        effect("free_completed", temporary, FREED)
for temporary in TEMPORARIES:
    effect("segment_free", temporary, FREED)
effect("oom", 20 << 20, 40 << 20)
for kept in reversed(addresses):
    line("seg", kept, KEPT, p=[0, 0], large=True)
    line("blk", kept, KEPT, req=KEPT, state="active_allocated")
