"""Unknown poses need no start, unknown shapes no device; doubts are said."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, joints
from armillary.calibration.measurements import (
    OnPlane,
    OnSphere,
    Poses,
    Positions,
    SamePoint,
)
from armillary.errors import ModelError

HALF = np.pi / 2.0


@pytest.fixture(scope="module")
def lab() -> Cell:
    """An arm, and a tracker of which nobody knows where it stands."""
    tracker = Manipulator(name="tracker", links=[Link(name="eye")])
    return arm.example("ur5e_on_oval").add(tracker)


def configurations(count: int, seed: int = 0) -> np.ndarray:
    Q = np.random.default_rng(seed).uniform(-2.5, 2.5, (count, 7))
    Q[:, 0] = 0.2
    return Q


def anywhere(rng: np.random.Generator) -> list[float]:
    axis = rng.normal(size=3)
    turn = axis / np.linalg.norm(axis) * rng.uniform(2.0, np.pi)
    return [*rng.uniform(-2.0, 2.0, 3), *turn]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_hand_eye_and_base_from_anywhere(lab: Cell, seed: int, inverse: bool) -> None:
    names = list(lab.parameters(["tool0", "tracker.mount"]))
    rng = np.random.default_rng(seed)
    p, Q = np.array([*anywhere(rng), *anywhere(rng)]), configurations(10, seed)
    frame, base = ("eye", "tool0") if inverse else ("tool0", "eye")
    X = lab.fk(frame, relative_to=base, parameters=names)(Q, p)
    X[:, :3, 3] += rng.normal(0.0, 1e-4, (10, 3))
    found = arm.calibrate(lab, Poses(frame, Q, X, relative_to=base), names)
    assert found.success
    assert 0.3 < found.noise < 1.3
    np.testing.assert_allclose(
        found.cell.fk(frame, relative_to=base)(Q), X, rtol=0, atol=1e-3
    )


def test_hand_eye_of_an_arm_that_turns_about_one_axis() -> None:
    cell = arm.example("scara").add(
        Manipulator(name="tracker", links=[Link(name="eye")])
    )
    names = list(cell.parameters(["tcp", "tracker.mount"]))
    kernel = cell.fk("tcp", relative_to="eye", parameters=names)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Q = rng.uniform(-1.0, 1.0, (12, len(cell.joint_names)))
        X = kernel(Q, np.array([*anywhere(rng), *anywhere(rng)]))
        measured = Poses("tcp", Q, X, relative_to="eye")
        found = arm.calibrate(cell, measured, names)
        assert found.identified.rank == 11  # two heights are one
        assert found.noise < 1e-6
        assert found.steps < 20


@pytest.mark.parametrize("seed", range(3))
def test_a_tracker_and_a_reflector_from_positions(lab: Cell, seed: int) -> None:
    names = ["tool0.x", "tool0.y", "tool0.z", "tracker.mount"]
    rng, Q = np.random.default_rng(seed), configurations(12, seed)
    p = np.array([*rng.uniform(-0.3, 0.3, 3), *anywhere(rng)])
    x = lab.fk("tool0", relative_to="eye", parameters=names)(Q, p)[:, :3, 3]
    # The reflector is within reach, so the pose of the tracker has to come first.
    found = arm.calibrate(lab, Positions("tool0", Q, x, relative_to="eye"), names)
    np.testing.assert_allclose(found.values[:3], p[:3], rtol=0, atol=1e-9)
    moved = found.cell.fk("tool0", relative_to="eye")(Q)[:, :3, 3]
    np.testing.assert_allclose(moved, x, rtol=0, atol=1e-9)


def test_of_poses_that_are_tied_to_each_other_one_is_found(lab: Cell) -> None:
    names = list(lab.parameters(["tool0", "tracker.mount", "ur5e.mount"]))
    rng, Q = np.random.default_rng(0), configurations(12)
    p = np.array([*anywhere(rng), *anywhere(rng), *([0.01] * 6)])
    X = lab.fk("tool0", relative_to="eye", parameters=names)(Q, p)
    found = arm.calibrate(lab, Poses("tool0", Q, X, relative_to="eye"), names)
    assert found.identified.rank == 12
    assert found.noise < 1e-6


def test_starts_do_not_follow_outliers(lab: Cell) -> None:
    names = list(lab.parameters(["tool0", "tracker.mount"]))
    rng, Q = np.random.default_rng(5), configurations(40)
    p = np.array([*anywhere(rng), *anywhere(rng)])
    X = lab.fk("tool0", relative_to="eye", parameters=names)(Q, p)
    X[:12, :3, 3] += rng.normal(0.0, 0.3, (12, 3))
    measured = Poses("tool0", Q, X, relative_to="eye")
    found = arm.calibrate(lab, measured, names, loss="cauchy")
    good = found.cell.fk("tool0", relative_to="eye")(Q)[12:]
    np.testing.assert_allclose(good, X[12:], rtol=0, atol=1e-6)
    (doubt,) = (each for each in found.doubts if "far worse" in each)
    named = doubt.partition("row ")[2].partition(" and ")[0]
    assert set(map(int, named.split(","))) < set(range(12))


NAMES = ["ur5e/elbow.a", "ur5e/elbow.theta", "ur5e/wrist_1.d", "tool0.x", "tool0.y"]
CENTER = arm.example("ur5e_on_oval").fk("tool0")(
    [0.2, 0.3, -1.0, 1.0, -1.0, -1.5, 0.2]
)[:3, 3]
NORMAL = np.array([0.0, 0.6, 0.8])
SHAPES: dict[str, tuple[Any, Any]] = {
    "point": (SamePoint, lambda x: x - CENTER),
    "plane": (OnPlane, lambda x: (x - CENTER) @ NORMAL),
    "sphere": (OnSphere, lambda x: np.linalg.norm(x - CENTER) - 0.3),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_nobody_knows(shape: str) -> None:
    cell = arm.example("ur5e_on_oval")
    kind, law = SHAPES[shape]
    start = np.array(list(cell.parameters(NAMES).values()))
    p = start + np.array([1e-3, 2e-3, -1e-3, 2e-3, 1e-3])
    fk = cell.fk("tool0", parameters=NAMES)
    J = cell.jacobian("tool0", parameters=NAMES)
    rows: list[np.ndarray] = []
    for start_row in configurations(60):
        q = start_row
        for _ in range(40):  # Newton: the row of least change on the shape
            x = fk(q, p)[:3, 3]
            r = np.atleast_1d(law(x))
            slope = np.stack(
                [np.atleast_1d(law(x + 1e-6 * e)) - r for e in np.eye(3)], axis=1
            )
            step = np.linalg.lstsq(slope / 1e-6 @ J(q, p)[:3], r, rcond=1e-6)[0]
            q = q - step / max(1.0, np.linalg.norm(step) / 0.4)
        if np.abs(r).max() < 1e-12 and np.abs(q).max() < 2.0 * np.pi:
            rows.append(q)
    Q = np.array(rows)
    assert len(Q) > 15
    found = arm.calibrate(cell, kind("tool0", Q), NAMES)
    assert found.identified.rank == len(NAMES)
    np.testing.assert_allclose(found.values, p, rtol=0, atol=1e-8)
    chosen = found.next_poses(configurations(20, 3), 2)
    assert len(set(chosen.tolist())) == 2
    # With noise in where rows are, the stated standard deviations are those of errors.
    rng, measured = np.random.default_rng(0), kind("tool0", Q)
    rates = measured.compared(cell.workcell, NAMES, p).rates
    assert rates.shape == (len(Q), len(measured.units), len(NAMES))
    assert pickle.loads(pickle.dumps(found)).values == pytest.approx(found.values)
    noisy = Q + rng.normal(0.0, 1e-4, Q.shape)
    assert arm.calibrate(cell, kind("tool0", noisy), NAMES).noise > 0.1
    with pytest.raises(ModelError, match="nothing to cross-validate"):
        found.cross_validated()


def test_a_sphere_of_known_radius_and_too_few_rows() -> None:
    assert OnSphere("tool0", np.zeros((4, 7)), radius=0.1).unknowns == 3
    with pytest.raises(ModelError, match="always fit; it needs 5"):
        OnSphere("tool0", np.zeros((4, 7)))
    with pytest.raises(ModelError, match=r"above 0, not -1\.0"):
        OnSphere("tool0", np.zeros((4, 7)), radius=-1.0)
    with pytest.raises(ModelError, match="always fit; it needs 2"):
        SamePoint("tool0", np.zeros((1, 7)))


def test_rows_left_out_tell_of_too_many_parameters() -> None:
    cell = arm.example("ur5e_on_oval")
    joints_of_arm = [
        f"ur5e/{name}.precursor"
        for name in ("shoulder_lift", "elbow", "wrist_1", "wrist_2")
    ]
    rng = np.random.default_rng(0)
    Q = configurations(15)
    x = cell.fk("tool0")(Q)[:, :3, 3] + rng.normal(0.0, 1e-4, (15, 3))
    few = arm.calibrate(cell, Positions("tool0", Q, x), ["ur5e/elbow.a"])
    many = arm.calibrate(cell, Positions("tool0", Q, x), joints_of_arm)
    sizes = [
        np.sqrt(np.mean(found.cross_validated(3)[0] ** 2)) for found in (few, many)
    ]
    assert 0.7 < sizes[0] < 1.3
    assert sizes[1] > 1.2 * sizes[0]
    with pytest.raises(ModelError, match="fewest rows are 15"):
        few.cross_validated(16)


def test_doubts_are_said() -> None:
    cell = arm.example("ur5e_on_oval")
    Q, names = configurations(20), ["ur5e/elbow.a", "ur5e/elbow.theta"]
    X = cell.fk("tool0")(Q)
    assert arm.calibrate(cell, Poses("tool0", Q, X), names).doubts == ()
    few = arm.calibrate(cell, Positions("tool0", Q[:1], X[:1, :3, 3]), names)
    assert few.doubts == ()  # three numbers for two
    none = arm.calibrate(cell, Positions("tool0", Q[:1], X[:1, :3, 3]), [*NAMES])
    assert "measure more rows" in none.doubts[0]
    alike = Positions("tool0", Q[[0] * 9], X[[0] * 9, :3, 3])
    (doubt,) = arm.calibrate(cell, alike, names).doubts
    assert doubt.startswith("Positions of 'tool0': all 9 rows have the same joint")
    transposed = X.copy()
    transposed[:, :3, :3] = X[:, :3, :3].transpose(0, 2, 1)
    found = arm.calibrate(cell, Poses("tool0", Q, transposed), names)
    assert any("transposed" in doubt for doubt in found.doubts)
    assert "doubts:" in found.report()
    with pytest.raises(ModelError, match=r"numpy\.radians"):
        arm.calibrate(cell, Positions("tool0", 57.3 * Q, X[:, :3, 3]), names)
    with pytest.raises(ModelError, match="not a pose"):
        Poses("tool0", Q, X.transpose(0, 2, 1))


# Ranks by hand. Of n joints there are 4n numbers. Along parallel neighbours, all `d`
# are one; two coaxial ones share `theta`; with a slide between them, two `a` are one.
# Positions of a frame on the last axis do not see its `theta`, nor of a last joint with
# d = 0 its `alpha`.
CHAINS: dict[str, tuple[str, list[tuple[float, float, float]], str, int]] = {
    "one axis": ("R", [(0, 0, 0.3)], "poses", 4),
    "one axis, positions": ("R", [(0, 0, 0.3)], "positions", 3),
    "two parallel": ("RR", [(0, 0, 0.3), (0, 0.5, 0)], "poses", 7),
    "two parallel, positions": ("RR", [(0, 0, 0.3), (0, 0.5, 0)], "positions", 5),
    "two across": ("RR", [(0, 0, 0.3), (HALF, 0.5, 0.1)], "poses", 8),
    "planar": ("RRR", [(0, 0, 0.3), (0, 0.5, 0), (0, 0.4, 0)], "poses", 10),
    "arm of three": ("RRR", [(0, 0, 0.3), (HALF, 0.1, 0), (0, 0.5, 0)], "poses", 11),
    "SCARA": (
        "RRRP",
        [(0, 0, 0.3), (0, 0.5, 0), (0, 0.4, 0), (0, 0, 0)],
        "poses",
        12,
    ),
    "Puma": (
        "RRRRRR",
        [
            *((0, 0, 0.3), (-HALF, 0, 0), (0, 0.4, 0.1)),
            *((-HALF, 0.02, 0.4), (HALF, 0, 0), (-HALF, 0, 0)),
        ],
        "poses",
        23,
    ),
    "slide across a turn": ("PR", [(HALF, 0, 0), (HALF, 0.2, 0.1)], "poses", 7),
}


@pytest.mark.parametrize("name", CHAINS)
def test_ranks_by_hand(name: str) -> None:
    kinds, rows, measured, rank = CHAINS[name]
    links = [Link(name="l0")]
    for k, (kind, (alpha, a, d)) in enumerate(zip(kinds, rows, strict=True)):
        make = joints.CraigRevolute if kind == "R" else joints.CraigPrismatic
        joint = make(alpha=alpha, a=a, d=d)
        links.append(Link(name=f"l{k + 1}", parent=f"l{k}", joint=joint))
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    frame = links[-1].name
    names = [f"{x.name}.{f}" for x in links[1:] for f in ("alpha", "a", "theta", "d")]
    Q = np.random.default_rng(0).uniform(-1.5, 1.5, (40, len(rows)))
    X = cell.fk(frame)(Q)
    given = (
        Poses(frame, Q, X) if measured == "poses" else Positions(frame, Q, X[:, :3, 3])
    )
    assert arm.calibrate(cell, given, names).identified.rank == rank


def test_a_start_among_all_numbers_of_joints_and_outliers():
    """Joints are nearly as the file says; a base and a reflector may be anywhere."""
    cell = arm.example("irb2400").mount("irb2400")
    rng = np.random.default_rng(5)
    joints = [name for name in cell.parameters() if ".precursor" in name]
    joints = [name for name in joints if "joint_" in name]
    where = ["irb2400.mount", "tool0"]
    far = np.array([2.0, -3.0, 0.5, 0.2, -0.1, 2.2, 0.1, -0.05, 0.2, 0.0, 0.0, 0.0])
    truth = np.concatenate([rng.normal(0.0, 5e-4, len(joints)), far])
    names = [*joints, *cell.parameters(where)]
    q = rng.uniform(-1.5, 1.5, (50, 6))
    q[:, 2] *= 0.5
    x = cell.fk("tool0", parameters=names)(q, truth)[:, :3, 3]
    x += rng.normal(0.0, 5e-5, x.shape)
    x[[7, 31, 40]] += rng.normal(0.0, 0.03, (3, 3))
    measured = Positions("tool0", q, x, sigma=5e-5)
    found = arm.calibrate(cell, measured, [*joints, *where], loss="cauchy")
    kept = np.setdiff1d(np.arange(50), [7, 31, 40])
    error = found.cell.fk("tool0")(q)[kept, :3, 3] - x[kept]
    assert np.abs(error).max() < 3e-4
    whole, rows = found.doubts
    assert "so rows are wrong" in whole
    assert "row 7, 31, 40 fits far worse" in rows


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy"])
@pytest.mark.parametrize("wrong", [0, 24])
def test_robust_losses_from_starts_that_are_far_in_deviations(
    lab: Cell, loss: str, wrong: int
) -> None:
    """A start in closed form is millimetres off, which is many times the noise."""
    joints = [f"ur5e/{each}.{field}" for each in ("elbow", "wrist_1") for field in "ad"]
    unknown = [f"tool0.{axis}" for axis in "xyz"]
    names = list(lab.parameters([*joints, *unknown, "tracker.mount"]))
    fk = lab.fk("tool0", relative_to="eye", parameters=names)
    rng = np.random.default_rng(2)
    p = np.array(list(lab.parameters(names).values()))
    p[:4] += rng.normal(0.0, 2e-3, 4)
    p[4:] = *rng.uniform(-0.2, 0.2, 3), *anywhere(rng)
    Q = configurations(60)
    x = fk(Q, p)[:, :3, 3] + rng.normal(0.0, 1e-4, (60, 3))
    x[:wrong] += rng.normal(0.0, 0.5, (wrong, 3))
    measured = Positions("tool0", Q, x, sigma=1e-4, relative_to="eye")
    found = arm.calibrate(lab, measured, names, loss=loss)
    assert found.success
    again = configurations(50, 7)
    made = found.cell.fk("tool0", relative_to="eye")(again)[:, :3, 3]
    np.testing.assert_allclose(made, fk(again, p)[:, :3, 3], atol=5e-4)
