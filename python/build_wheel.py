"""Adds to a wheel what the Python files lack: the native binary, and the classes made from its schema."""

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
        root = pathlib.Path(self.root)
        subprocess.run([root / "memreplay", "--version"], check=True)  # builds it and report_types.py
        self.folder = tempfile.TemporaryDirectory()
        program = pathlib.Path(self.folder.name, "memreplay")
        shutil.copy(root / ".bazel" / "memreplay", program)
        subprocess.run(["strip", program], check=True)
        # third_party/glibc says why 2.28 is enough; tests/package/run has auditwheel confirm it.
        build_data["tag"] = "py3-none-manylinux_2_28_x86_64"
        build_data["shared_scripts"][str(program)] = "memreplay"
        types = root / "python" / "memreplay" / "report_types.py"  # git ignores it
        build_data["force_include"][str(types)] = "memreplay/report_types.py"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()
