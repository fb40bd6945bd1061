"""Measures how good `memreplay advise FILE` is: edits.py MEMREPLAY PYTHON FOLDER

Each script runs twice under `memreplay record` on a simulated GPU (PYTHON has torch): as it is, and with one change
written into it. The recording of the first is advised on, and the row of that change compared with the peaks of the
second. It prints a row for each, and the share of rows within 1 % and 5 %. Recordings go to FOLDER; those that are
there already are not made again.
"""
import json
import pathlib
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
MIB = 1 << 20
BLOCK = "checkpoint:blocks.*"

# Program, its arguments, those of the change, the key of its row.
PAIRS = [
    ("gpt.py", [], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["attention=manual"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["dtype=float32", "attention=efficient", "dropout=0.0"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["dtype=float32", "attention=manual", "batch=8", "context=512"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["dtype=float16", "layers=8", "batch=16"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["accumulate=2", "width=512", "heads=8"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["vocabulary=20000", "batch=8", "bias=1"], ["checkpoint=1"], BLOCK),
    ("gpt.py", ["dtype=float32", "attention=efficient", "fused=0", "layers=12", "batch=1"], ["checkpoint=1"], BLOCK),
]
# Of remedies.py: network, change as it is written there, key.
WRITTEN = [
    ("gpt", "checkpoint:Block", BLOCK),
    ("gpt", "checkpoint:Block:2", BLOCK + "/2"),
    ("gpt", "chunked_loss", "loss"),
    ("gpt", "offload:GPT", "offload"),
    ("gpt", "foreach:AdamW", "foreach"),
    ("gpt", "no_grad:GPT", "no_grad"),
    ("gpt", "empty_cache", "empty_cache"),
    ("network", "checkpoint:Residual", "checkpoint:stage*.*"),
    ("network", "checkpoint:Residual:2", "checkpoint:stage*.*/2"),
    ("network", "offload:Network", "offload"),
    ("network", "foreach:AdamW", "foreach"),
    ("network", "no_grad:Network", "no_grad"),
]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main():
    memreplay, python, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    errors = []

    def record(program, arguments):
        stem = "_".join([program, *arguments]).replace("/", "-").replace(":", "-").replace(".", "-")
        if not list(folder.glob(f"{stem}+*.pickle")):
            answer = run(memreplay, "record", "--card", "h200", "--python", python,
                         "-o", str(folder / f"{stem}+.pickle"), str(PROGRAMS / program), *arguments)
            if not list(folder.glob(f"{stem}+*.pickle")):
                sys.exit(f"{stem}: no snapshot: {answer.stderr[-2000:]}")
        # The largest is that of the child that trains.
        return max(folder.glob(f"{stem}+*.pickle"), key=lambda path: path.stat().st_size)

    def compare(name, base, changed, wanted):
        advice = json.loads(run(memreplay, "advise", "--json", str(base)).stdout)["advice"]
        peaks = json.loads(run(memreplay, "replay", "--json", str(changed)).stdout)["devices"][0]
        before = advice["as_is"]
        rows = [row for row in advice["rows"] if row["remedies"] == [wanted]]
        real = {what: int(peaks[f"peak_{what}_bytes"]) for what in ("reserved", "allocated")}
        line = f"| {name} | {wanted} |"
        for what in ("reserved", "allocated"):
            was = int(before[f"peak_{what}_bytes"])
            if not rows:  # nothing is saved
                guess = was
            else:
                guess = int(rows[0][f"peak_{what}_bytes"])
            error = guess / real[what] - 1
            errors.append((what, abs(error)))
            line += f" {was / MIB:.1f} | {real[what] / MIB:.1f} | {guess / MIB:.1f} | {100 * error:+.2f} % |"
        print(line + ("" if rows else " no row"), flush=True)

    print("| program | change | reserved, MiB | with the change | edited | error |"
          " allocated, MiB | with the change | edited | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for program, arguments, change, wanted in PAIRS:
        compare(" ".join([program, *arguments]), record(program, arguments),
                record(program, arguments + change), wanted)
    for network, change, wanted in WRITTEN:
        # As it is, its evaluation keeps activations that nothing needs; it does not once anything is written into it.
        before = "" if change.startswith("no_grad") else "nothing_else"
        compare(f"remedies.py {network}", record("remedies.py", ["written", f"{network}/{before}"]),
                record("remedies.py", ["written", f"{network}/{change}"]), wanted)
    for what in ("reserved", "allocated"):
        of = [error for which, error in errors if which == what]
        for bound in (0.01, 0.05):
            print(f"{what}: {sum(error <= bound for error in of)} of {len(of)} within {100 * bound:g} %")


if __name__ == "__main__":
    main()
