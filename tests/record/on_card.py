"""Compares the scripts of these tests on the GPU of this machine and on the simulated GPU of its kind, event by
event: on_card.py MEMREPLAY PYTHON CARD

Prints a row for the table of docs/record_evidence.md for each script, and exits 1 if one differs.
"""
import json
import os
import subprocess
import sys
import tempfile

import events

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = (["mlp.py"], ["gpt.py"], ["gpt.py", "attention=efficient", "dtype=float16"], ["gpt.py", "attention=manual"],
            ["gpt.py", "dtype=float32", "bias=1"], ["gpt.py", "checkpoint=1", "accumulate=2", "fused=0"],
            ["transformer.py"], ["graphs.py"], ["pools.py"], ["side_stream.py"])


def recorded(memreplay, python, flags, words, snapshot):
    """Returns (events, peak reserved) of one run."""
    done = subprocess.run(
        [memreplay, "record", "--json", "--python", python, *flags, "-o", snapshot, "--",
         os.path.join(HERE, "programs", words[0]), *words[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {json.loads(done.stdout)['faults'] if done.stdout else done.stderr}")
    return events.events_of(events.load(snapshot)), json.loads(done.stdout)["processes"][0]["cards"][0]


def main():
    memreplay, python, card = sys.argv[1:4]
    print("| program | events | first difference | reserved at most, GPU and simulated |\n|---|---|---|---|")
    alike = True
    with tempfile.TemporaryDirectory() as folder:
        for words in PROGRAMS:
            real, there = recorded(memreplay, python, [], words, os.path.join(folder, "real.pickle"))
            simulated, here = recorded(memreplay, python, ["--card", card], words,
                                       os.path.join(folder, "simulated.pickle"))
            found = events.difference(real, simulated)
            alike = alike and found is None
            print(f"| {' '.join(words)} | {len(real[0]):,} | {found or 'none'} | "
                  f"{int(there['peak_reserved']):,}, {int(here['peak_reserved']):,} |", flush=True)
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
