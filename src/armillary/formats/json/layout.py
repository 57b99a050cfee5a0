"""A readable layout of JSON: what is short is on one line."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import GeneratorType
from typing import Any, Final, TypeAlias, cast

import msgspec

from armillary.formats.diagnostic import fault

__all__ = ["Record", "to_text"]

Record: TypeAlias = Any
"""What JSON can hold: dicts with strings as keys, lists or tuples, strings, finite
numbers, bools, None. A generator is an array whose items are made one at a time; it is
always split, and so is an object that has one."""

LINE: Final = 88
INDENT: Final = b"  "
CACHED_KEYS: Final = 256

_encode = msgspec.json.Encoder().encode
_spaced = partial(msgspec.json.format, indent=0)


def to_text(record: Record, *, depth: int) -> bytes:
    """Return a record as UTF-8: the same bytes for equal records, numbers exactly.

    Objects and arrays that do not fit on a line are split, one member per line, down to
    this depth below the root; deeper ones are always on one line.

    Raises:
        FormatError: A string has half a surrogate pair, which UTF-8 cannot hold.
    """
    lines: list[bytes] = []
    try:
        _lay(record, b"", b"", b"\n", depth, lines)
    except UnicodeEncodeError as error:
        text = f"the text {error.object!a} has half a surrogate pair"
        raise fault("", "bad-text", text, hint="Rename it.") from error
    return b"".join(lines)


def _lay(
    record: Record,
    margin: bytes,
    head: bytes,
    end: bytes,
    depth: int,
    lines: list[bytes],
) -> None:
    """Add the lines of a record; `head` starts the first and `end` ends the last."""
    is_lazy = depth and _is_lazy(record)
    if depth == 1 and not is_lazy and isinstance(record, (dict, list, tuple)):
        _lay_leaves(cast(Record, record), margin, head, end, lines)
        return
    if isinstance(record, (int, float, str)) or record is None:
        lines.append(margin + head + _encode(record) + end)
        return
    if not is_lazy:
        flat = _encode(record)
        if not depth or len(flat) < LINE:
            line = margin + head + _spaced(flat) + end
            if not depth or len(line) <= LINE + 1:
                lines.append(line)
                return
    items: Iterable[tuple[bytes, Any]]
    if isinstance(record, dict):
        members = cast(dict[str, Any], record).items()
        items = ((_HEADS[key], item) for key, item in members)
        opening, closing = b"{", b"}"
    else:
        items = ((b"", item) for item in cast(Iterable[Any], record))
        opening, closing = b"[", b"]"
    lines.append(margin + head + opening + b"\n")
    for key, item in items:
        _lay(item, margin + INDENT, key, b",\n", depth - 1, lines)
    # No comma follows the last member.
    lines[-1] = lines[-1][:-2] + b"\n"
    lines.append(margin + closing + end)


def _lay_leaves(
    record: Record, margin: bytes, head: bytes, end: bytes, lines: list[bytes]
) -> None:
    """Add a record whose members are on one line each, or all on one."""
    if isinstance(record, dict):
        members = cast(dict[str, Any], record).items()
        leaves = [
            _HEADS[key] + _encode(item)
            if type(item) is str
            else _HEADS[key] + _spaced(_encode(item))
            for key, item in members
        ]
        opening, closing = b"{", b"}"
    else:
        leaves = [_spaced(_encode(item)) for item in cast(Iterable[Any], record)]
        opening, closing = b"[", b"]"
    begin = margin + head + opening
    line = b"".join((begin, b", ".join(leaves), closing, end))
    if len(line) > LINE + 1:
        between = b"\n" + margin + INDENT
        inner = (b"," + between).join(leaves)
        line = b"".join((begin, between, inner, b"\n", margin, closing, end))
    lines.append(line)


def _is_lazy(record: Record) -> bool:
    if isinstance(record, dict):
        values = cast(dict[str, Any], record).values()
        return GeneratorType in map(type, values)
    return isinstance(record, GeneratorType)


class _Heads(dict[str, bytes]):
    """The text before the value of a member, by its key."""

    def __missing__(self, key: str) -> bytes:
        if len(self) > CACHED_KEYS:
            self.clear()
        head = self[key] = _encode(key) + b": "
        return head


_HEADS: Final = _Heads()
