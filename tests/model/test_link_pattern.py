from __future__ import annotations

import fnmatch
import random

import pytest

from armillary.errors import ModelError
from armillary.model.link_pattern import (
    LinkName,
    check_side,
    is_exact,
    matches,
    scoped,
    steps,
)
from work import lines

FOREARM = LinkName("left/arm", "forearm")


def test_wildcards_match_as_in_shells():
    chance = random.Random(0)
    seen: set[bool] = set()
    for _ in range(3000):
        pattern = "".join(chance.choices("ab*", k=chance.randrange(1, 7)))
        text = "".join(chance.choices("ab", k=chance.randrange(7)))
        if is_exact(pattern):
            continue
        found = matches(pattern, LinkName("m", text))
        assert found == fnmatch.fnmatchcase(text, pattern), (pattern, text)
        seen.add(found)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("side", "found"),
    [
        ("*", True),
        ("fore*", True),
        ("arm*", False),  # without a slash, only the link's own name counts
        ("*/fore*", True),
        ("left/arm/*", True),
        ("right/*", False),
        ("REGEX.*arm", True),
        ("REGEX(fore|upper)arm", True),
        ("REGEXleft/.*", True),
        ("REGEXleft", False),
    ],
)
def test_a_slash_asks_for_the_manipulator(side: str, found: bool):
    assert not is_exact(side)
    assert matches(side, FOREARM) == found


@pytest.mark.parametrize("side", ["", "*" * 1001, "REGEX(", f"REGEX{'a' * 1001}"])
def test_bad_sides_are_refused(side: str):
    with pytest.raises(ModelError):
        check_side(side)


@pytest.mark.parametrize("side", ["fore*", "*", "REGEX^fore.*$", "REGEXfore.*|x"])
def test_a_scope_stands_before_every_name(side: str):
    inside = scoped(side, "left/arm/")
    check_side(inside)
    assert matches(inside, FOREARM)
    assert not matches(inside, LinkName("right", "forearm"))
    assert scoped(side, "") == side


def test_names_cost_nothing_and_expressions_the_more_the_more_they_repeat():
    sides = ("a/b", "a*", "REGEXab[cd]", "REGEXa.*b", "REGEXa.*b.*c")
    costs = [steps(side, 20) for side in sides]
    assert costs[0] == 0
    assert costs == sorted(set(costs))


def test_many_stars_take_a_few_steps_each():
    name = LinkName("m", "a" * 20_000)
    assert lines(lambda: matches("*a" * 400 + "b*", name)) < 400 * 6
    assert not matches("*a" * 400 + "b*", name)
