"""Learned rules: against every distance of every sample, and written to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, SweepError, UnknownName
from armillary.shapes import Box, Sphere

COUNT = 300


def arm_of(name: str = "robot") -> arm.Manipulator:
    """A base and four links in a row, a lid on the second; the last one is huge."""
    ball = Sphere(radius=0.06)
    box = Box(size=(0.1, 0.05, 0.05))
    links = [arm.Link(name="base", collisions=[ball])]
    for k, shape in enumerate([box, ball, ball, Sphere(radius=0.45)]):
        turn = arm.joints.Revolute(
            axis=(0.2, 1.0, 0.1), precursor=arm.Pose.translation(0.25, 0.0, 0.0)
        )
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=links[-1].name,
                joint=turn,
                limits=arm.Limits(lower=-2.5, upper=2.5),
                collisions=[shape],
            )
        )
    lid = arm.joints.Fixed(precursor=arm.Pose.translation(0.0, 0.0, 0.03))
    links.append(arm.Link(name="lid", parent="l1", joint=lid, collisions=[ball]))
    return arm.Manipulator(name=name, links=links)


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.Cell(manipulators=[arm_of()])


@pytest.fixture(scope="module")
def learned(cell: arm.Cell) -> arm.Rules:
    return cell.learn_rules(samples=COUNT, seed=3)


def expected(cell: arm.Cell) -> dict[tuple[str, str], str]:
    """Return the reason of each pair by the distance of every pair at every sample."""
    Q = cell.samples(COUNT, seed=3).rows(0, COUNT)
    every = arm.Rules.everything().exclude("*", "*", where="rigid")
    check = cell.collision(rules=every)
    touching = check.distances(Q) <= 0.0
    at_home = check.distances(cell.home.q) <= 1e-6
    joined = {("base", "l0"), ("l0", "l1"), ("l0", "lid"), ("l1", "l2"), ("l2", "l3")}
    joined |= {("l2", "lid")}
    found: dict[tuple[str, str], str] = {}
    for k, (a, b) in enumerate(check.pairs):
        bare = (a.removeprefix("robot/"), b.removeprefix("robot/"))
        if bare in joined:
            found[a, b] = "adjacent"
        elif at_home[k]:
            found[a, b] = "default"
        elif touching[:, k].all():
            found[a, b] = "always"
        elif not touching[:, k].any():
            found[a, b] = "never"
    return found


def named(rules: arm.Rules) -> dict[tuple[str, str], str]:
    return {(r.a, r.b): r.reason for r in rules.rules if "*" not in r.a + r.b}


def test_reasons_are_those_of_all_distances(cell: arm.Cell, learned: arm.Rules):
    reasons = expected(cell)
    assert named(learned) == reasons
    assert set(reasons.values()) == {"adjacent", "default", "never"}
    tested = cell.replace(rules=learned).pairs(cell.home)
    links = [f"robot/{link.name}" for link in cell.manipulators[0].links]
    rigid = {("robot/l1", "robot/lid")}
    every = {tuple(sorted(each)) for each in combinations(links, 2)} - rigid
    assert set(tested) == every - set(reasons)
    assert tested.why("base", "l2").reason == reasons["robot/base", "robot/l2"]


def test_links_that_always_touch(cell: arm.Cell):
    """Home is free, and all samples are elsewhere."""
    only = {"l1": (2.4, 2.5), "l2": (2.4, 2.5)}
    rules = cell.learn_rules(samples=50, within=only)
    assert Counter(named(rules).values())["always"] > 0
    Q = cell.samples(50, within=only).rows(0, 50)
    check = cell.collision(rules=arm.Rules.everything())
    touching = (check.distances(Q) <= 0.0).all(axis=0)
    always = {pair for pair, reason in named(rules).items() if reason == "always"}
    assert always <= {p for p, t in zip(check.pairs, touching, strict=True) if t}


def test_the_same_seed_gives_the_same_rules(cell: arm.Cell, learned: arm.Rules):
    assert cell.learn_rules(samples=COUNT, seed=3) == learned
    again = cell.replace(rules=learned)
    assert again.learn_rules(samples=COUNT, seed=3) == learned


def test_a_margin_leaves_out_less(cell: arm.Cell, learned: arm.Rules):
    wide = cell.learn_rules(samples=COUNT, seed=3, margin=0.05)
    never = {
        name: {pair for pair, reason in named(rules).items() if reason == "never"}
        for name, rules in (("wide", wide), ("learned", learned))
    }
    assert never["wide"] < never["learned"]


def test_what_somebody_said_of_a_pair_stays(cell: arm.Cell):
    rules = cell.rules.exclude("robot/base", "robot/l3", reason="shielded")
    rules = rules.include("robot/base", "robot/l1").exclude("robot/l*", "gone/*")
    rules = rules.exclude("robot/*", "robot/lid", reason="a cable")
    found = cell.replace(rules=rules).learn_rules(samples=20)
    pairs = cell.pairs(cell.home, rules=found)
    assert pairs.why("base", "l3").reason == "shielded"
    assert pairs.why("base", "lid").reason == "a cable"
    assert pairs.why("base", "l1").tested
    assert "gone/*" in found.sides


def test_files_keep_pairs_and_reasons(
    cell: arm.Cell, learned: arm.Rules, tmp_path: Path
):
    found = cell.replace(rules=learned)
    arm.save(found, tmp_path / "robot.cell.json")
    assert arm.load(tmp_path / "robot.cell.json") == found
    arm.save(found, tmp_path / "robot.urdf")
    arm.save(found, tmp_path / "robot.srdf")
    text = (tmp_path / "robot.srdf").read_text()
    words = Counter(named(learned).values())
    for word in ("adjacent", "default", "never"):
        assert text.count(f'reason="{word.title()}"') >= words[word]
    again = arm.load(tmp_path / "robot.urdf", srdf=tmp_path / "robot.srdf")
    pairs = again.pairs(again.home)
    assert pairs == found.pairs(found.home)
    for (a, b), reason in named(learned).items():
        assert pairs.why(a, b).reason == reason


@pytest.mark.parametrize("odd", ["*", "l*", "REGEXl."])
def test_names_that_look_like_patterns_mean_one_link(
    cell: arm.Cell, learned: arm.Rules, tmp_path: Path, odd: str
):
    robot = cell.manipulators[0]
    links = [
        link.replace(
            name=odd if link.name == "l1" else link.name,
            parent=odd if link.parent == "l1" else link.parent,
        )
        for link in robot.links
    ]
    renamed = cell.exchange(robot.replace(links=links))
    found = renamed.replace(rules=renamed.learn_rules(samples=COUNT, seed=3))
    usual = cell.pairs(cell.home, rules=learned)

    def old_names(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, ...]]:
        old = {f"robot/{odd}": "robot/l1"}
        return {tuple(sorted(old.get(name, name) for name in pair)) for pair in pairs}

    assert old_names(found.pairs(found.home)) == set(usual)
    arm.save(found, tmp_path / "robot.urdf")
    arm.save(found, tmp_path / "robot.srdf")
    again = arm.load(tmp_path / "robot.urdf", srdf=tmp_path / "robot.srdf")
    assert again.pairs(again.home) == found.pairs(found.home)


def test_pairs_of_two_manipulators():
    """A hand that is fixed to an arm counts; what can be moved elsewhere does not."""
    hand = arm.Manipulator(
        name="hand", links=[arm.Link(name="palm", collisions=[Sphere(radius=0.01)])]
    )
    part = arm.Manipulator(
        name="part", links=[arm.Link(name="body", collisions=[Sphere(radius=0.01)])]
    )
    far = arm.Pose.translation(0.0, 0.0, 5.0)
    cell = arm.Cell(
        manipulators=[arm_of(), hand, part],
        mounts=[
            arm.Mount(manipulator="robot", on="world"),
            arm.Mount(manipulator="hand", on="robot/l3"),
            arm.Mount(manipulator="part", pose=far, bolted=False),
        ],
    )
    found = named(cell.learn_rules(samples=100))
    assert any("hand/palm" in pair for pair in found)
    assert not any("part/body" in pair for pair in found)


def test_learned_pairs_of_two_manipulators_are_looked_at_again():
    """Few samples leave out too much, which more of them must put right."""
    hand = arm.Manipulator(
        name="hand", links=[arm.Link(name="palm", collisions=[Sphere(radius=0.3)])]
    )
    part = arm.Manipulator(
        name="part", links=[arm.Link(name="body", collisions=[Sphere(radius=0.3)])]
    )
    cell = arm.Cell(
        manipulators=[arm_of(), hand, part],
        mounts=[
            arm.Mount(manipulator="robot", on="world"),
            arm.Mount(manipulator="hand", on="robot/l3"),
            arm.Mount(manipulator="part", bolted=False),
        ],
    )
    rules = cell.rules.exclude("palm", "base", reason="never")
    rules = rules.exclude("body", "base", reason="never")
    found = cell.replace(rules=rules).learn_rules(samples=300)
    pairs = cell.pairs(cell.home, rules=found)
    assert pairs.why("hand/palm", "robot/base").tested
    assert not pairs.why("part/body", "robot/base").tested


def test_joints_that_turn_without_limits_take_one_turn(cell: arm.Cell):
    robot = cell.manipulators[0]
    free = [link.replace(limits=arm.Limits()) for link in robot.links]
    cell.exchange(robot.replace(links=free)).learn_rules(samples=10)
    slide = robot.links[-2].replace(joint=arm.joints.Prismatic(), limits=arm.Limits())
    slides = cell.exchange(robot.replace(links=[*robot.links[:-2], slide]))
    with pytest.raises(ModelError, match="within="):
        slides.learn_rules(samples=10)


def test_bad_input(cell: arm.Cell):
    with pytest.raises(SweepError, match="at least one"):
        cell.learn_rules(samples=0)
    with pytest.raises(SweepError, match="seed"):
        cell.learn_rules(seed=-1)
    with pytest.raises(UnknownName, match="elbow"):
        cell.learn_rules(within={"elbow": (0.0, 1.0)})
    with pytest.raises(ModelError, match="margin"):
        cell.learn_rules(margin=np.nan)
