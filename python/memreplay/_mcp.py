"""memreplay mcp: the questions that assistants ask, as tools of a Model Context Protocol server."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from typing import Any, BinaryIO, List, Optional, Sequence

from memreplay._load import _flags
from memreplay._program import Error, as_file, as_recording, printable, run

_HELP = """usage: memreplay mcp

Serves the Model Context Protocol on standard input and output, so that an assistant can ask
about recordings and error texts. Its tools are inspect, oom, explain, sweep and advise; they
read the files that they are given and change nothing. It requires the package mcp (2 or
newer): pip install 'memreplay[mcp]'. To register it, for example:

  claude mcp add memreplay -- memreplay mcp
  {"mcpServers": {"memreplay": {"command": "memreplay", "args": ["mcp"]}}}

The exit status is 0, or 2 if the server cannot start.
"""

_INSTRUCTIONS = """memreplay replays the GPU memory requests of a PyTorch script through PyTorch's own allocator rules,
without a GPU. Given only an error text or a log, call explain. Given a snapshot (torch.cuda.memory._dump_snapshot),
call oom if memory ran out, sweep for better PYTORCH_CUDA_ALLOC_CONF settings, advise for changes of the script, and
inspect for what the file contains. Sizes are text such as "16GiB", GPUs are names such as "rtx-4090". Every figure in
an answer was measured or simulated."""


def _name(command: str, file: str) -> str:
    """Returns the word by which a command reads a file. Errors: Error for a pipe or a device, which may never end."""
    if os.path.exists(file) and not (os.path.isfile(file) or os.path.isdir(file)):
        raise Error(f"{command}: {printable(file)}: expected a file, found a pipe or a device")
    return as_recording(file) if command == "advise" else as_file(file)


class _Requests(io.RawIOBase):
    """Lines of requests without surrogates that are not in pairs, which the package does not answer."""

    def __init__(self, lines: BinaryIO):
        self._lines, self._left = lines, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            line = self._lines.readline()
            try:
                line = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            except (ValueError, RecursionError):
                pass  # the package reports it
            self._left = memoryview(line)
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _without_content(error: str, words: Sequence[str]) -> str:
    """Returns an error of the binary without what it quotes of a file, which may be any file of the user."""
    def replaced(quote: "re.Match[str]") -> str:
        return quote[0] if quote[1] and any(quote[1] in word for word in words) else '"..."'
    return re.sub(r'"((?:[^"\\]|\\.)*)"|(?<=JSON of a ScheduleProgram: ).*', replaced, error)


def server() -> Any:
    """Returns the server, not yet connected. Errors: Error if the package mcp cannot be imported."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise Error(f"mcp: the package mcp (2 or newer) is required ({error}); pip install 'memreplay[mcp]'") from None

    served = MCPServer("memreplay", instructions=_INSTRUCTIONS,
                       version=run(["--version"]).stdout.decode().split()[-1], log_level="ERROR")

    def answer(command: str, file: Optional[str], text: str = "", **flags: Any) -> str:
        """Asks about a file or, without one, about a text."""
        words: List[str] = []
        try:
            words = ["-" if file is None else _name(command, file), *_flags(**flags)]
            return run([command, *words], input=text.encode("utf-8", "replace")).stdout.decode("utf-8", "replace")
        except Error as error:
            raise ToolError(_without_content(str(error), [*words, text])) from None

    def inspect(file: str, deep: bool = False) -> str:
        """Reports what is in a recording of GPU memory: devices, peaks, completeness, settings.

        file: path of a PyTorch memory snapshot, an allocation log or a schedule. deep: also how memory changed over
        time, what held it (parameters, gradients, optimizer state, activations) and whether a step leaks.
        """
        return answer("inspect", file, deep=deep)

    def oom(file: str, capacity: Optional[str] = None, conf: Optional[str] = None) -> str:
        """Explains why GPU memory ran out in a recording, what pinned its free parts, and what would have helped.

        file: path of the snapshot. capacity: ask about a GPU of this memory instead, such as "16GiB" or "rtx-4090".
        conf: PYTORCH_CUDA_ALLOC_CONF to replay under.
        """
        return answer("oom", file, capacity=capacity, conf=conf)

    def explain(log: str) -> str:
        """Explains an out-of-memory error from its text: what ran out, why, and what to do. No recording is needed.

        log: the error text, with its traceback and log lines if there are any, or the path of a log file.
        """
        is_name = os.path.exists(log) and not os.path.isdir(log)
        return answer("explain", log) if is_name else answer("explain", None, log)

    def sweep(file: str, conf: Optional[List[str]] = None, capacity: Optional[str] = None) -> str:
        """Ranks PYTORCH_CUDA_ALLOC_CONF settings for a recording by replaying it under each, and prints lines to paste.

        file: path of the snapshot. conf: only these settings, such as ["expandable_segments:True"]; without it the
        settings are searched. capacity: memory of the GPU, such as "16GiB" or "rtx-4090".
        """
        return answer("sweep", file, conf=conf, capacity=capacity)

    def advise(file: str, card: Optional[str] = None) -> str:
        """Reports which change of the script would make a recording fit a GPU, or lower its peak.

        Checkpointing, offloading, a fused loss, settings and others are each simulated on the recorded requests.

        file: path of the snapshot. card: the GPU that it should fit, such as "rtx-4070".
        """
        return answer("advise", file, card=card)

    for tool in (inspect, oom, explain, sweep, advise):
        served.add_tool(tool)
    return served


def main(args: Sequence[str]) -> int:
    """Serves until standard input ends. Returns the exit status. Errors: Error."""
    if args:
        if args[0] in ("-h", "--help"):
            print(_HELP, end="")
            return 0
        raise Error(f"mcp: unexpected argument {args[0]}; see memreplay mcp --help")
    served = server()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Requests(sys.stdin.buffer)), encoding="utf-8")
    served.run("stdio")
    return 0
