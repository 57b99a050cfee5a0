"""Motions: joint positions and their derivatives at each instant.

A motion is made of pieces. In each of them a share r of a piece of a path is a
polynomial of time, and the joint positions are one of r, both of degree 5 at most:

    r(t) = sum_k law[k] t^k,    q(r) = sum_k curve[k] r^k

with t from the start of the piece on. So paths with times, motions of constant jerk and
interpolated samples are all motions, and their derivatives are exact:

    qd = q' r',    qdd = q'' r'^2 + q' r'',    qddd = q''' r'^3 + 3 q'' r' r'' + q' r'''
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, StateError, quote
from armillary.kernel import Kernel
from armillary.kernel.arguments import numbers_of, positive_number, whole_number
from armillary.kinematics.identity import cell_digest
from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State, bound_state, home, rates_of
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.trajectories.curve import cubic_coefficients, hermite_coefficients
from armillary.trajectories.motion_files import read_motion, write_motion
from armillary.trajectories.motion_kernel import evaluation, even_law, turned_law
from armillary.trajectories.motion_parts import (
    POWERS,
    Attachment,
    Marker,
    Peaks,
    Samples,
    check_meeting,
    check_pieces,
    in_order,
    sample_times,
    samples_of,
    units_of,
)
from armillary.trajectories.position_limits import greatest_excess, workcell_of

__all__ = ["Motion", "digest_of"]

Array = npt.NDArray[np.float64]

PARTS = 8
"""Parts of each piece, at whose ends `Motion.peaks` looks."""

CONTINUITY = 1e-6
"""By how much motions may differ where one follows another, by default."""


def digest_of(cell: Workcell) -> str:
    """Return the hash of the content of a cell; empty where it has none."""
    return cell_digest(cell) or ""


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Motion:
    """Positions of joints over time, and their derivatives; arrays are read-only.

    `times`, `q`, `qd`, `qdd` and `qddd` are those where pieces begin, and at the end.
    Where a derivative jumps from one piece to the next they have that of the next.

    Attributes:
        times: When each of m pieces begins, and when the last one ends [s], shape (m +
            1,); the first is 0.
        law: Coefficients of r(t) of each piece, shape (m, 6).
        curve: Coefficients of q(r) of each of p pieces of the path, shape (p, 6, n).
        piece: Which piece of the path each is on, shape (m,).
        joint_names: The names of the n joints; empty where they are not known.
        units: The units of their positions: `m`, `rad` or nothing.
        markers: Names of instants, in order of time.
        attachments: What is gripped and released, in order of time.
        start: The state that it begins in, but for the positions of these joints. Of a
            motion that was read from a file it knows no cell yet, see `bound`.
        cell_digest: The hash of the content of the cell it was made for, where known.
    """

    times: Array
    law: Array
    curve: Array
    piece: npt.NDArray[np.int64]
    joint_names: tuple[str, ...]
    units: tuple[str, ...] = ()
    markers: tuple[Marker, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    start: State | None = None
    cell_digest: str = ""

    def __post_init__(self) -> None:
        """Bring arrays into the form in which kernels take them.

        Raises:
            ShapeError: They do not fit.
            ModelError: A piece of the path does not exist.
        """
        kinds: dict[str, Any] = {"piece": np.int64}
        for name in ("times", "law", "curve", "piece"):
            kind = kinds.get(name, np.float64)
            array: Any = np.array(getattr(self, name), dtype=kind, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        check_pieces(self.times, self.law, self.curve, self.piece)

    # Making

    @classmethod
    def through(
        cls,
        times: npt.ArrayLike,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        qdd: npt.ArrayLike | None = None,
        *,
        joint_names: Sequence[str] = (),
        start: State | None = None,
    ) -> Self:
        """Return the motion through samples: polynomials of time of degree 5 or 3.

        Args:
            times: Instants [s], ascending, shape (k,), k >= 2.
            q: Positions there [m or rad], shape (k, n).
            qd: Rates there [m/s or rad/s], shape (k, n).
            qdd: Accelerations there [m/s^2 or rad/s^2], shape (k, n). Without them the
                polynomials are cubic, and accelerations jump from one to the next.
            joint_names: Names of the n joints; by default those of the cell of `start`.
            start: The state that it begins in, but for these joints.

        Raises:
            ShapeError: An array does not fit.
            ModelError: A number is not finite, or times do not ascend.
        """
        t, values = samples_of(times, q, qd, qdd)
        h = np.diff(t)
        if qdd is None:
            curve = cubic_coefficients(h, values[0], values[1])
        else:
            curve = hermite_coefficients(h, np.stack(values, axis=1))
        return cls.on(
            start,
            joint_names,
            times=t - t[0],
            law=even_law(h),
            curve=curve,
            piece=np.arange(len(h)),
        )

    @classmethod
    def of(cls, recorded: Any, *, start: State | None = None) -> Self:
        """Return what was recorded as a motion: of a simulation, a controller, samples.

        Args:
            recorded: A `Trajectory` of `cell.simulate`, a `ControlledMotion` of a
                controller or `Samples`, without a batch; a `Motion` as it is.
            start: The state that it begins in; by default that of what was recorded.

        Raises:
            ShapeError: It is something else, or has a batch.
            ModelError: A number is not finite, or times do not ascend.
        """
        if isinstance(recorded, cls):
            return recorded
        parts: Any = [getattr(recorded, name, None) for name in ("time", "q", "qd")]
        if any(part is None for part in parts):
            raise ShapeError(
                "A motion is made of a Trajectory, a ControlledMotion or Samples, not "
                f"of {quote(recorded)}. Of arrays: Motion.through(times, q, qd, qdd)."
            )
        if np.ndim(parts[1]) != 2:
            raise ShapeError(
                f"A motion is one of many here, of shape {np.shape(parts[1])[:-2]}: "
                "choose one of them."
            )
        start = getattr(recorded, "start", None) if start is None else start
        places = cast("tuple[int, ...] | None", getattr(recorded, "joints", None))
        names: Sequence[str] = ()
        if places is not None and start is not None:
            names = [start.cell.joint_names[k] for k in places]
        n = np.shape(parts[1])[1]
        qdd = getattr(recorded, "qdd", None)
        return cls.through(
            parts[0], parts[1], parts[2][:, -n:], qdd, joint_names=names, start=start
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the motion in a file that `write` wrote.

        A `.json` or `.npz` file gives the same motion. A `.csv` or `.npy` file gives
        polynomials of degree 5 through its samples, or of degree 3, where a `.csv` has
        positions and rates only, as those of `cell.hand_over`.

        Raises:
            FormatError: The file cannot be read, or holds no motion.
            UnknownName: There is no such format.
        """
        return cls(**read_motion(path))

    @classmethod
    def on(cls, start: State | None, joint_names: Sequence[str], **parts: Any) -> Self:
        """Return a motion of joints of the cell of a state.

        Args:
            start: The state that it begins in, but for these joints.
            joint_names: Their names; by default those of all joints of the cell.
            parts: `times`, `law`, `curve` and `piece`, see above.

        Raises:
            ShapeError: There are more or fewer joints than names.
        """
        n = parts["curve"].shape[-1]
        names, units = tuple(joint_names), ()
        if start is not None:
            cell = start.cell
            names = names or tuple(cell.joint_names)
            units = units_of(cell, names)
        if names and len(names) != n:
            raise ShapeError(
                f"This motion is of {n} joints, and there are {len(names)} names; name "
                "those that move with joint_names=."
            )
        return cls(joint_names=names, units=units, start=start, **parts)

    # Asking

    @property
    def duration(self) -> float:
        """Return how long it takes [s]."""
        return float(self.times[-1])

    @property
    def q(self) -> Array:
        """Return positions where pieces begin, and at the end, shape (m + 1, n)."""
        return self._knots[0]

    @property
    def qd(self) -> Array:
        """Return rates there [m/s or rad/s], shape (m + 1, n)."""
        return self._knots[1]

    @property
    def qdd(self) -> Array:
        """Return accelerations there [m/s^2 or rad/s^2], shape (m + 1, n)."""
        return self._knots[2]

    @property
    def qddd(self) -> Array:
        """Return jerks there [m/s^3 or rad/s^3], shape (m + 1, n)."""
        return self._knots[3]

    @property
    def digest(self) -> str:
        """Return the hash of the content of the cell, empty where it is not known."""
        cell = self._cell
        return self.cell_digest if cell is None else digest_of(cell)

    def at(self, time: npt.ArrayLike) -> Samples:
        """Return the motion at instants.

        Before the start and after the end it rests at that end: rates, accelerations
        and jerks are zero there.

        Args:
            time: Instants [s], shape (...).

        Raises:
            ShapeError: They are not numbers.
        """
        if isinstance(time, float) and 0.0 <= time <= self._end:
            k = bisect_right(self._begins, time) - 1
            rows = self._rows.get(k)
            if rows is None:
                rows = self._rows[k] = self.law[k], self.curve[int(self.piece[k])]
            law, curve = rows
            return Samples(time, *self._kernel(law, curve, time - self._begins[k]))  # type: ignore[arg-type]
        t = numbers_of("time", time)
        known = np.where(np.isnan(t), 0.0, t)
        k = np.searchsorted(self.times[1:-1], known, side="right")
        found = self._evaluated(k, np.clip(known, 0.0, self._end) - self.times[k])
        rests = (known < 0.0) | (known > self._end)
        if rests.any():
            for part in found[1:]:
                part[rests] = 0.0
        if known is not t and np.isnan(t).any():
            for part in found:
                part[np.isnan(t)] = np.nan
        return Samples(t, *found)

    def sampled(
        self,
        *,
        rate: float | None = None,
        dt: float | None = None,
        count: int | None = None,
    ) -> Samples:
        """Return the motion at a constant rate, and at its end.

        Args:
            rate: Samples a second.
            dt: The time between two samples instead [s].
            count: The number of samples instead, both ends among them, at least 2.

        Raises:
            ModelError: A number is not above 0, or not one of them is given.
        """
        if sum(value is not None for value in (rate, dt, count)) != 1:
            raise ModelError("Give one of rate=, dt= and count=.")
        if count is not None:
            count = whole_number("count", count, least=2)
            return self.at(np.linspace(0.0, self.duration, count))
        if dt is not None:
            rate = 1.0 / positive_number("dt", dt)
        return self.at(sample_times(self.duration, positive_number("The rate", rate)))

    def peaks(self) -> Peaks:
        """Return the greatest rates, accelerations and jerks.

        Found at eight samples of each piece, from both sides where pieces meet.
        """
        k = np.repeat(np.arange(len(self.law)), PARTS + 1)
        parts = np.tile(np.linspace(0.0, 1.0, PARTS + 1), len(self.law))
        _, *found = self._evaluated(k, parts * np.diff(self.times)[k])
        return Peaks(*(np.abs(part).max(axis=0) for part in found))

    def limit_excess(self, cell: Any, *, joints: Joints = None) -> float:
        """Return by how much it is beyond the limit of positions that it misses most.

        It is 0 or less where limits are kept [m or rad]; see `TimedPath.limit_excess`.

        Args:
            cell: The cell that moves.
            joints: Names of the joints of the motion, in their order; by default all.

        Raises:
            UnknownName: A joint does not exist.
            ShapeError: The cell has other joints.
        """
        workcell = workcell_of(cell, self.curve.shape[-1], joints)
        return greatest_excess(workcell, self.curve[np.unique(self.piece)], joints)

    def state(self, time: float) -> State:
        """Return the state of the cell at an instant: attachments, positions, rates.

        Raises:
            StateError: The motion has no cell, see `bound`; or a part cannot be gripped
                or released then.
            ModelError: The time is not a number.
        """
        (instant,) = np.ravel(numbers_of("time", time))
        if np.isnan(instant):
            raise ModelError("The time of a state is a number, not NaN.")
        state = self._start
        for event in self.attachments:
            if event.time > instant:
                break
            state = self._after(state, event)
        return self._moved(state, float(instant))

    def _after(self, state: State, event: Attachment) -> State:
        """Return the state after an attachment, of the state before it."""
        state = self._moved(state, event.time)
        if event.by is None:
            return state.release(event.part)
        return state.grip(event.part, by=event.by, replace=True)

    def _moved(self, state: State, time: float) -> State:
        q, qd = np.array(state.q), np.array(rates_of(state))
        found = self.at(time)
        q[self._places], qd[self._places] = found.q, found.qd
        within = min(max(time, 0.0), self.duration)
        return state.replace(q=q, qd=qd, time=self._start.time + within)

    # Changing

    def bound(self, cell: Any) -> Motion:
        """Return the motion of a file as one of a cell.

        Args:
            cell: The cell, or one of its states, which the motion then begins in.

        Raises:
            StateError: It was made for another cell.
            UnknownName: A joint does not exist.
        """
        workcell: Any = getattr(cell, "workcell", cell)
        if isinstance(cell, State):
            workcell = cell.cell
        is_same = self._cell is workcell  # its digest takes longer than all the rest
        made_for = "" if is_same else self.digest
        if made_for and made_for != digest_of(workcell):
            raise StateError(
                "This motion was made for a cell with another content. To use it "
                "nevertheless, say so: Motion.through(motion.times, motion.q, "
                "motion.qd, motion.qdd, start=cell.home)."
            )
        if isinstance(cell, State):
            start = cell
        elif self.start is not None:
            start = bound_state(workcell, self.start)
        else:
            start = home(workcell)
        parts = (self.times, self.law, self.curve, self.piece)
        names = ("times", "law", "curve", "piece")
        made = Motion.on(
            start, self.joint_names, **dict(zip(names, parts, strict=True))
        )
        return replace(made, markers=self.markers, attachments=self.attachments)

    def marked(self, name: str, time: float) -> Motion:
        """Return the motion with a name for an instant.

        Args:
            name: What happens then; several instants may have the same name.
            time: The instant [s].

        Raises:
            ModelError: The instant is not within the motion.
        """
        made = Marker(str(name), self._instant(time))
        return replace(self, markers=in_order([*self.markers, made]))

    def gripping(self, part: str, *, by: str, time: float) -> Motion:
        """Return the motion with a part that a frame grips at an instant.

        Args:
            part: The manipulator that is gripped.
            by: The frame that grips it, where the part then is.
            time: The instant [s].

        Raises:
            ModelError: The instant is not within the motion.
            StateError: The part cannot be gripped then.
            UnknownName: The part or the frame does not exist.
        """
        return self._with_event(Attachment(part, self._instant(time), by))

    def releasing(self, part: str, *, time: float) -> Motion:
        """Return the motion with a part that is let go at an instant.

        Args:
            part: The manipulator that is released; it stays where it is.
            time: The instant [s].

        Raises:
            ModelError: The instant is not within the motion.
            StateError: The part is not attached then.
            UnknownName: The part does not exist.
        """
        return self._with_event(Attachment(part, self._instant(time)))

    def _with_event(self, event: Attachment) -> Motion:
        made = replace(self, attachments=in_order([*self.attachments, event]))
        made.state(self.duration)  # grips and releases everything
        return made

    def reversed(self) -> Motion:
        """Return the motion backwards; what it grips it releases, and vice versa.

        Raises:
            StateError: It has attachments and no cell.
        """
        end = self.duration
        h = np.diff(self.times)
        turned = turned_law(self.law, h)[::-1]
        attachments: list[Attachment] = []
        start = self.start
        if self.attachments:
            state = self._start
            for event in self.attachments:  # several may be at one instant
                parent = state.parent(event.part)
                state = self._after(state, event)
                by = None if parent == WORLD else parent
                attachments.append(Attachment(event.part, end - event.time, by))
            start = self.state(end).replace(time=self._start.time)
        return replace(
            self,
            times=np.append(end - self.times[:0:-1], end),
            law=turned,
            piece=self.piece[::-1],
            markers=in_order(Marker(m.name, end - m.time) for m in self.markers),
            attachments=in_order(attachments[::-1]),
            start=start,
        )

    def stretched(self, duration: float) -> Motion:
        """Return the motion slowed down to a duration [s]; markers move with it.

        Raises:
            ModelError: The duration is shorter than that of this motion, or the motion
                takes no time.
        """
        wanted = positive_number("duration", duration)
        if self.duration == 0.0:
            raise ModelError(
                "This motion takes no time and cannot be stretched: it rests."
            )
        if wanted < self.duration * (1.0 - 1e-12):
            raise ModelError(
                f"This motion takes {self.duration:.6g} s, the shortest time within "
                f"its limits; {wanted:.6g} s is shorter. Raise limits to be faster."
            )
        slower = wanted / self.duration
        times = self.times * slower
        times[-1] = wanted
        return replace(
            self,
            times=times,
            law=self.law / slower ** np.arange(POWERS),
            markers=tuple(
                m._replace(time=min(m.time * slower, wanted)) for m in self.markers
            ),
            attachments=tuple(
                e._replace(time=min(e.time * slower, wanted)) for e in self.attachments
            ),
        )

    def then(
        self,
        *others: Motion,
        pause: float = 0.0,
        smooth: bool = False,
        tolerance: float = CONTINUITY,
    ) -> Motion:
        """Return this motion and others after it, as one.

        Args:
            others: Motions of the same joints.
            pause: How long it rests between two of them [s].
            smooth: Whether accelerations must be the same where two meet, too, as they
                are where jerk is limited.
            tolerance: By how much positions [m or rad], rates [m/s or rad/s] and
                accelerations [m/s^2 or rad/s^2] may differ there.

        Raises:
            ShapeError: A motion is of other joints.
            ModelError: Two motions do not meet; the pause is negative or not finite, or
                would stop what moves.
        """
        motion = self
        wait = numbers_of("pause", pause)
        if wait.ndim or not 0.0 <= wait < np.inf:
            raise ModelError(f"pause is a time [s], at least 0, not {quote(pause)}.")
        for other in others:
            motion = motion._joined(other, float(wait), smooth, tolerance)
        return motion

    def _joined(
        self, other: Motion, pause: float, smooth: bool, tolerance: float
    ) -> Motion:
        counts = self.curve.shape[-1], other.curve.shape[-1]
        if counts[0] != counts[1]:
            raise ShapeError(
                "Motions follow each other with the same joints; these have "
                f"{counts[0]} and {counts[1]}."
            )
        if other.joint_names != self.joint_names:
            raise ShapeError(
                f"Motions follow each other with the same joints; these have "
                f"{', '.join(map(quote, self.joint_names))} and "
                f"{', '.join(map(quote, other.joint_names))}."
            )
        last = self._ends[1]
        check_meeting(self.joint_names, last, other._ends[0], pause, smooth, tolerance)
        begin = self.duration + pause
        later = other.times + begin
        times, laws = [self.times], [self.law]
        curves, pieces = [self.curve], [self.piece]
        if pause:
            still = np.zeros((1, POWERS, len(last[0])))
            still[0, 0] = last[0]
            laws.append(np.zeros((1, POWERS)))
            curves.append(still)
            pieces.append(np.array([len(self.curve)]))
            times.append(later[:1])
        laws.append(other.law)
        curves.append(other.curve)
        pieces.append(other.piece + sum(map(len, curves[:-1])))
        times.append(later[1:])
        markers = [Marker(m.name, m.time + begin) for m in other.markers]
        events = [e._replace(time=e.time + begin) for e in other.attachments]
        return replace(
            self,
            times=np.concatenate(times),
            law=np.concatenate(laws),
            curve=np.concatenate(curves),
            piece=np.concatenate(pieces),
            markers=in_order([*self.markers, *markers]),
            attachments=in_order([*self.attachments, *events]),
            start=self.start if self.start is not None else other.start,
            cell_digest=self.cell_digest or other.cell_digest,
        )

    def write(self, path: str | os.PathLike[str], *, rate: float | None = None) -> None:
        """Write the motion to a file, as a whole or not at all.

        `.json` and `.npz` hold all of it. `.csv` and `.npy` hold rows of the time and
        of q, qd, qdd and qddd of each joint; a `.csv` has names and units at its head.
        Markers, attachments and the cell are not in them.

        Args:
            path: The file, whose ending chooses the format.
            rate: Samples a second in a `.csv` or `.npy`; by default where pieces begin.

        Raises:
            UnknownName: There is no such format.
            FormatError: The file cannot be written.
            ModelError: The rate is not above 0, or the file holds no samples.
        """
        write_motion(self, path, rate=rate)

    # Inside

    @cached_property
    def _begins(self) -> list[float]:
        return self.times[:-1].tolist()

    @cached_property
    def _end(self) -> float:
        return float(self.times[-1])

    @cached_property
    def _rows(self) -> dict[int, tuple[Array, Array]]:
        """Return the arrays of pieces asked for: their views cost more than sums."""
        return {}

    @cached_property
    def _kernel(self) -> Kernel:
        return evaluation(self.curve.shape[-1])

    @cached_property
    def _places(self) -> list[int]:
        return [self._start.cell.joint(name) for name in self.joint_names]

    @cached_property
    def _knots(self) -> tuple[Array, ...]:
        k = np.append(np.arange(len(self.law)), len(self.law) - 1)
        since = np.zeros(len(k))
        since[-1] = self.times[-1] - self.times[-2]
        found = self._evaluated(k, since)
        for part in found:
            part.flags.writeable = False
        return found

    @property
    def _ends(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return q, qd, qdd and qddd at both ends, (n,) each."""
        first, last = (tuple(part[k] for part in self._knots) for k in (0, -1))
        return first, last

    @property
    def _cell(self) -> Workcell | None:
        try:
            return None if self.start is None else self.start.cell
        except StateError:  # of a file, and not bound yet
            return None

    @property
    def _start(self) -> State:
        if self.start is None or self._cell is None:
            raise StateError(
                "This motion has no cell: motion.bound(cell) gives it one."
            )
        return self.start

    def _evaluated(self, k: npt.NDArray[np.int64], since: Array) -> tuple[Array, ...]:
        """Return q, qd, qdd and qddd a time after the starts of pieces k."""
        found: Any = self._kernel(self.law[k], self.curve[self.piece[k]], since)
        return found

    def _instant(self, time: Any) -> float:
        instant = numbers_of("time", time)
        if instant.ndim or not 0.0 <= instant <= self._end:
            raise ModelError(
                f"An instant of this motion is between 0 and {self._end:g} s, not "
                f"{quote(time)}."
            )
        return float(instant)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: no kernel, and nothing that it is asked for."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        return f"<Motion: {self.duration:.6g} s, {self.curve.shape[-1]} joints>"
