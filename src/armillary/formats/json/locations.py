"""Locations of the parts of a JSON text, looked up only when there are diagnostics.

A part is named by its steps from the root: keys of objects and indices of arrays.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from armillary.formats.diagnostic import Place
from armillary.limits import JSON_LOCATED

__all__ = [
    "JsonPart",
    "Steps",
    "find_duplicate",
    "find_odd",
    "locations",
    "parts",
    "place",
]

Steps: TypeAlias = tuple[str | int, ...]

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.S)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class JsonPart(NamedTuple):
    """The start of a value, or the key of a member.

    Attributes:
        steps: From the root; one list for all parts, so it must not be kept.
        offset: Offset of its first character in the text.
        token: Its text; only the bracket of arrays and objects.
        is_key: Whether it is the key of a member.
    """

    steps: list[str | int]
    offset: int
    token: str
    is_key: bool


def parts(text: str) -> Iterator[JsonPart]:
    """Yield the keys and values of a well-formed JSON text in their order."""
    steps: list[str | int] = []
    awaits_key = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "]}":
            steps.pop()
        elif token == ":":
            awaits_key = False
        elif token == ",":
            last = steps[-1]
            if isinstance(last, int):
                steps[-1] = last + 1
            else:
                awaits_key = True
            continue
        elif awaits_key:
            steps[-1] = json.loads(token)
            yield JsonPart(steps, match.start(), token, True)
        else:
            yield JsonPart(steps, match.start(), token, False)
            if token in "[{":
                steps.append("" if token == "{" else 0)
                awaits_key = token == "{"
                continue
        awaits_key = False


def place(text: str, offset: int, path: str) -> Place:
    """Return the line and column of a character."""
    line = text.count("\n", 0, offset) + 1
    return Place(path, line, offset - text.rfind("\n", 0, offset))


def locations(text: str, wanted: Iterable[Steps], path: str) -> dict[Steps, Place]:
    """Return the locations of parts: members at their keys, items at their values.

    Nothing is found in texts that are too long, see `JSON_LOCATED`.
    """
    missing = set(wanted)
    places: dict[Steps, Place] = {}
    if len(text) > JSON_LOCATED.most or not missing:
        return places
    deepest = max(map(len, missing))
    line, start = 1, 0
    for part in parts(text):
        if len(part.steps) > deepest:
            continue
        steps = tuple(part.steps)
        if steps in missing:
            missing.remove(steps)
            # Counted on from the part found before: there may be many.
            line += text.count("\n", start, part.offset)
            start = part.offset
            column = start - text.rfind("\n", 0, start)
            places[steps] = Place(path, line, column)
            if not missing:
                break
    return places


def find_duplicate(text: str) -> tuple[str, int] | None:
    """Return the first key that its object has already, and its offset."""
    keys_at: dict[int, set[str]] = {}
    for part in parts(text):
        depth = len(part.steps)
        if part.token == "{":
            keys_at[depth + 1] = set()
        elif part.is_key:
            key = str(part.steps[-1])
            if key in keys_at[depth]:
                return key, part.offset
            keys_at[depth].add(key)
    return None


def find_odd(text: str) -> tuple[str, int] | None:
    """Return why a value cannot be read, and its offset: not a number, or too large."""
    for part in parts(text):
        token = part.token
        if token[0] == '"' and "\\u" in token:
            if _SURROGATE.search(json.loads(token)):
                return "a text has half of a surrogate pair", part.offset
        elif token in {"NaN", "Infinity", "-Infinity"}:
            return f"{token} is not a number in JSON", part.offset
        elif token[0] in "-0123456789" and _is_too_large(token):
            return "the number is too large for a double", part.offset
    return None


def _is_too_large(token: str) -> bool:
    try:
        return not math.isfinite(float(token))
    except ValueError:
        return False
