"""Prints the tables of docs/record_evidence.md on the memory of a process outside PyTorch's allocator.

    outside_reports.py          the tables
    outside_reports.py OUT.cc   the figures that every command takes, for outside_figures.h

outside_reports.tsv has what whole processes had: what is in use less what PyTorch allocated and what it holds
unallocated. Each figure is printed with two decimals, so it is known to within 15 MiB. outside_parts.tsv has single
parts. The context grows with the GPU's multiprocessors, whose number is in cards.tsv.
"""
import pathlib
import statistics
import sys

from card_rows import rows

OF_UNKNOWN_GPU = 500  # MiB, where no GPU is named
UNITS = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
GROUPS = [("7.5", "T4, RTX 2080 Ti"), ("8.0", "A100"), ("8.6", "RTX 3080, 3090, A4000"),
          ("8.9", "RTX 4090, 6000 Ada, L40, L40S"), ("12.0", "RTX 5090")]


def mebibytes(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def multiprocessors():
    """Returns the number of each card of cards.tsv by the words of its name."""
    found = [(card["name"].split("-"), int(card["multiprocessors"])) for card in rows("cards.tsv")]
    return sorted(found, key=lambda card: len(card[0]))


def reports():
    """Returns the rows of whole processes with "outside" in MiB and the "multiprocessors", None if unknown."""
    all_rows = rows("outside_reports.tsv")
    for row in all_rows:
        row["outside"] = mebibytes(row["process"]) - mebibytes(row["allocated"]) - mebibytes(row["unallocated"])
    return with_multiprocessors(all_rows)


def with_multiprocessors(all_rows):
    cards = multiprocessors()
    for row in all_rows:
        words = set(row["card"].lower().split())
        row["multiprocessors"] = next((number for name, number in cards if words <= set(name)), None)
    return all_rows


def by_multiprocessor(all_rows, key):
    """Returns MiB per multiprocessor of those rows whose card is known."""
    return [key(row) / row["multiprocessors"] for row in all_rows if row["multiprocessors"] is not None]


def quantiles(found):
    """Returns what 10 % do not exceed, the median, and what 90 % do not exceed."""
    tenths = statistics.quantiles(found, n=10, method="inclusive") if len(found) > 1 else found * 9
    return tenths[0], statistics.median(found), tenths[-1]


def line(name, found, digits=0):
    low, median, high = quantiles(found)
    return f"| {name} | {len(found)} | {median:,.{digits}f} | {low:,.{digits}f} to {high:,.{digits}f} |"


def outside(found):
    return [row["outside"] for row in found]


def value(row):
    return mebibytes(row["value"])


def plain_reports():
    return [row for row in reports() if row["runs"] == "-"]


def fewest_multiprocessors():
    return min(row["multiprocessors"] for row in plain_reports() if row["multiprocessors"] is not None)


def figures():
    """Returns what `record` adds up: name of the constant -> MiB in each report."""
    parts = with_multiprocessors(rows("outside_parts.tsv"))
    communicators = [row for row in parts if row["part"] == "nccl"]
    return {
        "OutsidePerMultiprocessor": by_multiprocessor(plain_reports(), lambda row: row["outside"]),
        "ContextPerMultiprocessor": by_multiprocessor([row for row in parts if row["part"] == "context"], value),
        "NcclCommunicator": [value(row) for row in communicators if row["of"] != "1"],
        "NcclOfOneRank": [value(row) for row in communicators if row["of"] == "1"],
        "GraphLaunch": [value(row) / int(row["of"]) for row in parts if row["part"] == "graph"],
    }


def write(path):
    lines = []
    for name, found in figures().items():
        low, median, high = (round(mib * 2**20) for mib in quantiles(found))
        lines.append(f"const OutsideFigure k{name} = {{{len(found)}, {low}, {median}, {high}}};")
    plain = plain_reports()
    within = sum(row["outside"] <= OF_UNKNOWN_GPU for row in plain)
    lines += [f"const int kFewestMultiprocessors = {fewest_multiprocessors()};",
              f"const int64_t kOutsideOfUnknownGpu = {OF_UNKNOWN_GPU << 20};",
              f"const int kReports = {len(plain)}, kReportsWithinUnknown = {within};"]
    text = ['#include "hardware/outside_figures.h"', "", "namespace memreplay {", "", *lines, "",
            "}  // namespace memreplay", ""]
    pathlib.Path(path).write_text("\n".join(text), encoding="ascii")


def tables():
    all_rows = reports()
    plain = [row for row in all_rows if row["runs"] == "-"]
    print("| reports | number | median, MiB | 10 to 90 %, MiB |\n|---|---|---|---|")
    print(line("all", outside(all_rows)))
    for runs, name in (("nccl", "several GPUs, with NCCL"), ("graphs", "servers and CUDA graphs"),
                       ("library", "extensions with memory of their own")):
        print(line(name, outside(row for row in all_rows if row["runs"] == runs)))
    print(line("none of these is known", outside(plain)))
    for capability, name in GROUPS:
        group = [row for row in plain if row["capability"] == capability]
        print(line(f"of these, {capability} ({name})", outside(group)))
    print(line("of these, PyTorch 2.1", outside(row for row in plain if row["release"] == "2.1")))
    print(line("of these, later releases or unknown", outside(row for row in plain if row["release"] != "2.1")))

    used = figures()
    print("\n| part | reports | median, MiB | 10 to 90 %, MiB |\n|---|---|---|---|")
    print(line("of each multiprocessor: context, kernels and handles", used["OutsidePerMultiprocessor"], 2))
    print(line("of each multiprocessor: context alone", used["ContextPerMultiprocessor"], 2))
    parts = with_multiprocessors(rows("outside_parts.tsv"))
    for cuda in ("12.8", "13.0", "-"):
        found = [row for row in parts if row["part"] == "context" and row["cuda"] == cuda]
        name = "unknown" if cuda == "-" else cuda
        print(line(f"of these, CUDA {name}", by_multiprocessor(found, value), 2))
    print(line("communicator of NCCL, several ranks", used["NcclCommunicator"]))
    print(line("communicator of NCCL, one rank", used["NcclOfOneRank"]))
    print(line("launch in a CUDA graph", used["GraphLaunch"], 3))
    held_against_reports(plain, used["OutsidePerMultiprocessor"])


def held_against_reports(plain, found):
    """Prints how much more and less the plain reports have than would be assumed for their GPUs."""
    print("\n| assumed | reports of | with more | by, MiB | with no more | by, MiB: median | most |")
    print("|---|---|---|---|---|---|---|")
    named = [row for row in plain if row["multiprocessors"] is not None]
    unnamed = [row for row in plain if row["multiprocessors"] is None]
    _, median, high = quantiles(found)
    fewest = fewest_multiprocessors()
    for name, rows_of, each in ((f"{high:.2f} MiB a multiprocessor", named, high),
                                (f"{median:.2f} MiB a multiprocessor", named, median),
                                (f"{OF_UNKNOWN_GPU} MiB", named, None), (f"{OF_UNKNOWN_GPU} MiB", unnamed, None)):
        left = [(OF_UNKNOWN_GPU if each is None else each * max(row["multiprocessors"], fewest)) - row["outside"]
                for row in rows_of]
        short, spare = sorted(-mib for mib in left if mib < 0), [mib for mib in left if mib >= 0]
        print(f"| {name} | {len(left)} {'known' if rows_of is named else 'unknown'} GPUs | {len(short)} |"
              f" {', '.join(f'{mib:,.0f}' for mib in short)} | {len(spare)} | {statistics.median(spare):,.0f} |"
              f" {max(spare):,.0f} |")


if __name__ == "__main__":
    write(sys.argv[1]) if len(sys.argv) > 1 else tables()
