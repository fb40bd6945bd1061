"""Checks the rules of docs/style.md that can be counted: words, the length of lines, a sentence in front of each class,
names of classes that mean two things.

Usage: style.py [FOLDER_OR_FILE]...
"""

import pathlib
import re
import subprocess
import sys

# What not to write, and what to write instead.
WORDS = [
    (r"\btells\b|\btelling (?!apart)", "reports, shows, says"),
    (r"\bnobody knows\b", "unknown"),
    (r"\bbesides?\b", "next to, in addition"),
    (r"\b(?:give|gives|gave|given|giving) back\b", "released, freed"),
    (r"\bwants?\b", "requires, needs"),
    (r"\bask(?:s|ed)? for\b", "requested"),
    (r"\bwhoever\b", "the caller"),
    (r"\bimagin(?:e|es|ed|ary)\b", "simulated"),
    (r"\bin force\b", "current"),
    (r"\bodd one\b", "outlier"),
    (r"\bby luck\b", "also works, but not every size above it"),
    (r"\bcalls? of the driver\b", "driver calls"),
    (r"\bk(?:Most|Longest|Least)\w*", "kMax..., kMin..."),
]
LONGEST_LINE = 120
SUFFIXES = {".h", ".cc", ".js", ".py", ".md", ".proto", ".txtpb", ".css"}
# Texts of the program that are files of their own.
TEXTS = ("cli/commands/help/*.txt", "report/message/rows/*.tsv")
# The page that quotes the words, this list of them, and files that other programs wrote.
EXEMPT = ("docs/style.md", "tests/checks/style.py", "tests/data/", "third_party/d3", "tests/golden")
WORD_RULES = [(re.compile(pattern, re.IGNORECASE if "k(?:" not in pattern else 0), instead) for pattern, instead in WORDS]
NAMED = re.compile(r"^class (\w+) [^;\n]*\{", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
CLASS = re.compile(r"^(?:template <[^;{]*>\n)?(?:class|struct) (?!\w+;)(\w+)[^;\n]*\{?", re.MULTILINE)


def long_lines(path, lines):
    """Yields numbers of the lines that are too long; rows may be, and in Markdown tables, commands and links."""
    if path.suffix == ".tsv":
        return
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= path.suffix == ".md" and line.startswith("```")
        may_be_long = path.suffix == ".md" and (in_code or line.startswith(("|", "    ", "![")) or "://" in line)
        if len(line) > LONGEST_LINE and not may_be_long:
            yield number


def bare_classes(path, text):
    """Yields names and line numbers of classes of a public header without a comment in front of them."""
    if path.suffix != ".h" or path.parts[0] == "tests":
        return
    for match in CLASS.finditer(text):
        before = text[:match.start()].rstrip("\n").rpartition("\n")[2].lstrip()
        if not before.startswith("//"):
            yield match[1], text.count("\n", 0, match.start()) + 1


def shared_names(paths):
    """Yields lines of text, one for each class that another file has, too: one name, two things."""
    places = {}
    for path in paths:
        if path.suffix in (".h", ".cc") and path.parts[0] not in ("tests", "third_party"):
            text = path.read_text(encoding="utf-8", errors="replace")
            namespace = NAMESPACE.search(text)
            for name in NAMED.findall(text):
                places.setdefault((namespace and namespace[1], name), []).append(str(path))
    for (_, name), files in places.items():
        if len(files) > 1:
            yield f"{files[0]}: class {name} is another one in {', '.join(files[1:])}"


def faults(path):
    """Yields lines of text, one for each fault of a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    for pattern, instead in WORD_RULES:
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: '{match[0]}'; write: {instead}"
    for number in long_lines(path, lines):
        yield f"{path}:{number}: {len(lines[number - 1])} columns; expected at most {LONGEST_LINE}"
    for name, number in bare_classes(path, text):
        yield f"{path}:{number}: {name} has no sentence in front of it"


def is_under(path, entry):
    return str(path) == entry or str(path).startswith(entry.rstrip("/") + "/")


def main(only):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [path for path in map(pathlib.Path, listed.stdout.split("\n"))
             if (path.suffix in SUFFIXES or any(path.match(text) for text in TEXTS))
             and not str(path).startswith(EXEMPT) and path.exists()]
    if only:
        files = [path for path in files if any(is_under(path, entry) for entry in only)]
    shown = [*shared_names(files), *(fault for path in files for fault in faults(path))]
    print("\n".join(shown), end="\n" if shown else "")
    print(f"{len(files)} files, {len(shown)} faults")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
