"""memreplay.load(): reads anything that holds a recording, and answers questions about it."""

from __future__ import annotations

import errno
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import tempfile
import weakref
from typing import (
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Union,
    overload,
)

from memreplay._answer import Answer, frame
from memreplay._program import Error, as_file, as_recording, needed, run


class Readable(Protocol):
    """An open file. Answers use its `name`, if it has one."""

    def read(self, size: int = ..., /) -> bytes: ...


Source = Union[str, "os.PathLike[str]", bytes, Readable, Mapping[str, Any]]
# Settings are the text of PYTORCH_CUDA_ALLOC_CONF, or its keys and values.
Conf = Union[str, Mapping[str, Any]]
_OF_PAGE = ("capacity", "torch", "device", "fraction", "addresses", "start")  # flags that a page of the same run takes


def _conf_text(conf: Conf) -> str:
    """{"expandable_segments": True, "max_split_size_mb": 64} -> "expandable_segments:True,max_split_size_mb:64"."""
    if isinstance(conf, str):
        return conf
    if isinstance(conf, Mapping):
        return ",".join(f"{key}:{found}" for key, found in conf.items())
    raise TypeError("conf: expected text such as 'expandable_segments:True', a dict or a list of these, "
                    f"found {conf!r:.100}")


def _confs(conf: Union[Conf, Iterable[Conf], None]) -> List[str]:
    if conf is None:
        return []
    return [_conf_text(one) for one in ([conf] if isinstance(conf, (str, Mapping)) else conf)]


def _flags(**given: Any) -> List[str]:
    """Returns keyword arguments as flags of memreplay: None is left out, a list repeats its flag."""
    flags: List[str] = []
    for name, found in given.items():
        flag = "--" + name.rstrip("_").replace("_", "-")  # try_: `try` is a word of Python
        for item in found if isinstance(found, (list, tuple)) else [found]:
            if item is True:
                flags.append(flag)
            elif item is not None and item is not False:
                flags.append(f"{flag}={item}")
    return flags


class Recording:
    """A file that memreplay can read. Each question runs the binary once.

    All take the flags of the command of their name (`memreplay COMMAND --help`) with _ for -: sizes are a number of
    bytes or text such as "16GiB"; settings are text or a dict, or a list of these if several are compared. Errors:
    memreplay.Error with memreplay's message; TypeError for a keyword that the command does not have.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], name: Optional[str] = None) -> None:
        self.path = pathlib.Path(path)
        self.name = name or str(path)
        self._word = as_file(str(self.path))
        self.timeout: Optional[float] = None  # seconds that each question may take

    def __repr__(self) -> str:
        return f"<memreplay.Recording {self.name}>"

    def _run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        try:
            return run(words, self.timeout)
        except Error as error:  # the name of a temporary file means nothing to its user
            raise type(error)(str(error).replace(self._word, self.name)) from None

    def _ask(self, command: str, others: Sequence[str] = (), **flags: Any) -> Answer:
        try:
            done = self._run([command, self._word, *others, "--json", *_flags(**flags)])
        except Error as error:
            unknown = re.search(r"unknown flag --([\w-]+)", str(error))
            if unknown is None:
                raise
            raise TypeError(f"{command}() got an unexpected keyword argument {unknown[1].replace('-', '_')!r}; see "
                            f"memreplay {command} --help") from None
        kept = {name: found for name, found in flags.items() if name in _OF_PAGE}
        if command in ("replay", "report"):
            kept["conf"] = flags.get("conf")
        answer_page = None if command == "diff" else lambda: self._page(kept)
        answer = Answer.parse(done.stdout, done.returncode == 0, answer_page)
        if self.name != self._word:
            answer._data["file"] = self.name
        return answer

    def inspect(self, *, deep: bool = False, device: Optional[int] = None) -> Answer:
        """Reports what is in the file and how complete it is; `deep`: also how memory changed over time."""
        return self._ask("inspect", deep=deep, device=device)

    def replay(self, *, conf: Optional[Conf] = None, capacity: Union[int, str, None] = None,
               torch: Optional[str] = None, **flags: Any) -> Answer:
        """Replays as recorded, or with other settings, on a card of another size, with another release.

        >>> serving = load("tests/data/serving.jsonl")
        >>> serving.replay(conf="expandable_segments:True").only_device.peak_reserved_bytes
        3690987520
        >>> serving.replay(capacity="3GiB").is_good
        False
        """
        return self._ask("replay", conf=None if conf is None else _conf_text(conf), capacity=capacity, torch=torch,
                         **flags)

    def sweep(self, *, conf: Union[Conf, Iterable[Conf], None] = None, capacity: Union[int, str, None] = None,
              torch: Optional[str] = None, **flags: Any) -> Answer:
        """Ranks settings, either those given or those that a search finds.

        >>> load("tests/data/serving.jsonl").sweep().best.conf
        'expandable_segments:True'
        >>> len(load("tests/data/serving.jsonl").sweep(conf={"expandable_segments": True}).only_device.sweep.rows)
        1
        """
        return self._ask("sweep", conf=_confs(conf), capacity=capacity, torch=torch, **flags)

    def oom(self, *, capacity: Union[int, str, None] = None, **flags: Any) -> Answer:
        """Explains why memory ran out, and what would have helped.

        >>> load("tests/data/serving.jsonl").oom(capacity="3GiB").only_device.oom.verdict
        'too_large'
        """
        return self._ask("oom", capacity=capacity, **flags)

    def advise(self, *, card: Union[int, str, None] = None, torch: Optional[str] = None, **flags: Any) -> Answer:
        """Finds changes of the script that would lower the peak or, with `card`, make it fit, by editing the recording.

        >>> answer = load("tests/data/serving.jsonl").advise(card="3530MiB")
        >>> answer.is_good, answer.advice.rows[0].change
        (True, 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True')
        """
        as_recording(str(self.path))
        return self._ask("advise", card=card, torch=torch, **flags)

    def fit(self, *, conf: Union[Conf, Iterable[Conf], None] = None, torch: Optional[str] = None,
            **flags: Any) -> Answer:
        """Finds the smallest device memory on which it survives, for each of the settings."""
        return self._ask("fit", conf=_confs(conf), torch=torch, **flags)

    def report(self, *, conf: Union[Conf, Iterable[Conf], None] = None, capacity: Union[int, str, None] = None,
               torch: Optional[str] = None, **flags: Any) -> Answer:
        """Returns the page's data: timeline, blocks at the peak and at the end, stacks. Notebooks show the page."""
        return self._ask("report", conf=_confs(conf), capacity=capacity, torch=torch, **flags)

    def diff(self, other: Union["Recording", Source], *, top: Optional[int] = None) -> Answer:
        """Reports what changed from this to `other`."""
        loaded = load(other)
        if isinstance(loaded, list):
            raise TypeError(f"diff(): expected one recording, found a directory of {len(loaded)}")
        return self._ask("diff", [loaded._word], top=top)

    def page(self, **flags: Any) -> str:
        """Returns the interactive page as HTML; flags as for report()."""
        if "conf" in flags:
            flags["conf"] = _confs(flags["conf"])
        return self._page(flags)

    def _page(self, flags: Dict[str, Any]) -> str:
        return self._run(["report", self._word, "-o", "-", *_flags(**flags)]).stdout.decode("utf-8")

    def _repr_html_(self) -> str:
        return frame(self.page())


@overload
def load(source: Union[str, "os.PathLike[str]"]) -> Any: ...
@overload
def load(source: Union[Recording, bytes, Readable, Mapping[str, Any]]) -> Recording: ...
def load(source: Union[Recording, Source]) -> Union[Recording, List[Recording]]:
    """Loads a path, the bytes or the open file of a recording, a URL that fsspec knows, or a result of _snapshot().

    A directory gives a list: a Recording for each of its files, by name, as the commands take it. A source that is no
    file on this machine is written to a temporary one, which is removed with the result. Nothing is read before the
    first question. A pickle is never executed. Errors: FileNotFoundError; TypeError.

    >>> load({"segments": [], "device_traces": [[]]}).inspect().format
    'torch_snapshot_pickle'
    >>> load("nowhere.pickle")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.pickle'
    """
    if isinstance(source, Recording):
        return source
    if isinstance(source, str) and "://" in source:
        named: Recording = _load_url(source)
        return named
    if isinstance(source, (str, os.PathLike)):
        path = pathlib.Path(source)
        if path.is_dir():
            return [Recording(file) for file in sorted(path.iterdir()) if file.is_file() and file.name[0] != "."]
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        return Recording(source)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memreplay-"))
    name = str(getattr(source, "name", ""))
    path = folder / (pathlib.Path(name).name or "recording")
    recording = Recording(path, name or f"<{type(source).__name__}>")
    weakref.finalize(recording, shutil.rmtree, str(folder), ignore_errors=True)
    with open(path, "wb") as file:
        if isinstance(source, bytes):
            file.write(source)
        elif isinstance(source, Mapping):
            data: Dict[str, Any] = dict(source)
            pickle.dump(data, file, protocol=4)
        elif isinstance(getattr(source, "read", lambda size: None)(0), bytes):
            shutil.copyfileobj(source, file, 1 << 20)
        else:
            raise TypeError("memreplay.load: expected a path, bytes, a file opened with 'rb', a URL or a snapshot, "
                            f"found {source!r:.100}")
    return recording


def _load_url(url: str) -> Any:
    with needed("fsspec", url).open(url, "rb") as file:
        return load(_Named(file, url))


class _Named:
    """An open file under the name that answers use."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file = file
        self.name = name

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)
