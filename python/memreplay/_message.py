"""What the generated classes consist of: attributes that read a JSON object.

`memreplay.report_types` uses this file, and the processes of `memreplay record`.
"""

from __future__ import annotations

import binascii
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

M = TypeVar("M", bound="Message")


class Field:
    """An attribute whose value is read from the JSON object once, at the first access."""

    def __init__(self, read: Callable[[Any], Any], is_scalar: bool = False) -> None:
        self.read = read
        self.is_scalar = is_scalar
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Optional["Message"], owner: type) -> Any:
        if instance is None:
            return self
        found = self.read(instance._data.get(self.name))
        instance.__dict__[self.name] = found  # from now on without this descriptor
        return found


# The annotations of the generated classes state the types.
def text() -> Any:
    return Field(lambda found: found or "", is_scalar=True)


def path() -> Any:
    return Field(lambda found: os.fsdecode(binascii.a2b_base64(found or "")), is_scalar=True)


def boolean() -> Any:
    return Field(bool, is_scalar=True)


def integer() -> Any:
    # JSON of reports before schema_version 2 has integers of 64 bits as strings.
    return Field(lambda found: int(found or 0), is_scalar=True)


def real() -> Any:
    return Field(lambda found: float(found or 0), is_scalar=True)


def value() -> Any:
    return Field(lambda found: found)


def maybe(scalar: Callable[[], Any]) -> Any:
    read = scalar().read
    return Field(lambda found: None if found is None else read(found), is_scalar=True)


def repeated(scalar: Callable[[], Any]) -> Any:
    read = scalar().read
    return Field(lambda found: [read(item) for item in found or []])


def mapping(scalar: Callable[[], Any]) -> Any:
    read = scalar().read
    return Field(lambda found: {key: read(item) for key, item in (found or {}).items()})


def messages(kind: Callable[[], Type[M]]) -> Any:
    return Field(lambda found: [kind()(item) for item in found or []])


def optional(kind: Callable[[], Type[M]]) -> Any:
    return Field(lambda found: None if found is None else kind()(found))


class Message:
    """A part of an answer. Attributes are the fields of proto/report.proto; absent ones have protobuf's default."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> Dict[str, Any]:
        """Returns the JSON object as memreplay printed it."""
        return self._data

    @classmethod
    def _fields(cls) -> Iterator[Field]:
        for kind in reversed(cls.__mro__):
            yield from (field for field in vars(kind).values() if isinstance(field, Field))

    def unknown(self) -> List[str]:
        """Returns the names that the JSON object has and the schema has not, in this message and those in it."""
        fields = {field.name: getattr(self, field.name) for field in self._fields()}
        found = [name for name in self._data if name not in fields]
        for value in fields.values():
            for part in value if isinstance(value, list) else [value]:
                found += part.unknown() if isinstance(part, Message) else []
        return found

    def _scalars(self) -> List[Tuple[str, Any]]:
        """Returns name and value of each field that is one number, text or truth value, in the order of the schema."""
        return [(field.name, getattr(self, field.name)) for field in self._fields() if field.is_scalar]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and type(self) is type(other) and self._data == other._data

    def __repr__(self) -> str:
        shown = [f"{name}={found!r}" for name, found in self._scalars() if found not in (0, "", False, None)]
        return f"{type(self).__name__}({', '.join(shown)})"
