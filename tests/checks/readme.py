"""Runs the commands that README.md, docs/start.md and docs/schedules.md show and compares what they print.

In a ```console block, a line that begins with "$ " is a command and what follows
is its output, up to the next command or the end of the block. `./check --accept
docs-readme` writes the true output into the pages.
"""

import concurrent.futures
import difflib
import os
import pathlib
import subprocess
import sys

PAGES = [pathlib.Path("README.md"), pathlib.Path("docs/start.md"), pathlib.Path("docs/schedules.md")]


def shell(command):
    run = subprocess.run(
        ["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False)
    return run.stdout.splitlines()


def with_true_output(lines, pool):
    """Returns the lines of a page as they should be."""
    parts = []  # lines, or what will be some
    in_console = False
    for line in lines:
        if line == "```console":
            in_console = True
        elif in_console and line == "```":
            in_console = False
        if not in_console or line == "```console":
            parts.append([line])
        elif line.startswith("$ "):
            parts += [[line], pool.submit(shell, line[2:])]
    return [line for part in parts for line in (part if isinstance(part, list) else part.result())]


def check(page, update, pool):
    """Returns whether the page shows commands and what they print."""
    shown = page.read_text(encoding="utf-8").splitlines()
    true = with_true_output(shown, pool)
    commands = sum(line.startswith("$ ") for line in shown)
    if update:
        page.write_text("\n".join(true) + "\n", encoding="utf-8")
    difference = list(difflib.unified_diff(shown, true, str(page), "true output", lineterm=""))
    print("\n".join(difference))
    print(f"{page}: {commands} commands")
    return commands > 0 and (update or not difference)


def main(update):
    subprocess.run(["./memreplay", "--version"], check=True, stdout=subprocess.DEVNULL)  # built once
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return 0 if all([check(page, update, pool) for page in PAGES]) else 1


if __name__ == "__main__":
    sys.exit(main("MEMREPLAY_ACCEPT" in os.environ))
