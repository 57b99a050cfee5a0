"""Circles of things that follow each other are found, in linear time."""

from __future__ import annotations

import random

import pytest

from armillary.errors import ModelError
from armillary.model.coupling import Coupling
from armillary.model.joints import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.parents import endless
from armillary.model.workcell import Workcell

LONG = 20_000  # what takes as many steps as its square takes minutes


def by_walking(leaders: list[int]) -> set[int]:
    """Those that are still on their way after as many steps as there are things."""

    def ends(k: int) -> bool:
        for _ in leaders:
            k = leaders[k] if k >= 0 else k
        return k < 0

    return {k for k in range(len(leaders)) if not ends(k)}


@pytest.mark.parametrize(
    ("leaders", "expected"),
    [
        ([], set()),
        ([-1], set()),
        ([0], {0}),
        ([1, 0, -1], {0, 1}),
        ([1, 2, 1, 0, -1, 4], {0, 1, 2, 3}),
    ],
)
def test_circles_and_what_leads_into_them(leaders: list[int], expected: set[int]):
    assert endless(leaders) == expected


def test_as_walking_says():
    source = random.Random(0)
    for _ in range(300):
        count = source.randint(1, 9)
        leaders = [source.randint(-1, count - 1) for _ in range(count)]
        assert endless(leaders) == by_walking(leaders)


class Counted(list):
    """A list that counts how often it is asked."""

    asked = 0

    def __getitem__(self, k):
        self.asked += 1
        return super().__getitem__(k)


@pytest.mark.parametrize("last", [-1, 0])
def test_each_is_looked_at_once(last: int):
    leaders = Counted([*range(1, 1000), last])
    endless(leaders)
    assert leaders.asked == 1000


def tower(count: int, ground: str) -> Workcell:
    """Parts on each other, the last listed the lowest."""
    parts = [Manipulator(name=f"m{k}", links=(Link(name="x"),)) for k in range(count)]
    mounts = [Mount(manipulator=f"m{k}", on=f"m{k + 1}/x") for k in range(count - 1)]
    mounts.append(Mount(manipulator=f"m{count - 1}", on=ground))
    return Workcell(manipulators=tuple(parts), mounts=tuple(mounts))


def test_a_tall_tower_stands():
    assert tower(LONG, "world").base_frames[0].link == 1


def test_a_tall_tower_on_itself_does_not():
    with pytest.raises(ModelError, match="'m0' would be mounted on itself"):
        tower(LONG, "m0/x")


def followers(count: int, first: str) -> Manipulator:
    """Joints that each follow the one after them; the last follows nobody."""
    links = [Link(name="base")]
    for k in range(count):
        of = f"j{k + 1}" if k + 1 < count else first
        coupling = Coupling(of=of, multiplier=-1.0, offset=0.5) if of else None
        joint = {"joint": Revolute(), "joint_name": f"j{k}", "coupling": coupling}
        links.append(Link(name=f"l{k}", parent="base", **joint))  # type: ignore[arg-type]
    return Manipulator(name="m", links=tuple(links))


def test_long_chains_of_couplings():
    drives = followers(LONG, "").drives
    assert drives[0] == ()
    assert drives[LONG] == ((0, 1.0, 0.0),)
    assert drives[LONG - 1] == ((0, -1.0, 0.5),)
    assert drives[LONG - 2] == ((0, 1.0, 0.0),)
    assert drives[1] == ((0, -1.0, 0.5),)  # after an odd number of followers


def test_long_circles_of_couplings():
    with pytest.raises(ModelError, match=rf"breaks {LONG} rule\(s\)") as caught:
        followers(LONG, "j0")
    assert "'j0' follows itself, in a cycle" in str(caught.value)
