"""Records, dumps and stops recording itself: own_recording.py FOLDER"""
import pickle
import sys

import torch

folder = sys.argv[1]
before = torch.ones(1 << 20, device="cuda")
torch.cuda.memory._record_memory_history(max_entries=100)
x = torch.zeros(3 << 20, device="cuda")
del before
torch.cuda.memory._dump_snapshot(folder + "/first.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
y = torch.zeros(5 << 20, device="cuda")
torch.cuda.memory._dump_snapshot(folder + "/second.pickle")
with open(folder + "/first.pickle", "rb") as file:
    first = pickle.load(file)
with open(folder + "/second.pickle", "rb") as file:
    second = pickle.load(file)
actions = [event["action"] for event in first["device_traces"][0] if event["action"] != "snapshot"]
assert actions == ["alloc", "free_requested", "free_completed"], actions
blocks = [block for segment in first["segments"] for block in segment["blocks"]
          if block["state"] == "active_allocated"]
assert len(blocks) == 1 and blocks[0].get("frames"), "the block made while recording has its stack"
assert not any(second["device_traces"]), "nothing was recorded"
print("as on a card")
