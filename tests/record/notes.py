"""Tries each piece of advice of the notes with which this project began: notes.py MEMREPLAY PYTHON NANOGPT FOLDER

NANOGPT is a clone of github.com/karpathy/nanoGPT, PYTHON an interpreter with torch and numpy. The notes train 12 layers
of 576 with 16 x 1024 tokens in float16 on a GPU of 12 GB. For each piece it copies the clone to FOLDER, edits train.py
where no argument does it, runs it on a simulated GPU of 1 TiB, and asks `memreplay fit` for the smallest that suffices,
also with expandable segments; the time of a training step is an estimate (roofline). It prints a row of the table in
docs/advise.md for each; on stderr, the commands. Further arguments are numbers of rows: only these.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ARGUMENTS = ["--n_layer=12", "--n_head=12", "--n_embd=576", "--batch_size=16", "--block_size=1024", "--dtype=float16",
             "--compile=False", "--max_iters=2", "--eval_iters=2", "--gradient_accumulation_steps=1"]
MIB = 1 << 20
CARD = "rtx-4070"


def in_evaluation(name, value):
    """Edits of train.py after which a setting has another value in estimate_loss()."""
    head, tail = "def estimate_loss():\n", "    model.train()\n    return out\n"
    return [(re.escape(head), f"{head}    global {name}\n    in_training, {name} = {name}, {value}\n"),
            (re.escape(tail), f"    {name} = in_training\n{tail}")]


CHECKPOINT = [(r"(?m)^(\s+)x = block\(x\)$",
               r"\1x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"),
              (r"(?m)^import torch\n", "import torch\nimport torch.utils.checkpoint\n")]

# What the notes advise, arguments for it, edits by file.
PIECES = [
    ("as it is", [], {}),
    ("evaluation with batch 4 (`eval_batch_size=4`)", ["--eval_batch_size=4"], {}),
    ("the same, written into `estimate_loss()`", [], {"train.py": in_evaluation("batch_size", 4)}),
    ("evaluation with batch 2", [], {"train.py": in_evaluation("batch_size", 2)}),
    ("evaluation with block 512 (`eval_block_size=512`)", ["--eval_block_size=512"], {}),
    ("the same, written into `estimate_loss()`", [], {"train.py": in_evaluation("block_size", 512)}),
    ("evaluation with block 256", [], {"train.py": in_evaluation("block_size", 256)}),
    ("`eval_iters=1`", ["--eval_iters=1"], {}),
    ("`eval_iters=200`", ["--eval_iters=200"], {}),
    ("`n_embd=512`", ["--n_embd=512"], {}),
    ("`n_embd=448`", ["--n_embd=448"], {}),
    ("`n_embd=512` with 8 heads", ["--n_embd=512", "--n_head=8"], {}),
    ("`n_embd=448` with 8 heads", ["--n_embd=448", "--n_head=8"], {}),
    ("checkpointing (`grad_checkpoint=True`)", ["--grad_checkpoint=True"], {}),
    ("each block checkpointed, written into `model.py`", [], {"model.py": CHECKPOINT}),
    ("batch 8", ["--batch_size=8"], {}),
    ("batch 8, and 2 steps of accumulation", ["--batch_size=8", "--gradient_accumulation_steps=2"], {}),
    ("batch 16, and 8 steps of accumulation", ["--gradient_accumulation_steps=8"], {}),
    ("block 256", ["--block_size=256"], {}),
]


def run(command, folder, **more):
    print(" ".join(map(shlex.quote, command)), file=sys.stderr, flush=True)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)


def copy_of(nanogpt, folder, edits):
    """Returns a copy of the clone with random tokens and the edits."""
    copy = pathlib.Path(folder, "nanoGPT")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(nanogpt, copy, ignore=shutil.ignore_patterns(".git", "assets", "out"))
    for name in ("train.bin", "val.bin"):
        (copy / "data" / "openwebtext" / name).write_bytes(bytes(2 * 200_000))  # tokens of 16 bits
    for name, changes in edits.items():
        text = (copy / name).read_text(encoding="utf-8")
        for before, after in changes:
            text, count = re.subn(before, after, text)
            if count != 1:
                sys.exit(f"{name}: {before} is {count} times in it")
        (copy / name).write_text(text, encoding="utf-8")
    return copy


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*\w*(Error|Exception)\b", line)]
    return lines[-1] if lines else text.strip().splitlines()[-1]


def main():
    memreplay, python, nanogpt, folder = (os.path.abspath(path) for path in sys.argv[1:5])
    chosen = sys.argv[5:]
    flags = ["--card", CARD, "--python", python]
    cards = json.loads(run([memreplay, "record", "--card", "list", "--json"], folder).stdout)
    memory = next(int(card["memory"]) for card in cards if card["name"] == CARD)
    print("| advice | needs | reserved | allocated | to spare | with expandable segments | a step | fits |")
    print("|---|---|---|---|---|---|---|---|")
    for number, (name, arguments, edits) in enumerate(PIECES):
        is_about_steps = "eval" not in name and "estimate_loss" not in name
        if chosen and str(number) not in chosen:
            continue
        copy = copy_of(nanogpt, folder, edits)
        words = ["train.py", *ARGUMENTS, *arguments]
        snapshot = os.path.join(folder, "snapshot.pickle")
        big = [*flags, "--capacity", "1TiB", "--json", "-o", snapshot]
        done = run([memreplay, "record", *big, "--", *words], copy)
        if done.returncode != 0:
            print(f"| {name} | | | | | | | no: `{last_line(done.stderr)}` |", flush=True)
            continue
        process = json.loads(done.stdout)["processes"][0]
        device = process["cards"][0]
        has = memory - int(process["card"]["reserve"]) - int(device["outside"])
        done = run([memreplay, "fit", "--json", snapshot, "--conf", "", "--conf", "expandable_segments:True"], copy)
        fits = json.loads(done.stdout)["devices"][0]["fits"]["rows"]
        needs, expandable = (int(fit["smallest_bytes"]) for fit in fits)
        sizes = [f"{number / MIB:,.0f}" for number in (needs, int(device["peak_reserved"]),
                                                       int(device["peak_allocated"]), has - needs, has - expandable)]
        time = ""
        if is_about_steps:
            done = run([memreplay, "record", *big, "--remedy", "roofline", "--", *words], copy)
            work = json.loads(done.stdout)["processes"][0]["work"]
            time = f"{1000 * work['seconds'] / int(work['steps']):,.0f} ms"
        fits = "yes" if needs <= has else "with expandable segments" if expandable <= has else "no"
        print(f"| {name} | {' | '.join(sizes)} | {time} | {fits} |", flush=True)


if __name__ == "__main__":
    main()
