"""Writes the parts of the page as C++ constants: embed.py OUT.cc NAME=FILE...

Scripts and styles also get kNAMEHash, the source expression by which a page's
content security policy allows exactly them.
"""

import base64
import hashlib
import sys

_TAGS = {".js": "script", ".css": "style"}


def literal(text):
    """C++ raw strings, in pieces that no compiler finds too long."""
    pieces = [text[i:i + 8000] for i in range(0, len(text), 8000)] or [""]
    return "\n    ".join(f'R"~page~({piece})~page~"' for piece in pieces)


def main():
    out, *parts = sys.argv[1:]
    lines = ['#include "report/page/parts.h"', "", "namespace memreplay {", ""]
    for part in parts:
        name, path = part.split("=", 1)
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        extension = path[path.rindex("."):] if "." in path.rsplit("/", 1)[-1] else ""
        lines.append(f"const std::string_view k{name} =\n    {literal(text)};")
        if extension not in _TAGS:
            continue
        # What would end the element early, or change what the browser hashes.
        for wrong in ("</" + _TAGS[extension], "<!--", "<script", "\r", "\0"):
            if wrong in text:
                sys.exit(f"{path}: contains {wrong!r}, which a page cannot hold inside <script>")
        digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        lines.append(f"const std::string_view k{name}Hash = \"'sha256-{digest}'\";")
    lines += ["", "}  // namespace memreplay", ""]
    with open(out, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines))


main()
