"""Samples: the rows that a sweep asks about, made where they are needed."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, SweepError, quote
from armillary.kinematics.identity import cell_digest, digest
from armillary.kinematics.kernels import Joints, selection_of
from armillary.model.coupled_limit import no_room
from armillary.model.workcell import Workcell
from armillary.sweeps.fields import NamedJoints, whole_number

__all__ = [
    "GridSamples",
    "Samples",
    "Uniform",
    "as_samples",
    "box_of",
    "grid",
    "samples",
]

Array = npt.NDArray[Any]

HASHED_ROWS: Final = 1 << 16
MOST_DRAWS: Final = 64  # draws of a row until limits that couple joints hold
PROBED: Final = 1024  # rows that tell how much of the box the polytope fills
ENOUGH: Final = 0.2  # that is so much that one row in a million walks
STEPS: Final = 128  # of a walk within them
ROWS_AT_ONCE: Final = 64
MOST_ROWS: Final = 2**63 - 1  # their numbers are of int64


class Samples(ABC):
    """Rows of numbers; any of them can be made anywhere, in any order."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""

    @property
    def is_given(self) -> bool:
        """Return whether the rows come from the user, who may have put NaN there."""
        return False

    @property
    def named_joints(self) -> NamedJoints:
        """Return the joints whose positions a row has, if that is known."""
        return NamedJoints()

    @property
    def digest(self) -> str | None:
        """Return what is equal for equal rows only."""
        return digest(self)

    @abstractmethod
    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from `start` to before `stop`."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> Array:
        """Return all rows, for `np.asarray`; what asks about joint positions takes it.

        Raises:
            ValueError: `copy` is False: rows are always made.
        """
        if copy is False:
            raise ValueError("samples are made when they are asked for: copy=None")
        rows = self.rows(0, self.count)
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def part(self, start: int, stop: int) -> Samples:
        """Return what another process needs to make these rows."""
        del start, stop
        return self

    def read(self, start: int, stop: int) -> Samples:
        """Return what makes these rows at once, in the worker that needs them."""
        del start, stop
        return self

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return a description of the rows, as JSON has it, for the file of results."""


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Samples):
    """Rows that are uniform between limits: row k depends on the seed and k alone.

    Attributes:
        total: The number of rows.
        lower: Least values [m or rad], one for each of n joints.
        upper: Greatest values, likewise.
        seed: The seed of the generator.
        joints: Names of the joints.
        units: The unit of each joint.
        cell: The name of the cell.
        cell_digest: What identifies the cell; None if it cannot be recognised.
    """

    total: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    seed: int
    joints: tuple[str, ...]
    units: tuple[str, ...]
    cell: str
    cell_digest: str | None

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self.total

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a row: one number for each joint."""
        return (len(self.lower),)

    @property
    def named_joints(self) -> NamedJoints:
        """Return the joints that rows are positions of."""
        return NamedJoints(self.joints, self.units)

    def rows(self, start: int, stop: int) -> Array:
        """Return rows, by the generator PCG64DXSM, which jumps to any of its numbers.

        Number m of the table, counted row by row, is number m of the generator, see
        O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good
        Algorithms for Random Number Generation (2014), section 4.3.1.
        """
        bits = np.random.PCG64DXSM(self.seed).advance(int(start) * len(self.lower))
        lower, upper = np.array(self.lower), np.array(self.upper)
        # lower + width * u must never exceed upper, also where the width was rounded
        # up.
        width = upper - lower
        width = np.where(lower + width > upper, np.nextafter(width, 0.0), width)
        # Many rows at once: NumPy's loops over a single row cost more than its numbers.
        wide = -(-(stop - start) // ROWS_AT_ONCE), ROWS_AT_ONCE * len(lower)
        values = np.random.Generator(bits).random(wide)
        values *= np.tile(width, ROWS_AT_ONCE)
        values += np.tile(lower, ROWS_AT_ONCE)
        return values.reshape(-1, *self.shape)[: stop - start]

    def described(self) -> dict[str, Any]:
        """Return its fields."""
        return {"kind": "uniform within limits, PCG64DXSM", **vars(self)}


@final
@dataclass(frozen=True, kw_only=True)
class UniformCoupled(Samples):
    """Rows that are uniform where limits that couple joints hold.

    Rows of `box` that break them are drawn again, MOST_DRAWS times; the few that are
    left, where these limits leave little of the box, end a walk of STEPS random steps
    in it (hit-and-run: Smith, Operations Research 32, 1984). Row k depends on the seed
    and k alone.

    Attributes:
        box: Rows within the least and greatest values that these limits leave.
        A: Coefficients of the limits, m rows of n.
        b: Greatest values of A q, shape (m,).
        middle: Where walks begin, shape (n,).
        corners: Corners of the polytope, some rows of n; none where it fills so much
            of the box that hardly a row walks.
    """

    box: Uniform
    A: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    middle: tuple[float, ...]
    corners: tuple[tuple[float, ...], ...]

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self.box.count

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a row: one number for each joint."""
        return self.box.shape

    @property
    def named_joints(self) -> NamedJoints:
        """Return the joints that rows are positions of."""
        return self.box.named_joints

    def rows(self, start: int, stop: int) -> Array:
        """Return rows: the first of draws k, k + count, k + 2 count, ... that holds."""
        A, b = np.array(self.A), np.array(self.b)
        values = self.box.rows(start, stop)
        left = np.flatnonzero(~(values @ A.T <= b).all(axis=1))
        for k in range(1, MOST_DRAWS):
            if not left.size:
                break
            first = k * self.box.count + start
            # Runs of rows that are left are drawn at once.
            drawn = self.box.rows(first + int(left[0]), first + int(left[-1]) + 1)
            again = drawn[left - left[0]]
            good = (again @ A.T <= b).all(axis=1)
            values[left[good]] = again[good]
            left = left[~good]
        if left.size:
            values[left] = self._walked(start + left, A, b)
        return values

    def _walked(self, numbers: Array, A: Array, b: Array) -> Array:
        """Return where random walks from the middle end, one for each number.

        Directions are normal, with the covariance of the corners: as long and as thin
        as the polytope is.
        """
        lower, upper = np.array(self.box.lower), np.array(self.box.upper)
        spread = np.diag(upper - lower)
        if self.corners:
            corners = np.array(self.corners)
            spread = corners - corners.mean(axis=0)
        eye = np.eye(len(lower))
        rows = np.vstack([A, eye, -eye])
        ends = np.concatenate([b, upper, -lower])
        draws = [
            np.random.default_rng([self.box.seed, int(number), len(lower)])
            for number in numbers
        ]
        ways = np.stack([rng.normal(size=(STEPS, len(spread))) for rng in draws])
        parts = np.stack([rng.random(STEPS) for rng in draws])
        q = np.tile(self.middle, (len(draws), 1))
        for k in range(STEPS):
            way = ways[:, k] @ spread
            speed, room = way @ rows.T, np.maximum(ends - q @ rows.T, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                times = room / speed
            most = np.min(times, axis=1, where=speed > 0.0, initial=np.inf)
            least = np.max(times, axis=1, where=speed < 0.0, initial=-np.inf)
            step = least + parts[:, k] * (most - least)
            moved = np.clip(q + step[:, None] * way, lower, upper)
            good = (moved @ A.T <= b).all(axis=1) & np.isfinite(step)
            q = np.where(good[:, None], moved, q)
        return q

    def described(self) -> dict[str, Any]:
        """Return its fields, those of the box among them."""
        kind = "uniform within limits and limits that couple joints, PCG64DXSM"
        own = {
            "A": self.A,
            "b": self.b,
            "middle": self.middle,
            "corners": self.corners,
        }
        return {**self.box.described(), **own, "kind": kind}


def box_of(samples: Samples) -> Uniform | None:
    """Return the box that random joint positions are drawn from, None for others."""
    if isinstance(samples, UniformCoupled):
        return samples.box
    return samples if isinstance(samples, Uniform) else None


@final
@dataclass(frozen=True, kw_only=True)
class GridSamples(Samples):
    """Every combination of the values of axes, the last of which changes fastest.

    Attributes:
        axes: The values of each axis [m or rad].
        rotations: Rotation matrices (3, 3) that each point is combined with, which
            change fastest; None for rows of numbers.
    """

    axes: tuple[tuple[float, ...], ...]
    rotations: tuple[tuple[tuple[float, ...], ...], ...] | None = None

    @property
    def extent(self) -> tuple[int, ...]:
        """Return the number of values of each axis, then of rotations."""
        turns = () if self.rotations is None else (len(self.rotations),)
        return (*map(len, self.axes), *turns)

    @property
    def count(self) -> int:
        """Return the number of combinations."""
        return prod(self.extent)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a row: a number for each axis, or that of a pose."""
        return (len(self.axes),) if self.rotations is None else (4, 4)

    def rows(self, start: int, stop: int) -> Array:
        """Return some of the combinations."""
        # Row k counts like an odometer: the last axis changes fastest.
        indices = np.unravel_index(np.arange(start, stop), self.extent)
        columns = [
            np.array(axis)[k] for axis, k in zip(self.axes, indices, strict=False)
        ]
        points = np.stack(columns, axis=-1)
        if self.rotations is None:
            return points
        poses = np.zeros((stop - start, 4, 4))
        poses[:, :3, :3] = np.array(self.rotations)[indices[-1]]
        poses[:, :3, 3] = points
        poses[:, 3, 3] = 1.0
        return poses

    def described(self) -> dict[str, Any]:
        """Return its axes and rotations."""
        return {"kind": "grid", "axes": self.axes, "rotations": self.rotations}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Given(Samples):
    """Rows of an array, or of an NPY file or a Zarr array that workers open.

    Attributes:
        array: The rows, or None.
        path: The file, or an empty text.
        first: The number of the first row of `array`.
    """

    array: Array | None
    path: str = ""
    first: int = 0

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return self._shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""
        return self._shape[1:]

    @property
    def is_given(self) -> bool:
        """Return True."""
        return True

    @property
    def digest(self) -> str:
        """Return the hash of its numbers, all of which are read."""
        hasher = hashlib.sha256(f"{self._shape} {self._opened.dtype}".encode())
        for start in range(0, self.count, HASHED_ROWS):
            rows = self.rows(start, min(self.count, start + HASHED_ROWS))
            hasher.update(np.ascontiguousarray(rows).data)
        return hasher.hexdigest()

    def rows(self, start: int, stop: int) -> Array:
        """Return some of the rows.

        Raises:
            SweepError: A chunk of a Zarr array is damaged.
        """
        try:
            return np.asarray(self._opened[start - self.first : stop - self.first])
        except (OSError, ValueError, RuntimeError) as error:
            why = str(error).rstrip(".")
            raise SweepError(
                f"Rows {start} to {stop - 1} of {quote(self.path)} cannot be read: "
                f"{why}. If a sweep wrote them, the same sweep computes them again."
            ) from error

    def check(self) -> None:
        """Check that there are rows of numbers.

        Raises:
            SweepError: There are none, or a file cannot be read.
        """
        shape, dtype = self._opened.shape, self._opened.dtype
        if dtype.kind not in "fiu" or not shape or 0 in shape[1:]:
            where = f" in {quote(self.path)}" if self.path else ""
            raise SweepError(
                f"Samples are rows of numbers; those given{where} have shape {shape} "
                f"and type {dtype}. Use cell.samples(n), arm.grid(axes), an array "
                "(n, ...), or the path of an NPY file or a Zarr array."
            )

    @property
    def named_joints(self) -> NamedJoints:
        """Return the joints of positions that a sweep has written, as it says."""
        about: Mapping[str, Any] = getattr(self._opened, "attrs", {})
        names, units = about.get("joint"), about.get("joint_units")
        if not (isinstance(names, list) and isinstance(units, list)):
            return NamedJoints()
        return NamedJoints(
            tuple(map(str, cast("list[Any]", names))),
            tuple(map(str, cast("list[Any]", units))),
        )

    def part(self, start: int, stop: int) -> Samples:
        """Return these rows of an array; of a file, the file."""
        if self.array is None:
            return self
        return Given(array=self.rows(start, stop), first=start)

    def read(self, start: int, stop: int) -> Samples:
        """Return rows of a Zarr array, each of whose chunks is then decoded once."""
        if self.array is not None or isinstance(self._opened, np.ndarray):
            return self
        return Given(array=self.rows(start, stop), first=start)

    def described(self) -> dict[str, Any]:
        """Return where the rows come from."""
        kind = "array" if self.array is not None else "file"
        return {"kind": kind, "path": self.path, "shape": self._shape}

    def __reduce__(self) -> tuple[Any, ...]:
        return _given, (self.array, self.path, self.first)

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(self._opened.shape)

    @cached_property
    def _opened(self) -> Any:
        if self.array is not None:
            return self.array
        if Path(self.path).is_dir():
            return _zarr_array(self.path)
        try:
            return np.lib.format.open_memmap(self.path, mode="r")
        except (OSError, ValueError) as error:
            raise SweepError(
                f"The samples in {quote(self.path)} are not an NPY file or a Zarr "
                f"array: {error}"
            ) from error


def _given(array: Array | None, path: str, first: int) -> Given:
    return Given(array=array, path=path, first=first)


def _zarr_array(path: str) -> Any:
    try:
        zarr: Any = import_module("zarr")
    except ImportError as error:
        raise SweepError(
            "Samples in a Zarr array need zarr: pip install 'armillary[sweep]'."
        ) from error
    try:
        return zarr.open_array(path, mode="r")
    except (OSError, ValueError) as error:
        raise SweepError(
            f"The samples in {quote(path)} are not a Zarr array: {error}. Of a group, "
            "name the array in it, such as 'out.zarr/q'."
        ) from error


def samples(
    cell: Workcell,
    count: int,
    *,
    seed: int = 0,
    joints: Joints = None,
    within: Mapping[str, tuple[float, float]] | None = None,
) -> Samples:
    """Return random joint positions for a sweep, uniform within the limits.

    Those that couple joints count too, the joints of no row being at home. Nothing is
    stored: row k follows from the seed and k, wherever it is needed.

    Args:
        cell: The cell that has the joints.
        count: How many rows.
        seed: Another number of 0 to 2^128 - 1 gives other rows.
        joints: Names of the joints that a row has, in that order; by default all.
        within: The least and greatest value of joints [m or rad] by their names, in
            place of their limits.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A joint has no limits and is not in `within`, or limits that couple
            joints leave no room there.
        SweepError: The count is below 1, or the seed is out of its range, or one is
            not an integer.
    """
    count, seed = whole_number(count, "count"), whole_number(seed, "seed")
    if count < 1:
        raise SweepError(f"A sweep needs at least one sample; count is {count}.")
    if not 0 <= seed < 1 << 128:
        raise SweepError(f"The seed is {seed}; it must be within 0 to 2^128 - 1.")
    index = list(selection_of(cell, joints).inputs)
    if not index:
        raise SweepError(
            "Samples need at least one joint; joints= or the cell names no joint."
        )
    chosen = [cell.joint_names[k] for k in index]
    ranges = _ranges(cell, index, within or {})
    lower, upper = np.array(ranges, np.float64).T
    rows = (
        cell.limit_rows.of_joints(index, cell.home_q) if len(cell.limit_rows) else None
    )
    middle = None
    if rows is not None and len(rows):
        fault = no_room(rows, lower, upper)
        if fault:
            raise ModelError(f"Joints cannot be sampled: {fault}")
        middle, _ = rows.room_within(lower, upper)
        lower, upper = rows.reach(lower, upper)
    box = Uniform(
        total=count,
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        seed=seed,
        joints=tuple(chosen),
        units=NamedJoints.of(cell, chosen).units,
        cell=cell.name,
        cell_digest=cell_digest(cell),
    )
    if rows is None or middle is None:
        return box
    share = rows.holds(box.rows(0, PROBED)).mean()
    corners = np.empty((0, len(lower)))
    if share < ENOUGH:
        corners = rows.corners(lower, upper)
    return UniformCoupled(
        box=box,
        A=_as_tuples(rows.A.tolist()),
        b=tuple(rows.b.tolist()),
        middle=tuple(middle.tolist()),
        corners=_as_tuples(corners.tolist()),
    )


def _ranges(
    cell: Workcell, index: Sequence[int], within: Mapping[str, tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return where each of some joints is sampled: `within`, else within its limits.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A range is not two finite numbers, or a joint is not among these.
    """
    ranges = {k: (cell.limits[0][k], cell.limits[1][k]) for k in index}
    for name, ends in within.items():
        if (k := cell.joint(name)) not in ranges:
            raise ModelError(f"within= has joint {quote(name)}, which joints= has not.")
        if np.shape(ends) != (2,):
            raise ModelError(
                f"within= has {ends} for joint {quote(name)}; it takes the least and "
                "the greatest value, two numbers."
            )
        ranges[k] = ends
    for k, (least, most) in ranges.items():
        if not (np.isfinite(least) and np.isfinite(most) and least <= most):
            name = cell.joint_names[k]
            raise ModelError(
                f"Joint {quote(name)} cannot be sampled from {least} to {most}: give "
                f"finite values, as in within={{{name!r}: (0.0, 1.0)}}."
            )
    return list(ranges.values())


def grid(
    axes: Sequence[npt.ArrayLike], *, rotations: npt.ArrayLike | None = None
) -> Samples:
    """Return samples on a grid: of joint positions, of points, or of poses.

    Args:
        axes: The values along each axis [m or rad], each of shape (k,): one for each
            joint, or x, y and z. The last axis changes fastest from row to row.
        rotations: Rotations that each point is combined with, shape (r, 3, 3); then
            there are three axes, and rows are poses (4, 4). They change fastest.

    Raises:
        ShapeError: An axis or rotations have another shape, or contain NaN.
    """
    values = [np.asarray(axis, np.float64) for axis in axes]
    for k, axis in enumerate(values):
        if axis.ndim != 1 or not len(axis) or not np.isfinite(axis).all():
            raise ShapeError(
                f"Axis {k} of the grid has shape {axis.shape}; it must be a list of "
                "at least one finite number."
            )
    if not values:
        raise ShapeError("A grid needs at least one axis.")
    lists = tuple(tuple(axis.tolist()) for axis in values)
    if rotations is None:
        return GridSamples(axes=lists)
    turns = np.asarray(rotations, np.float64)
    if turns.ndim != 3 or turns.shape[1:] != (3, 3) or not np.isfinite(turns).all():
        raise ShapeError(f"rotations have shape {turns.shape}; it must be (r, 3, 3).")
    if len(lists) != 3 or not len(turns):
        raise ShapeError(
            f"A grid of poses has three axes x, y and z, and at least one rotation; "
            f"there are {len(lists)} axes and {len(turns)} rotations."
        )
    return GridSamples(axes=lists, rotations=_as_tuples(turns.tolist()))


def _as_tuples(lists: Any) -> Any:
    if not isinstance(lists, list):
        return lists
    return tuple(map(_as_tuples, cast("list[Any]", lists)))


def as_samples(given: Any) -> Samples:
    """Return samples, rows of an array, or those in an NPY file or Zarr array.

    Raises:
        SweepError: There are no rows, or they are not numbers.
    """
    if isinstance(given, Samples):
        rows = given
    elif isinstance(given, str | os.PathLike):
        path = os.path.abspath(os.fspath(cast("str", given)))
        if not os.path.exists(path):
            raise SweepError(f"The samples in {quote(path)}: there is no such file.")
        rows = Given(array=None, path=path)
    else:
        rows = Given(array=np.asarray(given))
    if isinstance(rows, Given):
        rows.check()
    if rows.count < 1:
        raise SweepError("A sweep needs at least one sample; there are 0 rows.")
    if rows.count > MOST_ROWS:
        raise SweepError(f"There are {rows.count:.3g} rows; at most 2^63 - 1 can be.")
    return rows
