"""python -m memreplay: the native binary, and its commands that are Python: fleet and mcp."""

import os
import sys
from typing import List

from memreplay._program import Error, printable, program


def main(args: List[str]) -> int:
    try:
        if args[:1] == ["fleet"]:
            from memreplay.fleet import main as fleet

            return fleet(args[1:])
        if args[:1] == ["mcp"]:
            from memreplay._mcp import main as mcp

            return mcp(args[1:])
        path = program()
        os.execv(path, [path, *args])
    except Error as error:
        print(f"memreplay: {printable(str(error))}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
