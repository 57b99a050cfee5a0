"""What runs ask of the layers below, found for many runs in one call.

A task that needs an answer to a pose, or a motion along a line, yields what it asks.
Runs of many layouts ask for the same kinds of things at about the same step, so that
each kind is found for all of them at once; a run alone asks for one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.planning import cartesian
from armillary.planning.cartesian_path import Tool, timed_along
from armillary.planning.tool_curve import Blend
from armillary.programs.ending import Impossible, RunReason

__all__ = ["AskedAnything", "AskedLine", "AskedPose", "Asking", "PoseAnswer", "find"]

Array = npt.NDArray[np.float64]
Made = TypeVar("Made")


@final
@dataclass(frozen=True)
class PoseAnswer:
    """The answer of inverse kinematics to a pose.

    Attributes:
        q: Joint positions [m or rad], shape (n,).
        reason: A number of `Reason`.
        success: Whether they reach it.
    """

    q: Array
    reason: int
    success: bool


@final
@dataclass(eq=False)
class AskedPose:
    """Joint positions at a pose.

    Attributes:
        key: What decides the answer.
        solver: Inverse kinematics of the tool.
        X: The pose, shape (4, 4).
        near: Where to start, shape (n,).
        found: A `PoseAnswer`, or an error, once it is known.
    """

    key: Hashable
    solver: InverseKinematics
    X: Array
    near: Array
    found: Any = None

    @property
    def group(self) -> Hashable:
        """Return what all have that are found in one call."""
        return "pose", id(self.solver)

    @staticmethod
    def rows(asked: Sequence[AskedPose]) -> list[PoseAnswer]:
        """Return the answers to some with the same solver."""
        first, *others = asked
        if not others:
            one = first.solver(first.X, near=first.near)
            success = bool(one.success)
            # The reason of what is reached is not looked at.
            return [PoseAnswer(np.array(one.q), _reason(one, success), success)]
        X, near = (
            np.stack([getattr(each, name) for each in asked]) for name in ("X", "near")
        )
        found = first.solver(X, near=near)
        rows = zip(found.q, found.reason.tolist(), found.success.tolist(), strict=True)
        return [PoseAnswer(np.array(q), *others) for q, *others in rows]


def _reason(one: Any, success: bool) -> int:
    return 0 if success else int(one.reason)


@final
@dataclass(eq=False)
class AskedLine:
    """The motion of a tool along lines and arcs, from rest to rest.

    Attributes:
        key: What decides it.
        solver: Inverse kinematics of the tool.
        tool: Returns the tool.
        targets: Segments, and how their corners are blended.
        start: Joint positions at the start, shape (n,).
        blend: How corners are blended where segments do not say.
        path_rates: The greatest speed and acceleration of the tool.
        velocity: Least and greatest rates of joints, shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n).
        found: A `Motion`, or an error, once it is known.
    """

    key: Hashable
    solver: InverseKinematics
    tool: Callable[[], Tool]
    targets: list[Any]
    start: Array
    blend: float
    path_rates: tuple[float, float]
    velocity: Array
    acceleration: Array
    found: Any = None

    @property
    def group(self) -> Hashable:
        """Return what all have that are found in one call."""
        limits = self.velocity.tobytes(), self.acceleration.tobytes()
        return "line", id(self.solver), self.path_rates, limits

    @staticmethod
    def rows(asked: Sequence[AskedLine]) -> list[Any]:
        """Return the motions of some with the same solver and limits, or errors."""
        first = asked[0]
        wanted = [
            cartesian.WantedCurve(each.targets, each.start, Blend(each.blend, None))
            for each in asked
        ]
        found: list[Any] = cartesian.lines_of(first.solver, first.tool(), wanted)
        for k, path in enumerate(found):
            if not isinstance(path, ArmillaryError) and not path.success:
                found[k] = Impossible(RunReason(int(path.reason)), str(path))
        good = [k for k, each in enumerate(found) if not isinstance(each, Exception)]
        limits = [(each[0], each[1]) for each in (first.velocity, first.acceleration)]
        motions = timed_along(
            [found[k] for k in good],
            first.path_rates,
            velocity=limits[0],
            acceleration=limits[1],
        )
        for k, motion in zip(good, motions, strict=True):
            found[k] = motion
        return found


AskedAnything: TypeAlias = AskedPose | AskedLine
Asking: TypeAlias = Generator[AskedAnything, None, Made]


def find(asked: Sequence[AskedAnything]) -> None:
    """Find all that is asked, each as if it were asked alone."""
    firsts: dict[Hashable, AskedAnything] = {}
    for each in asked:
        firsts.setdefault((each.group, each.key), each)
    groups: dict[Hashable, list[Any]] = {}  # each of one kind
    for each in firsts.values():
        groups.setdefault(each.group, []).append(each)
    for group in groups.values():
        for each, found in zip(group, _rows(group), strict=True):
            each.found = found
    for each in asked:
        each.found = firsts[each.group, each.key].found


def _rows(group: list[Any]) -> list[Any]:
    """Return what is found for a group, or the error of each."""
    try:
        if isinstance(group[0], AskedPose):
            return AskedPose.rows(group)
        return AskedLine.rows(group)
    except ArmillaryError as error:
        if len(group) == 1:
            return [error]
        return [found for each in group for found in _rows([each])]
