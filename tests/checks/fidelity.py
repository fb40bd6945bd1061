"""Checks, or with `./check --accept docs-fidelity` rewrites, what docs/fidelity.md (a table) and README.md (a sentence)
say about how much was compared.

The figures are those that tests/conformance/run --record kept. A release of the model's table without a figure, and a
figure with a divergence, fail the check.
"""

import json
import os
import pathlib
import re
import sys

DOC = pathlib.Path("docs/fidelity.md")
README = pathlib.Path("README.md")
PROOF = pathlib.Path("tests/data/conformance/proof.json")
BEGIN, END = "<!-- proof: begin -->\n", "<!-- proof: end -->\n"


def releases():
    """Returns those that the model has a row for, except 2.0, whose pools and traces have another interface."""
    return re.findall(r'release\("([\d.]+)"\)', pathlib.Path("sim/settings/torch_profile.cc").read_text())


def table(proof):
    lines = ["| PyTorch | programs | events | divergences | rules of the model that never fired |",
             "|---|---|---|---|---|"]
    for version, result in proof.items():
        never = ", ".join(result["rules_never_fired"]) or "none"
        lines.append(f"| {version} | {result['programs']:,} | {result['events']:,} | {result['divergences']} | "
                     f"{never} |")
    return "\n".join(lines) + "\n"


def sentence(proof):
    total = {key: sum(result[key] for result in proof.values()) for key in ("programs", "events", "divergences")}
    return (f"{total['programs']:,} random programs, {total['events']:,} events,\n"
            f"{len(proof)} releases, {total['divergences']} divergences\n")


def main():
    proof = json.loads(PROOF.read_text())
    problems = []
    for path, shown in ((DOC, table(proof)), (README, sentence(proof))):
        text = path.read_text()
        before, rest = text.split(BEGIN)
        wanted = before + BEGIN + shown + END + rest.split(END)[1]
        if "MEMREPLAY_ACCEPT" in os.environ:
            path.write_text(wanted)
        elif text != wanted:
            problems.append(f"{path} does not show {PROOF}; ./check --accept docs-fidelity writes it")
    if "MEMREPLAY_ACCEPT" in os.environ:
        return 0
    known = {".".join(version.split(".")[:2]) for version in proof}
    problems += [f"{PROOF} has no figure for {release}" for release in releases()
                 if release != "2.0" and release not in known]
    problems += [f"{version}: {result['divergences']} divergences" for version, result in proof.items()
                 if result["divergences"]]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
