"""`armillary info`: the tree and the joints, as a person reads them."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

import armillary as arm
from armillary.cell.tree_text import DEEPEST_INDENT, tree_rows


def test_info_is_written_down(run, file: str, golden: Callable[[str, str], None]):
    result = run("info", file)
    assert result.code == 0, result.err
    golden("info.txt", result.out)


def test_degrees(run, file: str):
    lines = run("info", file, "--degrees").out.splitlines()
    rows = {line.split()[1]: line.split()[2:] for line in lines[-3:]}
    assert rows["gantry/cart"] == ["m", "0.5", "2", "1.5", "80"]
    assert rows["hand/finger"] == ["deg", "-180", "180", "-", "-"]
    assert rows["hand/wheel"] == ["deg", "-", "-", "-", "-"]


def test_followers_narrow_limits():
    def finger(name: str, **more: object) -> arm.Link:
        joint = arm.joints.Revolute()
        return arm.Link(name=name, parent="palm", joint=joint, **more)  # type: ignore[arg-type]

    limits = arm.Limits(lower=-1, upper=1)
    half = arm.Coupling(of="a", multiplier=2.0)
    hand = arm.Manipulator(
        name="hand",
        links=[
            arm.Link(name="palm"),
            finger("a", limits=limits),
            finger("b", limits=limits, coupling=half),
        ],
    )
    from armillary.cli.info import _joint_rows

    (row,) = _joint_rows(arm.Cell(manipulators=[hand]), in_degrees=False)
    assert row[3:5] == ("-0.5", "0.5")


def heavy() -> arm.Cell:
    """An arm with masses and drives, and a part without a known mass."""
    ball = arm.SpatialInertia.from_centre(2.0, (0, 0, 0.5), np.diag([0.1, 0.2, 0.3]))
    drive = arm.JointDynamics(
        motor_inertia=2e-4, gear_ratio=-100.0, damping=0.5, friction=3.0
    )
    spring = arm.JointDynamics(stiffness=7.0, rest=0.25)
    shoulder = arm.Link(
        name="upper",
        parent="base",
        joint=arm.joints.Revolute(),
        joint_name="shoulder",
        inertia=ball,
        dynamics=drive,
    )
    follower = arm.Link(
        name="counterweight",
        parent="base",
        joint=arm.joints.Prismatic(),
        coupling=arm.Coupling(of="shoulder"),
        inertia=ball.scaled(2.0),
        dynamics=spring,
    )
    links = [arm.Link(name="base"), shoulder, follower]
    robot = arm.Manipulator(name="arm", links=links)
    part = arm.Manipulator(name="part", links=[arm.Link(name="box")])
    return arm.Cell(name="lab", manipulators=[robot, part])


def test_masses_and_dynamics_are_written_down(
    run, tmp_path, monkeypatch, golden: Callable[[str, str], None]
):
    monkeypatch.chdir(tmp_path)
    arm.save(heavy(), "heavy.cell.json")
    result = run("info", "heavy.cell.json", "--masses")
    assert result.code == 0, result.err
    golden("info_masses.txt", result.out)
    short = run("info", "heavy.cell.json").out
    assert result.out.startswith(short)
    assert "I1" not in short


def test_masses_are_those_of_the_links(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = arm.example("two_arms_positioner")
    arm.save(cell, "cell.cell.json")
    rows = [line.split() for line in run("info", "cell.cell.json").out.splitlines()]
    total = sum(
        link.inertia.mass for link in cell.workcell.links if link.inertia is not None
    )
    assert ["(all)", f"{total:g}", "none"] in rows


def test_an_empty_cell(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(arm.Cell(name="void"), "void.cell.json")
    result = run("info", "void.cell.json")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0] == "void: 0 manipulators, 0 links, 0 joints"


def test_names_cannot_write_to_the_terminal(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad = "\033[2J"
    body = arm.Manipulator(name="body", links=[arm.Link(name=bad)])
    arm.save(arm.Cell(name=bad, manipulators=[body]), "bad.cell.json")
    result = run("info", "bad.cell.json")
    assert result.code == 0, result.err
    assert "\033" not in result.out
    assert result.out.count(r"\x1b[2J") == 2


def chain(count: int) -> arm.Cell:
    links = [arm.Link(name="0")]
    links += [arm.Link(name=str(k), parent=str(k - 1)) for k in range(1, count)]
    return arm.Cell(manipulators=[arm.Manipulator(name="chain", links=links)])


def test_a_long_chain_stays_narrow():
    rows = list(tree_rows(chain(20_000).workcell))
    assert len(rows) == 20_001
    assert max(len(row[0]) for row in rows) < 4 * DEEPEST_INDENT
    assert rows[-1][0] == "level 20000: 19999"


def test_every_frame_stands_once_below_its_parent(cell: arm.Cell):
    rows = [row[0] for row in tree_rows(cell.workcell)]
    names = [row.rpartition(" ")[2].rpartition("/")[2] for row in rows]
    expected = [name.rpartition("/")[2] for name in cell.frame_names]
    assert sorted(names) == sorted(expected)

    def indent(name: str) -> int:
        return rows[names.index(name)].rfind(" ")

    assert indent("rail") < indent("cart") < indent("plate") < indent("palm")
    assert indent("finger") == indent("thumb") == indent("wheel")
    assert names.index("plate") < names.index("palm") < names.index("finger")


def test_two_arms_and_a_bare_name_that_looks_qualified():
    table = arm.Manipulator(name="table", links=[arm.Link(name="a/b")])
    left = arm.Manipulator(name="left", links=[arm.Link(name="base")])
    right = arm.Manipulator(name="right", links=[arm.Link(name="base")])
    cell = arm.Cell(
        manipulators=[table, left, right],
        mounts=[
            arm.Mount(manipulator="left", on="a/b"),
            arm.Mount(manipulator="right", on="table/a/b"),
        ],
    )
    assert [row[0] for row in tree_rows(cell.workcell)] == [
        "world",
        "└─ table/a/b",
        "   ├─ left/base",
        "   └─ right/base",
    ]


def test_json(run, file: str, cell: arm.Cell):
    found = json.loads(run("info", file, "--json").out)
    assert found["manipulators"] == ["gantry", "hand"]
    cart, finger, wheel = found["joints"]
    assert [each["q"] for each in (cart, finger, wheel)] == [0, 1, 2]
    assert (cart["unit"], cart["lower"], cart["effort"]) == ("m", 0.5, 80.0)
    assert (wheel["lower"], wheel["upper"]) == (None, None)
    assert {each["mass"] for each in found["links"]} == {None}
