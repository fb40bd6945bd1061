"""Tests memreplay mcp: an assistant's client starts the server, lists its tools and calls each."""

import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import memreplay

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVING = str(ROOT / "tests/data/serving.jsonl")
OOM = str(ROOT / "tests/data/snapshots/torch-2.15/oom.pickle")
ERROR = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
         "23.64 GiB of which 1.20 GiB is free.")

try:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
except ImportError:
    ClientSession = None


def printed(*words, **more):
    return subprocess.run([memreplay.program(), *words], stdout=subprocess.PIPE, text=True, check=False, **more).stdout


@unittest.skipUnless(ClientSession, "the package mcp is not installed here")
class Mcp(unittest.TestCase):
    def ask(self, *calls, folder=None):
        """Returns the tools that the server offers, and its answers to calls (tool, arguments)."""
        async def session():
            server = StdioServerParameters(command=sys.executable, args=["-m", "memreplay", "mcp"],
                                           env=dict(os.environ), cwd=folder)
            async with stdio_client(server) as streams, ClientSession(*streams) as client:
                await client.initialize()
                tools = (await client.list_tools()).tools
                return tools, [await client.call_tool(tool, arguments) for tool, arguments in calls]
        return asyncio.run(asyncio.wait_for(session(), 120))

    def test_answers_are_the_program_s(self):
        tools, answers = self.ask(
            ("inspect", {"file": OOM}), ("inspect", {"file": OOM, "deep": True}), ("oom", {"file": OOM}),
            ("oom", {"file": SERVING, "capacity": "3GiB", "conf": "expandable_segments:True"}),
            ("explain", {"log": ERROR}), ("explain", {"log": str(ROOT / "tests/data/messages/forms.txt")}),
            ("sweep",
             {"file": SERVING, "conf": ["expandable_segments:True", "roundup_power2_divisions:4"], "capacity": "8GiB"}),
            ("advise", {"file": OOM, "card": "rtx-4070"}))
        expected = [
            printed("inspect", OOM), printed("inspect", OOM, "--deep"), printed("oom", OOM),
            printed("oom", SERVING, "--capacity", "3GiB", "--conf", "expandable_segments:True"),
            printed("explain", "-", input=ERROR), printed("explain", str(ROOT / "tests/data/messages/forms.txt")),
            printed("sweep", SERVING, "--conf", "expandable_segments:True", "--conf", "roundup_power2_divisions:4",
                    "--capacity", "8GiB"),
            printed("advise", OOM, "--card", "rtx-4070")]
        self.assertEqual([tool.name for tool in tools], ["inspect", "oom", "explain", "sweep", "advise"])
        for tool in tools:
            self.assertGreater(len(tool.description), 60)
            self.assertEqual(len(tool.input_schema["required"]), 1)
        for answer, text in zip(answers, expected):
            self.assertFalse(answer.is_error, answer)
            self.assertGreater(len(text), 100)
            self.assertEqual(answer.content[0].text, text)

    def test_errors_are_the_program_s(self):
        _, answers = self.ask(("inspect", {"file": "/nowhere"}), ("inspect", {"file": "--help"}),
                              ("oom", {"file": SERVING, "capacity": "much"}),
                              ("explain", {"log": "KeyError: 'lr'"}), ("sweep", {}))
        self.assertTrue(all(answer.is_error for answer in answers), answers)
        for answer, words in zip(answers, ("/nowhere", "./--help", "much", "memory", "file")):
            self.assertIn(words, answer.content[0].text)

    def test_a_name_is_a_file_whatever_it_looks_like(self):
        """Checks names that are flags, models, subcommands, standard input or a script, or that break a line."""
        names = ("--help", "-", "script", "nanogpt", "two\nlines", "a b=?", "umlaut\u00e4")
        with tempfile.TemporaryDirectory() as folder:
            for name in (*names, "train.py"):
                shutil.copy(SERVING, os.path.join(folder, name))
            ran = os.path.join(folder, "ran.py")
            pathlib.Path(ran).write_text(f"open({ran + '.proof'!r}, 'w')\n", encoding="utf-8")
            shutil.copy(ROOT / "tests/data/messages/forms.txt", os.path.join(folder, "a log\nof two lines"))
            os.mkfifo(os.path.join(folder, "pipe"))
            calls = [(tool, {"file": name}) for name in names for tool in ("inspect", "oom", "sweep", "advise")]
            wrong = [("advise", {"file": "train.py"}), ("advise", {"file": ran}),
                     ("advise", {"file": ran, "card": "rtx-4090"}), ("inspect", {"file": "pipe"}),
                     ("explain", {"log": "pipe"}), ("inspect", {"file": "a\0b"}), ("sweep", {"file": "/dev/zero"}),
                     ("oom", {"file": "script", "conf": "a\0b"})]
            _, answers = self.ask(*calls, ("explain", {"log": "a log\nof two lines"}), *wrong, folder=folder)
            self.assertFalse(os.path.exists(ran + ".proof"))
        for call, answer in zip(calls, answers):
            self.assertFalse(answer.is_error, (call, answer))
            self.assertIn("device 0", answer.content[0].text, call)
        self.assertEqual(answers[len(calls)].content[0].text.splitlines()[1:],
                         printed("explain", str(ROOT / "tests/data/messages/forms.txt")).splitlines()[1:])
        for call, answer in zip(wrong, answers[len(calls) + 1:]):
            self.assertTrue(answer.is_error, call)


    def test_errors_hold_nothing_of_a_file(self):
        """Checks files that are no recordings, or that begin like one of a format."""
        files = ("TOKEN=5ecret", '{"5ecret": "TOKEN"}', "5ecret 1 2\n", '{"k":"h","format":"5ecret"}\n',
                 '{"k":"h","format":"memsched-flat","version":1}\n{"k":"5ecret"}\n', 'format: "memsched" 5ecret: 1',
                 'format: "memsched" version: 1 program { call: "5ecret" }', "\x80\x04c5ecret\n5ecret\n.",
                 '{"format":"memsched","version":1,"5ecret":2}', "format: \"memsched\" version: 1 program: 5ecret")
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(files):
                pathlib.Path(folder, f"{number}.txt").write_text(text, encoding="latin-1")
            _, answers = self.ask(*((tool, {"file": f"{number}.txt"}) for number in range(len(files))
                                    for tool in ("inspect", "oom", "sweep", "advise")),
                                  *(("explain", {"log": f"{number}.txt"}) for number in range(len(files))),
                                  folder=folder)
        for answer in answers:
            self.assertTrue(answer.is_error, answer)
            self.assertIn(".txt: ", answer.content[0].text)
            self.assertNotIn("5ecret", answer.content[0].text)

    def test_a_request_with_half_a_character_is_answered(self):
        """Checks surrogates that are not in pairs, which the client of the package does not send."""
        calls = ('{"name": "inspect", "arguments": {"file": "a\\ud800b"}}', '{"name": "oom\\udc80", "arguments": {}}',
                 '{"name": "explain", "arguments": {"log": "CUDA out of memory \\udfff"}}',
                 '{"name": "inspect", "arguments": {"file\\ud800": "a"}}',
                 '{"name": "inspect", "arguments": {"file": "\\ud83d\\ude00"}}')
        start = ('{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
                 '"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}',
                 '{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        with subprocess.Popen([sys.executable, "-m", "memreplay", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              encoding="utf-8") as server:
            answers = []
            for request in (*start, *(f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {call}}}'
                                      for number, call in enumerate(calls, 1))):
                server.stdin.write(request + "\n")
                server.stdin.flush()
                if '"id"' in request:
                    answers.append(json.loads(server.stdout.readline()))
            server.stdin.close()
        self.assertEqual([answer["id"] for answer in answers], list(range(len(calls) + 1)))
        self.assertIn("./a?b: no such file", str(answers[1]))
        self.assertIn("NO NUMBERS", str(answers[3]))
        self.assertIn("./\U0001f600: no such file", str(answers[5]))


class Command(unittest.TestCase):
    def test_help_and_what_is_wrong(self):
        program = memreplay.program()
        shown = subprocess.run([program, "mcp", "--help"], capture_output=True, text=True, check=True)
        self.assertIn("usage: memreplay mcp", shown.stdout)
        wrong = subprocess.run([program, "mcp", "--port", "1"], capture_output=True, text=True, check=False)
        self.assertEqual((wrong.returncode, wrong.stderr),
                         (2, "memreplay: mcp: unexpected argument --port; see memreplay mcp --help\n"))


if __name__ == "__main__":
    unittest.main()
