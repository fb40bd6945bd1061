#!/usr/bin/python3
"""What is made once on a machine and used by every test and checkout after that: Python environments, parts of
wheels, other Debian systems, other people's sources. The folder is ${MEMREPLAY_CACHE:-~/.cache/memreplay}, and
can be removed whenever nothing is running.

For shell scripts: `cache.py` prints the folder, `cache.py --remove FOLDER` is remove().
"""
import contextlib
import fcntl
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys


def home():
    """The folder of the cache. $HOME is not asked: tests run with one of their own, or with none."""
    given = os.environ.get("MEMREPLAY_CACHE")
    return pathlib.Path(given) if given else pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "memreplay")


def remove(folder):
    """Removes a folder and what is below it, read-only folders too. Raises OSError if something is mounted there that
    cannot be unmounted: what is mounted is not ours to delete."""
    folder = pathlib.Path(folder)
    if not folder.exists():
        return
    inside = re.compile(re.escape(str(folder.resolve())) + "(/|$)")
    for again in (True, False):
        mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        mounts = [mount for mount in mounts if inside.match(mount)]
        if mounts and not again:
            raise OSError(f"{folder} is not removed, because {mounts[0]} is mounted there")
        for mount in reversed(mounts):
            subprocess.run(["umount", mount], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["chmod", "-R", "u+w", folder], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)


@contextlib.contextmanager
def locked(name):
    """Holds the lock `name` of the cache: others, in whatever process, wait."""
    locks = home() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / name.replace("/", "+"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process, however that ends
        yield


def made(name, make):
    """The path of the folder `name` in the cache. If it does not exist, make(folder) fills an empty folder, which is
    then renamed: a folder under its own name is whole. One process makes it while others wait. What make() raises is
    passed on, and leaves nothing behind."""
    whole = home() / name
    if whole.exists():
        return whole
    with locked(name):
        if whole.exists():  # another process made it while this one waited
            return whole
        part = whole.with_name(whole.name + ".part")
        remove(part)  # of a process that was killed
        part.mkdir(parents=True)
        try:
            make(part)
            part.rename(whole)
        finally:
            remove(part)
    return whole


if __name__ == "__main__":
    if sys.argv[1:2] == ["--remove"]:
        remove(sys.argv[2])
    else:
        print(home())
