"""Compares what others say that a training run needs with PyTorch's own code on a simulated GPU:
estimates.py MEMREPLAY PYTHON NANOGPT

NANOGPT is a checkout of github.com/karpathy/nanoGPT, PYTHON an interpreter with torch, accelerate and
numpy. For each configuration of nanoGPT it prints, in MiB: the peak that train.py allocated and
reserved under `memreplay record`; memreplay synth; accelerate's calculate_maximum_sizes, times four
as `accelerate estimate-memory` counts training with Adam; PyTorch's MemTracker over FakeTensors; the
rule of 16 to 20 bytes a parameter. The error is against the peak allocated, of synth's peak reserved
against the peak reserved.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CONFIGURATIONS = {
    "6 layers of 384, batch 64 x 256": dict(n_layer=6, n_head=6, n_embd=384, block_size=256,
                                             batch_size=64, dropout=0.2),
    "12 layers of 768, batch 12 x 1024": dict(n_layer=12, n_head=12, n_embd=768, block_size=1024,
                                               batch_size=12, dropout=0.0),
    "24 layers of 1024, batch 2 x 1024": dict(n_layer=24, n_head=16, n_embd=1024, block_size=1024,
                                               batch_size=2, dropout=0.0),
    "12 layers of 768, batch 1 x 128": dict(n_layer=12, n_head=12, n_embd=768, block_size=128,
                                             batch_size=1, dropout=0.0),
}
LOOP = dict(gradient_accumulation_steps=1, eval_iters=2, eval_interval=1000, max_iters=3, compile=False,
            dtype="bfloat16", always_save_checkpoint=False, device="cuda", dataset="random")
MIB = 1 << 20

OTHERS = r'''
import json, sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
options = json.loads(sys.argv[2])
sys.path.insert(0, sys.argv[1])
from model import GPT, GPTConfig
config = GPTConfig(vocab_size=50304, bias=False,
                   **{key: options[key] for key in ("n_layer", "n_head", "n_embd", "block_size", "dropout")})
answer = {}
with torch.device("meta"):
    model = GPT(config)
answer["parameters"] = sum(p.numel() for p in model.parameters())
from accelerate.utils import calculate_maximum_sizes
answer["accelerate"] = 4 * calculate_maximum_sizes(model)[0]
from torch.distributed._tools.mem_tracker import MemTracker
tracker = MemTracker()
with FakeTensorMode():
    with torch.device("cuda"):
        model = GPT(config)
        optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cuda")
        tracker.track_external(model, optimizer)
        with tracker:
            for step in range(2):
                tracker.reset_mod_stats()
                x = torch.zeros(options["batch_size"], options["block_size"], dtype=torch.long)
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    logits, loss = model(x, x)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    peak = tracker.get_tracker_snapshot("peak")
answer["memtracker"] = max(sum(v for k, v in use.items() if k != "Total") if "Total" not in use
                           else use["Total"] for use in peak.values())
print(json.dumps(answer))
'''


def words(options):
    return [f"--{key}={value}" for key, value in options.items()]


def recorded(memreplay, python, nanogpt, options, folder):
    """Returns the peaks of train.py: allocated and reserved."""
    checkout = os.path.join(folder, "nanoGPT")
    shutil.copytree(nanogpt, checkout, ignore=shutil.ignore_patterns(".git", "assets"))
    data = pathlib.Path(checkout, "data", "random")
    data.mkdir()
    for name in ("train.bin", "val.bin"):
        (data / name).write_bytes(bytes(2 * 200_000))  # tokens of 16 bits
    done = subprocess.run(
        [memreplay, "record", "--json", "--card", "rtx-4090", "--capacity", "80GiB", "--python", python,
         "-o", os.path.join(folder, "snapshot.pickle"), "--", "train.py", *words({**LOOP, **options})],
        cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    card = json.loads(done.stdout)["processes"][0]["cards"][0]
    return int(card["peak_allocated"]), int(card["peak_reserved"])


def synthesised(memreplay, options, release, capability="8.9"):
    told = {key: value for key, value in {**LOOP, **options}.items()
            if key not in ("dataset", "device")}
    command = [memreplay, "synth", "nanogpt", *words(told), f"--torch_version={release}",
               f"--compute_capability={capability}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    prediction = json.loads(done.stdout)
    found = re.findall(r'"(peak_\w+)": "?(\d+)', json.dumps(prediction))
    peaks = {}
    for name, value in found:
        peaks[name] = max(peaks.get(name, 0), int(value))
    return peaks


def error(value, truth):
    return f"{value / MIB:,.0f} ({(value - truth) / truth:+.0%})"


def main():
    memreplay, python, nanogpt = (os.path.abspath(path) if os.sep in path else path
                                  for path in sys.argv[1:4])
    release = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('torch'))"],
                             capture_output=True, text=True, check=True).stdout.strip()
    print(f"torch {release}, MiB, (error)\n")
    print("| nanoGPT | allocated | reserved | synth, reserved | MemTracker | accelerate | 16 to 20 bytes |")
    print("|---|---|---|---|---|---|---|")
    for name, options in CONFIGURATIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            allocated, reserved = recorded(memreplay, python, nanogpt, options, folder)
            # On the card too: without NVIDIA's wheels torch is not imported otherwise.
            done = subprocess.run(
                [memreplay, "record", "--json", "--no-values", "--card", "rtx-4090", "--python", python,
                 "-o", os.path.join(folder, "others.pickle"), "--", "-c", OTHERS, nanogpt,
                 json.dumps(options)], capture_output=True, text=True, check=False)
        found = re.findall(r'^{"parameters.*}$', done.stderr, re.M)
        if not found:
            sys.exit(done.stderr)
        others = json.loads(found[0])
        peaks = synthesised(memreplay, options, ".".join(release.split(".")[:2]))
        print(" | ".join([
            f"| {name}", f"{allocated / MIB:,.0f}", f"{reserved / MIB:,.0f}",
            error(peaks["peak_reserved_bytes"], reserved), error(others["memtracker"], allocated),
            error(others["accelerate"], allocated),
            error(16 * others["parameters"], allocated) + " to " +
            error(20 * others["parameters"], allocated) + " |"]), flush=True)


if __name__ == "__main__":
    main()
