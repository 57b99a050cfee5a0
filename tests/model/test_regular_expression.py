"""Regular expressions of files: matched by the standard library, in bounded time."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from armillary.errors import ModelError
from armillary.model.regular_expression import (
    LONGEST,
    MOST_STEPS,
    Expression,
    compiled,
    literal,
)


@pytest.mark.parametrize(
    ("text", "word", "fits"),
    [
        ("link[0-9]+", "link12", True),
        ("link[0-9]+", "link", False),
        ("link[0-9]+", "a link1", False),
        (r"(left|right)_finger_\d", "right_finger_2", True),
        ("(left|right)?finger", "finger", True),
        ("^arm.*$", "arm/link", True),
        ("a.b", "a\nb", True),
        (r"\w", "é", False),
        ("[]a]b", "]b", True),
        (r"a\+", "a+", True),
        ("x{3}", "xxx", True),
        ("x{,2}", "xxx", False),
        (r"\(?a\)?", "(a)", True),
        ("a*?b", "aab", True),
    ],
)
def test_whole_texts_match(text: str, word: str, fits: bool):
    assert Expression(text).matches(word) == fits


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", "is not valid"),
        ("[a", "is not valid"),
        ("[b-a]", "is not valid"),
        ("*", "is not valid"),
        ("a{3,2}", "is not valid"),
        ("a{99999999999999999999}", "is not valid"),
        ("a\\", "is not valid"),
        (r"(a)\1", "refers back"),
        ("(?=a)", "looks around"),
        ("(?i)a", "looks around"),
        ("(?P<x>a)", "looks around"),
        ("a" * (LONGEST + 1), "more than 1000"),
        ("(a+)+b", "repeats a group"),
        ("(a|a)*b", "repeats a group"),
        ("(?:a?){30}", "repeats a group"),
        ("((a)*)*", "repeats a group"),
        ("(x(a|b))+", "repeats a group"),
        ("((a*)?)*", "repeats a group"),
    ],
)
def test_what_may_take_long_or_is_not_valid_is_refused(text: str, words: str):
    with pytest.raises(ModelError, match=re.escape(words)):
        Expression(text)


# How many of `left` characters `a` a piece takes, in each way that it can.
PIECES = {
    "a*": lambda left: range(left + 1),
    "a+": lambda left: range(1, left + 1),
    "a?": lambda left: range(min(left, 1) + 1),
    ".*": lambda left: range(left + 1),
    "[ab]*": lambda left: range(left + 1),
    "(a|b)": lambda left: range(1, min(left, 1) + 1),
    "(aa|a)": lambda left: range(1, min(left, 2) + 1),
    "(ab)*": lambda left: range(1),
    "a{1,9}": lambda left: range(1, min(left, 9) + 1),
    "a": lambda left: range(1, min(left, 1) + 1),
}


def tries(pieces: tuple[str, ...], length: int) -> int:
    """Return in how many ways the first pieces fit to the starts of a text of `a`.

    Backtracking tries them all where what comes last does not fit.
    """
    ways = {length: 1}
    total = 1
    for piece in pieces:
        after: dict[int, int] = {}
        for left, count in ways.items():
            for taken in PIECES[piece](left):
                after[left - taken] = after.get(left - taken, 0) + count
        ways = after
        total += sum(ways.values())
    return total


def test_the_steps_of_accepted_expressions_are_bounded():
    """Of every expression of up to seven pieces, on a text that does not match."""
    chance = random.Random(0)
    sevens = [tuple(chance.choices(list(PIECES), k=7)) for _ in range(300)]
    accepted = 0
    for pieces in [*itertools.product(PIECES, repeat=2), *sevens]:
        text = "".join(pieces) + "c"
        for length in (10, 30, 100):
            try:
                expression = Expression(text)
                assert not expression.matches("a" * length)
            except ModelError:
                continue
            accepted += 1
            counted = tries(pieces, length)
            assert counted <= len(pieces) * expression.steps(length), (text, length)
            assert counted <= MOST_STEPS
    assert accepted > 300


@pytest.mark.parametrize("text", ["a*a*a*a*a*a*a*a*b", "a?" * 40 + "b", "(a|a)" * 40])
def test_long_texts_are_refused_where_they_may_take_long(text: str):
    with pytest.raises(ModelError, match="take too long"):
        Expression(text).matches("a" * 200)


def test_an_expression_is_read_once():
    assert compiled("a[bc]*") is compiled("a[bc]*")


def test_any_text_can_be_meant_literally():
    chance = random.Random(0)
    for _ in range(50):
        text = "".join(chance.choices("ab.*+?()[]{}|^$\\/-", k=8))
        expression = Expression(literal(text))
        assert expression.matches(text)
        assert not expression.matches(text + "a")
