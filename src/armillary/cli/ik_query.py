"""How `armillary ik` solves targets, as its options say."""

from __future__ import annotations

import argparse
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.device import Device
from armillary.cli.joints import DEGREES_PER_RADIAN, si_factors
from armillary.cli.vectors import vector_of_text
from armillary.collision.check import CollisionCheck
from armillary.errors import ShapeError
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.query import TOLERANCE, Tolerance
from armillary.ik.reason import Reason, succeeded
from armillary.ik.solution import Answers
from armillary.kernel.search import SearchOptions

Array = npt.NDArray[np.float64]
Reasons = npt.NDArray[np.int8]


class QueryResult(NamedTuple):
    """The answers to a batch of targets.

    Attributes:
        q: Joint positions [m or rad], shape (k, n), or (k, b, n) with all answers.
        reason: Numbers of `Reason`, shape (k,).
        residual: What remains [m, rad], shape (k, 2).
        jumps: Indices of the targets to which the arm must jump.
    """

    q: Array
    reason: Reasons
    residual: Array
    jumps: tuple[int, ...] = ()


class Query:
    """A solver and the options of its calls.

    Attributes:
        device: The joints that move.
        ik: The solver.
        options: Those of the command line.
        avoid: The check that answers avoid, or None.
        factors: For each joint what makes its number on the command line SI, (n,).
    """

    def __init__(
        self,
        device: Device,
        ik: InverseKinematics,
        options: argparse.Namespace,
        avoid: CollisionCheck | None,
    ) -> None:
        """Keep the solver of `device`, the options, and what answers avoid."""
        self.device = device
        self.ik = ik
        self.options = options
        self.avoid = avoid
        names = device.joint_names
        turned = si_factors(device.cell, names) if options.degrees else None
        self.factors = np.ones(len(names)) if turned is None else turned

    @property
    def position_only(self) -> bool:
        """Return whether no rotation of a target counts."""
        return self.options.rotation == "none"

    @cached_property
    def near(self) -> Array | None:
        """Return the joint positions to stay near [m or rad], shape (n,).

        Raises:
            ShapeError: Their number is not that of the joints that move.
        """
        if self.options.near is None:
            return None
        near = vector_of_text(self.options.near, "--near")
        names = self.device.joint_names
        if len(near) != len(names):
            raise ShapeError(
                f"--near has {len(near)} numbers; {len(names)} joints move: "
                f"{', '.join(names)}."
            )
        return near * self.factors

    @cached_property
    def tolerance(self) -> Tolerance:
        """Return the largest distance [m] and angle [rad].

        Raises:
            ShapeError: They are not two numbers.
        """
        if self.options.tolerance is None:
            return TOLERANCE
        numbers = vector_of_text(self.options.tolerance, "--tolerance")
        if numbers.shape != (2,):
            raise ShapeError("--tolerance takes two numbers: metres and radians.")
        return float(numbers[0]), float(numbers[1])

    def solve(self, targets: Array) -> QueryResult:
        """Return an answer to each target, shape (k, 4, 4), or the best."""
        options = self.options
        if options.best is not None:
            answer = self.ik.best(
                targets,
                options.best,
                tolerance=self.tolerance,
                method=options.method,
                arm_angle=self._arm_angle,
                **self._starts,
            )
        else:
            search_options = SearchOptions(**self._starts) if self._starts else None
            answer = self.ik(targets, **self._requested, search_options=search_options)
        return QueryResult(answer.q, answer.reason, answer.residual)

    def follow(self, targets: Array, came: Array | None) -> QueryResult:
        """Return answers to targets as a path that comes from a vector, if from one."""
        answer, jumps = self.ik.path(
            targets,
            start=came,
            tolerance=self.tolerance,
            method=self.options.method,
            arm_angle=self._arm_angle,
        )
        indices = tuple(jumps.tolist())
        return QueryResult(answer.q, answer.reason, answer.residual, indices)

    def every(self, targets: Array) -> Answers:
        """Return all answers to each target."""
        return self.ik.all(targets, **self._requested, **self._starts)

    def solve_all(self, targets: Array) -> QueryResult:
        """Return all answers, NaN for branches without one, and why there is none."""
        answers = self.every(targets)
        none = ~answers.success.any(axis=1)
        reason = np.full(len(targets), Reason.SOLVED, np.int8)
        if none.any():
            reason[none] = self.why_none(targets[none])
        residual = np.where(answers.success[..., None], answers.residual, 0.0)
        q = np.where(answers.success[..., None], answers.q, np.nan)
        return QueryResult(q, reason, residual.max(axis=1, initial=0.0))

    def why_none(self, targets: Array) -> Reasons:
        """Return the reason of each target without any answer."""
        reason = self.solve(targets).reason
        return np.where(succeeded(reason), Reason.NOT_FOUND, reason).astype(np.int8)

    @property
    def _starts(self) -> dict[str, Any]:
        starts = self.options.starts
        return {} if starts is None else {"starts": starts}

    @property
    def _requested(self) -> dict[str, Any]:
        return {
            "near": self.near,
            "tolerance": self.tolerance,
            "method": self.options.method,
            "arm_angle": self._arm_angle,
        }

    @property
    def _arm_angle(self) -> float | None:
        angle = self.options.arm_angle
        if angle is not None and self.options.degrees:
            return angle / DEGREES_PER_RADIAN
        return angle
