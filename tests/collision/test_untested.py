"""Robots tested against themselves, pairs that touch at home, and what is not tested.

The expected pairs are written down by looking at the robot.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.formats import registry
from armillary.formats.diagnostic import Severity
from armillary.model.link_pattern import links_of
from armillary.shapes import Mesh, Sphere

SNAKE = ("base", "wall", "a", "lid", "b", "c", "head")
RIGID = {("base", "wall"), ("a", "lid")}
# Links that are rigid with each other count as one, but not with the base.
JOINED = {
    ("base", "a"),
    ("base", "lid"),
    ("a", "b"),
    ("lid", "b"),
    ("b", "c"),
    ("c", "head"),
}
TOUCHING = {("b", "head")}


def pair(a: str, b: str) -> tuple[str, str]:
    one, other = sorted((f"snake/{a}", f"snake/{b}"))
    return one, other


TESTED = {pair(*each) for each in combinations(SNAKE, 2)} - {
    pair(*each) for each in (*RIGID, *JOINED, *TOUCHING)
}


def link(name: str, radius: float) -> str:
    shape = f'<geometry><sphere radius="{radius}"/></geometry>'
    return f'<link name="{name}"><collision>{shape}</collision></link>'


def joint(parent: str, child: str, xyz: str, *, moves: bool = True) -> str:
    kind = "revolute" if moves else "fixed"
    limit = '<axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="1" velocity="1"/>'
    return (
        f'<joint name="to_{child}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}"/>{limit if moves else ""}</joint>'
    )


URDF = "".join(
    [
        '<robot name="snake">',
        *(link(name, 0.3 if name == "head" else 0.05) for name in SNAKE),
        '<link name="empty"/>',
        joint("base", "wall", "0 1 0", moves=False),
        joint("base", "a", "0.2 0 0"),
        joint("a", "lid", "0 0 0.6", moves=False),
        joint("a", "empty", "0.2 0 0"),
        joint("empty", "b", "0 0 0.001"),
        joint("b", "c", "0.2 0 0"),
        joint("c", "head", "0.1 0 0"),
        "</robot>",
    ]
)
"""Balls in a row; b is 0.3 from the centre of head, whose radius is that."""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "robot" / "snake.urdf"
    path.parent.mkdir()
    path.write_text(URDF)
    return path


@pytest.fixture
def snake(urdf: Path) -> arm.Cell:
    return arm.load(urdf)


def test_a_robot_whose_file_says_nothing_is_tested_against_itself(snake: arm.Cell):
    pairs = snake.pairs(snake.home)
    assert set(pairs) == TESTED
    reasons = {each: pairs.why(*pair(*each)).reason for each in (*JOINED, *TOUCHING)}
    assert {reasons[each] for each in JOINED} == {"adjacent"}
    assert {reasons[each] for each in TOUCHING} == {"default"}
    told = r"touch at home.*'snake/b' and 'snake/head'.*learn_rules\(\)"
    with pytest.warns(UserWarning, match=told):
        check = snake.collision()
    assert check.pairs == pairs
    assert snake.violations(snake.home) == ()
    # The second check of the cell is silent, and a curled robot touches.
    assert snake.collision(margin=0.01)([0.0, 3.0, 0.0, 3.0, 0.0])
    # Rules that name these pairs end the warning, as it says.
    snake.replace(rules=snake.learn_rules(samples=10)).collision()


def test_pairs_that_touch_at_home_can_be_included_by_name(snake: arm.Cell):
    rules = snake.rules.include("snake/b", "snake/head")
    assert set(snake.pairs(snake.home, rules=rules)) == TESTED | {pair("b", "head")}
    with pytest.raises(ModelError, match="include them by name"):
        snake.rules.include("snake/b", "snake/head", where="home")


def test_home_is_that_of_the_cell(snake: arm.Cell):
    """A cell whose home is bent elsewhere has other pairs that touch there."""
    robot = snake.manipulators[0]
    bent = arm.Posture(name="bent", joints=robot.joint_names, q=(0, 0, 0, 3.0, 0))
    moved = robot.replace(postures=[bent], home="bent")
    cell = snake.exchange(moved)
    touching = {
        each
        for each in set(combinations(sorted(f"snake/{k}" for k in SNAKE), 2))
        if cell.pairs(cell.home).why(*each).reason == "default"
    }
    every = cell.replace(rules=arm.Rules.everything()).collision()
    near = {c.links for c in every.contacts(cell.home.q, within=1e-6)}
    near = {tuple(sorted(each)) for each in near}
    assert touching == near - {pair(*each) for each in (*RIGID, *JOINED)}
    assert touching != TOUCHING


def test_it_can_be_turned_off_and_on(urdf: Path, tmp_path: Path):
    off = arm.load(urdf, self_collision=False)
    assert list(off.pairs(off.home)) == []
    with warnings.catch_warnings():  # it was asked for, so nothing is said
        warnings.simplefilter("error")
        assert not off.collision()(np.zeros(5))
    assert off.violations(off.home) == ()
    native = tmp_path / "off.cell.json"
    arm.save(off, native)
    assert arm.load(native) == off
    on = arm.load(native, self_collision=True)
    assert set(on.pairs(on.home)) == TESTED
    assert arm.load(urdf, self_collision=np.False_) == off  # pyright: ignore
    for wrong in (0, 1, "no", np.zeros(2)):
        with pytest.raises(ModelError, match="takes True, False or None"):
            arm.load(urdf, self_collision=wrong)  # pyright: ignore


def test_native_files_and_srdf_keep_the_pairs(snake: arm.Cell, tmp_path: Path):
    arm.save(snake, tmp_path / "snake.cell.json")
    again = arm.load(tmp_path / "snake.cell.json")
    assert again == snake
    assert set(again.pairs(again.home)) == TESTED
    arm.save(snake, tmp_path / "out.urdf")
    arm.save(snake, tmp_path / "out.srdf")
    both = arm.load(tmp_path / "out.urdf", srdf=tmp_path / "out.srdf")
    pairs = both.pairs(both.home)
    assert set(pairs) == TESTED
    assert pairs.why("b", "head").reason == "default"
    assert not both.rules.needs_home


def test_an_srdf_decides_even_where_it_disables_one_pair(urdf: Path, tmp_path: Path):
    path = tmp_path / "one.srdf"
    path.write_text(
        '<robot name="snake">'
        '<disable_collisions link1="a" link2="c" reason="Never"/></robot>'
    )
    cell = arm.load(urdf, srdf=path)
    every = {pair(*each) for each in combinations(SNAKE, 2)}
    rigid = {pair(*each) for each in RIGID}
    assert set(cell.pairs(cell.home)) == every - rigid - {pair("a", "c")}
    off = arm.load(urdf, srdf=path, self_collision=False)
    assert list(off.pairs(off.home)) == []


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("snake.srdf", "snake.srdf"),
        ("snake_moveit.srdf", "snake_moveit.srdf"),
        ("../srdf/snake.srdf", "srdf"),
        ("config/other.srdf", "other.srdf"),
    ],
)
def test_an_srdf_that_lies_beside_is_offered_not_read(
    urdf: Path, place: str, name: str
):
    beside = urdf.parent / place
    beside.parent.mkdir(exist_ok=True)
    beside.write_text("never read")
    cell, report = registry.read(urdf)
    assert set(cell_pairs(cell)) == TESTED
    (note,) = [d for d in report.diagnostics if d.code == "self-collision"]
    assert note.severity is Severity.NOTE
    assert "says nothing of collisions" in note.message
    assert name in note.hint
    assert "load with srdf=" in note.hint


def test_of_several_the_one_with_the_name_of_the_robot_is_offered(urdf: Path):
    path = urdf.rename(urdf.with_name("model.urdf"))
    folder = urdf.parent.parent / "srdf"
    folder.mkdir()
    for name in ("other", "snake", "snake_gripper"):
        (folder / f"{name}.srdf").write_text("never read")
    _, report = registry.read(path)
    (note,) = [d for d in report.diagnostics if d.code == "self-collision"]
    assert f"{folder / 'snake.srdf'} lies beside it" in note.hint


def cell_pairs(workcell: object) -> list[tuple[str, str]]:
    cell = arm.Cell.of(workcell)  # type: ignore[arg-type]
    return list(cell.pairs(cell.home))


def test_without_an_srdf_beside_none_is_named(urdf: Path):
    _, report = registry.read(urdf)
    (note,) = [d for d in report.diagnostics if d.code == "self-collision"]
    assert "lies beside" not in note.hint


def test_nothing_is_read_or_compared_when_loading(
    urdf: Path, monkeypatch: pytest.MonkeyPatch
):
    mesh = '<mesh filename="nowhere.stl"/>'
    urdf.write_text(URDF.replace('<sphere radius="0.3"/>', mesh))

    def refuse(*_: object) -> None:
        raise AssertionError("shapes are looked at")

    with monkeypatch.context() as patch:
        patch.setattr("armillary.collision.pairs._touching_at_home", refuse)
        cell = arm.load(urdf)
    # What cannot be read is not left out: the check says why it cannot be made.
    assert pair("b", "head") in cell.pairs(cell.home)
    with pytest.raises(ModelError, match=r"nowhere\.stl'\. Or give the link"):
        cell.collision()


def ball(name: str, **more: object) -> arm.Link:
    return arm.Link(name=name, collisions=[Sphere(radius=0.05)], **more)  # type: ignore[arg-type]


def built(name: str = "robot", count: int = 4) -> arm.Manipulator:
    links = [ball("l0")]
    for k in range(1, count):
        turn = arm.joints.Revolute(
            axis=(0, 1, 0), precursor=arm.Pose.translation(0.2, 0, 0)
        )
        links.append(ball(f"l{k}", parent=f"l{k - 1}", joint=turn))
    return arm.Manipulator(name=name, links=links)


def test_a_robot_that_nobody_tests_is_named_once():
    cell = arm.Cell(manipulators=[built(), built("other")])
    with pytest.warns(UserWarning) as caught:
        cell.collision()
        cell.collision(margin=0.1)
    texts = [str(each.message) for each in caught]
    assert len(texts) == 1
    assert "no rule says so: 'robot', 'other'." in texts[0]
    assert "include_self('robot')" in texts[0]
    assert caught[0].filename == __file__
    kinds = [(each.kind, each.subject) for each in cell.violations(cell.home)]
    assert ("untested", "robot") in kinds
    assert ("untested", "other") in kinds


@pytest.mark.parametrize(
    "rules",
    [
        arm.Rules().include_self("robot"),
        arm.Rules().include("robot/l0", "robot/l3"),
        arm.Rules().exclude("robot/*", "robot/*"),
        arm.Rules().exclude("*", "*"),
        arm.Rules.nothing(),
    ],
)
def test_who_says_what_is_tested_is_not_warned(rules: arm.Rules):
    cell = arm.Cell(manipulators=[built()], rules=rules)
    cell.collision()  # warnings are errors
    assert [e for e in cell.violations(cell.home) if e.kind == "untested"] == []


def test_robots_that_cannot_meet_themselves_are_not_named():
    two = built("two", 2)
    rigid = arm.Manipulator(
        name="rigid",
        links=[ball(n, **({"parent": "x"} if n != "x" else {})) for n in "xyz"],
    )
    cell = arm.Cell(manipulators=[two, rigid])
    cell.collision()
    assert cell.replace(manipulators=[two]).violations(cell.home) == ()


@pytest.mark.parametrize("name", ["a*b", "REGEX", "REGEX(", "r" * 2000, "x.y+z"])
def test_names_that_look_like_patterns(name: str):
    robot = built(name)
    pattern = links_of(name)
    cell = arm.Cell(manipulators=[robot, built("acb")])
    rules = cell.rules.exclude("acb/*", "acb/*").include_self(name)
    names = {a.rpartition("/")[0] for a, _ in cell.pairs(cell.home, rules=rules)}
    assert name in names
    own = [
        each
        for each in cell.pairs(cell.home, rules=rules)
        if each[0].startswith(f"{name}/") and each[1].startswith(f"{name}/")
    ]
    assert len(own) == 3  # of four links in a row
    assert pattern in rules.without_self("acb").sides
    assert rules.without(name).rules == cell.rules.exclude("acb/*", "acb/*").rules


def test_tables_in_the_file_of_a_robot_are_tested(snake: arm.Cell):
    """What is rigid with the base shares a joint in name only."""
    assert pair("a", "wall") in snake.pairs(snake.home)


def test_meshes_without_files_stay_tested(snake: arm.Cell):
    robot = snake.manipulators[0]
    links = [
        each.replace(collisions=[Mesh(file="nowhere.stl")])
        if each.name == "head"
        else each
        for each in robot.links
    ]
    cell = snake.exchange(robot.replace(links=links))
    assert set(cell.pairs(cell.home)) == TESTED | {pair("b", "head")}


def test_the_viewer_names_what_is_not_tested():
    pytest.importorskip("viser")
    from armillary.collision.check import check_of
    from armillary.view.panel.contacts import _untested

    cell = arm.Cell(manipulators=[built()])
    first, second = _untested(check_of(cell.workcell), None)
    assert first.startswith("No pair of links is tested")
    assert "robot against itself" in second
    tested = cell.replace(rules=cell.rules.include_self("robot"))
    assert list(_untested(check_of(tested.workcell), None)) == []
