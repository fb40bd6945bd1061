"""Fails if docs/invariants.md, which lists every check that ends the process and says why no input reaches it, is not
complete or names a check that is gone. So are the places where Python ends a process: its own, the user's, another."""
import ast
import pathlib
import re
import sys

FOLDERS = ("proto", "hardware", "trace", "synth", "sim", "report", "browser", "cuda", "record", "experiment", "cli")
PYTHON = ("python/memreplay", "record/process")
PAGE = pathlib.Path("docs/invariants.md")
ENDS = re.compile(r"\bMEMREPLAY_CHECK\(|\bstd::abort\(|\babort\(\)|\bassert\(|\bstd::terminate\(|"
                  r"\bstd::unreachable\(|__builtin_unreachable\(|"
                  r"__builtin_trap\(|\bstd::exit\(|\b_exit\(|\bquick_exit\(|\bthrow\b|"
                  r"\bstd::(?:get|any_cast|thread|jthread|sto[a-z]+)\b|(?:\.|->)at\(|"
                  r"\bfor \([^;)]* : [^;)]*\bdirectory_iterator\(|"
                  r"\b(?:fs|std::filesystem)::(?:absolute|canonical|copy|copy_file|create_director[a-z]+|current_path|"
                  r"equivalent|exists|file_size|is_[a-z]+|last_write_time|read_symlink|remove|remove_all|rename|"
                  r"resize_file|space|status|temp_directory_path)\(")
# The functions of the file system report an error in their last argument, or throw it.
REPORTS = re.compile(r"\b\*?(?:error|failed|ignored|missing)$")
# Of Python: functions of os, sys and signal, and what is raised or called without one of them.
ENDING = re.compile(r"(?:(?:os|sys|signal)\.)?(?:_exit|abort|exec[lv]p?e?|exit|kill|killpg|pthread_kill|raise_signal)|"
                    r"quit|(?:builtins\.)?(?:SystemExit|KeyboardInterrupt)")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def call(text, start):
    """Returns what stands between the parentheses that open at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1:at]
    return text[start:]


def checks(path):
    """Yields the file's checks, each by what it says; one that says nothing by its code."""
    text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    for found in ENDS.finditer(text):
        line = text[text.rfind("\n", 0, found.start()) + 1:found.end()]
        if "#define" in line or line.lstrip().startswith("#"):
            continue
        inside = call(text, found.end() - 1) if found.group().endswith("(") else ""
        reports = REPORTS.search(inside.strip()) and not found.group().startswith("for")
        if reports or "hardware_concurrency" in text[found.end():found.end() + 24]:
            continue
        said = TEXT.findall(inside)
        closing = ")" if found.group().endswith("(") else ""
        yield said[-1] if said else " ".join((found.group() + inside).split()) + closing


def endings(path):
    """Yields the places of a Python file that end a process, or hold a function that does, each by its code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and ENDING.fullmatch(ast.unparse(node)):
            if isinstance(node, ast.Name) and id(node) not in called:
                continue  # a variable of that name, or a kind of exception that is looked at
            yield ast.unparse(called.get(id(node), node))
        elif isinstance(node, ast.Raise) and node.exc and ENDING.fullmatch(ast.unparse(node.exc)):
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and any(ENDING.fullmatch(f"os.{name.name}") for name in node.names):
            yield ast.unparse(node)


def main():
    there = {(str(path), said) for folder in FOLDERS for path in pathlib.Path(folder).rglob("*")
             if path.suffix in (".cc", ".h") for said in checks(path)}
    there |= {(str(path), said) for folder in PYTHON for path in pathlib.Path(folder).rglob("*.py")
              if not path.is_symlink() for said in endings(path)}
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")]
            for line in PAGE.read_text(encoding="utf-8").splitlines()
            if line.startswith("| `")]
    listed = {(row[0].strip("`"), row[1].strip("`")) for row in rows}
    problems = [f"{PAGE}: a row without a reason: {row[0]}, {row[1]}" for row in rows if len(row) < 3 or not row[2]]
    problems += [f"{path}: ends the process with \"{said}\", which is not in {PAGE}"
                 for path, said in sorted(there - listed)]
    problems += [f"{PAGE}: {path} has no check that says \"{said}\"" for path, said in sorted(listed - there)]
    print("\n".join(problems) if problems else f"{len(there)} checks that end the process, each with a reason")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
