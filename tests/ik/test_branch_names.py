"""Names of branches: the same along a motion, unless it passes a singularity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary import Cell
from armillary.errors import ModelError, ShapeError
from armillary.ik.inverse_kinematics import InverseKinematics

from . import test_closed, test_fewer_joints, test_general_six, test_point
from .test_arm_angle import seven
from .test_redundancy import any_seven, franka

Slopes = Callable[[np.ndarray], np.ndarray]


def wrists(kind: str) -> Cell:
    return test_closed.cell_of(
        test_closed.random_lines(kind, np.random.default_rng(5)), limit=np.pi
    )


def slopes_of(cell: Cell, ik: InverseKinematics, given: tuple[str, ...]) -> Slopes:
    """Return what a singularity is judged by: rows of what is held, (..., m, n).

    They are those of the Jacobian; with an arm angle its slope is one more. Where the
    rotation alone decides the turns, they are those of the rotation.
    """
    jacobian = cell.jacobian("tool")
    rows = slice(0, 6) if ik.goals[0].has_rotation else slice(0, 3)
    columns = [k for k, name in enumerate(cell.joint_names) if name not in given]
    if ik.closed is not None and ik.closed.family == test_fewer_joints.THREE:
        rows, columns = slice(3, 6), columns[:3]
    angle = None if ik.closed is None else ik.closed.arm_angle

    def slopes(q: np.ndarray) -> np.ndarray:
        J = jacobian(q)[..., rows, :][..., columns]
        if angle is None:
            return J
        step = 1e-6 * np.eye(7)
        change = angle(q[..., None, :] + step) - angle(q[..., None, :] - step)
        turned = np.angle(np.exp(1j * change)) / 2e-6
        return np.concatenate([J, turned[..., None, :]], axis=-2)

    return slopes


def passed(ik: InverseKinematics, slopes: Slopes, given: tuple[str, ...]) -> int:
    """Return how many singularities are passed on motions, each with another name."""
    most = np.clip(ik.cell.limits[1], 0.0, 3.0)
    a, b = np.random.default_rng(2).uniform(-most, most, (2, 8, 1, len(most)))
    q = a + (b - a) * np.linspace(0.0, 1.0, 60)[:, None]
    names = ik.branch(q, redundancy=given)
    assert names.shape[:2] == (8, 60)
    rows, at = np.nonzero((names[:, 1:] != names[:, :-1]).any(axis=2))
    low, high, before = q[rows, at], q[rows, at + 1], names[rows, at]
    for _ in range(28):
        middle = 0.5 * (low + high)
        same = (ik.branch(middle, redundancy=given) == before).all(axis=1)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    if len(rows):
        sizes = np.linalg.svd(slopes(low), compute_uv=False)
        assert (sizes[:, -1] < 1e-4 * sizes[:, 0]).all()
    return len(rows)


ARMS: dict[str, tuple[Callable[[], Cell], dict[str, Any], tuple[str, ...]]] = {
    **{
        kind: (lambda kind=kind: wrists(kind), {}, ())
        for kind in ("elbow", "meeting 12", "three parallel")
    },
    "arm angle": (lambda: seven("skew"), {}, ()),
    "any axes": (test_general_six.ARMS["random 1"].cell, {}, ()),
    "scara": (test_fewer_joints.scara, {}, ()),
    "wrist": (lambda: test_fewer_joints.random_arm("rrrp"), {}, ()),
    "point": (lambda: test_point.random_arm("elbow"), {"rotation": ""}, ()),
    "given joint": (franka, {}, ("l6",)),
    "given joint, any axes": (any_seven, {}, ("l6",)),
}


@pytest.mark.parametrize("name", ARMS)
def test_a_name_changes_at_singularities_only(name: str) -> None:
    make, goal, given = ARMS[name]
    cell = make()
    ik = cell.ik("tool", **goal)
    assert passed(ik, slopes_of(cell, ik, given), given) > 1
    # answers are on the branches that they are called by
    most = np.clip(cell.limits[1], 0.0, 3.0)
    q = np.random.default_rng(3).uniform(-most, most, (20, len(most)))
    options: dict[str, Any] = {}
    if given:
        options["redundancy"] = {"l6": q[:, 6]}
    elif ik.closed is not None and ik.closed.arm_angle is not None:
        options["arm_angle"] = ik.closed.arm_angle(q)
    found = ik.all(cell.fk("tool")(q), **options)
    k, b = np.nonzero(found.success)
    names = ik.branch(found.q[k, b], redundancy=given)
    if "axes" in name:
        signs = np.where(names[:, 0] == "plus", 1, -1)
        assert (np.bincount(k, signs) == 0).all()  # as many of one sign as of the other
    else:
        assert (names == np.array(found.branches)[b]).all()


def test_what_names_mean_is_said() -> None:
    ik = franka().ik("tool")
    assert [text.split(":")[0] for text in ik.closed_given("l6").choices] == [
        "shoulder",
        "elbow",
        "wrist",
    ]
    assert ik.branch(np.ones(7), redundancy=["l6"]).shape == (3,)
    with pytest.raises(ModelError, match="names in closed forms only"):
        ik.branch(np.ones(7))
    with pytest.raises(ModelError, match="between the others"):
        any_seven().ik("tool").branch(np.ones(7), redundancy=["l2"])
    assert (ik.branch(np.full(7, np.nan), redundancy=["l6"]) == "").all()
    with pytest.raises(ShapeError, match="shape"):
        ik.branch(np.ones(6), redundancy=["l6"])
    general = test_general_six.ARMS["random 1"].cell().ik("tool")
    assert general.closed is not None
    assert general.closed.choices == ("sign: plus where det J > 0, else minus",)
