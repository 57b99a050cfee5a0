"""Paths of a tool that leave their curve where links would touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.motion import Motions
from armillary.errors import ModelError, StateError, quote
from armillary.planning.cartesian_path import CartesianPath
from armillary.planning.corners import timed_way
from armillary.planning.plan import BLEND, Plan
from armillary.planning.segments import length_of
from armillary.trajectories.motion import Motion

__all__ = ["MEASURED", "SHORTEST", "DetouredPath", "detoured", "motions_along"]

Array = npt.NDArray[np.float64]

MEASURED: Final = 8
"""Parts between two samples of a path, at whose ends is measured what is not proven."""

SHORTEST: Final = 1e-7
"""Samples that are nearer have none between them [m or rad]."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class DetouredPath:
    """A path along a curve, with planned ways in place of what would touch.

    Attributes:
        parts: Paths and plans, one after another: each begins at the joint positions
            that the one before ends at. Where it does not succeed the last one says
            why.
        left: Between which parameters of the curve each plan leads [m], shape (d, 2).
        path: What all of the curve would be if nothing were in the way.
    """

    parts: tuple[CartesianPath | Plan, ...]
    left: Array
    path: CartesianPath

    @property
    def success(self) -> bool:
        """Return whether the end of the curve is reached."""
        return all(part.success for part in self.parts)

    @property
    def proven(self) -> bool:
        """Return whether all that the parts state is proven."""
        return all(part.proven for part in self.parts)

    def timed(
        self,
        *,
        speed: float = np.inf,
        tool_acceleration: float = np.inf,
        velocity: npt.ArrayLike | None = None,
        acceleration: npt.ArrayLike | None = None,
        jerk: npt.ArrayLike | None = None,
        blend: float = BLEND,
    ) -> Motion:
        """Return the fastest motion along all parts, which stops between them.

        Args:
            speed: The greatest speed of the tool on the curve [m/s].
            tool_acceleration: Its greatest acceleration along the curve [m/s^2].
            velocity: The greatest rates of the joints, as for `cell.time_path`.
            acceleration: Their greatest accelerations, likewise.
            jerk: Their greatest jerks, likewise.
            blend: By how much joints may deviate at corners of plans [m or rad], as for
                `Plan.timed`.

        Raises:
            StateError: The end of the curve is not reached, or limits leave no speed at
                a point.
            ShapeError: As for `cell.time_path`.
            ModelError: As for `cell.time_path`, or the blend is not a length.
        """
        if not self.success:
            raise StateError(f"This path has no times: {self}.")
        tool, deviation = self.path.tool, length_of("blend", blend)
        of_joints: dict[str, Any] = {
            "velocity": velocity,
            "acceleration": acceleration,
            "jerk": jerk,
        }
        motions: list[Motion] = []
        for part in self.parts:
            if isinstance(part, CartesianPath):
                motions.append(
                    part.timed(
                        speed=speed, tool_acceleration=tool_acceleration, **of_joints
                    )
                )
            else:
                most = deviation if part.proven else 0.0
                limits = {**of_joints, "joints": tool.joints}
                motions.append(timed_way(part.check, part.q, most, limits))
        motion = motions[0].then(*motions[1:])
        return motion if tool.state is None else motion.bound(tool.state)

    def __repr__(self) -> str:
        return f"<DetouredPath: {self}>"

    def __str__(self) -> str:
        failed = next((part for part in self.parts if not part.success), None)
        if failed is not None:
            return str(failed) if isinstance(failed, CartesianPath) else repr(failed)
        if not len(self.left):
            return str(self.path)
        ways = ", ".join(f"{a:.6g} to {b:.6g}" for a, b in self.left)
        return f"along {self.path.length:.6g} m, with a detour from s = {ways} m"


def detoured(
    path: CartesianPath,
    check: CollisionCheck,
    planned: Callable[[Array, Array, Sequence[str]], Plan],
) -> DetouredPath:
    """Return a path with planned ways, see `Planner.along`.

    Args:
        path: The path.
        check: What must not touch.
        planned: From joint positions, others, and names of joints that stay, to a plan.

    Raises:
        ModelError: It is not a path of `cell.line`, or of another cell or state.
    """
    given: Any = path
    if not isinstance(given, CartesianPath):
        raise ModelError(f"This takes a path of cell.line, not {quote(given)}.")
    whole = path if path.unchecked is None else path.unchecked
    tool, last = whole.tool, len(whole.q) - 1
    tool.accept(check)
    if last < 1:
        return DetouredPath((whole,), np.zeros((0, 2)), whole)
    q = tool.whole(whole.q)
    # Runs of motions that are not free: `first` is where one begins, `end` is where the
    # next free one does.
    free = motions_along(check, q).free
    edges = np.flatnonzero(np.diff(np.concatenate([[1], free, [1]]).astype(np.int8)))
    fixed = [name for name in tool.cell.joint_names if name not in tool.joints]
    parts: list[CartesianPath | Plan] = []
    left: list[tuple[float, float]] = []
    # Pieces of the path between those runs, and plans in their place.
    begin = 0
    for first, end in edges.reshape(-1, 2).tolist():
        if first > begin:
            parts.append(whole.part(begin, first))
        plan = planned(q[first], q[end], fixed)
        parts.append(plan)
        left.append((float(whole.s[first]), float(whole.s[end])))
        begin = end
        if not plan.success:
            break
    else:
        if begin < last or not whole.success:
            parts.append(whole.part(begin, last))
    return DetouredPath(tuple(parts), np.array(left).reshape(-1, 2), whole)


def motions_along(check: CollisionCheck, q: Array) -> Motions:
    """Return whether motions between samples are free, proven where that is possible.

    Args:
        check: What must not touch.
        q: All joints of the cell [m or rad], shape (k, N); one sample alone stays.
    """
    first, last = (q[:-1], q[1:]) if len(q) > 1 else (q, q)
    try:
        # Of closed loops a proof of so many motions would take longest of all.
        if not check.state.passive.size:
            return check.motion(first, last)
    except ModelError:  # nothing is known of how fast links move
        pass
    longest = max(float(np.abs(last - first).max(initial=0.0)), SHORTEST)
    return check.motion(first, last, step=longest / MEASURED)
