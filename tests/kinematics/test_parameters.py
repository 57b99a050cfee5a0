"""Numbers of a cell as inputs: kernels are those of a cell with these numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Joint, Link, Manipulator, Pose
from armillary.errors import ModelError, UnknownName


# Of each kind: fields of joints, built in and nested in a track, precursors, frames,
# mounts; lengths of rods and precursors in closed loops.
def gripper() -> Cell:
    """Two fingers, one of which follows the other."""
    slide = arm.joints.Prismatic(axis=(0.0, 1.0, 0.0))
    coupling = arm.Coupling(of="left", multiplier=-1.0, offset=0.01)
    links = [
        Link(name="palm"),
        Link(name="left", parent="palm", joint=slide),
        Link(name="right", parent="palm", joint=slide, coupling=coupling),
    ]
    return Cell(manipulators=[Manipulator(name="gripper", links=links)])


CELLS = {
    "ur5e_on_oval": (
        "tool0",
        ["cart.radius", "elbow.alpha", "wrist_1.precursor", "tool0", "ur5e.mount"],
    ),
    "delta": ("platform", ["elbow1-ball1.length", "elbow2-ball2.length"]),
    "palletiser": ("flange", ["drive.length", "stay.length", "link.length"]),
    "gripper": ("right", ["right.coupling", "right.precursor.x"]),
}


class Cam(Joint):
    """A user's joint with a branch: x = lift (1 - cos q) where q > 0, else 0."""

    lift: float
    tilt: Pose = Pose.identity()

    def pose(self, q: Any) -> Pose:
        height = self.lift * (1.0 - np.cos(q)) if q > 0.0 else 0.0 * q
        return self.tilt @ Pose.translation(height, 0.0, 0.1 * q)


def names_of(example: str) -> tuple[Cell, str, list[str]]:
    cell = gripper() if example == "gripper" else arm.example(example)
    frame, asked = CELLS[example]
    return cell, frame, list(cell.parameters(asked))


def moved(cell: Cell, names: list[str], size: float = 1e-3) -> np.ndarray:
    start = np.array(list(cell.parameters(names).values()))
    return start + size * np.random.default_rng(0).uniform(-1.0, 1.0, len(names))


def rows(cell: Cell, count: int = 5) -> np.ndarray:
    home = np.array(cell.home.q)
    return home + 0.05 * np.random.default_rng(1).uniform(-1.0, 1.0, (count, len(home)))


@pytest.mark.parametrize("example", CELLS)
def test_kernels_of_parameters_are_those_of_the_cell_with_them(example: str) -> None:
    cell, frame, names = names_of(example)
    p, Q = moved(cell, names), rows(cell)
    other = cell.with_parameters(dict(zip(names, p, strict=True)))
    X = cell.fk(frame, parameters=names)(Q, p)
    np.testing.assert_allclose(X, other.fk(frame)(Q), rtol=0, atol=1e-12)
    assert np.abs(X - cell.fk(frame)(Q)).max() > 1e-5
    J = cell.jacobian(frame, parameters=names)(Q, p)
    np.testing.assert_allclose(J, other.jacobian(frame)(Q), rtol=0, atol=1e-11)


@pytest.mark.parametrize("example", CELLS)
def test_at_nominal_values_nothing_changes(example: str) -> None:
    cell, frame, names = names_of(example)
    start = list(cell.parameters(names).values())
    X = cell.fk(frame, parameters=names)(rows(cell), start)
    np.testing.assert_allclose(X, cell.fk(frame)(rows(cell)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("example", CELLS)
def test_parameter_jacobian_is_the_slope_of_poses(example: str) -> None:
    cell, frame, names = names_of(example)
    p, q = moved(cell, names), rows(cell)[0]
    fk = cell.fk(frame, parameters=names)
    J = cell.parameter_jacobian(frame, names)(q, p)
    step = 1e-6
    for k in range(len(p)):
        ends = [fk(q, p + s * step * np.eye(len(p))[k]) for s in (1.0, -1.0)]
        rate = (ends[0] - ends[1]) / (2.0 * step)
        spin = rate[:3, :3] @ fk(q, p)[:3, :3].T
        slope = [*rate[:3, 3], spin[2, 1], spin[0, 2], spin[1, 0]]
        np.testing.assert_allclose(J[:, k], slope, rtol=0, atol=2e-8)


def test_a_field_of_a_users_joint_with_a_branch() -> None:
    links = [Link(name="base"), Link(name="cam", parent="base", joint=Cam(lift=0.2))]
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    Q, P = np.array([[-1.0], [1.0]]), np.array([[0.3], [0.5]])
    X = cell.fk("cam", parameters=["cam.lift"])(Q, P)
    np.testing.assert_allclose(X[:, 0, 3], [0.0, 0.5 * (1.0 - np.cos(1.0))], atol=1e-15)
    J = cell.parameter_jacobian("cam", ["cam.lift"])(Q, P)
    np.testing.assert_allclose(J[:, 0, 0], [0.0, 1.0 - np.cos(1.0)], atol=1e-15)


def test_offset_is_added_to_the_coordinate() -> None:
    cell = arm.example("ur5e_on_oval")
    fk = cell.fk("tool0", parameters=["ur5e/elbow.offset"])
    q = np.array(cell.home.q)
    turned = q + 0.1 * (np.array(cell.joint_names) == "ur5e/elbow")
    np.testing.assert_allclose(fk(q, [0.1]), cell.fk("tool0")(turned), atol=1e-15)
    other = cell.with_parameters({"ur5e/elbow.offset": 0.1})
    np.testing.assert_allclose(other.fk("tool0")(q), fk(q, [0.1]), atol=1e-14)
    with pytest.raises(ModelError, match="add it to q"):
        cell.with_parameters({"cart.offset": 0.1})


def test_attachments_of_a_state_count() -> None:
    cell = arm.example("ur5e_on_oval").add(
        Manipulator(name="part", links=[Link(name="block")]), bolted=False
    )
    state = cell.home.grip("part", by="tool0")
    fk = cell.fk("block", state=state, parameters=["ur5e/elbow.precursor.x"])
    other = cell.with_parameters({"ur5e/elbow.precursor.x": 0.02})
    q = np.array(cell.home.q) + 0.1
    moved_part = cell.pose("block", state)
    relative = np.linalg.inv(cell.pose("tool0", state)) @ moved_part
    np.testing.assert_allclose(
        fk(q, [0.02]), other.fk("tool0")(q) @ relative, rtol=0, atol=1e-13
    )


def test_what_is_attached_moves_with_its_frame() -> None:
    cell = arm.example("irb2400").add(
        Manipulator(name="part", links=[Link(name="block")]), bolted=False
    )
    state = cell.home.attach("part", "tool0", pose=Pose.translation(0.1, 0.0, 0.2))
    names = ["tool0.z", "tool0.ry"]
    other = cell.with_parameters(dict(zip(names, [0.02, 0.1], strict=True)))
    X = cell.fk("block", state=state, parameters=names)(cell.home.q, [0.02, 0.1])
    wanted = other.fk("block", state=other.bind(state))(cell.home.q)
    np.testing.assert_allclose(X, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (["elbow.preursor.x"], UnknownName, "precursor"),
        (["elbo"], UnknownName, "elbow"),
        (["elbow.precursor.w"], UnknownName, "rx"),
        (["elbow.alpha", "ur5e/elbow"], ModelError, "twice"),
        ("elbow.alpha", ModelError, "list of names"),
        ({"elbow.alpha": 1.0}, ModelError, "with_parameters"),
        ([3], ModelError, "by its name"),
        (np.zeros((2, 2)), ModelError, "by its name"),
        (["track.mount"], ModelError, "not mounted"),
    ],
)
def test_names_that_are_refused(
    names: Any, kind: type[Exception], message: str
) -> None:
    cell = arm.example("ur5e_on_oval")
    with pytest.raises(kind, match=message):
        cell.fk("tool0", parameters=names)


def test_values_that_are_refused() -> None:
    cell = arm.example("ur5e_on_oval")
    with pytest.raises(ModelError, match="must be finite"):
        cell.with_parameters({"elbow.alpha": np.nan})
    with pytest.raises(ModelError, match="6 numbers"):
        cell.with_parameters({"elbow.precursor": [1.0, 2.0]})


def test_an_offset_goes_along_the_motion_with_new_fields() -> None:
    links = [Link(name="base")]
    joint = arm.joints.CraigRevolute(alpha=0.4, a=0.3, d=0.1)
    links.append(Link(name="turn", parent="base", joint=joint))
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    names = ["turn.offset", "turn.alpha", "turn.a", "turn.precursor.rx"]
    p = [0.7, 0.6, -0.2, 0.1]
    other = cell.with_parameters(dict(zip(names, p, strict=True)))
    X = cell.fk("turn", parameters=names)([0.3], p)
    np.testing.assert_allclose(X, other.fk("turn")([0.3]), rtol=0, atol=1e-15)


def test_a_pose_in_a_joint_is_a_twist_behind_it() -> None:
    joint = Cam(lift=0.2, tilt=Pose.from_rpy(0.1, 0.2, 0.3, (0.1, 0.0, 0.2)))
    links = [Link(name="base"), Link(name="cam", parent="base", joint=joint)]
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    names = list(cell.parameters(["cam"]))
    assert "m/cam.tilt.rz" in names
    p, Q = moved(cell, names, 0.1), np.array([[-0.5], [0.5]])
    other = cell.with_parameters(dict(zip(names, p, strict=True)))
    X = cell.fk("cam", parameters=names)(Q, p)
    np.testing.assert_allclose(X, other.fk("cam")(Q), rtol=0, atol=1e-14)


def test_a_link_that_does_not_move_is_named_as_a_frame() -> None:
    links = [Link(name="base"), Link(name="eye", parent="base")]
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    X = cell.fk("eye", parameters=["eye.z"])(np.zeros(0), [0.2])
    np.testing.assert_allclose(X[:3, 3], [0.0, 0.0, 0.2], atol=1e-15)
    with pytest.raises(UnknownName, match="rx"):
        cell.parameters(["eye.w"])


@pytest.mark.parametrize("values", [{"elbow.alpha": "x"}, {"elbow.alpha": None}, [1]])
def test_values_that_are_not_numbers(values: Any) -> None:
    with pytest.raises(ModelError, match=r"not a number|takes a dict"):
        arm.example("ur5e_on_oval").with_parameters(values)
