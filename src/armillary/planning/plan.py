"""What a planner answers: the way, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.contact import Contact
from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.kinematics.ending import Ending

if TYPE_CHECKING:
    from armillary.trajectories.motion import Motion

__all__ = ["BLEND", "Plan", "PlanReason"]

Array = npt.NDArray[np.float64]

BLEND: Final = 0.1
"""By how much joints deviate at corners of a motion, at most [m or rad]."""


NOT_OF_PLANS: Final = frozenset({"at", "derivatives", "end", "joints", "start"})
"""Arguments of `Cell.time_path` that would make another motion than the plan's."""


class PlanReason(Ending):
    """Why a plan ended as it did."""

    FOUND = 0, "a way was found"
    START_TOUCHES = 1, "links touch at the start"
    GOAL_TOUCHES = 2, "links touch at every goal"
    OUT_OF_REACH = 3, "no joint positions reach the goal"
    LIMITS = 4, "the start or every goal is outside of the limits of joints"
    TIMED_OUT = 5, "the time was up before a way was found"
    INVALID = 6, "a position is not a finite number"
    NOT_FOUND = 7, "no way was found with as many samples as are allowed"
    SEPARATED = 8, "there is no way, which is proven"
    START_VIOLATES = 9, "a constraint does not hold at the start"
    GOAL_VIOLATES = 10, "a constraint does not hold at any goal"


_TOUCHING: Final = (PlanReason.START_TOUCHES, PlanReason.GOAL_TOUCHES)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Plan:
    """A way between joint positions that touches nothing, or why there is none.

    Attributes:
        q: Way points [m or rad], shape (k, n), the first one the start; (0, n) where no
            way was found. Between them joints move straight, all at once.
        reason: How the plan ended.
        proven: Whether every motion between way points is proven to be free, as by
            `check.motion`; else samples of them are, `resolution` apart.
        goal: Which of the goals it reaches; -1 for none.
        length: The weighted length of the way: 1 for each radian or metre of one joint
            unless the planner has other weights.
        edges: How many motions were tested.
        checks: How many joint positions were.
        proofs: How many motions were to be proven.
        samples: How many random positions the trees grew to.
        nodes: How many positions the trees had.
        pairs: The pairs of links that touch at the start, at the first goal, or between
            both where these are separated.
        joints: The names of joints that are outside of their limits, and of limits that
            couple joints which do not hold, at the start or the first goal.
        violated: The constraints that do not hold at the start, or at the first goal.
        seconds: How long it took.
        resolution: Distance of samples, in weighted lengths.
        check: What does not touch, and in which state.
    """

    q: Array
    reason: PlanReason
    proven: bool
    goal: int
    length: float
    edges: int
    checks: int
    proofs: int
    samples: int
    nodes: int
    pairs: Sequence[Contact]
    joints: tuple[str, ...]
    seconds: float
    resolution: float
    check: CollisionCheck
    violated: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Return whether a way was found."""
        return self.reason is PlanReason.FOUND

    def __bool__(self) -> bool:
        """Return whether a way was found."""
        return self.success

    def timed(self, *, blend: float = BLEND, **limits: Any) -> Motion:
        """Return the fastest motion along the way, whose corners are rounded.

        Curves at corners are proven to touch nothing, as straight motions are. Where a
        curve is not, it is halved, a few times; then the motion rests at that corner.
        So it does at all of a way that is not proven, and of closed loops.

        Args:
            blend: By how much each joint may deviate from straight motions at a corner
                at most [m or rad]; with 0 the motion rests at each.
            limits: `velocity`, `acceleration`, `jerk` and others, as for
                `Cell.time_path`.

        Raises:
            ModelError: No way was found, the blend is not a finite number from 0 up, a
                limit is of something else than a plan, or as for `Cell.time_path`.
        """
        if not self.success:
            raise ModelError(f"There is no way to time: {self.reason.sentence}.")
        other = sorted(NOT_OF_PLANS & set(limits))
        if other:
            raise ModelError(
                f"The times of a plan take no {other[0]}=: its way is straight between "
                "all its points, and rests at both ends."
            )
        with IMPORT_LOCK:
            from armillary.planning.corners import timed_way
            from armillary.planning.segments import length_of

        deviation = length_of("blend", blend)
        return timed_way(self.check, self.q, deviation if self.proven else 0.0, limits)

    def __repr__(self) -> str:
        if not self.success:
            pairs = ", ".join(
                f"'{one.links[0]}' and '{one.links[1]}'" for one in self.pairs[:3]
            )
            names = pairs or ", ".join(f"'{name}'" for name in self.joints[:3])
            names = names or "; ".join(self.violated[:3])
            more = f": {names}" if names else ""
            if not names and self.reason in _TOUCHING:
                more = ", or a loop of links does not close there"
            return f"<Plan: {self.reason.name}, {self.reason.sentence}{more}>"
        how = "proven" if self.proven else f"sampled at {self.resolution:.3g}"
        seconds = self.seconds
        took = f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"
        return (
            f"<Plan: {len(self.q)} way points, length {self.length:.3g}, {how}, "
            f"{self.edges} edges, {self.checks} checks, {took}>"
        )
