"""Planner of paths: which answers to a sequence of targets are compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.numeric import Solver
from armillary.ik.path import Path, best_of, judged
from armillary.ik.path_graph import Layers, Turns, through
from armillary.ik.recognised_form import RecognisedForm, has_free_elbow
from armillary.ik.solution import Solution
from armillary.ik.user_form import UserForm
from armillary.ik.validation import LEAST_TIME, Tolerance
from armillary.ik.whole_turns import turning_joints
from armillary.kernel.search import SearchOptions
from armillary.kinematics.bound_kernel import AnyKernel

Array = npt.NDArray[np.float64]

AT_ONCE = 4096  # targets that are planned together
# Finer and finer arm angles around those that were chosen of 24 [rad].
FINER = [np.linspace(-1.0, 1.0, 9) * math.tau / 24 / 4.0**k for k in range(3)]
# Without a closed form, ways are followed from answers to a few targets to both ends.
MOST_BEGINNINGS = 8
MOST_ORIGINS, MOST_ANSWERS, APART = 6, 12, 1e-3
TRACKING = SearchOptions(steps=40, stale_from=16, starts=4)


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Finds the way through the answers to a sequence of targets.

    Attributes:
        numeric: The search.
        closed: The closed form; None where there is none or it is not to be used.
        arm_angle: What the closed form is called with [rad], shape () or (count,).
        answer: Takes targets and options of a call; gives an answer to each.
        every: Takes one target; gives its distinct answers, shape (k, n).
        fk: Gives the kernel of the poses that are placed.
        limits: Least and greatest q, each of shape (n,).
        home: Joint positions, shape (n,).
        tolerance: Largest distance [m] and angle [rad].
        largest_step: Above which a step is a jump [m or rad].
        time_left: Gives the seconds that are left, None for any time.
        explain: Whether to find out why targets are missed.
    """

    numeric: Solver
    closed: RecognisedForm | UserForm | None
    arm_angle: Array | None
    answer: Callable[..., Solution]
    every: Callable[[Array], Array]
    fk: Callable[[], AnyKernel]
    limits: tuple[Array, Array]
    home: Array
    tolerance: Tolerance
    largest_step: float
    time_left: Callable[[], float | None]
    explain: bool

    def branches(self, targets: Array, came: Array | None) -> Path:
        """Return the best way through the branches of the closed form.

        Args:
            targets: Poses.
            came: Where the arm comes from, shape (n,).
        """
        way = self.answer(
            targets,
            near=came,
            arm_angle=self.arm_angle,
            method="closed",
            timeout=self.time_left(),
        )
        return self.plan(targets, [way], came)

    def follow(self, targets: Array, came: Array | None) -> Path:
        """Return the best way, each answer sought from the one before.

        Where it jumps, or a step is much larger than its neighbours, the way is sought
        through all answers to each target, too; of an arm whose elbow is free also
        where a step is much larger than the mean.

        Args:
            targets: Poses.
            came: Where the arm comes from, shape (n,).
        """
        starts = self._beginnings(targets) if came is None else [came]
        ways = [
            self.numeric.follow(
                targets,
                q,
                self.tolerance,
                timeout=self.time_left(),
                explain=self.explain,
            )
            for q in starts
        ]
        paths = [judged(way, self.largest_step, came) for way in ways]
        best = paths[0] if len(paths) == 1 else best_of(paths)
        # an elbow that is free can drift to a singularity, and speed up slowly there
        drifts = has_free_elbow(self.closed, self.arm_angle) and best.is_uneven
        if not (best.may_be_smoother or drifts):
            return best
        return best_of([best, self.plan(targets, [best.answer, *ways], came)])

    def _beginnings(self, targets: Array) -> list[Array]:
        """Return joint positions from which a path may begin, each of shape (n,)."""
        if not len(targets):
            return [self.home]
        first = self.answer(targets[0], near=self.home, timeout=self.time_left())
        if not first.success:
            return [first.q if np.isfinite(first.q).all() else self.home]
        others = self.every(targets[0])
        return [first.q, *others[:: -(-len(others) // MOST_BEGINNINGS) or 1]]

    def plan(self, targets: Array, ways: list[Solution], came: Array | None) -> Path:
        """Return the best way through all answers that are known to each target.

        Args:
            targets: Poses.
            ways: Ways that are known; what the first says of targets without an answer
                is returned for these.
            came: Where the arm comes from, shape (n,).
        """
        if not len(targets):
            return judged(ways[0], self.largest_step)
        known, start = Layers.of_ways(ways), came
        pieces: list[Layers] = []
        for first in range(0, len(targets), AT_ONCE):
            rows = slice(first, first + AT_ONCE)
            piece = self._planned(targets[rows], known.at(rows), rows, start)
            pieces.append(piece)
            solved = np.flatnonzero(piece.success[:, 0])
            start = piece.q[solved[-1], 0] if solved.size else start
        q, _, residual, reason = (
            np.concatenate([part[:, 0] for part in parts])
            for parts in zip(*pieces, strict=True)
        )
        steps, starts = ways[0].steps, ways[0].starts
        answer = Solution(
            q=q, reason=reason, residual=residual, steps=steps, starts=starts
        )
        return judged(answer, self.largest_step, came)

    def _planned(
        self, targets: Array, known: Layers, rows: slice, start: Array | None
    ) -> Layers:
        """Return the way through what is known and the other answers to targets."""
        around = self.home if start is None else start
        turns = Turns(self._turning, self.limits, around)

        def best(layers: Layers) -> Layers:
            return through(layers, turns, self.largest_step, start)

        if self._is_late:
            return best(known)
        closed, elbow = self.closed, self.arm_angle
        if closed is None:
            return best(known.joined(self._tracks(targets, known)))
        if has_free_elbow(closed, elbow):
            angles = None
            for finer in (*FINER, None):
                answers = closed.at_angles(targets, self.tolerance, angles)
                known = best(known.joined(Layers.of_answers(answers)))
                if finer is None or self._is_late or closed.arm_angle is None:
                    break
                chosen = np.nan_to_num(closed.arm_angle(known.q[:, 0]))
                angles = chosen[:, np.newaxis] + finer
            return known
        at = elbow if elbow is None or elbow.ndim == 0 else elbow[rows]
        answers = closed.all(targets, None, self.tolerance, (len(targets),), at)
        return best(known.joined(Layers.of_answers(answers)))

    def _tracks(self, targets: Array, known: Layers) -> Layers:
        """Return ways to both ends from the answers to a few of the targets."""
        reached = np.flatnonzero(known.success.any(axis=1))
        X, q = targets[reached], known.q[reached, 0]
        tracks: list[tuple[npt.NDArray[Any], ...]] = []
        for origin in self._origins(q):
            for answer in self.every(X[origin])[:MOST_ANSWERS]:
                seen = [q[origin], *(track[0][origin] for track in tracks)]
                if self._is_late or self._is_among(answer, seen):
                    continue
                there = self._followed(X[origin:], answer)
                back = self._followed(X[origin::-1], answer)
                tracks.append(
                    tuple(
                        np.concatenate([b[:0:-1], a])
                        for a, b in zip(there, back, strict=True)
                    )
                )
        width = len(tracks)
        layers = Layers(
            np.zeros((len(targets), width, len(self.home))),
            np.zeros((len(targets), width), np.bool_),
            np.zeros((len(targets), width, 2)),
            np.zeros((len(targets), width), np.int8),
        )
        for k, track in enumerate(tracks):
            for whole, part in zip(layers, track, strict=True):
                whole[reached, k] = part
        return layers

    def _followed(self, targets: Array, start: Array) -> tuple[npt.NDArray[Any], ...]:
        way = self.numeric.follow(
            targets,
            start,
            self.tolerance,
            search_options=TRACKING,
            timeout=self.time_left(),
            explain=False,
        )
        return way.q, way.success, way.residual, way.reason

    def _origins(self, q: Array) -> list[int]:
        """Return targets to begin at: both ends, and where a way jumps."""
        if not len(q):
            return []
        steps = np.abs(np.diff(q, axis=0)).max(axis=1, initial=0.0)
        jumps = np.argsort(-steps, kind="stable")[: MOST_ORIGINS - 2] + 1
        return list(dict.fromkeys([0, len(q) - 1, *jumps.tolist()]))

    def _is_among(self, answer: Array, others: list[Array]) -> bool:
        """Tell whether one of other answers is the same but for whole turns."""
        off = answer - np.array(others)
        off -= np.where(self._turning, math.tau * np.round(off / math.tau), 0.0)
        return bool((np.abs(off).max(axis=1) < APART).any())

    @property
    def _is_late(self) -> bool:
        left = self.time_left()
        return left is not None and left <= LEAST_TIME

    @cached_property
    def _turning(self) -> npt.NDArray[np.bool_]:
        return turning_joints(self.fk, len(self.home))
