"""Where the search for unknown poses begins: closed forms, so that no start is needed.

A pose whose six numbers are all parameters may be far away: of a camera on a hand, of a
robot in the frame of a tracker. Its correction E stands once in the pose of the frame,
X = A E D with A and D by row, and A follows from the derivatives. With two of them,
A Y B Z C = M, or N W = Y B with N = A^-1 M C^-1 and W = Z^-1: the problem of hand-eye
and base, AX = ZB, which has AX = XB within it. M. Shah, Solving the
Robot-World/Hand-Eye Calibration Problem Using the Kronecker Product, Journal of
Mechanisms and Robotics 5(3), 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.calibration.board_images import BoardImages
from armillary.calibration.measurement import Measurement
from armillary.calibration.measurements import Poses, Positions
from armillary.model.cell_parameters import (
    CellParameter,
    first_places,
    is_of_joint,
)
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.twist import exp, log

__all__ = ["pose_starts"]

Array = npt.NDArray[np.float64]

SAME: Final = 1e-6
"""To which a formula must give the poses of the cell [m and of rotations]."""
TRIMMED: Final = 0.6
"""Which part of the rows, those that fit best, is used again where some are wrong."""
TRIMMED_FITS: Final = 3
ONE_AXIS: Final = 1.0 - 1e-3
"""Singular values nearer to the greatest say that all rotations are about one axis."""


class _Factor(NamedTuple):
    """A pose with unknown correction, as in X = A exp(twist)^sign D.

    Attributes:
        places: Of its six numbers among the parameters, shape (6,).
        sign: -1 where its inverse stands there.
        before: A of each row, shape (n, 4, 4).
    """

    places: list[int]
    sign: float
    before: Array


def pose_starts(
    cell: Workcell,
    measurements: Sequence[Measurement],
    parameters: Sequence[CellParameter],
    *,
    is_robust: bool = False,
) -> Array:
    """Return values of parameters with poses that are unknown where they may be.

    Other values are nominal. A pose for which there is no closed form stays where it
    is: where more than two are unknown, those in front of joints that move left out,
    which are nearly as the file says; where few rows or axes of rotation do not decide
    it, or where it stands in a closed loop.

    Args:
        cell: The nominal cell.
        measurements: What was measured of it; `Poses`, `BoardImages`
            and `Positions` are used.
        parameters: The numbers to find.
        is_robust: Whether rows that do not fit are left out.
    """
    p = np.array([each.value for each in parameters])
    names = tuple(each.name for each in parameters)
    groups = _groups([parameters[k] for k in first_places(cell, parameters)], names)
    placed = {k for k, each in enumerate(parameters) if not is_of_joint(cell, each)}
    in_order = [
        Poses(m.frame, m.q, m.board_poses(), relative_to=m.relative_to)
        for m in measurements
        if isinstance(m, BoardImages)
    ]
    in_order += [m for m in measurements if isinstance(m, Poses)]
    points = [m for m in measurements if isinstance(m, Positions)]
    for each in (*in_order, *points):
        if not groups:
            break
        found = _factors(each, cell, names, p, groups)
        if len(found) > 2:
            found = [f for f in found if f.places[0] in placed]
        if (
            len(found) > 2
            or not found
            or not all(np.isfinite(f.before).all() for f in found)
        ):
            continue
        solved = _solved(each, cell, names, p, found, is_robust)
        for places, twist in solved:
            p[places] = twist
            groups.remove(places)
    return p


def _groups(
    parameters: Sequence[CellParameter], names: Sequence[str]
) -> list[list[int]]:
    """Return the places in `names` of the six numbers of each free pose, in order."""
    places: dict[Any, dict[str, int]] = {}
    for each in parameters:
        if each.component:
            k = names.index(each.name)
            places.setdefault(each.path, {})[each.component] = k
    six = ("x", "y", "z", "rx", "ry", "rz")
    return [[g[c] for c in six] for g in places.values() if set(six) <= set(g)]


def _factors(
    measurement: Measurement,
    cell: Workcell,
    names: Sequence[str],
    p: Array,
    groups: Sequence[list[int]],
) -> list[_Factor]:
    """Return how unknown poses stand in that of the frame; none if not once each.

    The twist of the frame per unit of the correction is Ad(A), at the frame's origin:
    R_A w, and R_A v + (t_A - x) x R_A w.
    """
    q = measurement.q
    x = measurement.poses(cell, names, p, q)[:, :3, 3]
    J = measurement.twists(cell, names, p, q)
    found: list[_Factor] = []
    for places in groups:
        own = J[:, :, places]
        if not own.any():
            continue
        sign = 1.0 if np.linalg.det(own[0, 3:, 3:]) > 0.0 else -1.0
        A = np.tile(np.eye(4), (len(q), 1, 1))
        A[:, :3, :3] = sign * own[:, 3:, 3:]
        off = A[:, :3, :3] @ A[:, :3, :3].transpose(0, 2, 1) - np.eye(3)
        if not np.abs(off).max() < SAME:
            return []  # in a loop, or there twice
        lever = sign * own[:, :3, 3:] @ A[:, :3, :3].transpose(0, 2, 1)
        A[:, :3, 3] = x + np.stack([lever[:, 2, 1], lever[:, 0, 2], lever[:, 1, 0]], 1)
        if not any(_is_tied(A, each.before) for each in found):
            found.append(_Factor(places, sign, A))
    return found


def _is_tied(A: Array, B: Array) -> bool:
    """Return whether one pose can do what another does: between them nothing moves."""
    between = np.linalg.inv(A) @ B
    return bool(len(A) > 1 and np.abs(between - between[0]).max() < SAME)


def _solved(
    measurement: Measurement,
    cell: Workcell,
    names: Sequence[str],
    p: Array,
    factors: list[_Factor],
    is_robust: bool,
) -> list[tuple[list[int], Array]]:
    """Return the twists of unknown poses, or nothing where there is no closed form."""
    X = measurement.poses(cell, names, p, measurement.q)
    for order in (factors, factors[::-1]):
        if not _is_chain(measurement, cell, names, p, order, X):
            continue
        before = order[0].before
        last = np.linalg.inv(order[-1].before) @ X
        between = np.linalg.inv(before) @ order[-1].before
        form = _of_poses if isinstance(measurement, Poses) else _of_points
        rows = np.arange(len(X))
        found: list[Array] = []
        for _ in range(TRIMMED_FITS if is_robust else 1):
            parts = (before[rows], between[rows], last[rows])
            found = form(*parts, measurement.measured[rows], len(order))
            if not found:
                return []
            Y, Z = found[0], found[-1] if len(order) == 2 else np.eye(4)
            error = before @ Y @ between @ Z @ last
            error = error[:, :3, 3] - _points(measurement)
            worst = np.linalg.norm(error, axis=1)
            rows = np.argsort(worst)[: max(4, int(TRIMMED * len(X)))]
        return [
            (f.places, f.sign * np.array(log(Pose.from_matrix(E)), np.float64))
            for f, E in zip(order, found, strict=True)
        ]
    return []


def _points(measurement: Measurement) -> Array:
    measured = measurement.measured
    return measured[:, :3, 3] if isinstance(measurement, Poses) else measured


def _is_chain(
    measurement: Measurement,
    cell: Workcell,
    names: Sequence[str],
    p: Array,
    order: Sequence[_Factor],
    X: Array,
) -> bool:
    """Return whether X = A Y A^-1 A' Z A'^-1 X, by the kernel at some twists."""
    moved, expected = p.copy(), X
    for k, factor in reversed(list(enumerate(order))):
        twist = np.array([0.3, -0.2, 0.5, 0.7, -0.4 - 0.3 * k, 0.2])
        moved[factor.places] = twist
        E = exp(tuple((factor.sign * twist).tolist())).matrix().astype(np.float64)
        expected = factor.before @ E @ np.linalg.inv(factor.before) @ expected
    actual = measurement.poses(cell, names, moved, measurement.q)
    return bool(np.abs(actual - expected).max() < SAME * (1.0 + np.abs(X).max()))


def _of_poses(A: Array, B: Array, C: Array, M: Array, count: int) -> list[Array]:
    """Return Y, or Y and Z, with A Y B Z C = M by least squares.

    Rotations: R_N R_W = R_Y R_B for all rows. With K = sum of R_B (x) R_N, vec R_Y and
    vec R_W are the singular vectors of the greatest singular value, n without noise.
    Translations: R_N t_W - t_Y = R_Y t_B - t_N, linear in both.
    """
    N = np.linalg.inv(A) @ M @ np.linalg.inv(C)
    if count == 1:
        own = N @ np.linalg.inv(B)
        rotation = _rotation(own[:, :3, :3].sum(axis=0))
        return [_pose(rotation, own[:, :3, 3].mean(axis=0))]
    RN, RB = N[:, :3, :3], B[:, :3, :3]
    K = np.einsum("nij,nkl->ikjl", RB, RN).reshape(9, 9)
    left, values, right = np.linalg.svd(K)
    if values[1] > ONE_AXIS * values[0]:
        return _about_one_axis(N, B)
    # A vector of a singular value has a sign, which makes the determinant positive.
    y, w = (v.reshape(3, 3).T for v in (left[:, 0], right[0]))
    RY, RW = (_rotation(m * np.sign(np.linalg.det(m))) for m in (y, w))
    still = -np.tile(np.eye(3), (len(N), 1, 1))
    columns = np.concatenate([RN, still], axis=2)
    t = _least(columns, B[:, :3, 3] @ RY.T - N[:, :3, 3])
    return _with_inverse(_pose(RY, t[3:]), _pose(RW, t[:3]))


def _about_one_axis(N: Array, B: Array) -> list[Array]:
    """Return Y and Z where all rotations are about one axis, as of a SCARA.

    The rotations of rows against the first one are about b in B and about a = R_Y b in
    N, so R_Y = R_0 exp [b f] with any R_0 b = a. The angle f follows from the
    translations, which are linear in cos f, sin f, t_W and t_Y.
    """
    turns = [_axial(X[1:, :3, :3] @ X[0, :3, :3].T) for X in (N, B)]
    sizes = np.linalg.norm(turns[1], axis=1)
    if not len(sizes) or sizes.max() < SAME:
        return []
    # Both axes from the same row: there the senses of turning are the same.
    a, b = (each[np.argmax(sizes)] for each in turns)
    a, b = a / max(float(np.linalg.norm(a)), SAME), b / np.linalg.norm(b)
    R0 = _rotation(_frame(a) @ _frame(b).T)
    t_B = B[:, :3, 3]
    along = np.outer(t_B @ b, b)
    cosine, sine = t_B - along, np.cross(b, t_B)
    # R_N t_W - t_Y - c R_0 (t - b b't) - s R_0 (b x t) = R_0 b b't - t_N
    columns = np.concatenate(
        [
            N[:, :3, :3],
            -np.tile(np.eye(3), (len(N), 1, 1)),
            -(cosine @ R0.T)[:, :, np.newaxis],
            -(sine @ R0.T)[:, :, np.newaxis],
        ],
        axis=2,
    )
    solution = _least(columns, along @ R0.T - N[:, :3, 3])
    f = np.arctan2(solution[7], solution[6])
    RY = R0 @ Pose.rotation_about(tuple(b.tolist()), float(f)).matrix()[:3, :3]
    RW = N[0, :3, :3].T @ RY @ B[0, :3, :3]
    still = -np.tile(np.eye(3), (len(N), 1, 1))
    t = _least(np.concatenate([N[:, :3, :3], still], axis=2), t_B @ RY.T - N[:, :3, 3])
    return _with_inverse(_pose(RY, t[3:]), _pose(RW, t[:3]))


def _axial(R: Array) -> Array:
    """Return the axis of each rotation times twice the sine of its angle."""
    return np.stack(
        [R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], 1
    )


def _frame(axis: Array) -> Array:
    """Return a rotation whose last column is an axis."""
    other = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(other, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)


def _least(columns: Array, right: Array) -> Array:
    """Return the least solution of equations by least squares."""
    found: Any = np.linalg.lstsq(
        columns.reshape(-1, columns.shape[-1]), right.ravel(), rcond=1e-9
    )
    return found[0]


def _with_inverse(Y: Array, W: Array) -> list[Array]:
    """Return Y and Z = W^-1."""
    Z: Any = np.linalg.inv(W)
    return [Y, Z]


def _pose(rotation: Array, position: Array) -> Array:
    X: Array = np.eye(4)
    X[:3, :3], X[:3, 3] = rotation, position
    return X


def _of_points(A: Array, B: Array, C: Array, M: Array, count: int) -> list[Array]:
    """Return Y, or Y and Z, with which A Y B Z C has its origin at M.

    One: the rotation between two sets of points (S. Umeyama, 1991). Two: Z is a shift
    z, if C is the same in all rows. With x = A^-1 m, R_Y' x - R_Y' t_Y - R_B z = t_B,
    linear in 15 numbers.
    """
    x = np.einsum("nij,nj->ni", np.linalg.inv(A)[:, :3], np.insert(M, 3, 1.0, axis=1))
    if count == 1:
        b = (B @ C)[:, :3, 3]
        return [_between(b, x)] if len(x) > 2 else []
    c = C[0, :3, 3]
    if len(x) < 6 or np.abs(C[:, :3, 3] - c).max() > SAME:
        return []
    lhs = np.zeros((len(x), 3, 15))
    for k in range(3):
        lhs[:, k, 3 * k : 3 * k + 3] = x
    lhs[:, :, 9:12], lhs[:, :, 12:] = -np.eye(3), -B[:, :3, :3]
    flat = lhs.reshape(-1, 15)
    solution, _, rank, _ = np.linalg.lstsq(flat, B[:, :3, 3].ravel(), rcond=1e-9)
    if rank < 15:
        return []
    Z = _pose(np.eye(3), solution[12:] - c)
    return [_between((B @ Z @ C)[:, :3, 3], x), Z]


def _between(b: Array, x: Array) -> Array:
    """Return the pose Y with Y b = x by least squares."""
    R = _rotation((x - x.mean(axis=0)).T @ (b - b.mean(axis=0)))
    return _pose(R, x.mean(axis=0) - R @ b.mean(axis=0))


def _rotation(matrix: Array) -> Array:
    """Return the rotation R with the greatest trace of R' matrix."""
    u, _, v = np.linalg.svd(matrix)
    u[:, 2] *= np.linalg.det(u) * np.linalg.det(v)
    return u @ v
