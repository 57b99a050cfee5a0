"""The frame that people mean: the tool, not what cannot move."""

from __future__ import annotations

import pytest

import armillary as arm
from armillary.model.end_effectors import default_frame, frames_by_use, last_link


def manipulator(*rows: str) -> arm.Manipulator:
    """Links given as `name on parent`, or `name by parent` if a joint moves it."""
    links = []
    for row in rows:
        name, *rest = row.split()
        parent = rest[1] if rest else None
        joint = arm.joints.Revolute() if "by" in rest else arm.joints.Fixed()
        links.append(
            arm.Link(name=name, parent=parent, joint=joint)
            if parent
            else arm.Link(name=name)
        )
    return arm.Manipulator(name="m", links=links)


ARM = "root", "one by root", "two by one", "three by two"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), "three"),
        (("base on root",), "three"),  # it cannot move
        (("tool0 on root",), "three"),  # nor can this, whatever its name
        (("camera on one", "lens on camera"), "three"),
        (("flange on three", "tool0 on flange", "mark on flange"), "tool0"),
        (("hand on three", "finger by hand", "thumb by hand"), "thumb"),
        (("hand on three", "finger by hand", "hand_tcp on hand"), "hand_tcp"),
        (("ee_link on three", "knee_link by three"), "ee_link"),
        (("knee_link by two", "toolbox by two"), "toolbox"),  # as many joints
        (("Flange on three", "sensor on three"), "Flange"),
    ],
)
def test_the_tool_comes_first(more: tuple[str, ...], expected: str) -> None:
    given = manipulator(*ARM, *more)
    cell = arm.Cell(manipulators=[given]).workcell
    found = frames_by_use(cell)
    assert found[0] == last_link(given) == f"m/{expected}"
    links = {f"m/{link.name}" for link in given.links}
    assert set(found) == links - {"m/root"}
    assert len(found) == len(links) - 1


def test_end_effectors_come_before_tools() -> None:
    tip = arm.Frame(name="tip", end_effector=True)
    given = manipulator(*ARM, "tool0 on three")
    links = [
        link.replace(frames=[tip]) if link.name == "two" else link
        for link in given.links
    ]
    cell = arm.Cell(manipulators=[given.replace(links=links)]).workcell
    assert frames_by_use(cell)[:2] == ["m/tip", "m/tool0"]


def test_the_default_is_the_first_by_use() -> None:
    arm_ = manipulator(*ARM, "tool0 on three")
    table = manipulator("leg", "top on leg").replace(name="table")
    for parts in ([arm_, table], [table, arm_]):
        assert default_frame(arm.Cell(manipulators=parts).workcell) == "m/tool0"


def test_the_default_without_joints() -> None:
    """The first end effector, else the last link of the last manipulator."""
    table = manipulator("leg", "top on leg").replace(name="table")
    pole = manipulator("foot", "tip on foot")
    parts = [table, pole]
    assert default_frame(arm.Cell(manipulators=parts).workcell) == "m/tip"
    links = [
        link.replace(frames=[arm.Frame(name="mark", end_effector=True)])
        for link in table.links
        if link.name == "leg"
    ]
    parts[0] = arm.Manipulator(name="table", links=links)
    assert default_frame(arm.Cell(manipulators=parts).workcell) == "table/mark"


def test_without_joints_it_is_the_last_link() -> None:
    assert last_link(manipulator("root", "a on root", "b on a")) == "m/b"
    assert last_link(manipulator("root")) == "m/root"
