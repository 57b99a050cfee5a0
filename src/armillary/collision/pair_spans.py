"""Spans of motions, in which distances of pairs are bounded by those at their ends.

Between two instants a and b, at which the distance of a pair is d(a) and d(b), it is
nowhere less than

    (d(a) + d(b) - v (b - a)) / 2

where v bounds how fast its links approach each other: `approach_rates` of the check
times the greatest rates of joints, of those that loops move as well. Spans in which
that does not prove enough are halved, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from armillary.kinematics.closing.enclosing import Stretches, hull, refined
from armillary.kinematics.closing.solver import solved_on
from armillary.kinematics.state import State, branch_of

__all__ = ["PairSpans", "PairsCheck", "approach_speeds", "distances_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class PairsCheck(Protocol):
    """What is asked of a `CollisionCheck`."""

    @property
    def margin(self) -> float:
        """Return what is nearer touches [m]."""
        ...

    @property
    def state(self) -> State:
        """Return the state whose branch of loops is used."""
        ...

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """Return the names of pairs of links."""
        ...

    def distances(self, q: Any) -> Array:
        """Return the distance of each pair [m]: (s, n) -> (s, k)."""
        ...

    def approach_rates(self, lower: Array, upper: Array) -> Array:
        """Return how fast they approach each other for unit rates of joints."""
        ...


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PairSpans:
    """Spans of a motion, and distances of k pairs of links at their ends.

    Attributes:
        check: Of the pairs.
        at: Returns the joints of q at instants: (s,) -> (s, n).
        columns: Which pairs of the check these are, shape (k,).
        a: When spans begin, shape (s,).
        b: When they end.
        d_a: Distances where they begin [m], shape (s, k); minus infinity where the pose
            of a link is not known.
        d_b: Where they end.
        v: How fast links approach each other at most, shape (s, k); infinite where
            nothing is known.
        joints: Where joints are and how fast, of each span at first.
        of: Which of these each span is part of, shape (s,).
    """

    check: PairsCheck
    at: Callable[[Array], Array]
    columns: Indices
    a: Array
    b: Array
    d_a: Array
    d_b: Array
    v: Array
    joints: Stretches
    of: Indices

    @classmethod
    def between(
        cls,
        check: PairsCheck,
        times: Array,
        at: Callable[[Array], Array],
        stretches: Callable[[Array, Array], Stretches],
        *,
        least: float,
    ) -> PairSpans:
        """Return the spans between instants, and what bounds their distances.

        Args:
            check: Of the pairs.
            times: Instants that ascend, shape (s + 1,).
            at: Returns the joints of q at instants: (s,) -> (s, n).
            stretches: Returns where these are between instants (s,) and (s,).
            least: Where loops are not proven to move on, spans are halved that are
                longer.
        """
        times, joints = refined(branch_of(check.state), times, at, stretches, least)
        d = distances_of(check, at(times))
        return cls(
            check=check,
            at=at,
            columns=np.arange(len(check.pairs)),
            a=times[:-1],
            b=times[1:],
            d_a=d[:-1],
            d_b=d[1:],
            v=approach_speeds(check, joints),
            joints=joints,
            of=np.arange(len(times) - 1),
        )

    @property
    def bounds(self) -> Array:
        """Return what no pair is nearer than in each span [m], shape (s,)."""
        way = self.v * (self.b - self.a)[:, None]
        return (0.5 * (self.d_a + self.d_b - way)).min(axis=1, initial=np.inf)

    def pairs(self, columns: Indices) -> PairSpans:
        """Return the spans of some of the pairs, places among these."""
        parts = {name: getattr(self, name)[:, columns] for name in ("d_a", "d_b", "v")}
        return replace(self, columns=self.columns[columns], **parts)

    def rows(self, rows: npt.NDArray[np.bool_]) -> PairSpans:
        """Return some of the spans."""
        names = "a", "b", "d_a", "d_b", "v", "of"
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def halved(self) -> PairSpans:
        """Return the halves of all spans, first halves before second ones."""
        middle = 0.5 * (self.a + self.b)
        q = self.at(middle)
        d = distances_of(self.check, q)[:, self.columns]
        v = self.v
        branch = branch_of(self.check.state)
        if branch is not None:
            # Distances are those of the assembly that moves on.
            passive, _ = solved_on(branch.cell, branch, q)
            joints = list(branch.cell.loop_system.passive)
            same = self.joints.holds(self.of, passive, joints)
            v = np.where(same[:, None], v, np.inf)
        return replace(
            self,
            a=np.concatenate([self.a, middle]),
            b=np.concatenate([middle, self.b]),
            d_a=np.concatenate([self.d_a, d]),
            d_b=np.concatenate([d, self.d_b]),
            v=np.concatenate([v, v]),
            of=np.concatenate([self.of, self.of]),
        )


def approach_speeds(check: PairsCheck, joints: Stretches) -> Array:
    """Return how fast links of pairs approach each other in stretches, at most.

    Args:
        check: Of the pairs.
        joints: Where joints are, with the passive ones of loops, and how fast.

    Returns:
        In the order of `pairs`, shape (s, k); infinite where nothing is known.
    """
    rates = check.approach_rates(*hull(joints))
    fastest, infinite = joints.fastest, np.isinf(rates)
    # What is not known of a joint does not matter where it rests, and what is not
    # known of how fast it is does not matter for what it does not move.
    known = np.where(np.isinf(fastest), 0.0, fastest)
    speeds = known @ np.where(infinite, 0.0, rates).T
    unknown = np.isinf(fastest) @ (rates > 0.0).T
    unknown |= (fastest > 0.0) @ infinite.T
    speeds[unknown] = np.inf
    return np.asarray(speeds)


def distances_of(check: PairsCheck, q: Array) -> Array:
    """Return distances of pairs [m], minus infinity where a pose is not known.

    q: Joint positions, shape (s, n).
    """
    found = check.distances(q)
    return np.where(np.isnan(found), -np.inf, found)
