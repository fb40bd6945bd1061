"""memreplay fleet: analyses the recordings of many jobs into Parquet tables and a page (docs/fleet.md)."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import itertools
import json
import os
import re
import sys
import time
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from memreplay import _fleet_engines as engines
from memreplay._fleet_tables import TABLES, Part, Tables, is_answer, is_local
from memreplay._fleet_task import (
    Row,
    Task,
    compare,
    job_and_rank,
    name_of,
    settings,
    sweep_line,
)
from memreplay._program import Error, printable, run

_GLOB = set("*?[")
_MAX_PART = 64 << 20  # bytes; answers have some 100 KB


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    """Raises what a file system raises, each its own kinds, as Error."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise Error(f"fleet: {where}: {' '.join(str(error).split()) or type(error).__name__}") from error


def sources(patterns: Sequence[str]) -> List[Tuple[str, str]]:
    """Returns (url, stamp) of each file that the directories, globs and URLs name, in order of their names.

    Errors: Error for one that names nothing.
    """
    import fsspec

    found: Dict[str, str] = {}
    for pattern in patterns:
        with _told(pattern):
            fs, path = fsspec.core.url_to_fs(pattern)
            fs.invalidate_cache()  # what is there now, not when this process looked before
            if _GLOB & set(path):
                infos = fs.glob(path, detail=True)
            elif fs.isdir(path):
                infos = fs.find(path, detail=True)
            else:
                infos = {path: fs.info(path)} if fs.exists(path) else {}
            before = len(found)
            for name, info in infos.items():
                if info.get("type") == "file" and not name.rpartition("/")[2].startswith("."):
                    changed = (info.get(key) for key in ("mtime", "ETag", "LastModified", "created"))
                    stamp = str(next(filter(None, changed), ""))
                    found[name if is_local(fs) else fs.unstrip_protocol(name)] = f"{info.get('size')}:{stamp}"
            if len(found) == before:
                raise Error(f"fleet: {pattern}: no such file, or a directory without files")
    return sorted(found.items())


class Parts:
    """The answers so far, a small file for each task, so that a run continues where it was ended."""

    def __init__(self, out: str, version: str) -> None:
        import fsspec

        self.version = version
        with _told(out):
            self.fs, self.path = fsspec.core.url_to_fs(out)
            self.folder = f"{self.path.rstrip('/')}/parts"
            has_run = self.fs.exists(self.folder)
            for path in self.results():
                if not self.fs.exists(path):
                    continue
                if not has_run:
                    raise Error(f"fleet: {path}: was not written by memreplay and would be overwritten; name another "
                                "directory with -o")
                if not self.fs.isfile(path):
                    raise Error(f"fleet: {path}: cannot open for writing: is not a file")
            self.fs.makedirs(self.folder, exist_ok=True)
            self.there: Set[str] = {name.rpartition("/")[2] for name in self.fs.find(self.folder)}

    def results(self) -> List[str]:
        return [f"{self.path.rstrip('/')}/{name}" for name in (*(f"{table}.parquet" for table in TABLES), "fleet.html")]

    def is_ours(self, url: str) -> bool:
        """Returns whether a file is a result: OUT may lie inside of SOURCE."""
        path = self.fs._strip_protocol(url)
        return path in self.results() or path.startswith(self.folder + "/")

    def link(self, url: str) -> str:
        """Returns what the page in OUT links to for a file; "" if a browser cannot open it."""
        if url.startswith(("http://", "https://")):
            return name_of(url)
        if "://" in url or not is_local(self.fs):
            return ""
        return urllib.parse.quote(os.fsencode(os.path.relpath(url, self.path)))

    def name(self, task: Task) -> str:
        said = [self.version, task.url, task.stamp, task.confs, task.flags]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32] + ".json"

    def has(self, task: Task) -> bool:
        return self.name(task) in self.there

    def put(self, task: Task, answer: Dict[str, Any]) -> None:
        name = self.name(task)
        part = Part(self.fs, f"{self.folder}/{name}")
        with self.fs.open(part.name, "w") as file:
            json.dump(answer, file)
        part.place()
        self.there.add(name)

    def get(self, task: Task) -> Optional[Dict[str, Any]]:
        """Returns the answer to a task that has one; None if its file is damaged."""
        with self.fs.open(f"{self.folder}/{self.name(task)}") as file:
            text = file.read(_MAX_PART + 1)
        try:
            answer: Dict[str, Any] = json.loads(text) if len(text) <= _MAX_PART else {}
        except (ValueError, RecursionError):
            return None
        return answer if is_answer(answer) else None


class Run:
    """One call of `memreplay fleet`."""

    def __init__(self, parts: Parts, engine: engines.Engine) -> None:
        self.parts, self.engine = parts, engine
        self.passing: Dict[Task, Dict[str, Any]] = {}  # errors that another run may not have
        self.done = 0

    def ask(self, tasks: Sequence[Task]) -> None:
        """Runs missing tasks. Afterwards every task has an answer()."""
        for task, answer in self.engine([task for task in tasks if not self.parts.has(task)]):
            self._keep(task, answer)

    def _keep(self, task: Task, answer: Dict[str, Any]) -> None:
        self.done += 1
        if answer["is_final"]:
            self.parts.put(task, answer)
        else:
            self.passing[task] = answer
        _progress(self.done, task)

    def answer(self, task: Task) -> Dict[str, Any]:
        answer = self.passing[task] if task in self.passing else self.parts.get(task)
        if answer is None:  # damaged
            _, answer = next(iter(self.engine([task])))
            self._keep(task, answer)
        return answer

    def common_settings(self, tasks: Sequence[Task]) -> Iterator[Task]:
        """Yields, for each file of a job, the settings that may suit all of it and were not tried on this one."""
        for _, job in itertools.groupby(tasks, lambda task: job_and_rank(task.url)[0]):
            by_name = {name_of(task.url): task for task in job}
            answers = ((name, self.answer(task)) for name, task in by_name.items())  # for many files they are large
            for untried in compare(sweep_line(name, answer["sweep"]) for name, answer in answers
                                   if "sweep" in answer).untried:
                yield by_name[untried.file]._replace(confs=tuple(untried.confs))


def _progress(done: int, task: Task) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{done} files: {printable(task.url)}", end="", file=sys.stderr, flush=True)


def page_of(url: str) -> str:
    """Returns the page that `memreplay report` writes of a file, in the same folder.

    >>> page_of("runs/rank0.pickle.gz")
    'runs/rank0.html'
    """
    return re.sub(r"(?<=[^/])(\.(gz|zst|pickle|pkl|jsonl|json|txt|txtpb|pb))+$", "", url) + ".html"


def _rows(run: Run, tasks: Iterable[Task], second: Dict[str, Task],
          pages: Set[str]) -> Iterator[Tuple[Dict[str, List[Row]], List[str]]]:
    """Yields the rows of each file, in order, with its name, job and rank in front; and its sweeps, for compare()."""
    for task in tasks:
        answer = run.answer(task)
        name = name_of(task.url)
        job, rank = job_and_rank(name)
        head = {"job": job, "rank": rank, "file": name}
        sweeps = [answer["sweep"]] if "sweep" in answer else []
        error = answer["error"]
        if task.url in second:
            more = run.answer(second[task.url])
            sweeps += [more["sweep"]] if "sweep" in more else []
            error = error or more["error"]
        page = page_of(task.url)
        link = run.parts.link(page if page in pages else task.url)
        tables = {"devices": [{**row, "error": error, "link": link} for row in answer.get("devices", ())] or
                  [{"device": -1, "error": error}],
                  "settings": [row for sweep in sweeps for row in settings(sweep)], "stacks": answer.get("stacks", [])}
        yield ({name: [{**head, **row} for row in rows] for name, rows in tables.items()},
               [sweep_line(name, sweep) for sweep in sweeps])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memreplay fleet", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Looks at every recording of many jobs (a job is a folder, a file a rank) and writes into OUT\n"
        "  devices.parquet   a row for each device: release, settings, peaks, fragmentation, verdict, "
        "the best settings\n"
        "  settings.parquet  what each of the settings tried comes to, by file\n"
        "  stacks.parquet    what held the most memory at the peak\n"
        "  jobs.parquet      which settings suit all ranks of a job at once, and what they save\n"
        "  fleet.html        the same to read\n"
        "A file that fails becomes a row with its error. If called again, the command does only what is missing.")
    parser.add_argument("source", nargs="+", help="a directory, a glob or a URL that fsspec knows (s3://...)")
    parser.add_argument("-o", "--out", required=True, help="where to write the results: a directory or a URL")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help="local: the cores of this machine")
    parser.add_argument("--ray-address", help="address of a running cluster, or auto; the default is $RAY_ADDRESS, "
                                              "else a new cluster on this machine")
    parser.add_argument("--jobs", type=int, help="number of files at once (default: the number of cores)")
    parser.add_argument("--timeout", type=float, default=3600,
                        help="seconds allowed per question about a file (default: 3600)")
    parser.add_argument("--retries", type=int, default=2,
                        help="how often a file is retried after its worker died (default: 2)")
    parser.add_argument("--capacity", help="replay on devices with this much memory, such as 80GiB")
    parser.add_argument("--torch", help="PyTorch release whose allocator is modelled")
    return parser


def main(args: List[str], engine: Optional[engines.Engine] = None) -> int:
    """Returns the exit status: 0 if every file has an answer, 1 if some have an error, 2 if nothing could be done."""
    options = _parser().parse_args(args)
    for name in ["fsspec", "pyarrow"] + ["ray"] * (options.engine == "ray"):
        if importlib.util.find_spec(name) is None:
            raise Error(f"fleet: the package {name} is not installed; pip install 'memreplay[fleet]'")
    begin = time.monotonic()
    parts = Parts(options.out, run(["--version"]).stdout.decode().strip())
    files = [(url, stamp) for url, stamp in sources(options.source) if not parts.is_ours(url)]
    pages = {page_of(url) for url, _ in files} & {url for url, _ in files}
    files = [(url, stamp) for url, stamp in files if url not in pages]
    if not files:
        raise Error(f"fleet: {', '.join(options.source)}: it contains only the results of {options.out}")
    flags = tuple((name, getattr(options, name)) for name in ("capacity", "torch") if getattr(options, name))
    tasks = [Task(url, stamp, timeout=options.timeout, retries=options.retries, flags=flags) for url, stamp in files]
    tasks.sort(key=lambda task: (job_and_rank(task.url)[0], task.url))
    if engine is None:
        if options.engine == "ray":
            def engine(todo: Sequence[Task]) -> Iterator[engines.Result]:
                return engines.ray_cluster(todo, options.ray_address, options.jobs)
        else:
            def engine(todo: Sequence[Task]) -> Iterator[engines.Result]:
                return engines.local(todo, options.jobs)
    fleet = Run(parts, engine)
    try:
        fleet.ask(tasks)
        second = {task.url: task for task in fleet.common_settings(tasks)}
        fleet.ask(list(second.values()))
        tables = Tables(fleet.parts.fs, fleet.parts.path)
        for rows, sweeps in _rows(fleet, tasks, second, pages):
            tables.add(rows, sweeps)
        tables.finish()
    except OSError as error:
        raise Error(f"fleet: {options.out}: {error}") from error
    seconds = time.monotonic() - begin
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"{len(files)} files in {tables.jobs_seen} jobs, {tables.failed} failed; "
          f"{fleet.done} questions answered in {seconds:.1f} s")
    for line in tables.told + ["..."] * (tables.jobs_seen > len(tables.told)) + tables.headlines():
        print("  " + printable(line))
    print(f"  page: {options.out.rstrip('/')}/fleet.html")
    return 1 if tables.failed else 0

