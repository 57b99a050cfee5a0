"""Regular expressions of files: those that the standard library matches quickly.

The standard library tries alternatives one after the other, which takes exponential
time where repetitions are nested. Files may bring expressions of their own, so nested
repetitions are refused, and the steps that an expression may take are bounded before it
is compared with a text.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field
from typing import Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.limits import EXPRESSION_LENGTH, EXPRESSION_STEPS

__all__ = ["Expression", "compiled", "literal"]

LONGEST: Final = EXPRESSION_LENGTH.most
"""Characters of an expression."""

MOST_STEPS: Final = EXPRESSION_STEPS.most
"""Steps of one comparison."""

literal = re.escape
"""Return the expression that matches just a text."""

# Texts, which `re` compiles and keeps when they are first used: few cells have any.
REPEAT: Final = r"[*+?][?+]?|\{(?:\d+(?:,\d*)?|,\d+)\}[?+]?"
TOKEN: Final = rf"(?s:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|{REPEAT}|.)"


class _Group(msgspec.Struct, dict=True):
    """What stands between parentheses; `varies` where it can match in several ways."""

    alternatives: int = 1
    varies: bool = False


@dataclass(frozen=True)
class Expression:
    """A regular expression, compared with whole texts, in ASCII and with `.` for all.

    Attributes:
        text: As it was given.
        choices: In how many ways its alternatives and options can be combined.
        repetitions: How many parts of it repeat without a fixed number.
    """

    text: str
    choices: float = field(init=False)
    repetitions: int = field(init=False)

    def __post_init__(self) -> None:
        """Check the expression.

        Raises:
            ModelError: It is not a regular expression, too long, refers back, looks
                around, or repeats what repeats or has alternatives itself.
        """
        if len(self.text) > LONGEST:
            raise self._refused(f"has {len(self.text)} characters, more than {LONGEST}")
        try:
            _pattern(self.text)
        except (re.error, OverflowError, RecursionError) as error:
            raise self._refused(f"is not valid: {error}") from error
        choices, repetitions = self._count()
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "repetitions", repetitions)

    def steps(self, length: int) -> float:
        """Return a bound of the steps for a text of `length` characters."""
        ways = (length + 1.0) ** self.repetitions / math.factorial(self.repetitions)
        return (length + 1.0) * self.choices * ways

    def matches(self, text: str) -> bool:
        """Return whether the whole of a text matches.

        Raises:
            ModelError: That could take too many steps.
        """
        if self.steps(len(text)) > MOST_STEPS:
            raise self._refused(
                f"may take too long on the {len(text)} characters of {quote(text)}; "
                "use fewer repetitions"
            )
        return _pattern(self.text).fullmatch(text) is not None

    def _count(self) -> tuple[float, int]:
        """Return `choices` and `repetitions`."""
        choices, repetitions = 1.0, 0
        groups, last, before = [_Group()], _Group(), ""
        for token in re.findall(TOKEN, self.text):
            is_close, now = token == ")", _Group()
            if token in {"(", "(?:"}:
                groups.append(_Group())
            elif is_close:
                now = groups.pop()
                choices *= now.alternatives
                groups[-1].varies |= now.varies
            elif token == "|":
                groups[-1].alternatives += 1
                groups[-1].varies = True
            elif re.fullmatch(REPEAT, token):
                self._check_repetition(token, before, last)
                choices *= 2.0 if token[0] == "?" else 1.0
                repetitions += token[0] in "*+" or "," in token
                groups[-1].varies = True
            elif re.fullmatch(r"\\[1-9]", token):
                raise self._refused("refers back to a group")
            last, before = now, token
        return choices * groups[0].alternatives, repetitions

    def _check_repetition(self, token: str, before: str, repeated: _Group) -> None:
        if before == "(":
            raise self._refused("looks around or sets flags; only (?:...) is known")
        if repeated.varies and token[0] != "?":
            raise self._refused(
                "repeats a group that itself repeats or has alternatives; write a "
                "class such as [ab]* in its place"
            )

    def _refused(self, why: str) -> ModelError:
        return ModelError(f"The regular expression {quote(self.text)} {why}.")


@functools.lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.DOTALL)


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> Expression:
    """Return an expression, read once.

    Raises:
        ModelError: As for `Expression`.
    """
    return Expression(text)
