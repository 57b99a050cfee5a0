"""What a calibration gives controllers that cannot take all of its numbers.

A controller that knows the nominal robot alone puts the real one where it is to be if
its joints go to q + dq in place of q, where the real robot has the pose that the
nominal one has at q; or if it is asked for the nominal pose of q + dq.
`CorrectionTable` has dq at a grid of joint positions. `DHTable` is the geometry as
controllers of arms take it, by Denavit and Hartenberg's parameters.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import numbers_in_rows
from armillary.calibration.measurements import rotation_vectors
from armillary.cell.cell import Cell
from armillary.csv_text import csv_text
from armillary.errors import ModelError, quote, unknown
from armillary.ik.closed_forms.dh_from_axes import arm_of
from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.screw_axes import chain_of
from armillary.kernel.arguments import numbers_of
from armillary.kinematics.kernels import check_frame_name, selection_of
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.replaced_file import replacing
from armillary.spatial.pose import Pose

__all__ = [
    "CorrectionTable",
    "DHRow",
    "DHTable",
    "TargetTable",
    "correction_table",
    "dh_table",
    "target_table",
]

Array = npt.NDArray[np.float64]

STEPS: Final = 8
"""Of Newton's method; errors of a hundredth need three."""
SINGULAR: Final = 1e-6
"""Directions in which joints move the frame less than this do not count."""
MOST_ROWS: Final = 1_000_000
POSE_NUMBERS: Final = ("x", "y", "z", "roll", "pitch", "yaw")


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectionTable:
    """Corrections of joint positions on a grid; between its points they are linear.

    Attributes:
        nominal: The cell as the controller knows it.
        real: The calibrated cell.
        frame: The frame that is to be where the nominal one is.
        relative_to: In which frame.
        joints: Names of the joints of the grid.
        axes: The positions of each of them, ascending [m or rad].
        corrections: dq of all joints at each point, shape (k_1, ..., k_m, n).
        error: How far the frame is from where it is to be in the middle of the cells of
            the grid, at most [m].
        error_rotation: And how far it is turned [rad].
    """

    nominal: Cell
    real: Cell
    frame: str
    relative_to: str
    joints: tuple[str, ...]
    axes: tuple[Array, ...]
    corrections: Array
    error: float
    error_rotation: float

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(axis)) for axis in self.axes)
        return (
            f"<CorrectionTable of {quote(self.frame)}, {sizes} points, "
            f"{self.error:.2g} m>"
        )

    def at(self, q: npt.ArrayLike) -> Array:
        """Return corrected joint positions, shape (..., n).

        Args:
            q: Positions of all joints [m or rad], shape (..., n). Beyond the grid the
                corrections of its faces count.

        Raises:
            ModelError: q has another shape.
        """
        rows, count = numbers_of("q", q), self.corrections.shape[-1]
        if rows.shape[-1:] != (count,):
            raise ModelError(
                f"A table corrects the positions of all {count} joints, shape (..., "
                f"{count}); not {rows.shape}."
            )
        return rows + self._interpolated(rows)

    def target(self, q: npt.ArrayLike) -> Array:
        """Return what a controller that solves for joints itself is asked for.

        Args:
            q: Positions of all joints at which the nominal frame is where the real one
                is to be [m or rad], shape (..., n).

        Returns:
            Poses of the frame, shape (..., 4, 4), positions in metres.
        """
        fk: Any = self.nominal.fk(self.frame, relative_to=self.relative_to)
        return fk(self.at(q))

    def _interpolated(self, q: Array) -> Array:
        columns = [self.nominal.joint(name) for name in self.joints]
        return _interpolated(self.axes, self.corrections, q[..., columns])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file: a line for each point, its position and all corrections.

        Raises:
            OSError: The file cannot be written.
        """
        _write_grid(
            path, self.joints, self.axes, self.nominal.joint_names, self.corrections
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class TargetTable:
    """Corrections of target poses on a grid; between its points they are linear.

    Attributes:
        names: Of the numbers of a target that the grid has, some of x, y, z [m], roll,
            pitch, yaw [rad].
        axes: The values of each, ascending.
        corrections: What is added to x, y, z [m], and the rotation vector [rad] by
            which the target is turned, in the axes of targets; shape (k_1, ..., k_m,
            6).
        error: How far the frame is from its target in the middle of the cells of the
            grid, at most [m].
        error_rotation: And how far it is turned [rad].
    """

    names: tuple[str, ...]
    axes: tuple[Array, ...]
    corrections: Array
    error: float
    error_rotation: float

    def at(self, targets: npt.ArrayLike) -> Array:
        """Return the poses to ask the controller for, shape (..., 4, 4).

        Args:
            targets: Where the frame is to be, shape (..., 4, 4). Beyond the grid the
                corrections of its faces count.

        Raises:
            ShapeError: Targets are not numbers.
            ModelError: They have another shape.
        """
        X = numbers_of("targets", targets)
        if X.shape[-2:] != (4, 4):
            raise ModelError(f"Targets have the shape (..., 4, 4), not {X.shape}.")
        columns = [POSE_NUMBERS.index(name) for name in self.names]
        change = _interpolated(
            self.axes, self.corrections, _numbers_of(X)[..., columns]
        )
        return _moved(X, change)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file: a line for each point, its values and the correction.

        Raises:
            OSError: The file cannot be written.
        """
        changes = ("x", "y", "z", "rx", "ry", "rz")
        _write_grid(path, self.names, self.axes, changes, self.corrections)


def target_table(
    nominal: Cell,
    real: Cell,
    frame: str,
    axes: Mapping[str, npt.ArrayLike],
    *,
    near: npt.ArrayLike | None = None,
    relative_to: str = WORLD,
) -> TargetTable:
    """Return what a controller that takes poses alone adds to its targets.

    See `Calibration.target_table`, of which `nominal` is the cell that the controller
    knows, and `real` the calibrated one.
    """
    listed, lines = _grid(axes, frame, relative_to)
    for name in listed:
        if name not in POSE_NUMBERS:
            raise unknown("number of a pose", name, POSE_NUMBERS)
    columns = [POSE_NUMBERS.index(name) for name in listed]
    count = len(nominal.joint_names)
    given: Any = [nominal.home.q if near is None else near]
    (q,) = numbers_in_rows(given, (count,), "positions of all joints", "near=")
    nominal_fk: Any = nominal.fk(frame, relative_to=relative_to)
    solve = real.ik(frame, relative_to=relative_to)
    fixed = _numbers_of(nominal_fk(q))

    def rows(places: Sequence[Array]) -> Array:
        numbers = np.zeros((*map(len, places), 6)) + fixed
        numbers[..., columns] = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
        return _poses_of(numbers)

    def asked(targets: Array) -> Array:
        found = solve(targets, near=q, tolerance=(1e-9, 1e-9))
        if not np.all(found.success):
            where = np.unravel_index(int(np.argmin(found.success)), targets.shape[:-2])
            place = quote(_numbers_of(targets[where]).round(4).tolist())
            raise ModelError(
                f"The real {quote(frame)} does not reach x, y, z, roll, pitch, yaw of "
                f"{place}; leave such points out of the grid."
            )
        return nominal_fk(found.q)

    wanted = rows(lines)
    corrections = _twist(wanted, asked(wanted))
    table = TargetTable(
        names=listed, axes=lines, corrections=corrections, error=0.0, error_rotation=0.0
    )
    middle = rows([0.5 * (line[1:] + line[:-1]) for line in lines])
    off = _twist(table.at(middle), asked(middle))
    sizes = [np.linalg.norm(x, axis=-1).max() for x in (off[..., :3], off[..., 3:])]
    return replace(table, error=float(sizes[0]), error_rotation=float(sizes[1]))


def _numbers_of(X: Array) -> Array:
    """Return x, y, z, roll, pitch, yaw of poses, shape (..., 6)."""
    flat = X.reshape(-1, 4, 4)
    numbers = [[*x[:3, 3], *Pose.from_matrix(x, tolerance=1e-6).rpy()] for x in flat]
    return np.array(numbers, np.float64).reshape(*X.shape[:-2], 6)


def _poses_of(numbers: Array) -> Array:
    """Return the poses of x, y, z, roll, pitch, yaw, shape (..., 4, 4)."""
    flat = numbers.reshape(-1, 6).tolist()
    poses = [Pose.from_rpy(x[3], x[4], x[5], x[:3]).matrix() for x in flat]
    return np.array(poses, np.float64).reshape(*numbers.shape[:-1], 4, 4)


def _moved(X: Array, twists: Array) -> Array:
    """Return poses that are shifted and turned by rotation vectors, in outer axes."""
    found = np.array(X)
    found[..., :3, 3] += twists[..., :3]
    w = twists[..., 3:].reshape(-1, 3)
    turns = np.array([Pose.rotation_about(*_axis(x)).matrix()[:3, :3] for x in w])
    found[..., :3, :3] = turns.reshape(*X.shape[:-2], 3, 3) @ X[..., :3, :3]
    return found


def _axis(w: Array) -> tuple[tuple[float, ...], float]:
    angle = float(np.linalg.norm(w))
    return ((1.0, 0.0, 0.0), 0.0) if angle == 0.0 else (tuple(w / angle), angle)


def _interpolated(axes: Sequence[Array], values: Array, at: Array) -> Array:
    """Return values on a grid between its points, by the 2^m points around each row.

    Args:
        axes: The places of points, ascending, m of them.
        values: Shape (k_1, ..., k_m, d).
        at: Where, shape (..., m).
    """
    places: list[npt.NDArray[np.intp]] = []
    shares: list[Array] = []
    for column, axis in enumerate(axes):
        x = np.clip(at[..., column], axis[0], axis[-1])
        k = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
        places.append(k)
        shares.append((x - axis[k]) / (axis[k + 1] - axis[k]))
    total = np.zeros((*at.shape[:-1], values.shape[-1]))
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight = np.ones(at.shape[:-1])
        for side, share in zip(corner, shares, strict=True):
            weight = weight * (share if side else 1.0 - share)
        point = tuple(k + side for k, side in zip(places, corner, strict=True))
        total += weight[..., np.newaxis] * values[point]
    return total


def _write_grid(
    path: str | os.PathLike[str],
    names: Sequence[str],
    axes: Sequence[Array],
    changed: Sequence[str],
    values: Array,
) -> None:
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    rows = np.concatenate([points, values], axis=-1)
    listed = [*names, *(f"d_{name}" for name in changed)]
    _write_csv(path, listed, rows.reshape(-1, len(listed)).tolist())


def _grid(
    axes: Any, frame: str, relative_to: str
) -> tuple[tuple[str, ...], tuple[Array, ...]]:
    """Return the names of a grid and its values, checked."""
    for each in (frame, relative_to):
        check_frame_name(each)
    if not isinstance(axes, Mapping):
        raise ModelError(
            "axes are values by their names, such as {'elbow': [0.0, 0.5, 1.0]}; not "
            f"{quote(axes)}."
        )
    given = cast("Mapping[str, Any]", axes)
    listed = tuple(given)
    lines = tuple(
        numbers_in_rows(given[name], (), "positions", f"axis {quote(name)}")
        for name in listed
    )
    for name, line in zip(listed, lines, strict=True):
        if len(line) < 2 or (np.diff(line) <= 0.0).any():
            raise ModelError(
                f"The positions of {quote(name)} must be two or more, ascending."
            )
    if not listed or math.prod(map(len, lines)) > MOST_ROWS:
        raise ModelError(
            f"A table needs one axis at least, and at most {MOST_ROWS} points."
        )
    return listed, lines


def correction_table(
    nominal: Cell,
    real: Cell,
    frame: str,
    axes: Mapping[str, npt.ArrayLike],
    *,
    q: npt.ArrayLike | None = None,
    relative_to: str = WORLD,
) -> CorrectionTable:
    """Return what a controller adds to nominal positions to reach its targets.

    See `Calibration.correction_table`, of which `nominal` is the cell that the
    controller knows, and `real` the calibrated one.
    """
    listed, lines = _grid(axes, frame, relative_to)
    columns = [nominal.joint(name) for name in listed]
    if len(set(columns)) < len(columns):
        raise ModelError(f"axes name a joint twice: {', '.join(listed)}.")
    count = len(nominal.joint_names)
    given: Any = [nominal.home.q if q is None else q]
    (others,) = numbers_in_rows(given, (count,), "positions of all joints", "q=")

    def rows(places: Sequence[Array]) -> Array:
        points = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
        found = np.zeros((*points.shape[:-1], len(others))) + others
        found[..., columns] = points
        return found

    wanted: Any = nominal.fk(frame, relative_to=relative_to)
    found: Any = real.fk(frame, relative_to=relative_to)
    slopes: Any = real.jacobian(frame, relative_to=relative_to)
    at: Array = rows(lines)
    dq = np.zeros_like(at)
    target = wanted(at)
    for _ in range(STEPS):
        J: Array = slopes(at + dq)
        inverse = np.linalg.pinv(J, rcond=SINGULAR).astype(np.float64)
        dq = dq + np.einsum("...ij,...j->...i", inverse, _twist(found(at + dq), target))
    left: Any = np.abs(_twist(found(at + dq), target)).max(axis=-1)
    if not (left < 1e-6).all():
        where = np.unravel_index(
            int(np.argmax(np.nan_to_num(left, nan=1e9))), left.shape
        )
        place = quote(np.array(at[where]).round(4).tolist())
        raise ModelError(
            f"The real {quote(frame)} cannot be where the nominal one is at "
            f"{place}: it stays {left[where]:.2g} m or rad away. "
            "Joints may be too few, or near a singular position."
        )
    table = CorrectionTable(
        nominal=nominal,
        real=real,
        frame=frame,
        relative_to=relative_to,
        joints=listed,
        axes=lines,
        corrections=dq,
        error=0.0,
        error_rotation=0.0,
    )
    middle = rows([0.5 * (line[1:] + line[:-1]) for line in lines])
    off = _twist(found(table.at(middle)), wanted(middle))
    sizes = [np.linalg.norm(x, axis=-1).max() for x in (off[..., :3], off[..., 3:])]
    return replace(table, error=float(sizes[0]), error_rotation=float(sizes[1]))


def _twist(X: Array, target: Array) -> Array:
    """Return what leads from poses to targets, in the axes of both, shape (..., 6)."""
    R = target[..., :3, :3] @ np.swapaxes(X[..., :3, :3], -1, -2)
    turned = rotation_vectors(R.reshape(-1, 3, 3)).reshape(*X.shape[:-2], 3)
    return np.concatenate([target[..., :3, 3] - X[..., :3, 3], turned], axis=-1)


class DHRow(NamedTuple):
    """A joint and the link behind it: Rz(theta + sign q) Tz(d) Tx(a) Rx(alpha).

    Attributes:
        joint: Its name.
        sign: Whether it turns as the table says, 1, or the other way, -1.
        theta: Offset of its angle [rad].
        d: Along its axis [m].
        a: Along the common normal with the next axis [m].
        alpha: The angle between the axes [rad].
    """

    joint: str
    sign: float
    theta: float
    d: float
    a: float
    alpha: float


class DHTable(NamedTuple):
    """An arm by Denavit and Hartenberg's parameters, in their original order (Paul's).

    T = base K_1 ... K_n tool, with K of each row.

    Attributes:
        base: The frame in front of the first axis.
        rows: Of joints that turn.
        tool: The frame behind the last one.
    """

    base: Pose
    rows: tuple[DHRow, ...]
    tool: Pose

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file: lines of joints between those of the base and the tool.

        These two have their x, y, z [m] and roll, pitch, yaw [rad] in place of numbers
        of joints, in the last six columns.

        Raises:
            OSError: The file cannot be written.
        """
        names = [*DHRow._fields, "x", "y", "z", "roll", "pitch", "yaw"]
        blank = [""] * 6
        lines: list[list[Any]] = [["base", *blank[1:], *_numbers(self.base)]]
        lines += ([*row, *blank] for row in self.rows)
        lines.append(["tool", *blank[1:], *_numbers(self.tool)])
        _write_csv(path, names, lines)


def dh_table(cell: Cell, frame: str, *, relative_to: str = WORLD) -> DHTable:
    """Return the parameters of the joints that carry a frame, from their axes.

    They follow from where axes are, whatever the joints are called. Where axes are
    nearly parallel d becomes large, as in the files of vendors.

    Args:
        cell: What has the arm.
        frame: The frame behind it.
        relative_to: The frame in front of it.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: A joint between them does not turn about a line, follows another, or
            has the axis of its neighbour.
    """
    for each in (frame, relative_to):
        check_frame_name(each)
    workcell = cell.workcell
    tree = Tree.of(workcell)
    ends = workcell.frame(frame), workcell.frame(relative_to)
    moving = tree.moving_joints(tree.between(list(ends)))
    names = [workcell.joint_names[k] for k in sorted(moving)]
    try:
        chain = chain_of(tree, *ends, selection_of(workcell, names))
        turns = [screw.turns for screw in chain.screws]
        if not (len(turns) > 1 and all(turns)):
            raise NotApplicable("a joint slides, or fewer than two turn")
        arm = arm_of(chain)
    except NotApplicable as error:
        raise ModelError(
            f"The joints that carry {quote(frame)} have no table of Denavit and "
            f"Hartenberg's parameters: {error}."
        ) from error
    rows: list[DHRow] = []
    for k, drive in enumerate(arm.drives):
        numbers = (0.0, 0.0, 0.0)
        if k < len(arm.links):
            link = arm.links[k]
            numbers = link.d, link.a, math.atan2(link.sin, link.cos)
        rows.append(DHRow(names[drive.of], drive.multiplier, drive.offset, *numbers))
    return DHTable(arm.base, tuple(rows), arm.tool)


def _numbers(pose: Pose) -> list[Any]:
    return [*pose.position, *pose.rpy()]


def _write_csv(
    path: str | os.PathLike[str], names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    with replacing(path) as file:
        file.write(csv_text(names, rows).encode())
