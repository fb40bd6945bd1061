"""What no schema knows of GitHub's workflows: python3 tests/checks/workflows.py FILE...

Every action is pinned to a commit, with its version next to it; every command passes shellcheck, names scripts that
exist and steps that ./check has; every job that another needs exists. Requires PyYAML and shellcheck.
"""
import functools
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = re.compile(r"\s*(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v[\d.]+")


@functools.cache
def steps_of_check():
    listed = subprocess.run([ROOT / "check", "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def faults_of_command(text, shell):
    """Lines about the text of one `run:`. Without `shell:` GitHub takes bash, and sh in a container that lacks it."""
    script = re.sub(r"\$\{\{.*?\}\}", "expression", text)
    done = subprocess.run(["shellcheck", "--shell", shell, "--format", "gcc", "-"], input=script, capture_output=True,
                          text=True, cwd=ROOT, check=False)
    yield from done.stdout.splitlines()
    for words in (line.split() for line in script.splitlines() if line.strip()):
        if "/" in words[0] and "=" not in words[0] and not (ROOT / words[0]).is_file():
            yield f"{words[0]} does not exist"
        if words[0] == "./check":
            known = steps_of_check()
            yield from (f"./check has no step {word}" for word in words[1:]
                        if not any(step == word or step.startswith(word + "-") for step in known))


def faults(path):
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(- )?uses:", line) and not PINNED.fullmatch(line):
            yield f"{path}:{number}: expected an action at a commit, 40 digits, with `# vVERSION`, found {line.strip()}"
    jobs = yaml.safe_load(text)["jobs"]
    for name, job in jobs.items():
        needs = job.get("needs", [])
        for other in [needs] if isinstance(needs, str) else needs:
            if other not in jobs:
                yield f"{path}: {name} needs {other}, which is no job of the workflow"
        for step in job["steps"]:
            if "run" in step:
                shell = step.get("shell", "sh" if "container" in job else "bash")
                for fault in faults_of_command(step["run"], shell):
                    yield f"{path}: {name}: {step.get('name', step['run'])}: {fault}"


def main(paths):
    found = [fault for path in paths for fault in faults(pathlib.Path(path))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
