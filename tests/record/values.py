"""Measures how good `memreplay advise SMALL=8 LARGE=16 --batch=32` is: values.py MEMREPLAY PYTHON FOLDER

Each script runs under `memreplay record` on a simulated GPU (PYTHON has torch and the libraries of the tests) with
three batch sizes. The third is predicted from the recordings of the first two, and held against its own recording: the
peaks, and how many allocations of all three are linear in the batch size. It prints a row for each script, and the
share of rows within 1 %. Recordings go to FOLDER; those that are there already are not made again.
"""
import json
import pathlib
import re
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
MIB = 1 << 20

# Program, its arguments ({0} is the batch size), batch sizes (with up to 3,072 tokens, PyTorch computes the gradient of
# an embedding otherwise), and edits of a script that has no argument for it.
SCRIPTS = [
    ("gpt.py", ["batch={0}"], (16, 32, 64), []),
    ("remedies.py", ["train", "network", "{0}"], (8, 16, 32), []),
    ("transformer.py", [], (8, 16, 32), [(r"randn\(8,", "randn({0},")]),
    ("mlp.py", [], (128, 256, 512), [("batch_size=256", "batch_size={0}"), ("2048, 512", "8 * {0}, 512"),
                                     (r"\(2048,\)", "(8 * {0},)")]),
    ("hugging_face.py", ["gpt2"], (16, 32, 64), [("batch_size=8", "batch_size={0}"), ("return 32", "return 4 * {0}")]),
    ("vision.py", ["unet"], (8, 16, 32), [(r"\(8, 3", "({0}, 3"), (r"\(8,\)", "({0},)")]),
    ("gpt.py", ["attention=manual", "batch={0}"], (16, 32, 64), []),
    ("gpt.py", ["dtype=float32", "attention=efficient", "dropout=0.0", "batch={0}"], (16, 32, 64), []),
    ("gpt.py", ["vocabulary=20000", "context={0}"], (128, 256, 512), []),
    ("remedies.py", ["train", "gpt", "{0}"], (32, 48, 96), []),
    ("recurrent.py", [], (8, 16, 32), [(r"\(8, 30", "({0}, 30")]),
    ("vision.py", ["resnet"], (8, 16, 32), [(r"\(16, 3", "({0}, 3"), (r"\(16,\)", "({0},)")]),
]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main():
    memreplay, python, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    errors = {"reserved": [], "allocated": []}

    def record(program, arguments, edits, value):
        arguments = [word.format(value) for word in arguments]
        stem = re.sub(r"[^\w=]", "-", "_".join([program, *arguments, str(value)]))
        if not list(folder.glob(f"{stem}+*.pickle")):
            source = (PROGRAMS / program).read_text(encoding="utf-8")
            for before, after in edits:
                source, count = re.subn(before, after.format(value), source)
                if count == 0:
                    sys.exit(f"{program}: {before} is not in it")
            script = folder / "scripts" / program  # of one name for all values
            script.parent.mkdir(exist_ok=True)
            script.write_text(source, encoding="utf-8")
            answer = run(memreplay, "record", "--card", "h200", "--python", python,
                         "-o", str(folder / f"{stem}+.pickle"), str(script), *arguments)
            if not list(folder.glob(f"{stem}+*.pickle")):
                sys.exit(f"{stem}: no snapshot: {answer.stderr[-2000:]}")
        return max(folder.glob(f"{stem}+*.pickle"), key=lambda path: path.stat().st_size)

    def compare(program, arguments, values, edits):
        files = [f"{record(program, arguments, edits, value)}={value}" for value in values]
        name = " ".join([program, *(word.format("?") for word in arguments)])
        third = files[2].rpartition("=")[0]
        key = f"--batch={values[2]}"
        answers = [run(memreplay, "advise", "--json", key, *some) for some in (files[:2], files)]
        if any(not answer.stdout for answer in answers):
            said = "".join(answer.stderr for answer in answers).strip()
            print(f"| {name} | {', '.join(map(str, values))} | {said} |", flush=True)
            for each in errors.values():
                each.append(1)
            return
        advice, of_three = (json.loads(answer.stdout)["advice"] for answer in answers)
        peaks = json.loads(run(memreplay, "replay", "--json", third).stdout)["devices"][0]
        scaling = of_three["scaling"]
        line = (f"| `{name}` | {', '.join(map(str, values))} | {int(scaling['allocations']):,} | "
                f"{int(scaling['growing']):,} | {int(scaling['bent']):,} |")
        for what, found in errors.items():
            real, guess = int(peaks[f"peak_{what}_bytes"]), int(advice["as_is"][f"peak_{what}_bytes"])
            found.append(abs(guess / real - 1))
            line += f" {real / MIB:.1f} | {guess / MIB:.1f} | {100 * (guess / real - 1):+.2f} % |"
        print(line, flush=True)

    print("| script | values | allocations | grow | not in a line | reserved | predicted | error |"
          " allocated | predicted | error |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for script in SCRIPTS:
        compare(*script)
    for what, found in errors.items():
        print(f"{what}: {sum(error == 0 for error in found)} of {len(found)} equal, "
              f"{sum(error <= 0.01 for error in found)} within 1 %")


if __name__ == "__main__":
    main()
