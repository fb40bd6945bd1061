"""The folders are stages: proto <- trace <- sim <- {report, cuda} <- cli.

Asks Bazel for every dependency between our folders (visibility should forbid
the wrong ones; a careless visibility line would not be noticed otherwise) and
looks at the #include lines for what a folder must not use: sim/ has no files,
flags, printing or clocks, and nothing includes tests/.
"""

import pathlib
import re
import subprocess
import sys

SEES = {
    "proto": set(),
    "trace": {"proto"},
    "sim": {"proto", "trace"},
    "report": {"proto", "trace", "sim"},
    "cuda": {"proto", "trace", "sim"},
    "cli": {"proto", "trace", "sim", "report", "cuda"},
}
# Standard and library headers by folder; `cuda/` loads the driver at run time
# and is the only one that may know its header.
FORBIDDEN = {
    "trace": r"absl/flags/.*|iostream|chrono|absl/time/clock\.h|cuda.*\.h",
    "sim": r"absl/flags/.*|iostream|fstream|filesystem|fcntl\.h|unistd\.h|chrono"
    r"|ctime|absl/time/clock\.h|cuda.*\.h",
    "report": r"absl/flags/.*|iostream|fstream|filesystem|chrono|absl/time/clock\.h|cuda.*\.h",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def folder_of(label):
    return label.removeprefix("//").split(":")[0].split("/")[0]


def wrong_dependencies(folders):
    """Sentences, one for each dependency against the arrows."""
    for folder in folders:
        query = subprocess.run(
            ["bazel", "query", "--noshow_progress", "--ui_event_filters=-info",
             "--keep_going", f"deps(//{folder}/...)"],
            stdout=subprocess.PIPE, check=False, text=True)
        if query.returncode not in (0, 3):
            yield f"bazel query deps(//{folder}/...) failed"
        for label in query.stdout.split():
            target = folder_of(label)
            if label.startswith("//") and target not in SEES[folder] | {folder, "third_party"}:
                yield f"{folder}/ depends on {label}"


def wrong_includes(folders):
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                target = name.split("/")[0] if "/" in name else None
                if target in SEES | {"tests": None} and target not in SEES[folder] | {folder}:
                    yield f"{path} includes {name}"
                if folder in FORBIDDEN and re.fullmatch(FORBIDDEN[folder], name):
                    yield f"{path} includes <{name}>, which {folder}/ must not use"


def main():
    folders = [name for name in SEES if pathlib.Path(name, "BUILD.bazel").exists()]
    wrong = [*wrong_dependencies(folders), *wrong_includes(folders)]
    for sentence in wrong:
        print(sentence)
    print(f"{len(folders)} folders: {', '.join(folders)}; {len(wrong)} wrong arrows")
    return 1 if wrong or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
