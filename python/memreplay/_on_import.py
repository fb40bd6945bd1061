"""Runs code just before and just after a module is imported."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Callable


class _Watcher:
    """A finder in front of all others that finds nothing itself."""

    def __init__(self, name: str, before: Callable[[Any], Any], after: Callable[[Any], Any]) -> None:
        self.name, self.before, self.after = name, before, after
        self.looking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name or self.looking:
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            self._wrap(spec)
        return spec

    def _wrap(self, spec: Any) -> None:
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            spec.loader.exec_module = run
            self.before(spec)
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            self.after(module)

        spec.loader.exec_module = exec_module


def watch(name: str, before: Callable[[Any], Any], after: Callable[[Any], Any]) -> None:
    """Calls before(spec) before the import of module `name`, and after(module) when it has run.

    A check whether the module exists (importlib.util.find_spec) calls neither.
    """
    sys.meta_path.insert(0, _Watcher(name, before, after))


def after(name: str, call: Callable[[Any], Any]) -> None:
    """Calls call(module) when module `name` has been imported: now, if it already is."""
    if name in sys.modules:
        call(sys.modules[name])
    else:
        watch(name, lambda spec: None, call)
