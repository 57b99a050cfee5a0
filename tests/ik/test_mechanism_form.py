"""Closed forms that mechanisms give for themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from arms import ScaraForward

ANGLE, LENGTH = arm.joints.AngleCoordinate(), arm.joints.LengthCoordinate()
TURN = arm.Limits(lower=-2.8, upper=2.8)
NAMES = ("J1", "J2", "J3", "J4")


class Scara(ScaraForward):
    def inverse(self, pose):
        x, y, z = pose.position
        a, b = self.upper, self.fore
        c = (x * x + y * y - a * a - b * b) / (2 * a * b)
        stretched = np.maximum(-1.0, np.minimum(1.0, c))
        yaw = np.arctan2(pose.rotation[1][0], pose.rotation[0][0])
        found = []
        for sign in (1, -1):
            s = sign * np.sqrt(1 - stretched**2)
            q1 = np.arctan2(y, x) - np.arctan2(b * s, a + b * stretched)
            q2 = np.arctan2(s, stretched)
            row = [q1, q2, z, yaw - q1 - q2]
            found.append(row if abs(c) <= 1 else arm.OutOfReach(row))
        return found


def scara(name: str = "scara", *, track: bool = False) -> arm.Manipulator:
    tool = arm.Frame(name="tool", pose=arm.Pose.from_rpy(0.1, 0.2, 0.3, (0, 0.1, 0.2)))
    links = [arm.Link(name="floor")]
    if track:
        slide = arm.joints.Prismatic(axis=(1, 0, 0))
        limits = arm.Limits(lower=0, upper=3)
        links.append(
            arm.Link(
                name="base",
                parent="floor",
                joint=slide,
                joint_name="track",
                limits=limits,
            )
        )
    else:
        links.append(arm.Link(name="base", parent="floor"))
    for joint in NAMES:
        kind = LENGTH if joint == "J3" else ANGLE
        links.append(arm.Link(name=joint, parent="base", joint=kind, limits=TURN))
    mechanism = Scara(upper=0.4, fore=0.3, precursor=arm.Pose.translation(0, 0, 0.5))
    links.append(
        arm.Link(
            name="flange",
            parent="base",
            joint=mechanism,
            inputs=NAMES[:],
            frames=[tool],
        )
    )
    return arm.Manipulator(name=name, links=links)


Q = np.random.default_rng(0).uniform(-1.3, 1.3, (50, 4))


@pytest.mark.parametrize("frame", ["flange", "tool"])
def test_all_branches_of_any_frame_on_it(frame):
    cell = arm.Cell(manipulators=[scara()])
    ik = cell.ik(frame)
    assert ik.closed.compiled
    assert ik.closed.branches == (("left",), ("right",))
    X = cell.fk(frame)(Q)
    found = ik.all(X)
    assert found.success.all()
    assert_allclose(cell.fk(frame)(found.q), X[:, None].repeat(2, axis=1), atol=1e-12)
    assert_allclose(ik(X, near=Q).q, Q, atol=1e-9)


def test_out_of_reach_keeps_the_nearest_positions():
    cell = arm.Cell(manipulators=[scara()])
    found = cell.ik("flange").all(arm.Pose.translation(2, 0, 0.6).matrix())
    assert (found.reason == arm.Reason.OUT_OF_REACH).all()
    assert_allclose(found.q, [[0, 0, 0.1, 0]] * 2, atol=1e-7)
    best = cell.ik("flange")(arm.Pose.translation(2, 0, 0.6).matrix())
    assert best.reason == arm.Reason.OUT_OF_REACH
    assert_allclose(best.q, [0, 0, 0.1, 0], atol=1e-7)


def test_on_a_track():
    cell = arm.Cell(manipulators=[scara(track=True)])
    whole = cell.ik("tool")  # the track moves, too: nothing is known in closed form
    X = cell.fk("tool")(np.column_stack([np.full(50, 0.5), Q]))
    assert whole.closed is None
    assert whole(X[:5]).success.all()
    base = cell.fk("base")(np.r_[0.5, Q[0]])
    there = cell.ik("tool", joints=NAMES, relative_to="base")
    relative = np.linalg.inv(base) @ X
    assert there.closed is not None
    assert_allclose(there(relative, near=Q).q, Q, atol=1e-9)
    state = arm.State(q=[0.5, 0, 0, 0, 0])
    moved = cell.ik("tool", joints=NAMES, state=state)
    assert_allclose(moved(X, near=Q).q, Q, atol=1e-9)


def test_other_arms_stay_at_home():
    cell = arm.Cell(manipulators=[scara("a"), scara("b")])
    X = cell.fk("b/tool")(np.column_stack([Q, Q]))
    found = cell.ik("b/tool")(X, near=np.column_stack([Q * 0, Q]))
    assert_allclose(found.q, np.column_stack([Q * 0, Q]), atol=1e-9)


def test_only_part_of_it_is_chosen():
    cell = arm.Cell(manipulators=[scara()])
    part = cell.ik("flange", joints=["J1", "J2"], rotation="", position="xy")
    assert part.closed is None
    X = cell.fk("flange")(Q * [1, 1, 0, 0])
    assert part(X).success.all()
