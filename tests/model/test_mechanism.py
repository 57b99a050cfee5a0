"""Mechanisms: links whose poses are formulas of several joints' coordinates."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from armillary.errors import JointError, ModelError
from armillary.testing import check_joint
from armillary.trace.functions import atan2
from arms import ScaraForward


class Scara(ScaraForward):
    def inverse(self, pose):
        x, y, z = pose.position
        a, b = self.upper, self.fore
        c = (x * x + y * y - a * a - b * b) / (2 * a * b)
        yaw = atan2(pose.rotation[1][0], pose.rotation[0][0])
        found = []
        for sign in (1, -1):
            s = sign * np.sqrt(1 - c * c)
            q1, q2 = atan2(y, x) - atan2(b * s, a + b * c), atan2(s, c)
            found.append([q1, q2, z, yaw - q1 - q2])
        return found


NAMES = ("J1", "J2", "J3", "J4")


def joints(parent: str = "base") -> list[arm.Link]:
    limits = arm.Limits(lower=-2.8, upper=2.8, velocity=3.0)
    return [
        arm.Link(
            name=name,
            parent=parent,
            joint=arm.joints.LengthCoordinate()
            if name == "J3"
            else arm.joints.AngleCoordinate(),
            limits=limits,
        )
        for name in NAMES
    ]


def scara(**changes: object) -> arm.Manipulator:
    flange = arm.Link(
        name="flange",
        parent="base",
        joint=Scara(upper=0.325, fore=0.275, precursor=arm.Pose.translation(0, 0, 0.2)),
        inputs=NAMES,
        inertia=arm.SpatialInertia.from_centre(2.0, (0.01, 0, 0), np.eye(3) * 0.01),
    ).replace(**changes)
    return arm.Manipulator(
        name="scara", links=[arm.Link(name="base"), *joints(), flange]
    )


def serial() -> arm.Manipulator:
    """The same arm of one-coordinate joints."""
    limits = joints()[0].limits
    kinds = arm.joints.Revolute(), arm.joints.Revolute(), arm.joints.Prismatic()
    before = (0, 0, 0.2), (0.325, 0, 0), (0.275, 0, 0), (0, 0, 0)
    links = [arm.Link(name="base")]
    for name, kind, p in zip(
        NAMES, (*kinds, arm.joints.Revolute()), before, strict=True
    ):
        joint = kind.replace(precursor=arm.Pose.translation(*p))
        link = arm.Link(name=f"after {name}", joint_name=name, parent=links[-1].name)
        links.append(link.replace(joint=joint, limits=limits))
    flange = arm.Link(name="flange", parent=links[-1].name)
    flange = flange.replace(inertia=scara().link("flange").inertia)
    return arm.Manipulator(name="scara", links=[*links, flange])


@pytest.fixture(name="cells", scope="module")
def cells_fixture() -> tuple[arm.Cell, arm.Cell]:
    return tuple(arm.Cell(manipulators=[make()]) for make in (scara, serial))


Q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 4))


def test_it_is_the_arm_of_single_joints(cells):
    ours, theirs = cells
    assert ours.joint_names == theirs.joint_names == NAMES
    for limit, other in zip(ours.limits, theirs.limits, strict=True):
        assert_allclose(limit, other)
    assert_allclose(ours.fk("flange")(Q), theirs.fk("flange")(Q), atol=1e-14)
    J, other = (cell.jacobian("flange")(Q) for cell in cells)
    assert_allclose(J, other, atol=1e-14)


def test_velocities_accelerations_and_payloads(cells):
    rates = np.random.default_rng(1).uniform(-1, 1, (2, *Q.shape))
    v, other = (cell.velocity("flange")(Q, rates[0]) for cell in cells)
    assert_allclose(v, other, atol=1e-13)
    a, other = (cell.acceleration("flange")(Q, *rates) for cell in cells)
    assert_allclose(a, other, atol=1e-12)
    payload, other = (
        cell.carried("base", arm.State(q=Q[0]), relative_to="base") for cell in cells
    )
    assert_allclose(payload.matrix(), other.matrix(), atol=1e-12)


def test_all_frames_at_once(cells):
    poses = cells[0].poses(arm.State(q=Q[3]))
    assert_allclose(poses["flange"], cells[0].fk("flange")(Q[3]), atol=1e-14)
    assert "J1, J2, J3, J4" in cells[0].tree()


def test_ik_by_search(cells):
    X = cells[0].fk("flange")(Q)
    found = cells[0].ik("flange")(X, method="numeric")
    assert found.success.all()
    assert_allclose(cells[0].fk("flange")(found.q), X, atol=1e-5)


def test_it_scales_as_a_whole(cells):
    half = arm.Cell(manipulators=[scara().scaled(0.5)])
    shrunk = Q * [1, 1, 0.5, 1]
    X = cells[0].fk("flange")(Q)
    X[..., :3, 3] *= 0.5
    assert_allclose(half.fk("flange")(shrunk), X, atol=1e-14)


def test_it_may_share_joints_that_move_links():
    """Inputs may be joints of their own, or follow others."""
    turning = joints()
    turning[0] = turning[0].replace(joint=arm.joints.Revolute())
    turning[3] = turning[3].replace(
        coupling=arm.Coupling(of="J1", multiplier=-0.5, offset=0.1)
    )
    flange = scara().link("flange")
    cell = arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="scara", links=[arm.Link(name="base"), *turning, flange]
            )
        ]
    )
    assert cell.joint_names == NAMES[:3]
    whole = np.column_stack([Q[:, :3], 0.1 - 0.5 * Q[:, 0]])
    expected = arm.Cell(manipulators=[scara()])
    assert_allclose(cell.fk("flange")(Q[:, :3]), expected.fk("flange")(whole))
    J = expected.jacobian("flange")(whole)
    J[..., 0] -= 0.5 * J[..., 3]
    assert_allclose(cell.jacobian("flange")(Q[:, :3]), J[..., :3], atol=1e-14)


@pytest.mark.parametrize("name", ["a.cell.json", "a.actin.xml"])
def test_it_is_saved(name, cells, tmp_path):
    cell = cells[0]
    arm.save(cell, tmp_path / name, lossless=True)
    again = arm.load(tmp_path / name, joints=[Scara])
    assert again == cell
    assert_allclose(again.fk("flange")(Q), cell.fk("flange")(Q))


def test_it_is_a_value():
    link = scara().link("flange")
    assert copy.deepcopy(link) == link == pickle.loads(pickle.dumps(link))
    assert hash(link) == hash(scara().link("flange"))


def test_an_unknown_class_is_kept(cells, tmp_path):
    arm.save(cells[0], tmp_path / "a.cell.json")
    kept = arm.load(tmp_path / "a.cell.json")
    arm.save(kept, tmp_path / "b.cell.json", lossless=True)
    assert arm.load(tmp_path / "b.cell.json", joints=[Scara]) == cells[0]
    with pytest.raises(JointError, match="'Scara' is not known here"):
        kept.fk("flange")(Q[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": NAMES[:3]}, "takes 4 coordinates; inputs names 3"),
        ({"inputs": ("J1", "J2", "J3", "J5")}, "'J5', which is not a moving joint"),
        ({"inputs": ("J1", "J2", "flange", "J4")}, "'flange', which is not a moving"),
        ({"inputs": ("J1", "J3", "J2", "J4")}, "'J3' as RADIAN, but it is METRE"),
        ({"coupling": arm.Coupling(of="J1")}, "is a mechanism, so it cannot follow"),
        ({"joint": arm.joints.Revolute()}, "has inputs, but a Revolute takes none"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ModelError, match=message):
        scara(**changes)


def test_classes_that_are_not_mechanisms():
    class Bare(arm.Mechanism):
        pass

    class Still(arm.Mechanism):
        units = (arm.RADIAN,)

    with pytest.raises(JointError, match="Bare has no units"):
        Bare()
    with pytest.raises(JointError, match=r"Still has no forward\(self, q\)"):
        Still()


def test_one_coordinate_is_enough():
    class Crank(arm.Mechanism):
        radius: float
        units = (arm.RADIAN,)

        def forward(self, q):
            return arm.Pose.translation(self.radius * np.cos(q[0]), 0, 0)

    links = [arm.Link(name="base"), *joints()[:1]]
    slide = arm.Link(name="slide", parent="base", joint=Crank(radius=0.2))
    links.append(slide.replace(inputs=["J1"]))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    assert_allclose(cell.jacobian("slide")([0.5])[0], -0.2 * np.sin(0.5))


class Rocker(arm.Joint):
    def pose(self, q):
        return arm.Pose.rotation_y(q + 0.1 * np.sin(q) ** 2)


class RockerMechanism(arm.Mechanism):
    units = (arm.RADIAN,)

    def forward(self, q):
        return arm.Pose.rotation_y(q[0] + 0.1 * np.sin(q[0]) ** 2)


class Turn(arm.Mechanism):
    units = (arm.RADIAN,)

    def forward(self, q):
        return arm.Pose.rotation_y(q[0])


def beside_a_post(joint: arm.Joint, **inputs: object) -> arm.Cell:
    """A ball on a link that turns towards a post."""
    ball = arm.shapes.Sphere(radius=0.05, pose=arm.Pose.translation(1, 0, 0))
    turn = arm.Limits(lower=-1.0, upper=1.0, velocity=2.0)
    lever = arm.Link(name="lever", parent="base", joint=joint, collisions=[ball])
    links = [arm.Link(name="base"), lever.replace(**inputs)]
    if inputs:
        angle = arm.joints.AngleCoordinate()
        links.append(arm.Link(name="a", parent="base", joint=angle, limits=turn))
    else:
        links[1] = lever.replace(limits=turn)
    post = arm.Link(name="post", collisions=[arm.shapes.Sphere(radius=0.05)])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    there = arm.Pose.rotation_y(0.6) @ arm.Pose.translation(1, 0, 0)
    return cell.add(arm.Manipulator(name="post", links=[post]), pose=there)


def test_a_mechanism_of_one_coordinate_is_proven_as_a_joint_is():
    """Proofs of motions, timelines and inverse kinematics took it for several."""
    plain = beside_a_post(Rocker())
    cell = beside_a_post(RockerMechanism(), inputs=["a"])
    assert_allclose(cell.fk("lever")([0.4]), plain.fk("lever")([0.4]))
    ends = [-0.9, -0.5, 0.9], [0.3, 0.9, -0.9]
    motions = [
        each.collision().motion(*(np.reshape(end, (3, 1)) for end in ends))
        for each in (cell, plain)
    ]
    assert motions[0].free.tolist() == motions[1].free.tolist() == [True, False, False]
    program = arm.Program({"m": [arm.steps.PTP(to=[0.3])]})
    clearances = [
        each.run(program, acceleration=5.0).clearance() for each in (cell, plain)
    ]
    assert_allclose(clearances[0].proven, clearances[1].proven, rtol=1e-3)
    assert_allclose(RockerMechanism().speed_bounds([-1.0], [1.0])[1], [1.1], atol=0.01)
    assert "in proportion to q" in cell.ik("lever").why_not_closed
    assert_allclose(cell.ik("lever")(cell.fk("lever")([0.4])).q, [0.4], atol=1e-5)
    turn = beside_a_post(Turn(), inputs=["a"]).ik("lever")
    assert turn.closed is not None


def test_what_has_several_coordinates_says_so_where_one_is_meant():
    joint = Scara(upper=0.3, fore=0.2)
    with pytest.raises(JointError, match="Scara has 4 coordinates, so it has no sing"):
        joint.velocity(0.1, 0.2)
    assert joint.transform([0.1] * 4) == joint.precursor @ joint.forward([0.1] * 4)
    with pytest.raises(arm.errors.ShapeError, match=r"shape \(4,\), not \(\)"):
        joint.transform(0.1)
    with pytest.raises(JointError, match="Scara is a mechanism of 4 coordinates"):
        check_joint(joint)
    with pytest.raises(JointError, match="check_joint takes a joint, such as"):
        check_joint(3)  # type: ignore[arg-type]
    check_joint(RockerMechanism())


@pytest.mark.parametrize("format", ["urdf", "robwork", "isaac"])
def test_formats_without_mechanisms_say_so(format, cells, tmp_path):
    try:
        report = arm.save(cells[0], tmp_path / "x", format=format)
    except arm.errors.FormatError as error:
        assert "mechanism" in str(error).lower() or "Scara" in str(error)
    else:
        assert any("Scara" in each.message for each in report.diagnostics)
