from __future__ import annotations

import random
import re
import time

import pytest

from armillary.errors import ModelError
from armillary.model.regular import LONGEST, MOST_STATES, Expression, compiled, literal

ALPHABET = "ab-"


def random_expression(chance: random.Random, depth: int = 3) -> str:
    kind = chance.randrange(9 if depth else 4)
    if kind < 2:
        return chance.choice("ab")
    if kind == 2:
        return chance.choice([".", "[ab]", "[^a]", r"\w", r"\-", "[a-b-]", r"[\-b]"])
    if kind == 3:
        return ""
    inner = random_expression(chance, depth - 1)
    match kind:
        case 4:
            return inner + random_expression(chance, depth - 1)
        case 5:
            return f"({inner}|{random_expression(chance, depth - 1)})"
        case 6:
            return f"(?:{inner}){chance.choice('*+?')}"
        case 7:
            least = chance.randrange(3)
            most = chance.choice(["", ",", f",{least + chance.randrange(3)}"])
            return f"({inner}){{{least}{most}}}"
        case _:
            return f"({inner}){chance.choice(['*?', '+?', '??'])}"


@pytest.mark.parametrize("seed", range(150))
def test_it_matches_what_the_standard_library_does(seed: int):
    chance = random.Random(seed)
    text = random_expression(chance)
    ours, theirs = Expression(text), re.compile(text, re.ASCII)
    words = [
        "".join(chance.choices(ALPHABET, k=chance.randrange(7))) for _ in range(60)
    ]
    for word in ["", *words]:
        assert ours.matches(word) == bool(theirs.fullmatch(word)), (text, word)


@pytest.mark.parametrize("text", [r"\d\D", r"\s\S", r"\w\W", "[^x-z0]q", "..", "[]a]b"])
def test_classes_hold_the_characters_of_the_standard_library(text: str):
    ours, theirs = Expression(text), re.compile(text, re.ASCII | re.DOTALL)
    letters = [chr(k) for k in range(128)] + ["é", "\u0660", "\U0001f916"]
    for first in letters:
        for second in "q a0b-":
            word = first + second
            assert ours.matches(word) == bool(theirs.fullmatch(word)), (text, word)


def test_ends_may_be_marked():
    assert Expression("^ab$").matches("ab")
    assert not Expression("^ab$").matches("^ab$")
    assert Expression(r"ab\$").matches("ab$")
    assert Expression(r"ab\\$").matches("ab\\")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", "( without"),
        (")", ") without"),
        ("a)b", ") without"),
        ("[a", "[ without"),
        ("[", "[ without"),
        ("[b-a]", "empty range"),
        ("[[:alpha:]]", "class inside"),
        ("*", "nothing to repeat"),
        ("a**", "behind a repetition"),
        ("a*+", "behind a repetition"),
        ("a{2", "no repetition"),
        ("a{x}", "no repetition"),
        ("a{3,2}", "is empty"),
        ("a{99999999999999999999}", "no repetition"),
        ("a{501}", "repeats more"),
        (r"(a)\1", "not known"),
        (r"\bword", "not known"),
        ("(?=a)", "looks around"),
        ("(?i)a", "looks around"),
        ("a$b", "inside"),
        ("a\\", "ends with a backslash"),
        ("(" * 51 + ")" * 51, "deep"),
        ("a" * (LONGEST + 1), "more than 1000"),
        (".{300}.{300}", "states"),
        ("((((a{20}){20}){20}){20}){20}", "states"),
        ("((((){500}){500}){500}){500}", "too many parts"),
    ],
)
def test_what_is_none_is_refused(text: str, words: str):
    with pytest.raises(ModelError, match=re.escape(words)):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    ["(a+)+b", "(a|a)*b", "(a*)*b", "(a|aa)+b", "a*a*a*a*a*a*a*a*b", "(.*a){30}"],
)
def test_bombs_take_time_in_proportion(text: str):
    word = "a" * 20_000
    start = time.process_time()
    assert Expression(text).matches(word) == text.endswith("{30}")
    assert time.process_time() - start < 1.0


def test_the_worst_expression_is_bounded():
    expression = Expression(f"(a|b)*a(a|b){{{MOST_STATES // 2 - 3}}}")
    assert expression.states > MOST_STATES - 10
    chance = random.Random(0)
    start = time.process_time()
    for _ in range(40):
        expression.matches("".join(chance.choices("ab", k=300)))
    assert time.process_time() - start < 2.0


def test_an_expression_is_read_once():
    assert compiled("a[bc]*") is compiled("a[bc]*")


def test_any_text_can_be_meant_literally():
    chance = random.Random(0)
    for _ in range(50):
        text = "".join(chance.choices("ab.*+?()[]{}|^$\\/-", k=8))
        expression = Expression(literal(text))
        assert expression.matches(text)
        assert not expression.matches(text + "a")
