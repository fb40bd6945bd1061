"""Checks that the documentation names files of the tree that are there: fails for each path that is not."""
import pathlib
import re
import subprocess
import sys

# A path from the top of the tree; NAME stands for anything. Not those of a build, bazel-bin/cli/memreplay.
PATH = re.compile(r"(?<![\w/.~-])((?:sim|trace|report|cli|cuda|record|tests|proto|python|examples|third_party|docs)"
                  r"/[\w/.-]*\w)")


def main():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                           check=True).stdout.split()
    known = set(files) | {str(folder) for file in files for folder in pathlib.PurePath(file).parents}
    known |= {str(pathlib.PurePath(file).with_suffix("")) for file in files}  # sim/model/free_set: both of its files
    missing = []
    for page in (file for file in files if file.endswith(".md") or file == "llms.txt"):
        for number, line in enumerate(pathlib.Path(page).read_text(encoding="utf-8").splitlines(), 1):
            missing += [f"{page}:{number}: {path}: no such file" for path in PATH.findall(line)
                        if path not in known and "NAME" not in path]
    print("\n".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
