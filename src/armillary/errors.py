"""The errors of armillary, and the text of every "no such name"."""

from __future__ import annotations

import heapq
import itertools
import operator
import tokenize
from collections.abc import Iterable
from typing import Any, Final

__all__ = [
    "UNREADABLE_ARRAY",
    "ArmillaryError",
    "FormatError",
    "JointError",
    "KernelError",
    "ModelError",
    "NotCompiled",
    "PluginError",
    "ScriptError",
    "ShapeError",
    "StateError",
    "SweepError",
    "TraceError",
    "UnknownName",
    "ViewError",
    "nearest",
    "printable",
    "quote",
    "shortened",
    "unknown",
]

UNREADABLE_ARRAY: Final = (
    *(ValueError, TypeError, EOFError, OverflowError, MemoryError, SyntaxError),
    tokenize.TokenError,
)
"""What NumPy raises at damaged files of arrays, NPY."""

MOST_NAMES_LISTED: Final = 12
LONGEST_NAME_SHOWN: Final = 60
LEAST_LIKENESS: Final = 0.6
MOST_NAMES_COMPARED: Final = 1000


class ArmillaryError(Exception):
    """The base of every error that armillary raises on purpose."""


class UnknownName(ArmillaryError, LookupError):
    """A name was asked for that does not exist; made by `unknown`."""


class TraceError(ArmillaryError):
    """A formula did something that cannot be recorded."""


class ShapeError(ArmillaryError, ValueError):
    """An array has a shape or a dtype that does not fit."""


class ModelError(ArmillaryError, ValueError):
    """A description of a workcell contradicts itself."""


class JointError(ModelError):
    """A joint breaks the joint contract."""


class ScriptError(JointError):
    """A script of a component is wrong, or may not run."""


class NotCompiled(ScriptError):
    """A script that runs as Python was asked for what needs machine code."""


class PluginError(ArmillaryError):
    """A plug-in is broken, in conflict with another, or wrongly configured."""


class KernelError(ArmillaryError):
    """A program could not be turned into machine code."""


class StateError(ArmillaryError):
    """A state does not fit its cell, or a change of it is not allowed."""


class SweepError(ArmillaryError):
    """A sweep cannot begin, or a part of it failed.

    Attributes:
        kept: What a sweep that failed in part has computed, a `SweepResult`, or None.
    """

    kept: Any = None


class ViewError(ArmillaryError):
    """The viewer cannot start, or what it needs is not installed."""


class FormatError(ArmillaryError):
    """A file or text could not be read or written; says everything that was found.

    Made from one or more diagnostics; anything whose `str` is a readable line will
    do. The text of the error has one of them per line.
    """

    @property
    def diagnostics(self) -> tuple[Any, ...]:
        """Return what was found, in the order in which it was found."""
        return self.args

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.args)


def unknown(
    kind: str,
    name: object,
    known: Iterable[str],
    *,
    owner: str = "",
    hint: str = "",
) -> UnknownName:
    """Make the error for a name that does not exist, naming the nearest and the known.

    kind: What was asked for, in the singular: `"frame"`.
    name: The name that was asked for.
    known: The names that exist, in the order in which they shall be listed.
    owner: Where it was looked for, ready to print: `"cell 'lab'"`.
    hint: A last sentence that says how to fix it.
    """
    names = list(known)
    place = f" in {owner}" if owner else ""
    sentences = [f"no {kind} named {quote(name)}{place}."]
    if likely := suggestion(name, names):
        sentences.append(likely)
    sentences.append(_listing(_plural(kind), names))
    if hint:
        sentences.append(hint)
    return UnknownName(" ".join(sentences))


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name most like the one asked for, ignoring case, if any is.

    Of a qualified name, `manipulator/name`, the last part counts, too.
    """
    if not isinstance(name, str) or len(name) > LONGEST_NAME_SHOWN:
        return None
    folded = name.casefold()
    by_folded = {
        other.casefold(): other
        for other in reversed(list(known))
        if len(other) <= 2 * LONGEST_NAME_SHOWN
    }
    if "/" not in folded:
        for whole, other in tuple(by_folded.items()):
            by_folded.setdefault(whole.rpartition("/")[2], other)
    candidates = list(by_folded)
    if len(candidates) > MOST_NAMES_COMPARED:
        # A full comparison of 100 000 names takes seconds; similar ends are cheap.
        candidates = heapq.nlargest(
            MOST_NAMES_COMPARED, candidates, key=lambda other: _ends(folded, other)
        )
    from difflib import get_close_matches  # few programs misspell a name

    matches = get_close_matches(folded, candidates, n=1, cutoff=LEAST_LIKENESS)
    return by_folded[matches[0]] if matches else None


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name was meant, or nothing."""
    likely = nearest(name, known)
    return "" if likely is None else f"Did you mean {quote(likely)}?"


def printable(text: str) -> str:
    """Return a text as one line, with unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortened(text: str, *, longest: int = LONGEST_NAME_SHOWN) -> str:
    """Return a text; of one over `longest` the middle is cut out."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]}...{text[-(longest - head - 3) :]}"


def quote(name: object, *, longest: int = LONGEST_NAME_SHOWN) -> str:
    """Return a name in quotes, escaped; the middle of one over `longest` is cut out."""
    if isinstance(name, str):
        return repr(shortened(name, longest=longest))
    return printable(shortened(repr(name), longest=longest))


def _ends(a: str, b: str) -> int:
    """Return how many leading plus how many trailing characters two texts share."""
    leading = itertools.takewhile(bool, map(operator.eq, a, b))
    trailing = itertools.takewhile(bool, map(operator.eq, reversed(a), reversed(b)))
    return sum(leading) + sum(trailing)


def _listing(plural: str, names: list[str]) -> str:
    """Return the sentence that lists the known names, as many as can be read."""
    if not names:
        return f"There are no {plural}."
    listed = ", ".join(map(_bare, itertools.islice(names, MOST_NAMES_LISTED)))
    more = len(names) - MOST_NAMES_LISTED
    return f"Known {plural}: {listed}{f' and {more} more' if more > 0 else ''}."


def _bare(name: str) -> str:
    """Return a name without quotes where it cannot be misread, quoted elsewhere."""
    text = quote(name)
    plain = text[1:-1] == name and not any(c in name for c in " ,;'\"")
    return name if plain and name else text


def _plural(kind: str) -> str:
    """Return the plural of an English noun as it is used for kinds of things."""
    head, of, rest = kind.partition(" of ")
    if of:
        return f"{_plural(head)}{of}{rest}"
    one, either, other = kind.partition(" or ")
    if either:
        return f"{_plural(one)}{either}{_plural(other)}"
    if kind.endswith(("s", "x", "ch", "sh")):
        return f"{kind}es"
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}s"
