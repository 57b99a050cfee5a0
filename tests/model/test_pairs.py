from __future__ import annotations

import random
import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from armillary.errors import ModelError, UnknownName
from armillary.model import collision_pairs as module
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.frame import Frame, FrameRef
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.link_pairs import Pairs
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.rules import Rule, Rules
from armillary.model.shapes.box import Box
from armillary.model.shapes.mesh import Mesh
from armillary.model.shapes.sphere import Sphere
from armillary.model.tree import Base, Tree
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY
from work import counted, lines

BOX = Box(size=(1.0, 1.0, 1.0))
Z = (0.0, 0.0, 1.0)


def link(name: str, parent: str | None = None, **given: Any) -> Link:
    """A link with a shape that turns, unless told otherwise."""
    given.setdefault("collisions", (BOX,))
    given.setdefault("joint", Fixed() if parent is None else Revolute(axis=Z))
    return Link(name=name, parent=parent, **given)


def chain(name: str, count: int) -> Manipulator:
    links = [link("l0"), *(link(f"l{k}", f"l{k - 1}") for k in range(1, count))]
    return Manipulator(name=name, links=tuple(links))


def random_cell(chance: random.Random) -> Workcell:
    """Trees with and without shapes, fixed and moving, on each other and loose."""
    manipulators: list[Manipulator] = []
    mounts: list[Mount] = []
    for k in range(chance.randrange(1, 6)):
        links: list[Link] = []
        for i in range(chance.randrange(1, 6)):
            parent = chance.choice(links).name if links else None
            moves = parent is not None and chance.random() < 0.6
            links.append(
                link(
                    f"l{i}",
                    parent,
                    joint=Revolute(axis=Z) if moves else Fixed(),
                    collisions=(BOX,) if chance.random() < 0.7 else (),
                    frames=(Frame(name=f"f{i}"),),
                )
            )
        name = f"m{k}"
        on = WORLD
        if manipulators and chance.random() < 0.7:
            below = chance.choice(manipulators)
            place = chance.randrange(len(below.links))
            on = f"{below.name}/{chance.choice('lf')}{place}"
        if chance.random() < 0.8:
            bolted = chance.random() < 0.6
            mounts.append(Mount(manipulator=name, on=on, bolted=bolted))
        manipulators.append(Manipulator(name=name, links=tuple(links)))
    return Workcell(manipulators=tuple(manipulators), mounts=tuple(mounts))


def random_rules(chance: random.Random, cell: Workcell) -> Rules:
    names = [f"{m.name}/{each.name}" for m in cell.manipulators for each in m.links]
    own = [m.name for m in cell.manipulators]

    def side() -> str:
        return chance.choice(
            [
                chance.choice(names),
                f"{chance.choice(own)}/*",
                f"*/l{chance.randrange(5)}",
                "*",
                f"REGEXl[{chance.randrange(3)}-4]",
                f"l{chance.randrange(5)}*",
            ]
        )

    rules = [
        Rule(
            a=side(),
            b=side(),
            tested=chance.random() < 0.5,
            where=chance.choice(["any", "any", "rigid", "adjacent", "apart", "kin"]),
            reason=f"r{k}",
        )
        for k in range(chance.randrange(6))
    ]
    flags = {"within": chance.random() < 0.5, "between": chance.random() < 0.7}
    return Rules(rules=tuple(rules), **flags)


def free(cell: Workcell) -> Tree:
    """The tree in which nothing holds what is not fixed."""
    return Tree.of(cell).released()


def apart(jury: CollisionPairs) -> Pairs:
    """The pairs where nothing holds what is not fixed."""
    return jury.pairs(free(jury.cell))


def held(tree: Tree, holders: dict[int, int], mode: Any = "attached") -> Tree:
    """The tree in which links hold manipulators."""
    return tree.attached(
        {k: Base(FrameRef(link, IDENTITY), mode=mode) for k, link in holders.items()}
    )


def random_held(chance: random.Random, cell: Workcell) -> Tree:
    """Some manipulators that are not bolted, each held by one before it."""
    bolted = {mount.manipulator for mount in cell.mounts if mount.bolted}
    holders: dict[int, int] = {}
    for k, manipulator in enumerate(cell.manipulators):
        if k and manipulator.name not in bolted and chance.random() < 0.6:
            holder = chance.randrange(k)
            at = chance.randrange(len(cell.manipulators[holder].links))
            holders[k] = cell.starts[holder] + at
    return held(free(cell), holders)


class Oracle:
    """The same in the plainest way: a pair at a time, with names."""

    def __init__(self, cell: Workcell, rules: Rules, tree: Tree) -> None:
        self.cell, self.rules = cell, rules
        self.links = {
            (k, i): f"{m.name}/{each.name}"
            for k, m in enumerate(cell.manipulators)
            for i, each in enumerate(m.links)
        }
        self.number = dict(enumerate(self.links)) | {-1: (-1, -1)}
        self.bolted = {
            cell.index[m.manipulator]: self.number[cell.frame(m.on).link]
            for m in cell.mounts
            if m.bolted
        }
        self.held = {
            k: self.number[tree.bases[k].frame.link] for k in tree.carried_bases
        }

    def shapes(self, key: tuple[int, int]) -> bool:
        return bool(self.link(key).collisions)

    def link(self, key: tuple[int, int]) -> Link:
        return self.cell.manipulators[key[0]].links[key[1]]

    def below(self, key: tuple[int, int], *, held: bool) -> tuple[int, int] | None:
        """What a link is joined to: its parent, or what its base stands on."""
        k, i = key
        parent = self.cell.manipulators[k].parents[i]
        if parent >= 0:
            return k, parent
        supports = self.bolted | (self.held if held else {})
        at = supports.get(k)
        return None if at == (-1, -1) else at

    def shaped_below(self, key: tuple[int, int], held: bool) -> tuple[int, int] | None:
        at = self.below(key, held=held)
        while at is not None and not self.shapes(at):
            at = self.below(at, held=held)
        return at

    def group(self, key: tuple[int, int]) -> object:
        while not self.link(key).moves:
            k, i = key
            if self.cell.manipulators[k].parents[i] < 0:
                if k not in self.bolted:
                    return key
                if self.bolted[k] == (-1, -1):
                    return WORLD
            at = self.below(key, held=False)
            assert at is not None
            key = at
        return key

    def is_adjacent(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        return self.shaped_below(a, True) == b or self.shaped_below(b, True) == a

    def parent(self, key: object) -> object:
        """The parent as RobWork has it: frames of mounts count."""
        if not isinstance(key, tuple):
            return None if key == WORLD else key.removeprefix("frame ")  # type: ignore
        k, i = key
        m = self.cell.manipulators[k]
        if m.parents[i] >= 0:
            return k, m.parents[i]
        for mount in self.cell.mounts:
            if mount.manipulator == m.name and mount.bolted:
                if mount.on == WORLD:
                    return WORLD
                names = {name: key for key, name in self.links.items()}
                return names.get(mount.on, FrameNode(m.name, mount.on))
        return None

    def is_kin(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        for x, y in ((a, b), (b, a)):
            parent = self.parent(x)
            if parent == y:
                return True
            if parent is None:
                continue
            if isinstance(parent, FrameNode):
                at = self.cell.frame(parent.on)
                grandparent: object = self.number[at.link]
            else:
                grandparent = self.parent(parent) if isinstance(parent, tuple) else None
            if grandparent is not None and grandparent == self.parent(y):
                return True
        return False

    def names(self, side: str, key: tuple[int, int]) -> bool:
        qualified = self.links[key]
        text = qualified if "/" in side else qualified.split("/")[1]
        if side.startswith("REGEX"):
            return bool(re.fullmatch(side[5:], text))
        return bool(re.fullmatch(side.replace("*", ".*"), text))

    def touches(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        """Whether one of them stands on the other and is rigidly joined to it."""
        for x, y in ((a, b), (b, a)):
            k = x[0]
            if k == y[0] or k not in self.bolted | self.held:
                continue
            at: tuple[int, int] | None = (self.bolted | self.held)[k]
            if at == (-1, -1):
                continue
            while at is not None and not self.shapes(at):
                is_base = self.cell.manipulators[at[0]].parents[at[1]] < 0
                moves = self.link(at).moves and not is_base
                at = None if moves else self.below(at, held=True)
            base = (k, self.cell.manipulators[k].base)
            if at == y and self.inner_group(x) == base:
                return True
        return False

    def inner_group(self, key: tuple[int, int]) -> tuple[int, int]:
        k, i = key
        m = self.cell.manipulators[k]
        while m.parents[i] >= 0 and not m.links[i].moves:
            i = m.parents[i]
        return k, i

    def tested(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        if self.touches(a, b):
            return False
        found = self.rules.within if a[0] == b[0] else self.rules.between
        is_rigid, is_adjacent = self.group(a) == self.group(b), self.is_adjacent(a, b)
        where = {
            "any": True,
            "rigid": is_rigid,
            "adjacent": is_adjacent,
            "apart": not (is_rigid or is_adjacent),
            "kin": self.is_kin(a, b),
        }
        for rule in self.rules.rules:
            is_named = any(
                self.names(rule.a, x) and self.names(rule.b, y)
                for x, y in ((a, b), (b, a))
            )
            if is_named and where[rule.where]:
                found = rule.tested
        return found

    def pairs(self) -> list[tuple[str, str]]:
        shaped = [key for key in self.links if self.shapes(key)]
        found = [
            tuple(sorted((self.links[a], self.links[b])))
            for a, b in combinations(shaped, 2)
            if self.tested(a, b)
        ]
        return sorted(found)  # type: ignore[arg-type]


class FrameNode:
    """A frame that a base is fixed to, equal to nothing but itself."""

    def __init__(self, owner: str, on: str) -> None:
        self.owner, self.on = owner, on


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(150))
def test_pairs_are_what_the_rules_say(seed: int, monkeypatch: pytest.MonkeyPatch):
    chance = random.Random(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(module, "ROWS", 20)  # a few rows at a time
    cell = random_cell(chance)
    rules = random_rules(chance, cell)
    jury = CollisionPairs(cell, rules)
    tree = random_held(chance, cell)
    pairs = jury.pairs(tree)
    oracle = Oracle(cell, rules, tree)
    assert list(pairs) == oracle.pairs()
    names = [oracle.links[key] for key in oracle.links]
    for a, b in combinations(names, 2):
        verdict = pairs.why(a, b)
        assert verdict.tested == ((a, b) in pairs) == ((b, a) in pairs)
        assert verdict == pairs.why(b, a)
        assert verdict.reason
        if verdict.rule is not None:
            assert verdict.rule.tested == verdict.tested
            assert verdict.reason == verdict.rule.reason


@pytest.mark.parametrize("seed", range(40))
def test_includes_only_add_and_excludes_only_remove(seed: int):
    chance = random.Random(seed)
    cell = random_cell(chance)
    rules = random_rules(chance, cell)
    extra = random_rules(chance, cell).rules
    before = set(apart(CollisionPairs(cell, rules)))
    for rule in extra:
        after = set(apart(CollisionPairs(cell, rules.extended([rule]))))
        assert after >= before if rule.tested else after <= before


@pytest.mark.parametrize("seed", range(40))
def test_the_order_of_what_is_not_an_order_counts_for_nothing(seed: int):
    chance = random.Random(seed)
    cell = random_cell(chance)
    rules = random_rules(chance, cell)
    pairs = apart(CollisionPairs(cell, rules))
    swapped = [
        Rule(a=r.b, b=r.a, tested=r.tested, where=r.where, reason=r.reason)
        for r in rules.rules
    ]
    mirrored = Rules(within=rules.within, between=rules.between, rules=tuple(swapped))
    assert apart(CollisionPairs(cell, mirrored)) == pairs
    shuffled = list(cell.manipulators)
    chance.shuffle(shuffled)
    moved = Workcell(manipulators=tuple(shuffled), mounts=cell.mounts)
    assert list(apart(CollisionPairs(moved, rules))) == list(pairs)
    assert apart(CollisionPairs(moved, rules)) == pairs


def test_pairs_are_a_sequence():
    pairs = apart(
        CollisionPairs(Workcell(manipulators=(chain("a", 2), chain("b", 1))), Rules())
    )
    assert isinstance(pairs, Pairs)
    assert pairs.links == ("a/l0", "a/l1", "b/l0")
    assert tuple(pairs) == (("a/l0", "b/l0"), ("a/l1", "b/l0"))
    assert pairs[0] == ("a/l0", "b/l0")
    assert pairs[-1:] == (("a/l1", "b/l0"),)
    np.testing.assert_array_equal(pairs.indices, [[0, 2], [1, 2]])
    with pytest.raises(ValueError, match="read-only"):
        pairs.indices[0] = 0
    assert "a/l0" not in pairs
    assert ("a/l0", "a/l0") not in pairs
    assert ("a/l0", "nobody") not in pairs
    assert ("a/l0", "b/l0", "c") not in pairs
    assert repr(pairs) == "<2 pairs of 3 links>"
    assert pairs != tuple(pairs)


def test_only_links_with_shapes_count():
    part = Manipulator(
        name="part",
        links=(
            link("bare", collisions=()),
            link("drawn", "bare", collisions=(), visuals=(Sphere(radius=1.0),)),
            link("meshed", "bare", collisions=(), visuals=(Mesh(file="a.stl"),)),
            link("both", "bare", visuals=(Mesh(file="a.stl"),)),
        ),
    )
    pairs = apart(CollisionPairs(Workcell(manipulators=(part,)), Rules.everything()))
    assert pairs.links == ("part/both", "part/drawn")
    verdict = pairs.why("meshed", "drawn")
    assert str(verdict) == "not tested: 'part/meshed' has no shapes"
    assert not apart(CollisionPairs(Workcell(), Rules()))


def test_reasons_are_kept():
    cell = Workcell(
        manipulators=(chain("arm", 4), chain("table", 1), chain("part", 1)),
        mounts=(
            Mount(manipulator="arm", on="table/l0"),
            Mount(manipulator="part", on="table/l0", bolted=False),
        ),
    )
    rules = (
        Rules().include("arm/*", "arm/*").exclude("arm/l0", "arm/l2", reason="never")
    )
    jury = CollisionPairs(cell, rules)
    pairs = jury.pairs(held(free(cell), {2: cell.starts[1]}, "loose"))
    told = {
        ("arm/l0", "arm/l1"): "not tested: adjacent by the rule: exclude '*' and '*' "
        "where adjacent (adjacent)",
        ("arm/l0", "arm/l2"): "not tested: never by the rule: exclude 'arm/l0' and "
        "'arm/l2' (never)",
        ("arm/l0", "arm/l3"): "tested: user by the rule: include 'arm/*' and 'arm/*' "
        "where apart (user)",
        ("arm/l0", "table/l0"): "not tested: 'arm' is fixed to 'table/l0'",
        ("arm/l1", "table/l0"): "not tested: adjacent",
        ("part/l0", "table/l0"): "not tested: 'part' is mounted on 'table/l0'",
        ("arm/l3", "part/l0"): "tested: links of two manipulators",
        ("arm/l3", "arm/l3"): "not tested: they are one link",
    }
    del told["arm/l1", "table/l0"]
    for pair, text in told.items():
        assert str(pairs.why(*pair)) == text
    assert pairs.why("arm/l1", "table/l0").tested
    with pytest.raises(UnknownName, match="'part'"):
        pairs.why("part/l9", "arm/l0")
    with pytest.raises(ModelError, match="world is not a link"):
        pairs.why("world", "arm/l0")
    with pytest.raises(ModelError, match="not unique"):
        pairs.why("l1", "l0")


def test_a_frame_stands_for_its_link():
    arm = Manipulator(
        name="arm",
        links=(link("base"), link("hand", "base", frames=(Frame(name="tcp"),))),
    )
    cell = Workcell(manipulators=(arm, chain("part", 1)))
    pairs = apart(CollisionPairs(cell, Rules().exclude("tcp", "part/l0")))
    assert tuple(pairs) == (("arm/base", "part/l0"),)
    assert pairs.why("tcp", "l0").reason == "user"


def test_robworks_defaults_leave_out_close_relatives():
    # world - floor
    #       - stand - (frame) - arm: l0 - l1 - l2
    stand = Manipulator(
        name="stand", links=(link("stand", frames=(Frame(name="top"),)),)
    )
    cell = Workcell(
        manipulators=(chain("arm", 3), stand, chain("floor", 1), chain("loose", 1)),
        mounts=(
            Mount(manipulator="arm", on="stand/top"),
            Mount(manipulator="stand"),
            Mount(manipulator="floor"),
        ),
    )
    pairs = set(apart(CollisionPairs(cell, Rules.robwork())))
    assert pairs == {
        ("arm/l0", "arm/l2"),
        ("arm/l0", "loose/l0"),
        ("arm/l1", "floor/l0"),
        ("arm/l1", "loose/l0"),
        ("arm/l1", "stand/stand"),
        ("arm/l2", "floor/l0"),
        ("arm/l2", "loose/l0"),
        ("arm/l2", "stand/stand"),
        ("floor/l0", "loose/l0"),
        ("loose/l0", "stand/stand"),
    }
    # With a setup, only what cannot move is left out.
    static = set(apart(CollisionPairs(cell, Rules.robwork(has_setup=True))))
    assert static - pairs == {("arm/l0", "arm/l1"), ("arm/l1", "arm/l2")}
    assert pairs <= static


def test_actin_tests_between_manipulators_and_nothing_within():
    cell = Workcell(manipulators=(chain("a", 3), chain("b", 2)))
    pairs = apart(CollisionPairs(cell, Rules.actin()))
    assert len(pairs) == 6
    assert all(a[0] != b[0] for a, b in pairs)
    more = Rules.actin().include("a/l0", "a/l2").exclude("a/l0", "b/*")
    assert set(pairs) ^ set(apart(CollisionPairs(cell, more))) == {
        ("a/l0", "a/l2"),
        ("a/l0", "b/l0"),
        ("a/l0", "b/l1"),
    }
    assert not apart(CollisionPairs(cell, Rules.actin().exclude("a/*", "b/*")))


def test_400_links_take_little_work_and_the_same_again_none():
    manipulators = tuple(chain(f"m{k:02}", 20) for k in range(20))
    cell = Workcell(manipulators=manipulators)
    jury = CollisionPairs(cell, Rules())
    with counted() as work:
        pairs = apart(jury)
    assert work.lines < 100 * 400  # of about 80 000 pairs
    assert len(pairs) == 400 * 399 // 2 - 20 * (20 * 19 // 2)
    assert apart(jury) is pairs


def test_all_pairs_that_touch_at_home_are_found_together():
    cell = Workcell(manipulators=(chain("a", 60), chain("b", 2)))
    rules = Rules().include_self("a").exclude("a/*", "b/*", where="home", reason="near")
    rules = rules.exclude("a/l1*", "l5", where="home", reason="own")
    rules = rules.include("a/l7", "a/l5").exclude("a/l8", "a/l5", reason="never")
    jury = CollisionPairs(cell, rules, lambda pairs: np.arange(len(pairs)))
    with counted() as work:
        found = jury.home_pairs
    assert work.lines < 10 * len(found)
    pairs = apart(jury)
    every = {pair: pairs.why(*pair).rule for pair in combinations(pairs.links, 2)}
    assert list(found) == sorted(found)
    assert found == {
        pair: rule
        for pair, rule in every.items()
        if rule is not None and rule.where == "home"
    }
    assert {rule.reason for rule in found.values()} == {"default", "near", "own"}
    assert list(pairs) == [("a/l5", "a/l7")]


def test_work_is_proportional_to_the_number_of_exact_rules():
    manipulators = tuple(chain(f"m{k:02}", 20) for k in range(6))
    cell = Workcell(manipulators=manipulators)
    named = [f"{m.name}/{each.name}" for m in manipulators for each in m.links]
    exact = tuple(Rule(a=a, b=b) for a, b in combinations(named, 2))
    assert lines(lambda: apart(CollisionPairs(cell, Rules(rules=exact)))) < 50 * len(
        exact
    )
    assert not apart(CollisionPairs(cell, Rules(rules=exact)))


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch):
    cell = Workcell(manipulators=(chain("a", 60), chain("b", 60)))
    monkeypatch.setattr(module, "MOST_PAIRS", 3000)
    with pytest.raises(ModelError, match="more than 3000 pairs"):
        apart(CollisionPairs(cell, Rules()))
    slow = Rules().exclude("REGEX.*a.*b.*", "*")
    monkeypatch.setattr(module, "MOST_STEPS", 10_000)
    with pytest.raises(ModelError, match="take too long"):
        CollisionPairs(cell, slow)
