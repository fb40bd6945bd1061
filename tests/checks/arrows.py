"""Checks that the folders are a staircase: each sees only what stands above it in ORDER.

It queries Bazel for every dependency between our folders and searches the #include lines for what a folder must not
use: sim/ has no files, flags, printing or clocks, and nothing includes tests/. A dependency of which no header is
included is an arrow too many. A type that two headers define is two types to a compiler and one to the linker, which
keeps either's functions. docs/design.md shows the staircase as it is in the BUILD files: `./check --accept docs-arrows`
draws it anew.
"""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

# Bottom up. A path stands for the folder and what is below it, except where a
# folder below has a row of its own.
ORDER = [
    "proto",
    "hardware",
    "trace/value",
    "trace/bytes",
    "trace/formats/flat",
    "trace/formats/op_log",
    "trace/formats/protobuf",
    "trace/formats/torch",
    "trace/program",
    "trace/formats",
    "trace/schedule",
    "synth",
    "sim/settings",
    "sim/model",
    "sim/run",
    "sim/device",
    "sim/observe",
    "sim/workload",
    "sim/category",
    "sim/recording",
    "sim/study",
    "sim/whatif",
    "sim/remedy",
    "sim/oom",
    "sim/confirm",
    "report/words",
    "report/message",
    "report/table",
    "report/text",
    "report/page",
    "report/run",
    "report/device",
    "report/ask",
    "browser",
    "cuda",
    "record/card/stubs",
    "record/card/model",
    "record/card/device",
    "record/card/hooks",
    "record/card/api",
    "record/card/pass",
    "record/card",
    "record",
    "experiment",
    "cli/io",
    "cli/flags",
    "cli/commands",
    "cli",
]
# What the stages see of each other, whatever stands above them.
SEES = {
    "proto": set(),
    "hardware": set(),
    "trace": {"proto"},
    "synth": {"proto", "trace"},
    "sim": {"proto", "trace", "hardware"},
    "report": {"proto", "hardware", "trace", "synth", "sim"},
    "browser": {"proto", "hardware", "trace", "sim", "report"},
    "cuda": {"proto", "trace", "sim"},
    "record": {"proto", "trace", "hardware", "sim"},
    "experiment": {"proto", "trace", "sim", "report", "record"},
    "cli": {"proto", "hardware", "trace", "synth", "sim", "report", "cuda", "record", "experiment"},
}
# Siblings that do not know each other.
APART = [{"sim/oom", "sim/confirm"}, {"report/table", "sim"}, {"report/text", "sim"}, {"report/page", "sim"},
         {"report/message", "sim"}]
# Standard and library headers by stage; cuda/ loads the driver at run time and
# is the only one that may know its header.
FORBIDDEN = {
    "trace": r"absl/flags/.*|iostream|chrono|absl/time/clock\.h|cuda.*\.h",
    "sim": r"absl/flags/.*|iostream|fstream|filesystem|fcntl\.h|unistd\.h|chrono"
    r"|ctime|absl/time/clock\.h|cuda.*\.h",
    "report": r"absl/flags/.*|iostream|fstream|filesystem|chrono|absl/time/clock\.h|cuda.*\.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
# What targets of other people's headers provide.
PREFIXES = {"//third_party/absl:absl": "absl/", "//third_party/protobuf:protobuf": "google/protobuf/"}
DESIGN = pathlib.Path("docs/design.md")
BEGIN, END = "<!-- folders: begin -->\n", "<!-- folders: end -->\n"


def row_of(package):
    """Returns the row of ORDER that a package belongs to, None if it is none of ours."""
    rows = [row for row in ORDER if package == row or package.startswith(row + "/")]
    return max(rows, key=len) if rows else None


def stage_of(row):
    return row.split("/")[0]


def rules():
    """Returns the rules of our stages, as Bazel's XML has them."""
    stages = " + ".join(f"//{stage}/..." for stage in SEES if pathlib.Path(stage).exists())
    query = subprocess.run(
        ["bazel", "query", "--noshow_progress", "--ui_event_filters=-info", "--output=xml",
         "--noimplicit_deps", f"kind(rule, {stages})"],
        stdout=subprocess.PIPE, check=True, text=True)
    return list(xml.etree.ElementTree.fromstring(query.stdout).iter("rule"))


def labels(rule, *attributes):
    return [label.get("value") for lists in rule.iter("list") if lists.get("name") in attributes
            for label in lists.iter("label")]


def path_of(label):
    return label.removeprefix("//").replace(":", "/").lstrip("/")


def unused_arrows(rules):
    """Returns dependencies of C++ targets on ours, on Abseil and on Protobuf of which they include no header."""
    headers = {rule.get("name"): {path_of(label) for label in labels(rule, "hdrs")}
               for rule in rules if rule.get("class") == "cc_library"}
    for rule in rules:
        is_shared = any(flag.get("name") == "linkshared" and flag.get("value") == "true"
                        for flag in rule.iter("boolean"))
        if rule.get("class") not in ("cc_library", "cc_binary") or is_shared:
            continue
        files = [pathlib.Path(path_of(label)) for label in labels(rule, "srcs", "hdrs", "textual_hdrs")]
        included = {name for path in files if path.suffix in (".h", ".cc") and path.exists()
                    for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
        for dep in labels(rule, "deps"):
            if dep in PREFIXES:
                used = any(name.startswith(PREFIXES[dep]) for name in included)
            elif dep.endswith("_cc_proto"):
                used = path_of(dep).removesuffix("_cc_proto") + ".pb.h" in included
            elif headers.get(dep):
                used = bool(headers[dep] & included)
            else:
                continue  # linked for what it does, or not ours
            if included and not used:
                yield f"{rule.get('name')} depends on {dep} and includes nothing of it"


def dependencies(rules):
    """Returns {row: the rows that its targets name}, and the packages that have no row."""
    uses, strangers = {row: set() for row in ORDER}, set()
    for rule in rules:
        package = rule.get("name").removeprefix("//").split(":")[0]
        row = row_of(package)
        if row is None:
            strangers.add(package)
            continue
        for entry in rule.iter("rule-input"):
            label = entry.get("name")
            target = label.startswith("//") and row_of(label.removeprefix("//").split(":")[0])
            if target and target != row:
                uses[row].add(target)
    return uses, strangers


def is_apart(row, target):
    return any(any(target == side or stage_of(target) == side for side in pair - {row})
               for pair in APART if row in pair)


def wrong_arrows(uses):
    for row, targets in uses.items():
        for target in sorted(targets):
            if (ORDER.index(target) > ORDER.index(row) or is_apart(row, target)
                    or stage_of(target) not in SEES[stage_of(row)] | {stage_of(row)}):
                yield f"{row}/ depends on {target}/"


def wrong_includes():
    for stage, seen in SEES.items():
        for path in sorted(pathlib.Path(stage).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                target = name.split("/")[0] if "/" in name else None
                if target in SEES | {"tests": None} and target not in seen | {stage}:
                    yield f"{path} includes {name}"
                if stage in FORBIDDEN and re.fullmatch(FORBIDDEN[stage], name):
                    yield f"{path} includes <{name}>, which {stage}/ must not use"


def types_defined_twice():
    """Returns types of a namespace with definitions in more than one header."""
    found = {}
    for path in sorted(path for stage in SEES for path in pathlib.Path(stage).rglob("*.h")):
        text = path.read_text(encoding="utf-8")
        namespace = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
        for name in re.findall(r"^(?:struct|class|enum class) (\w+)[^;]*?\{", text, re.MULTILINE):
            found.setdefault((namespace and namespace[1], name), set()).add(str(path))
    for (namespace, name), paths in found.items():
        if len(paths) > 1:
            yield f"{namespace}::{name} is defined in {' and in '.join(sorted(paths))}"


def drawing(uses):
    """Returns one line a folder, bottom up: what it is for, and what it uses of its own stage."""
    lines = ["```"]
    for row in ORDER:
        build = pathlib.Path(row, "BUILD.bazel").read_text(encoding="utf-8")
        own = sorted((target for target in uses[row] if stage_of(target) == stage_of(row)),
                     key=ORDER.index)
        text = build.replace("\n# ", " ").split("\n")[0].removeprefix("# ")
        lines.append(f"{row + '/':<24}{text}")
        if own:
            lines.append(f"{'':<24}  <- {', '.join(own)}")
    return "\n".join([*lines, "```"]) + "\n"


def main():
    all_rules = rules()
    uses, strangers = dependencies(all_rules)
    wrong = [f"{package}/ has no place in the order" for package in sorted(strangers)]
    wrong += [*wrong_arrows(uses), *wrong_includes(), *unused_arrows(all_rules), *types_defined_twice()]
    text = DESIGN.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    wanted = before + BEGIN + drawing(uses) + END + rest.split(END)[1]
    if "MEMREPLAY_ACCEPT" in os.environ:
        DESIGN.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        wrong.append(f"{DESIGN} does not show the folders as they are; "
                     "./check --accept docs-arrows draws them")
    for sentence in wrong:
        print(sentence)
    print(f"{len(ORDER)} folders, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
