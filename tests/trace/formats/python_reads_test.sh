#!/bin/sh
# CPython reads the snapshots and the JSON that we write.
set -eu
if ! command -v python3 >/dev/null; then
  echo "skipped: no python3"
  exit 0
fi
write="$1"
for format in torch_snapshot_pickle flat_jsonl perfetto; do
  "$write" "$format" "$TEST_TMPDIR/sample.$format"
done
python3 - "$TEST_TMPDIR" <<'PYTHON'
import json, pickle, pickletools, sys

directory = sys.argv[1]
with open(directory + "/sample.torch_snapshot_pickle", "rb") as f:
    data = f.read()
snapshot = pickle.loads(data)
assert data[:2] == b"\x80\x04", data[:2]

# The official viewer's reader knows these opcodes and refuses others.
known = set("""PROTO EMPTY_DICT EMPTY_LIST EMPTY_TUPLE MARK MEMOIZE SHORT_BINUNICODE BINUNICODE
BININT BININT1 BININT2 LONG1 BINGET LONG_BINGET SETITEM SETITEMS APPEND APPENDS TUPLE1 TUPLE2
TUPLE3 TUPLE NEWTRUE NEWFALSE NONE BINFLOAT STOP""".split())
used = {opcode.name for opcode, _, _ in pickletools.genops(data)}
assert used <= known, used - known

assert list(snapshot) == ["segments", "device_traces", "allocator_settings",
                          "external_annotations"], list(snapshot)
first, mapped = snapshot["segments"][:2]
assert list(first) == ["device", "address", "total_size", "allocated_size", "active_size",
                       "requested_size", "stream", "segment_type", "segment_pool_id",
                       "is_expandable", "blocks", "frames"], list(first)
assert list(mapped)[-2:] == ["frames", "blocks"], list(mapped)
assert first["allocated_size"] == first["active_size"] == 70144 and first["requested_size"] == 70000
assert mapped["allocated_size"] == 0 and mapped["active_size"] == 20 << 20
assert mapped["segment_pool_id"] == (0, 1) and mapped["is_expandable"] is True
assert mapped["stream"] == 0x55d0c0ffee40
assert [b["state"] for b in first["blocks"]] == ["inactive", "active_allocated", "inactive"]
assert sum(b["size"] for b in first["blocks"]) == first["total_size"]
assert len(snapshot["device_traces"]) == 2
entries = snapshot["device_traces"][0]
assert [e["action"] for e in entries] == [
    "segment_alloc", "alloc", "alloc", "free_requested", "free_completed", "segment_map", "alloc",
    "oom", "snapshot"]
assert list(entries[0]) == ["action", "addr", "size", "stream", "time_us", "compile_context",
                            "user_metadata", "frames"], list(entries[0])
assert list(entries[3])[-1] == "user_metadata"  # no stack, no key
assert entries[7]["device_free"] == 264634368 and "addr" not in entries[7]
assert entries[6]["size"] == 5000000000 and entries[0]["addr"] == 0x7f0000000000
assert entries[0]["time_us"] == 1700000000000003
assert entries[2]["frames"][0] == {"name": 'c10::Allocator "x" é', "filename": "??", "line": 70000}
assert entries[0]["frames"] is entries[1]["frames"] is first["frames"]  # shared, not copied
settings = snapshot["allocator_settings"]
assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"
assert settings["max_split_size"] == 64 << 20 and settings["garbage_collection_threshold"] == 0.8
assert list(settings["roundup_power2_divisions"])[:3] == ["1", "2", "4"]
assert snapshot["external_annotations"][1] == {
    "name": "compile é", "stage": "END", "device": 0, "time_us": 1700000000000009}

with open(directory + "/sample.flat_jsonl", encoding="utf-8") as f:
    records = [json.loads(line) for line in f]
assert records[0]["k"] == "h" and records[0]["recorded"] is True

with open(directory + "/sample.perfetto", encoding="utf-8") as f:
    events = json.load(f)["traceEvents"]
counters = [e["args"] for e in events if e["ph"] == "C" and e["pid"] == 0]
# Ends where the final state is: 70000 requested, 22 MiB reserved.
assert counters[-1] == {"requested": 70000, "reserved": 22 << 20}, counters[-1]
print("ok")
PYTHON
