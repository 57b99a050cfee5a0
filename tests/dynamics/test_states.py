"""States and options: grips, moved bases, gravity, locked joints, free bases."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import armillary as arm
from armillary.dynamics import options
from armillary.errors import (
    KernelError,
    ModelError,
    ShapeError,
    StateError,
    UnknownName,
)
from masses import heavy_example, vectors, with_inertias

BOX = arm.SpatialInertia.from_centre(
    3.0, (0.02, -0.05, 0.1), np.diag([0.02, 0.03, 0.04])
)


def part(name: str = "part") -> arm.Manipulator:
    links = [arm.Link(name="body", inertia=BOX)]
    return arm.Manipulator(name=name, links=links)


def cell_with_part(*, bolted_to: str = "") -> arm.Cell:
    """Return an arm on a rail and a part, loose beside it or bolted to a frame."""
    cell = heavy_example("ur10_on_rail", 0)
    pose = arm.Pose.from_rpy(0.3, -0.2, 0.9, (0.1, 0.2, 0.05))
    if bolted_to:
        return cell.add(part(), on=bolted_to, pose=pose)
    return cell.add(part(), pose=arm.Pose.translation(1.0, 2.0, 3.0), bolted=False)


def gripped(cell: arm.Cell) -> arm.State:
    pose = arm.Pose.from_rpy(0.3, -0.2, 0.9, (0.1, 0.2, 0.05))
    return cell.home.attach("part", "tool0", pose=pose)


def test_a_payload_follows_the_grip() -> None:
    loose, bolted = cell_with_part(), cell_with_part(bolted_to="tool0")
    given = vectors(loose, 1)
    state = gripped(loose)
    expected = bolted.inverse_dynamics()(*given)
    found = loose.inverse_dynamics(state=state)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)
    without = loose.inverse_dynamics()(*given)
    assert np.abs(without - expected).max() > 1.0
    np.testing.assert_allclose(
        loose.inverse_dynamics(state=loose.home)(*given), without, atol=1e-10
    )
    np.testing.assert_allclose(
        loose.forward_dynamics(state=state)(*given),
        bolted.forward_dynamics()(*given),
        rtol=1e-8,
        atol=1e-8,
    )
    masses = loose.mass_matrix(state=state)(given[0])
    np.testing.assert_allclose(masses, bolted.mass_matrix()(given[0]), atol=1e-10)


def test_another_grip_compiles_nothing() -> None:
    cell = cell_with_part()
    state = gripped(cell)
    held = cell.inverse_dynamics(state=state)
    loose = cell.inverse_dynamics(state=cell.home)
    elsewhere = state.release("part").attach("part", "tool0")
    again = cell.inverse_dynamics(state=elsewhere, gravity=(0.0, 1.0, 0.0))
    assert held.kernel is loose.kernel is again.kernel


def test_gravity_and_moved_bases_are_inputs() -> None:
    cell = heavy_example("irb2400", 0)
    name = cell.manipulators[0].name
    turned = arm.Pose.from_rpy(0.5, -1.1, 0.4, (1.0, 2.0, 3.0))
    given = vectors(cell, 2)
    loose = cell.mount(name, bolted=False)
    state = loose.home.place(name, turned)
    expected = cell.mount(name, pose=turned).inverse_dynamics()(*given)
    found = loose.inverse_dynamics(state=state)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)
    gravity = turned.inverse().rotate((0.0, 0.0, -9.81))
    found = cell.inverse_dynamics(gravity=gravity)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)


def test_other_joints_are_locked() -> None:
    cell = heavy_example("ur10_on_rail", 3)
    q, qd, qdd = vectors(cell, 4)
    names = [cell.joint_names[k] for k in (4, 0, 2)]
    chosen = [4, 0, 2]
    state = cell.home.replace(q=q[0])
    Q, rates, accelerations = (np.zeros_like(q) for _ in range(3))
    Q[:] = q[0]
    for whole, part_of in ((Q, q), (rates, qd), (accelerations, qdd)):
        whole[:, chosen] = part_of[:, chosen]
    expected = cell.inverse_dynamics()(Q, rates, accelerations)[:, chosen]
    given = q[:, chosen], qd[:, chosen], qdd[:, chosen]
    found = cell.inverse_dynamics(joints=names, state=state)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10)
    found = cell.forward_dynamics(joints=names, state=state)(*given[:2], expected)
    np.testing.assert_allclose(found, given[2], rtol=1e-9, atol=1e-9)


def test_a_gripped_mechanism_moves_with_its_holder() -> None:
    cell = heavy_example("irb2400", 0)
    gripper = arm.example("two_finger_gripper").manipulators[0]
    loose = with_inertias(cell.add(gripper, bolted=False), 1)
    bolted = with_inertias(cell.add(gripper, on="tool0"), 1)
    state = loose.home.attach(gripper.name, "tool0")
    given = vectors(loose, 5)
    np.testing.assert_allclose(
        loose.inverse_dynamics(state=state)(*given),
        bolted.inverse_dynamics()(*given),
        rtol=1e-11,
        atol=1e-10,
    )


def test_a_free_part_falls() -> None:
    cell = cell_with_part()
    fall = cell.forward_dynamics(free_bases=["part"], joints=[])
    X = arm.Pose.from_rpy(0.1, 0.7, 2.0, (1.0, 2.0, 3.0)).matrix()
    v = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    found = fall(X[None], [], v, np.zeros(6))
    np.testing.assert_allclose(found, [0.0, 0.0, -9.81, 0.0, 0.0, 0.0], atol=1e-12)
    mass = cell.mass_matrix(free_bases=["part"], joints=[])(X[None], [])
    np.testing.assert_allclose(mass[:3, :3], 3.0 * np.eye(3), atol=1e-12)


def test_momentum_is_kept_where_nothing_holds_a_robot() -> None:
    cell = heavy_example("irb2400", 0)
    name = cell.manipulators[0].name
    cell = cell.mount(name, bolted=False)
    about = {"free_bases": [name], "gravity": (0.0, 0.0, 0.0)}
    n = len(cell.joint_names)
    rng = np.random.default_rng(0)
    X = np.eye(4)[None]
    q, v, tau = rng.uniform(-1, 1, n), *rng.uniform(-1, 1, (2, n + 6))
    tau[:6] = 0.0  # no force from outside
    v[:6] = 0.0
    a = cell.forward_dynamics(**about)(X, q, v, tau)
    wrench = cell.inverse_dynamics(**about)(X, q, v, a)[:6]
    np.testing.assert_allclose(wrench, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        cell.inverse_dynamics(**about)(X, q, v, a)[6:], tau[6:], atol=1e-9
    )


def test_faults_are_explained() -> None:
    cell = cell_with_part()
    with pytest.raises(UnknownName, match="Did you mean 'gravity'"):
        cell.inverse_dynamics(gravty=(0, 0, 1))  # pyright: ignore[reportCallIssue]
    for gravity in ((0, 0), 9.81, "down", (0, 0, np.nan)):
        with pytest.raises(ModelError, match="three finite numbers"):
            cell.inverse_dynamics(gravity=gravity)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownName, match="manipulator named 'prt'"):
        cell.mass_matrix(free_bases=["prt"])
    for wrong in ("part", None, 3):
        with pytest.raises(ModelError, match="list of names"):
            cell.mass_matrix(free_bases=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="twice"):
        cell.mass_matrix(free_bases=["part", "part"])
    with pytest.raises(ModelError, match="cannot be free: it is attached on"):
        cell.mass_matrix(free_bases=["part"], state=gripped(cell))
    with pytest.raises(ModelError, match="cannot be free: it is fixed on"):
        cell.mass_matrix(free_bases=["ur10"])
    moving = cell.home.with_velocity("part", linear=(1.0, 0.0, 0.0))
    with pytest.raises(StateError, match="'part' moves in this state"):
        cell.inverse_dynamics(state=moving)
    with pytest.raises(ModelError, match="has an inertia"):
        arm.example("delta").inverse_dynamics()
    with pytest.raises(ShapeError):
        cell.inverse_dynamics()(np.zeros(3), np.zeros(3), np.zeros(3))


def test_a_cell_without_moving_joints_needs_nothing() -> None:
    cell = heavy_example("irb2400", 0)
    assert cell.inverse_dynamics(joints=[])([], [], []).shape == (0,)
    assert cell.forward_dynamics(joints=[])([], [], []).shape == (0,)


def test_rows_of_nan_stay_alone() -> None:
    cell = heavy_example("irb2400", 0)
    q, qd, qdd = vectors(cell, 1)
    whole = cell.forward_dynamics()(q, qd, qdd)
    qd[3, 2] = np.nan
    found = cell.forward_dynamics()(q, qd, qdd)
    assert np.isnan(found[3]).all()
    np.testing.assert_array_equal(np.delete(found, 3, 0), np.delete(whole, 3, 0))


def test_massless_joints_are_named() -> None:
    cell = heavy_example("irb2400", 0)
    m = cell.manipulators[0]
    bare = m.replace(links=[*m.links[:-1], m.links[-1].replace(inertia=None)])
    last = m.links[-1].coordinate
    cell = cell.replace(manipulators=[bare])
    assert np.isfinite(cell.inverse_dynamics()(*vectors(cell, 1))).all()
    with pytest.raises(ModelError, match=f"no mass resists '.*{last}'"):
        cell.forward_dynamics()
    motor = arm.JointDynamics(motor_inertia=1e-4, gear_ratio=100.0)
    driven = bare.links[-1].replace(dynamics=motor)
    geared = cell.replace(manipulators=[bare.replace(links=[*bare.links[:-1], driven])])
    q, qd, qdd = vectors(cell, 1)
    torque = geared.inverse_dynamics()(q, qd, qdd)
    np.testing.assert_allclose(
        geared.forward_dynamics()(q, qd, torque), qdd, rtol=1e-7, atol=1e-7
    )


def chain(count: int) -> arm.Cell:
    """Return a chain of many joints, alternately about z and y."""
    inertia = arm.SpatialInertia.from_centre(1.0, (0.1, 0, 0.05), np.eye(3) * 0.01)
    links = [arm.Link(name="l0")]
    for k in range(count):
        joint = arm.joints.Revolute(axis=((0, 0, 1), (0, 1, 0))[k % 2])
        joint = joint.prepend(arm.Pose.translation(0.2, 0.0, 0.0))
        link = arm.Link(name=f"l{k + 1}", parent=f"l{k}", joint=joint, inertia=inertia)
        links.append(link)
    return arm.Cell(manipulators=[arm.Manipulator(name="chain", links=links)])


def test_long_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """More bodies than are worth compiling: the same formulas run as Python."""
    monkeypatch.setattr(options, "MOST_BODIES", 20)
    cell = chain(30)
    q, qd, qdd = np.random.default_rng(0).uniform(-0.3, 0.3, (3, 30))
    # Each question says so, once.
    with pytest.warns(UserWarning, match="of 30 bodies runs in Python") as warned:
        torque = cell.inverse_dynamics()(q, qd, qdd)
        found = cell.forward_dynamics()(q, qd, torque)
        M, bias = cell.mass_matrix()(q), cell.bias_torque()(q, qd)
    assert len(warned) == 4
    np.testing.assert_allclose(found, qdd, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(M @ qdd + bias, torque, rtol=1e-9, atol=1e-6)
    with pytest.raises(KernelError, match="pickle the cell"):
        pickle.dumps(cell.mass_matrix())


class Scissors(arm.Joint):
    """A table on crossed beams, which has no pose at greater `q`."""

    beam: float  # [m]

    def pose(self, q: float) -> arm.Pose:
        """Return the pose with feet at a distance `q`."""
        return arm.Pose.translation(0.0, 0.0, np.sqrt(self.beam**2 - q * q))


@pytest.mark.parametrize("limits", [arm.Limits(), arm.Limits(lower=0.01, upper=0.09)])
def test_a_joint_may_have_no_pose_beyond_its_limits(limits: arm.Limits) -> None:
    """Masses are looked for where joints can be, and NaN is not taken for no mass."""
    table = arm.Link(
        name="table",
        parent="foot",
        joint=Scissors(beam=0.1),
        limits=limits,
        inertia=BOX,
    )
    lift = arm.Manipulator(name="lift", links=[arm.Link(name="foot"), table])
    cell = arm.Cell(manipulators=[lift])
    q, qd = np.array([0.06]), np.array([0.2])
    torque = cell.inverse_dynamics()(q, qd, [0.3])
    np.testing.assert_allclose(cell.forward_dynamics()(q, qd, torque), [0.3])


def test_home_may_be_beyond_limits() -> None:
    turntable = arm.Link(
        name="turntable",
        parent="foot",
        joint=arm.joints.Revolute(),
        joint_name="turn",
        limits=arm.Limits(lower=-0.1, upper=0.1),
        inertia=BOX,
    )
    rest = arm.Posture(name="home", joints=("turn",), q=(3.0,))
    links = [arm.Link(name="foot"), turntable]
    stand = arm.Manipulator(name="stand", links=links, postures=(rest,), home="home")
    cell = arm.Cell(manipulators=[stand])
    np.testing.assert_array_equal(cell.home.q, [3.0])
    assert np.isfinite(cell.forward_dynamics()([3.0], [0.0], [1.0])).all()


def test_where_locked_joints_are_is_not_remembered() -> None:
    """A mast with a bob on its axis moves no mass, until the boom is lowered."""
    bob = arm.SpatialInertia.from_centre(2.0, (0.0, 0.0, 0.5), np.zeros((3, 3)))
    mast = arm.Link(name="mast", parent="foot", joint=arm.joints.Revolute())
    boom = arm.Link(
        name="boom",
        parent="mast",
        joint=arm.joints.Revolute(axis=(0, 1, 0)),
        inertia=bob,
    )
    crane = arm.Manipulator(name="crane", links=[arm.Link(name="foot"), mast, boom])
    cell = arm.Cell(manipulators=[crane])
    up, level = cell.home, cell.home.replace(q=[0.0, np.pi / 2])
    for state, expected in ((up, np.nan), (level, 1.0 / (2.0 * 0.5**2)), (up, np.nan)):
        turn = cell.forward_dynamics(state=state, joints=cell.joint_names[:1])
        np.testing.assert_allclose(turn([0.0], [0.0], [1.0]), [expected])


def test_joints_are_a_list() -> None:
    """What can be read only once would leave a kernel of no joints behind."""
    cell = heavy_example("irb2400", 0)
    names = cell.joint_names[2:4]
    for wrong in ((name for name in names), set(names), 3):
        for state in (None, cell.home):
            with pytest.raises(ModelError, match="joints= takes a list of names"):
                cell.mass_matrix(joints=wrong, state=state)  # pyright: ignore[reportArgumentType]
    for given in (names, list(names), np.array(names)):
        M = cell.mass_matrix(joints=given)
        assert M([0.1, 0.2]).shape == (2, 2)
    for links in ((name for name in names), 3):
        with pytest.raises(ModelError, match="links= takes a list of names"):
            cell.inertial_regressor(links)  # pyright: ignore[reportArgumentType]


def test_faults_of_types_are_explained() -> None:
    cell = heavy_example("irb2400", 0)
    with pytest.raises(KernelError, match="'double!' is not a dtype"):
        cell.inverse_dynamics(dtype="double!")
    with pytest.raises(UnknownName, match="no frame named"):
        cell.reaction(["tool0"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="position= takes letters of 'xyz'"):
        cell.operational_inertia("tool0", position=None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="None of the joints moves the frame"):
        cell.operational_inertia("tool0", joints=[])
    with pytest.raises(ModelError, match="Nothing moves here"):
        cell.simulate(cell.home, dt=0.01, steps=2, joints=[])
    drone = arm.Cell(manipulators=[part("drone")])
    with pytest.raises(ModelError, match="named in free_bases="):
        drone.mass_matrix()
