"""Checks, or with --update rewrites, the table of docs/fidelity.md that says how much was compared.

The figures are those that tests/conformance/run --record kept. A release of the model's table without a figure, and a
figure with a divergence, fail the check.
"""

import json
import pathlib
import re
import sys

DOC = pathlib.Path("docs/fidelity.md")
PROOF = pathlib.Path("tests/data/conformance/proof.json")
BEGIN, END = "<!-- proof: begin -->\n", "<!-- proof: end -->\n"


def releases():
    """Those that the model has a row for, but 2.0: its pools and traces are driven through another interface."""
    return re.findall(r'release\("([\d.]+)"\)', pathlib.Path("sim/torch_profile.cc").read_text())


def table(proof):
    lines = ["| PyTorch | programs | events | divergences | rules of the model that never fired |", "|---|---|---|---|---|"]
    for version, result in proof.items():
        never = ", ".join(result["rules_never_fired"]) or "none"
        lines.append(f"| {version} | {result['programs']:,} | {result['events']:,} | {result['divergences']} | {never} |")
    return "\n".join(lines) + "\n"


def main():
    proof = json.loads(PROOF.read_text())
    text = DOC.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table(proof) + END + after
    if "--update" in sys.argv:
        DOC.write_text(wanted)
        return 0
    problems = []
    if text != wanted:
        problems.append(f"{DOC} does not show {PROOF}; python3 tests/checks/fidelity.py --update writes it")
    known = {".".join(version.split(".")[:2]) for version in proof}
    problems += [f"{PROOF} has no figure for {release}" for release in releases() if release != "2.0" and release not in known]
    problems += [f"{version}: {result['divergences']} divergences" for version, result in proof.items() if result["divergences"]]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
