"""The check of a cell with closed loops: every law of loops, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.errors import ModelError, StateError
from armillary.kinematics.loops import ClosedLoops
from armillary.model.loops.loop import Closure, Rod
from armillary.model.unit import Unit
from armillary.testing.differences import descent, first_difference
from armillary.testing.laws import broken_laws, row

__all__ = ["check_loops"]

Array = npt.NDArray[np.float64]

CLOSED: Final = 1e-9  # [rad, or of the size of loops]
REDUNDANT: Final = 1e-5  # the same, where some equations follow from others
STEP: Final = 1e-3  # of a radian, or of the size of a loop
PARTS: Final = 64
"""Steps of a way from home."""


@dataclass(frozen=True)
class _CheckedLoop:
    """A cell, and joint positions to test.

    Attributes:
        cell: With loops.
        q: Joint positions, shape (samples, n).
        found: What closes the loops there.
        size: The size of the largest loop [m].
        units: What changes of joints are compared with, those of q, then passive ones.
        random: Seeded numbers.
    """

    cell: Cell
    q: Array
    found: ClosedLoops
    size: float
    units: Array
    random: np.random.Generator

    @property
    def closed(self) -> Array:
        """Return the joint positions where loops are closed, shape (k, n)."""
        return self.q[self.found.success]


def check_loops(cell: Cell, *, samples: int = 24, seed: int = 0) -> None:
    """Check that the closed loops of a cell obey the laws of loops.

    They close at every q within limits; where they are closed, their frames coincide
    and passive joints are within limits; passive joints move without a jump along a
    straight way from home, which ends on the branch of home; states whose joints are
    moved have the poses that kernels compute; and Jacobians are the slopes of poses.

    Args:
        cell: The cell; joints without limits are tested over a turn, or twice the size
            of loops.
        samples: Number of joint positions to test.
        seed: Seed of the random numbers.

    Raises:
        ModelError: A law is broken, or the cell has no loops. The message names every
            broken law, where, and the numbers.
    """
    random = np.random.default_rng(seed)
    system = cell.workcell.loop_system
    units = np.array(system.units, dtype=np.float64)
    home = cell.home.q
    lower, upper = cell.limits
    turns = [
        cell.workcell.links[k].joint.unit is Unit.RADIAN
        for k in cell.workcell.joints.links[: len(home)]
    ]
    # Where there is no limit: half a turn to each side, or twice the size of the loops.
    reach = np.where(turns, np.pi, 2.0 * units[: len(home)])
    low = np.where(np.isfinite(lower), lower, home - reach)
    high = np.where(np.isfinite(upper), upper, home + reach)
    q = random.uniform(low, high, (samples, len(home)))
    closed = cell.close_loops(q)
    subject = _CheckedLoop(cell, q, closed, max(system.sizes), units, random)
    if faults := broken_laws(f"Cell '{cell.name}'", "loops", LAWS, subject):
        raise ModelError(faults)


def _close_within_limits(subject: _CheckedLoop) -> None:
    """Check that loops close at every q, so that limits are those of the linkage."""
    failed = ~subject.found.success
    if failed.any():
        raise ModelError(
            f"{subject.found!r} at random q within limits, not for example q = "
            f"{row(subject.q[failed][0])}; narrower limits of "
            f"{', '.join(subject.cell.joint_names)} say where loops close."
        )


def _frames_coincide(subject: _CheckedLoop) -> None:
    """Check closures and rods by the poses of their frames."""
    cell, q = subject.cell, subject.closed
    allowed = REDUNDANT if cell.mobility().redundant else CLOSED
    for loop, a, b in _loops(cell):
        X = cell.fk(b, relative_to=a)(q)
        # Lengths are compared with the size of the loops, rotations with 1.
        gaps = [*_gaps(loop, X, _extension(subject, loop))]
        for gap, size in zip(gaps, (subject.size, 1.0), strict=False):
            worst = np.abs(gap).max(axis=-1, initial=0.0) / size
            if not (worst < allowed).all():
                k = int(np.nan_to_num(worst, nan=np.inf).argmax())
                raise ModelError(
                    f"at q = {row(q[k])} {loop.label} is open by "
                    f"{worst[k] * size:.3g} m or rad, but is said to be closed."
                )


def _loops(cell: Cell) -> Iterator[tuple[Closure | Rod, str, str]]:
    """Yield loops with the full names of their frames."""
    for manipulator in cell.manipulators:
        for loop in manipulator.loops:
            yield loop, f"{manipulator.name}/{loop.a}", f"{manipulator.name}/{loop.b}"
    for loop in cell.loops:
        yield loop, loop.a, loop.b


def _gaps(loop: Closure | Rod, X: Array, extension: Array | None) -> Iterator[Array]:
    """Yield lengths, shape (k, rows), and parts of rotations, that should be zero."""
    p, R = X[:, :3, 3], X[:, :3, :3]
    if isinstance(loop, Rod):
        if extension is not None:
            distance = np.linalg.norm(p, axis=1)
            yield (distance - loop.length - extension)[:, None]
        return
    yield p[:, ["xyz".index(axis) for axis in loop.position]]
    # Two constrained axes leave the third free: it has no part along the other two.
    # Otherwise the sine of the angle about each axis, (R - R^T) / 2, is zero.
    turned = ["xyz".index(axis) for axis in loop.rotation]
    if len(turned) == 2:
        (free,) = {0, 1, 2}.difference(turned)
        yield R[:, turned, free]
    else:
        yield 0.5 * np.stack(
            [R[:, k - 1, k - 2] - R[:, k - 2, k - 1] for k in turned] or [0 * p[:, 0]],
            axis=1,
        )


def _extension(subject: _CheckedLoop, loop: Closure | Rod) -> Array | None:
    """Return the positions of the joint of a rod, None of one that is coupled."""
    if not loop.joint:
        return np.zeros(len(subject.closed))
    passive = subject.found.passive[subject.found.success]
    every = np.concatenate([subject.closed, passive], axis=1)
    names = [*subject.cell.joint_names, *subject.cell.passive_names]
    bare = loop.joint.rpartition("/")[2]
    places = [k for k, name in enumerate(names) if name.rpartition("/")[2] == bare]
    return every[:, places[0]] if len(places) == 1 else None


def _passive_within_limits(subject: _CheckedLoop) -> None:
    """Check the limits of passive joints where loops are closed."""
    joints = subject.cell.workcell.joints
    count = subject.q.shape[1]
    lower, upper = joints.ranges.lower[count:], joints.ranges.upper[count:]
    passive = subject.found.passive[subject.found.success]
    outside = (passive < lower) | (passive > upper)
    if outside.any():
        k, joint = map(int, np.argwhere(outside)[0])
        raise ModelError(
            f"at q = {row(subject.closed[k])} the passive joint "
            f"'{joints.all_names[count + joint]}' is at {passive[k, joint]:.6g}, "
            f"outside of its limits [{lower[joint]:.6g}, {upper[joint]:.6g}]."
        )


def _ways_end_on_the_branch(subject: _CheckedLoop) -> None:
    """Check that small steps from home lead to what is said to be on its branch."""
    cell, count = subject.cell, subject.q.shape[1]
    home = cell.home.q
    passive = subject.found.passive[subject.found.success]
    for q, expected in zip(subject.closed, passive, strict=True):
        state = cell.home
        try:
            # Each small step starts from the assembly before, so that no other branch
            # is met.
            for part in np.linspace(0.0, 1.0, PARTS + 1)[1:]:
                state = state.replace(q=home + part * (q - home))
        except StateError:
            continue  # the straight way leaves the range; another one may not
        apart = np.abs(_wrapped(cell, state.passive - expected))
        if not (apart < REDUNDANT * subject.units[count:]).all():
            raise ModelError(
                f"at q = {row(q)} the way from home ends at passive = "
                f"{row(state.passive)}, but close_loops is at "
                f"{row(expected)}: narrower limits may keep the two assemblies apart."
            )


def _states_agree_with_kernels(subject: _CheckedLoop) -> None:
    """Check that `cell.home.replace(q=q)` and kernels are at the same assembly.

    States walk to q in small parts; kernels start at what they have stored near q.
    """
    cell, count = subject.cell, subject.q.shape[1]
    links = [_name(cell, k) for k in cell.workcell.joints.links[count:]]
    poses = {link: np.asarray(cell.fk(link)(subject.q)) for link in links}
    for k, q in enumerate(subject.q):
        try:
            state = cell.home.replace(q=q)
        except StateError as error:
            if subject.found.success[k]:
                raise ModelError(
                    f"at q = {row(q)} close_loops closes the loops, but "
                    f"cell.home.replace(q=q) does not: {error}"
                ) from error
            continue
        for link in links:
            apart = np.abs(poses[link][k] - cell.pose(link, state))
            apart[:3, 3] /= subject.size
            if not apart.max() < REDUNDANT:
                raise ModelError(
                    f"at q = {row(q)} cell.fk('{link}') differs from "
                    f"cell.pose('{link}', cell.home.replace(q=q)) by "
                    f"{apart.max():.3g}, lengths in parts of the size of loops."
                )


def _name(cell: Cell, link: int) -> str:
    """Return the full name of a link."""
    manipulator = cell.manipulators[cell.workcell.owners[link]].name
    return f"{manipulator}/{cell.workcell.links[link].name}"


def _wrapped(cell: Cell, change: Array) -> Array:
    """Return changes of passive joints without whole turns."""
    joints = cell.workcell.joints
    links = [cell.workcell.links[k] for k in joints.links[-len(change) :]]
    turns = np.array([link.joint.unit is Unit.RADIAN for link in links])
    return change - np.where(turns, 2.0 * np.pi * np.round(change / (2.0 * np.pi)), 0.0)


def _jacobians_are_slopes(subject: _CheckedLoop) -> None:
    """Check the Jacobian of each link that passive joints move."""
    cell, count = subject.cell, len(subject.cell.joint_names)
    noise: Array = subject.random.uniform(0.5, 1.0, count)
    direction: Array = noise * subject.units[:count]
    # Three points along a direction through each q: both neighbours and q itself.
    near: Array = (
        subject.closed[:, None] + STEP * np.array([[-1.0], [0.0], [1.0]]) * direction
    )
    q = subject.closed[cell.close_loops(near).success.all(axis=-1)]
    if not len(q):
        return
    for k in cell.workcell.joints.links[count:]:
        link = _name(cell, k)
        fk, X = cell.fk(link), np.asarray(cell.fk(link)(q))
        twist: Array = np.asarray(cell.jacobian(link)(q)) @ direction
        claim = np.zeros((len(q), 3, 4))
        claim[..., 3] = twist[:, :3]
        claim[..., :3] = _crossed(twist[:, 3:], X[:, :3, :3])

        def moved(t: Array, fk: Callable[[Array], Array] = fk) -> Array:
            return fk(q + t[:, None] * direction)[:, :3]

        fall = descent(
            claim,
            lambda h: first_difference(moved, np.zeros(len(q)), h),
            np.full(len(q), STEP),
            1.0 + np.abs(X[:, :3, 3]).max(axis=1),
            order=1,
        )
        if not fall.is_quadratic:
            worst = fall.worst
            raise ModelError(
                f"at q = {row(q[worst])} the Jacobian of '{link}' is not the slope of "
                f"its pose; it gives the twist {row(twist[worst])} for q rates of "
                f"{row(direction)}."
            )


def _crossed(omega: Array, R: Array) -> Array:
    """Return omega x each column of R, shape (n, 3, 3)."""
    return np.stack([np.cross(omega, R[..., k]) for k in range(3)], axis=-1)


LAWS: Final[dict[str, Callable[[_CheckedLoop], None]]] = {
    "range": _close_within_limits,
    "frames": _frames_coincide,
    "limits": _passive_within_limits,
    "branch": _ways_end_on_the_branch,
    "states": _states_agree_with_kernels,
    "slope": _jacobians_are_slopes,
}
"""Every law of loops by its name, in the order in which they are checked."""
