"""Runs the tasks of a fleet on the cores of this machine, or on a Ray cluster."""

from __future__ import annotations

import concurrent.futures
import os
import socket
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from memreplay._fleet_task import Task, name_of, run_task
from memreplay._program import Error

Result = Tuple[Task, Dict[str, Any]]
Engine = Callable[[Sequence[Task]], Iterator[Result]]


def local(tasks: Sequence[Task], jobs: Optional[int] = None) -> Iterator[Result]:
    """Runs as many tasks at once as there are cores; each starts a process of its own, so threads are enough here."""
    count = jobs or os.cpu_count() or 1
    waiting = list(reversed(tasks))
    running: Dict[Any, Task] = {}  # bounded, so that the answers of many files are not held at once
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        while waiting or running:
            while waiting and len(running) < 2 * count:
                task = waiting.pop()
                running[pool.submit(run_task, task)] = task
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()


def _reach(address: str) -> None:
    """Checks that something listens at an address HOST:PORT. Errors: Error if not."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=20).close()
        except OSError as error:
            raise Error(f"fleet: no Ray cluster answers at {address}: {error}") from None


def ray_cluster(tasks: Sequence[Task], address: Optional[str], jobs: Optional[int] = None) -> Iterator[Result]:
    """Runs one Ray task per file and core. Ray replaces a dead worker `retries` times; then the file has an error.

    A bounded number of tasks is in flight, so that a million files cost the driver no memory.
    """
    import ray

    if not ray.is_initialized():
        # Ray itself would look for the remains of an earlier cluster in /tmp, and wait minutes for one that is gone.
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        _reach(address)
        new: Dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **new)
        except Exception as error:  # Ray's own kinds, and Exception itself
            raise Error(f"fleet: Ray at {address}: {' '.join(str(error).split())}") from None
    remote = ray.remote(num_cpus=1)(run_task)
    most = jobs or 4 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: List[Task] = list(reversed(tasks))
    running: Dict[Any, Task] = {}
    while waiting or running:
        while waiting and len(running) < most:
            task = waiting.pop()
            running[remote.options(max_retries=task.retries).remote(task)] = task
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            task = running.pop(reference)
            try:
                yield task, ray.get(reference)
            except ray.exceptions.RayError as error:
                first = str(error).strip().splitlines()[0]
                yield task, {"is_final": False, "error": f"{name_of(task.url)}: the worker died: {first}"}
