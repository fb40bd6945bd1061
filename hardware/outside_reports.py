"""Prints the table of docs/record.md: memory of a process outside PyTorch's allocator, from outside_reports.tsv.

What lies outside is what the process has in use, less what PyTorch allocated and what it holds unallocated. Each figure
is printed with two decimals, so it is known to within 15 MiB.
"""
import csv
import pathlib
import statistics

UNITS = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
GROUPS = [("7.5", "T4, RTX 2080 Ti"), ("8.0", "A100"), ("8.6", "RTX 3080, 3090, A4000"),
          ("8.9", "RTX 4090, 6000 Ada, L40, L40S"), ("12.0", "RTX 5090")]


def mebibytes(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def reports():
    """Returns the rows with "outside" in MiB."""
    path = pathlib.Path(__file__).with_name("outside_reports.tsv")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    for row in rows:
        row["outside"] = mebibytes(row["process"]) - mebibytes(row["allocated"]) - mebibytes(row["unallocated"])
    return rows


def line(name, rows):
    found = sorted(row["outside"] for row in rows)
    tenths = statistics.quantiles(found, n=10, method="inclusive") if len(found) > 1 else found * 9
    return f"| {name} | {len(found)} | {statistics.median(found):,.0f} | {tenths[0]:,.0f} to {tenths[-1]:,.0f} |"


def main():
    rows = reports()
    plain = [row for row in rows if row["runs"] == "-"]
    print("| reports | number | median, MiB | 10 to 90 %, MiB |\n|---|---|---|---|")
    print(line("all", rows))
    for runs, name in (("nccl", "several GPUs, with NCCL"), ("graphs", "servers and CUDA graphs"),
                       ("library", "extensions with memory of their own")):
        print(line(name, [row for row in rows if row["runs"] == runs]))
    print(line("none of these is known", plain))
    for capability, name in GROUPS:
        print(line(f"of these, {capability} ({name})", [row for row in plain if row["capability"] == capability]))
    print(line("of these, PyTorch 2.1", [row for row in plain if row["release"] == "2.1"]))
    print(line("of these, later releases or unknown", [row for row in plain if row["release"] != "2.1"]))


if __name__ == "__main__":
    main()
