"""Adds to a wheel what the Python files lack: the native binary, and the classes made from its schema.

MEMREPLAY_MACHINE=aarch64 makes the wheel for that machine, by cross compilation (third_party/aarch64.py).
"""

import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeProgram(BuildHookInterface):
    def initialize(self, version, build_data):
        """Adds the binary as a script of the wheel: on PATH after an installation, and started without Python."""
        if platform.machine() != "x86_64" or platform.system() != "Linux":
            raise RuntimeError(f"wheels are built on x86-64 Linux, not on {platform.machine()} {platform.system()}")
        machine = os.environ.get("MEMREPLAY_MACHINE", "x86_64")
        root = pathlib.Path(self.root)
        subprocess.run([root / "memreplay", "--version"], check=True)  # builds it and report_types.py
        binary, strip = root / ".bazel" / "memreplay", "strip"
        if machine == "aarch64":
            bazel = root / "third_party" / "aarch64.py"
            subprocess.run([bazel, "build", "//cli:memreplay"], check=True)
            binary = pathlib.Path(subprocess.check_output([bazel, "info", "bazel-bin"], text=True).strip(),
                                  "cli", "memreplay")
            strip = "aarch64-linux-gnu-strip"
        elif machine != "x86_64":
            raise RuntimeError(f"MEMREPLAY_MACHINE: expected x86_64 or aarch64, found {machine}")
        self.folder = tempfile.TemporaryDirectory()
        program = pathlib.Path(self.folder.name, "memreplay")
        shutil.copy(binary, program)
        program.chmod(0o755)
        subprocess.run([strip, program], check=True)
        # third_party/glibc says why 2.28 is enough; tests/package/run and tests/aarch64/run have auditwheel confirm it.
        build_data["tag"] = f"py3-none-manylinux_2_28_{machine}"
        build_data["shared_scripts"][str(program)] = "memreplay"
        types = root / "python" / "memreplay" / "report_types.py"  # git ignores it
        build_data["force_include"][str(types)] = "memreplay/report_types.py"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()
