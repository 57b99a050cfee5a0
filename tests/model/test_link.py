"""Links: which shapes touch, and what their shapes weigh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from armillary.errors import ModelError
from armillary.formats.mesh.files import MeshFiles
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.geometry.triangles import Triangles
from armillary.model.joints import Prismatic, Revolute
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
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


class OneMesh:
    """Reads the same triangles from each file."""

    def __init__(self, triangles: Triangles | None) -> None:
        self.found = triangles

    def triangles(self, mesh: Mesh) -> Triangles | None:
        return self.found

    def parts(self, mesh: Mesh) -> None:
        raise NotImplementedError

    def hull(self, mesh: Mesh) -> None:
        raise NotImplementedError


def test_inertia_of_meshes_is_that_of_their_triangles():
    pose = Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 2.0, 3.0))
    link = Link(name="a", collisions=(BALL, Mesh(file="lid.stl", pose=pose)))
    total = link.inertia_of_shapes(3.0, meshes=OneMesh(LID.triangles()))
    expected = BALL.inertia(3.0) + Box(size=LID.size, pose=pose).inertia(3.0)
    assert total.matrix() == pytest.approx(expected.matrix())


@pytest.mark.peers
def test_trimesh_agrees_on_the_inertia_of_a_mesh_in_a_file(tmp_path):
    trimesh: Any = pytest.importorskip("trimesh")
    ring = trimesh.creation.torus(0.5, 0.1)
    ring.apply_translation((0.3, -0.2, 0.7))
    ring.export(tmp_path / "ring.stl")
    meshes = MeshFiles(tmp_path)
    link = Link(name="a", collisions=(Mesh(file="ring.stl"),))
    body = link.inertia_of_shapes(7.0, meshes=meshes)
    ring.density = 7.0
    assert body.mass == pytest.approx(ring.mass, rel=1e-5)
    assert body.centre() == pytest.approx(tuple(ring.center_mass), rel=1e-5)
    assert np.array(body.about_centre()) == pytest.approx(ring.moment_inertia, abs=1e-5)


def test_what_has_no_inertia_is_named():
    link = Link(name="a", collisions=(BALL, MESH))
    for meshes in (None, OneMesh(None)):
        with pytest.raises(ModelError, match="Mesh 'shell' of link 'a' has no inertia"):
            link.inertia_of_shapes(1.0, meshes=meshes)
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


def test_a_scaled_link_keeps_its_mass():
    body = SpatialInertia.from_centre(2.0, (0.0, 0.0, 0.5), np.eye(3))
    link = Link(
        name="slide",
        parent="base",
        joint=Prismatic(axis=(0, 0, 1), precursor=Pose.translation(1.0, 0.0, 0.0)),
        limits=Limits(lower=-1.0, velocity=2.0, acceleration=3.0, effort=4.0),
        coupling=Coupling(of="other", multiplier=2.0, offset=0.5),
        inertia=body,
        collisions=(BALL,),
        frames=(Frame(name="tip", pose=Pose.translation(0.0, 1.0, 0.0)),),
    )
    twice = link.scaled(2.0)
    assert twice.joint.precursor.position == (2.0, 0.0, 0.0)
    assert twice.limits == Limits(
        lower=-2.0, velocity=4.0, acceleration=6.0, effort=4.0
    )
    assert twice.coupling == Coupling(of="other", multiplier=2.0, offset=1.0)
    assert twice.frames[0].pose.position == (0.0, 2.0, 0.0)
    assert twice.collisions == (BALL.scaled(2.0),)
    # Twice as far away from the origin is twice as far from each other.
    expected = SpatialInertia.from_centre(2.0, (0.0, 0.0, 1.0), 4.0 * np.eye(3))
    assert twice.inertia == expected
    assert not link.approx_equal(twice, 0.5)
    assert link.approx_equal(twice, 100.0)


def test_a_scaled_manipulator_scales_couplings_and_postures():
    turn = Link(name="turn", parent="base", joint=Revolute())
    slide = Link(
        name="slide",
        parent="turn",
        joint=Prismatic(),
        coupling=Coupling(of="turn", multiplier=0.1, offset=0.2),
    )
    free = Link(name="free", parent="turn", joint=Prismatic())
    back = Link(
        name="back",
        parent="turn",
        joint=Revolute(),
        coupling=Coupling(of="free", multiplier=6.0),
    )
    arm = Manipulator(
        name="arm",
        links=(Link(name="base"), turn, slide, free, back),
        postures=(Posture(name="out", joints=("turn", "free"), q=(1.0, 0.5)),),
    )
    twice = arm.scaled(2.0)
    assert twice.link("slide").coupling == Coupling(
        of="turn", multiplier=0.2, offset=0.4
    )
    assert twice.link("back").coupling == Coupling(of="free", multiplier=3.0)
    assert twice.posture("out").q == (1.0, 1.0)
    for factor in (0.0, -1.0, math.inf):
        with pytest.raises(ModelError, match="scaled by a number above 0"):
            arm.scaled(factor)


@pytest.mark.parametrize(("lower", "upper"), [(-180, 180), (0.0, 90.0), (-360, 0)])
def test_limits_that_look_like_degrees_are_warned_of(lower, upper) -> None:
    limits = Limits(lower=lower, upper=upper)
    turning, sliding = Revolute(axis=(0, 0, 1)), Prismatic(axis=(0, 0, 1))
    with pytest.warns(UserWarning, match=r"'elbow'.*math\.radians") as caught:
        Link(name="elbow", parent="base", joint=turning, limits=limits)
    assert caught[0].filename == __file__
    Link(name="slide", parent="base", joint=sliding, limits=limits)


@pytest.mark.parametrize("end", [2 * math.pi, 4 * math.pi, 1e4, math.inf])
def test_limits_in_radians_are_not_warned_of(end: float) -> None:
    limits = Limits(lower=-end, upper=end)
    Link(name="a", parent="b", joint=Revolute(axis=(0, 0, 1)), limits=limits)


@pytest.mark.parametrize("name", ["velocity", "acceleration", "effort"])
def test_limits_of_rates_and_forces_are_not_negative(name: str):
    assert getattr(Limits(**{name: 0.0}), name) == 0.0
    with pytest.raises(ModelError, match=rf"The limit '{name}' is -1e-09; it cannot"):
        Limits(**{name: -1e-9})
    with pytest.raises(ModelError, match=f"The limit '{name}' is NaN"):
        Limits(**{name: math.nan})
