from __future__ import annotations

import pickle

import pytest

from armillary.errors import ModelError, UnknownName
from armillary.model.coupling import Coupling
from armillary.model.group import Group
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator

Z = (0.0, 0.0, 1.0)


def link(name: str, parent: str, **given: object) -> Link:
    return Link(
        name=name,
        parent=parent,
        joint=Revolute(axis=Z),
        joint_name=f"j_{name}",
        **given,
    )  # type: ignore[arg-type]


LINKS = (
    Link(name="base"),
    link("torso", "base"),
    link("left", "torso"),
    link("left_hand", "left"),
    link("right", "torso"),
    Link(name="right_flange", parent="right", joint_name="weld"),
    link("right_hand", "right_flange"),
    link("thumb", "right_hand", coupling=Coupling(of="j_right_hand")),
)


def robot(*groups: Group) -> Manipulator:
    return Manipulator(name="robot", links=LINKS, groups=groups)


@pytest.mark.parametrize(
    ("group", "joints"),
    [
        (Group(name="g"), ()),
        (Group(name="g", joints=("j_left", "j_torso")), ("j_torso", "j_left")),
        (Group(name="g", links=("left", "base")), ("j_left",)),
        (Group(name="g", joints=("weld",)), ()),
        (Group(name="g", links=("thumb",)), ()),
        (Group(name="g", chains=(("base", "left"),)), ("j_torso", "j_left")),
        (Group(name="g", chains=(("torso", "thumb"),)), ("j_right", "j_right_hand")),
        (
            Group(name="g", chains=(("left_hand", "right_flange"),)),
            ("j_left", "j_left_hand", "j_right"),
        ),
        (Group(name="g", chains=(("left", "left"),)), ()),
    ],
)
def test_a_group_has_the_joints_that_it_names(group: Group, joints: tuple[str, ...]):
    assert robot(group).group_joints("g") == joints


def test_groups_hold_groups():
    arms = (
        Group(name="all", groups=("both", "torso")),
        Group(name="both", groups=("left", "right")),
        Group(name="left", chains=(("torso", "left_hand"),)),
        Group(name="right", chains=(("torso", "thumb"),), groups=("left",)),
        Group(name="torso", links=("torso",)),
    )
    made = robot(*arms)
    assert made.group_joints("all") == made.joint_names
    assert set(made.group_joints("right")) >= set(made.group_joints("left"))
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_missing_group_is_reported():
    with pytest.raises(UnknownName, match=r"Did you mean 'left'\?"):
        robot(Group(name="left")).group_joints("lefft")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([Group(name="a"), Group(name="a")], "Two groups are called 'a'"),
        ([Group(name="a", joints=("left",))], "names the joint 'left'"),
        ([Group(name="a", links=("j_left",))], "names the link 'j_left'"),
        ([Group(name="a", chains=(("base", "nowhere"),))], "names the link 'nowhere'"),
        ([Group(name="a", groups=("b",))], "names the group 'b'"),
        ([Group(name="a", groups=("a",))], "in a circle: 'a' in 'a'"),
        (
            [Group(name="a", groups=("b",)), Group(name="b", groups=("a",))],
            "Groups hold each other in a circle",
        ),
    ],
)
def test_faults_are_reported(groups: list[Group], words: str):
    with pytest.raises(ModelError, match=words):
        robot(*groups)


def test_a_group_needs_a_name():
    with pytest.raises(ModelError, match="no name"):
        Group(name="")


def test_many_groups_take_no_time():
    chain = [Group(name=f"g{k}", groups=(f"g{k + 1}",)) for k in range(5000)]
    made = robot(*chain, Group(name="g5000", links=("left",)))
    assert made.group_joints("g0") == ("j_left",)
