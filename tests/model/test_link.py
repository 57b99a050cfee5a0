"""Links: which shapes touch, and what their shapes weigh."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.errors import ModelError
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.shapes import Box, HalfSpace, Mesh, Sphere
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

BALL = Sphere(radius=0.5, pose=Pose.translation(0.0, 0.0, 2.0))
LID = Box(size=(1.0, 1.0, 0.1))
MESH = Mesh(name="shell", file="shell.stl")


@pytest.mark.parametrize(
    ("visuals", "collisions", "touching"),
    [
        ((), (), ()),
        ((MESH,), (), ()),
        ((MESH, BALL), (), (BALL,)),
        ((BALL, LID), (LID,), (LID,)),
        ((BALL,), (MESH,), (MESH,)),
    ],
)
def test_primitives_that_are_drawn_touch_where_nothing_else_does(
    visuals, collisions, touching
):
    link = Link(name="a", visuals=visuals, collisions=collisions)
    assert link.collision_shapes == touching


def test_inertia_of_shapes_is_their_sum_about_the_primary_frame():
    link = Link(name="a", visuals=(BALL, LID), primary=Pose.translation(9.0, 0.0, 0.0))
    total = link.inertia_of_shapes(2.0)
    assert total == BALL.inertia(2.0) + LID.inertia(2.0)
    assert total.mass == pytest.approx(2.0 * (BALL.volume + LID.volume))
    assert Link(name="a").inertia_of_shapes(2.0) == SpatialInertia.zero()


def test_what_has_no_inertia_is_named():
    link = Link(name="a", collisions=(BALL, MESH))
    with pytest.raises(ModelError, match="Mesh 'shell' has no inertia without its tri"):
        link.inertia_of_shapes(1.0)
    with pytest.raises(ModelError, match="a half space is infinite"):
        Link(name="a", collisions=(HalfSpace(),)).inertia_of_shapes(1.0)


def test_total_inertia_of_a_manipulator():
    turn = Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 2.0, 3.0))
    lid = LID.inertia(3.0)
    arm = Manipulator(
        name="arm",
        links=(
            Link(name="base", inertia=BALL.inertia(1.0)),
            Link(name="tip", parent="base", inertia=lid, primary=turn),
            Link(name="bare", parent="base"),
        ),
    )
    far = Pose.translation(0.0, 0.0, 5.0)
    total = arm.total_inertia([IDENTITY, far, far])
    assert total.mass == pytest.approx(BALL.volume + 3.0 * LID.volume)
    expected = BALL.inertia(1.0) + lid.transformed(far @ turn)
    assert total.matrix() == pytest.approx(expected.matrix())
    # A rigid move of the whole moves the sum.
    moved = arm.total_inertia([turn, turn @ far, turn @ far])
    assert moved.matrix() == pytest.approx(total.transformed(turn).matrix())
    assert np.isfinite(moved.matrix()).all()
    with pytest.raises(
        ModelError, match=r"1 poses were given for the 3 links of 'arm'"
    ):
        arm.total_inertia([IDENTITY])
