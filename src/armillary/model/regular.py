"""Regular expressions that take time in proportion to a text, whatever they say.

Files may bring expressions of their own, and the usual engine takes exponential time on
some. Here an expression becomes an automaton with a state for each of its characters
(Glushkov, "The abstract theory of automata", 1961), which is in a set of states at a
time, a bit for each. References back and looks around, which no automaton has, are
refused.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple, NoReturn, final

from armillary.errors import ModelError, quote

__all__ = ["Expression", "compiled", "literal"]

LONGEST: Final = 1000
"""Characters of an expression."""

MOST_STATES: Final = 500
MOST_FRAGMENTS: Final = 10_000
DEEPEST: Final = 50
BYTE: Final = 8
HIGHEST: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 13), (32, 32))
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_COUNTED: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SPECIAL: Final = frozenset("()[]{}|*+?^$\\.")
_ANYTHING: Final[Ranges] = ((0, HIGHEST),)


class Fragment(NamedTuple):
    """A part of an expression: with which of its states a text begins and ends."""

    is_nullable: bool
    first: int
    last: int


_EMPTY: Final = Fragment(True, 0, 0)


@final
class Expression:
    r"""A regular expression, compared with whole texts.

    It knows characters, `.`, classes such as `[a-f]` and `\d`, groups, `|`, `*`, `+`,
    `?` and `{m,n}`. Whether a repetition is lazy makes no difference here.
    """

    def __init__(self, text: str) -> None:
        """Read an expression.

        Raises:
            ModelError: It is none, too long, or asks for what is not offered.
        """
        self.text = text
        self._characters: list[Ranges] = []
        self._follow: list[int] = []
        self._place = 0
        self._fragments = 0
        if len(text) > LONGEST:
            self._fail(f"has {len(text)} characters, more than {LONGEST}")
        self._end = len(text)
        if text.startswith("^"):
            self._place = 1
        before = text[:-1]
        backslashes = len(before) - len(before.rstrip("\\"))
        if text.endswith("$") and backslashes % 2 == 0:
            self._end -= 1
        self._whole = self._alternatives(0)
        if self._place < self._end:
            self._fail("has a ) without its (")
        self._chosen: dict[str, int] = {}
        self._next: dict[tuple[int, int], int] = {}

    @property
    def states(self) -> int:
        """Return how many states the automaton has."""
        return len(self._characters)

    def matches(self, text: str) -> bool:
        """Return whether the expression is one of this whole text."""
        whole = self._whole
        if not text:
            return whole.is_nullable
        states = whole.first & self._states_of(text[0])
        for character in text[1:]:
            if not states:
                return False
            states = self._after(states) & self._states_of(character)
        return bool(states & whole.last)

    # running

    def _states_of(self, character: str) -> int:
        """Return the states that take a character."""
        found = self._chosen.get(character)
        if found is None:
            code = ord(character)
            found = 0
            for state, ranges in enumerate(self._characters):
                if any(low <= code <= high for low, high in ranges):
                    found |= 1 << state
            self._chosen[character] = found
        return found

    def _after(self, states: int) -> int:
        """Return the states that may come next, eight present ones at a time."""
        found, base = 0, 0
        while states:
            byte = states & 0xFF
            if byte:
                key = base, byte
                following = self._next.get(key)
                if following is None:
                    following = 0
                    for bit in range(BYTE):
                        if byte >> bit & 1:
                            following |= self._follow[base + bit]
                    self._next[key] = following
                found |= following
            states >>= BYTE
            base += BYTE
        return found

    # reading

    def _alternatives(self, depth: int) -> Fragment:
        if depth > DEEPEST:
            self._fail(f"has groups more than {DEEPEST} deep")
        found = self._sequence(depth)
        while self._takes("|"):
            other = self._sequence(depth)
            found = self._counted(
                Fragment(
                    found.is_nullable or other.is_nullable,
                    found.first | other.first,
                    found.last | other.last,
                )
            )
        return found

    def _sequence(self, depth: int) -> Fragment:
        found = _EMPTY
        while self._place < self._end and self._peek() not in "|)":
            found = self._then(found, self._repeated(depth))
        return found

    def _then(self, a: Fragment, b: Fragment) -> Fragment:
        """Return one fragment behind another."""
        self._link(a.last, b.first)
        return self._counted(
            Fragment(
                a.is_nullable and b.is_nullable,
                a.first | (b.first if a.is_nullable else 0),
                b.last | (a.last if b.is_nullable else 0),
            )
        )

    def _link(self, states: int, following: int) -> None:
        if following:
            for state in _bits(states):
                self._follow[state] |= following

    def _repeated(self, depth: int) -> Fragment:
        """Return an atom with the repetition behind it, copied as often as needed."""
        start = self._place
        atom = self._atom(depth)
        after_atom = self._place
        counts = self._counts()
        if counts is None:
            return atom
        end = self._place
        least, most = counts
        found = _EMPTY if most == 0 else atom
        if least == 0 or most is None:
            found = self._loop(found, is_optional=least == 0, is_endless=most is None)
        for k in range(1, max(least, most or 0)):
            self._place = start
            copy = self._atom(depth)
            assert self._place == after_atom, "a copy is read as the atom was"
            found = self._then(found, self._loop(copy, is_optional=k >= least))
        self._place = end
        return found

    def _loop(
        self, a: Fragment, *, is_optional: bool = False, is_endless: bool = False
    ) -> Fragment:
        if is_endless:
            self._link(a.last, a.first)
        return self._counted(a._replace(is_nullable=a.is_nullable or is_optional))

    def _counts(self) -> tuple[int, int | None] | None:
        """Return how often an atom comes, at least and at most; None for just once."""
        if self._place >= self._end:
            return None
        character = self._peek()
        if character in _COUNTED:
            self._place += 1
            found = _COUNTED[character]
        elif character == "{":
            found = self._braces()
        else:
            return None
        self._takes("?")
        if self._place < self._end and self._peek() in "*+?{":
            self._fail(f"has {quote(self._peek())} behind a repetition")
        return found

    def _braces(self) -> tuple[int, int | None]:
        closing = self.text.find("}", self._place, self._end)
        inside = self.text[self._place + 1 : closing] if closing >= 0 else ""
        least, comma, most = inside.partition(",")
        numbers = [n for n in (least, most) if n]
        is_plain = all(n.isascii() and n.isdigit() and len(n) <= 6 for n in numbers)
        if not least or not is_plain:
            self._fail("has a { that is no repetition such as {2} or {1,3}")
        self._place = closing + 1
        low = int(least)
        high = (int(most) if most else None) if comma else low
        if high is not None and high < low:
            self._fail(f"has the repetition {{{inside}}}, which is empty")
        if max(low, high or 0) > MOST_STATES:
            self._fail(f"repeats more than {MOST_STATES} times")
        return low, high

    def _atom(self, depth: int) -> Fragment:
        character = self._peek()
        self._place += 1
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._state(self._class())
        if character == ".":
            return self._state(_ANYTHING)
        if character == "\\":
            return self._state(self._escape())
        if character in "*+?{":
            self._fail(f"has {quote(character)} with nothing to repeat")
        if character in "^$":
            self._fail(f"has {quote(character)} inside; it stands for an end there")
        return self._state(((ord(character), ord(character)),))

    def _group(self, depth: int) -> Fragment:
        if self._takes("?") and not self._takes(":"):
            self._fail("looks around or has options; only (...) and (?:...) are known")
        found = self._alternatives(depth + 1)
        if not self._takes(")"):
            self._fail("has a ( without its )")
        return found

    def _class(self) -> Ranges:
        """Return the characters of `[...]`, behind its bracket."""
        is_negated = self._takes("^")
        found: list[tuple[int, int]] = []
        is_begun = False
        while not (is_begun and self._takes("]")):
            if self._place >= self._end:
                self._fail("has a [ without its ]")
            if self.text.startswith(("[:", "[.", "[="), self._place):
                self._fail("has a class inside of a class; write its characters")
            is_begun = True
            low = self._member()
            if len(low) == 1 and low[0][0] == low[0][1] and self._is_range():
                self._place += 1
                high = self._member()
                if len(high) != 1 or high[0][0] != high[0][1] or high < low:
                    self._fail("has an empty range of characters")
                low = ((low[0][0], high[0][1]),)
            found.extend(low)
        return _complement(found) if is_negated else tuple(found)

    def _is_range(self) -> bool:
        ahead = self.text[self._place : min(self._place + 2, self._end)]
        return len(ahead) == 2 and ahead[0] == "-" and ahead[1] != "]"

    def _member(self) -> Ranges:
        if self._place >= self._end:
            self._fail("has a [ without its ]")
        character = self._peek()
        self._place += 1
        if character == "\\":
            return self._escape()
        return ((ord(character), ord(character)),)

    def _escape(self) -> Ranges:
        """Return the characters that a backslash and what follows stand for."""
        if self._place >= self._end:
            self._fail("ends with a backslash")
        character = self._peek()
        self._place += 1
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _complement(list(ranges))
        if character in _CONTROLS:
            code = _CONTROLS[character]
        elif character.isalnum():
            self._fail(f"has \\{character}, which is not known here")
        else:
            code = ord(character)
        return ((code, code),)

    def _state(self, characters: Ranges) -> Fragment:
        """Return the fragment of a new state."""
        state = len(self._characters)
        if state >= MOST_STATES:
            self._fail(f"needs more than {MOST_STATES} states")
        self._characters.append(characters)
        self._follow.append(0)
        return self._counted(Fragment(False, 1 << state, 1 << state))

    def _counted(self, fragment: Fragment) -> Fragment:
        self._fragments += 1
        if self._fragments > MOST_FRAGMENTS:
            self._fail("has too many parts")
        return fragment

    def _peek(self) -> str:
        return self.text[self._place]

    def _takes(self, character: str) -> bool:
        found = self._place < self._end and self._peek() == character
        self._place += found
        return found

    def _fail(self, what: str) -> NoReturn:
        raise ModelError(f"The regular expression {quote(self.text)} {what}.")


@functools.lru_cache(maxsize=1024)
def compiled(text: str) -> Expression:
    """Return the expression of a text, made once.

    Raises:
        ModelError: It is none.
    """
    return Expression(text)


def literal(text: str) -> str:
    """Return the expression that matches just this text."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)


def _complement(ranges: list[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    if start <= HIGHEST:
        found.append((start, HIGHEST))
    return tuple(found)


def _bits(states: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    return [k for k in range(states.bit_length()) if states >> k & 1]
