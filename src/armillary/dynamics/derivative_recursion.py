"""Derivatives of the forces of a tree of bodies, by one recursion for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.inverse import inertial_wrench
from armillary.dynamics.joint_efforts import joint_dynamics, joint_efforts
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import Entries, add_to
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.twist import (
    ZERO6,
    Vector6,
    add6,
    cross_twist,
    cross_wrench,
    power,
    scale6,
    transform_twist,
)
from armillary.spatial.vector import (
    ZERO,
    Number,
    Vector3,
    cross,
    dot,
    subtract,
)
from armillary.spatial.velocity_inertia import VelocityInertia

__all__ = ["DerivativeRecursion"]


class Change(NamedTuple):
    """How the motion of all that a coordinate moves changes with it.

    Seen by an observer who moves along with that, so that each of these bodies gets the
    same change of its twist V by `twist`, and of its acceleration by `acceleration` +
    `twist` x V. The force that a body of inertia I then needs in addition is
    I `acceleration` + 2 B `twist`, with 2 B u = V x* I u - I (V x u) + u x* I V
    (Singh, Russo and Wensing, IEEE RA-L 7 (2022), equation 27).
    """

    twist: Vector6
    acceleration: Vector6


@dataclass(slots=True)
class Column:
    """One coordinate that moves a body, and all behind it.

    Attributes:
        of: The coordinate.
        S: The twist of the body at unit rate.
        by_q: The change of its motion with the position.
        by_qd: That with the rate.
        partials: How S changes with each coordinate of the same joint, seen from the
            body.
    """

    of: int
    S: Vector6
    by_q: Change
    by_qd: Change
    partials: list[Vector6]


@dataclass(slots=True)
class Behind:
    """A body and all behind it, added up.

    Attributes:
        inertia: Their inertia.
        doubled: Twice their velocity inertia, 2 B.
        wrench: What they need.
    """

    inertia: SpatialInertia
    doubled: VelocityInertia
    wrench: Vector6

    @classmethod
    def of(cls, inertia: SpatialInertia, V: Vector6, A: Vector6) -> Behind:
        """Return a body that has a twist and a spatial acceleration."""
        doubled = VelocityInertia.doubled(inertia, V)
        return cls(inertia, doubled, inertial_wrench(inertia, V, A))

    def add(self, other: Behind) -> None:
        """Count another body in."""
        self.inertia += other.inertia
        self.doubled += other.doubled
        self.wrench = add6(self.wrench, other.wrench)

    def needs(self, change: Change) -> Vector6:
        """Return the change of the wrench, seen by an observer who moves along."""
        B = self.doubled.apply(change.twist)
        return add6(self.inertia.apply(change.acceleration), B)

    def weighed(self, S: Vector6) -> tuple[Vector6, Vector3]:
        """Return x, y: S . needs(change) = x . acceleration + y . angular twist."""
        return self.inertia.apply(S), self.doubled.apply_transposed(S)[3:]


class DerivativeRecursion:
    """The derivatives of the forces of all coordinates, loops not closed.

    All vectors are in the axes of the world, about the origin of the first body of
    their tree: so they are sums without transformations, and constant where that does
    not move. As far as coordinates differ from twists of free bases, with S_j the
    column of coordinate j the changes are (S', S'') with its position, (S, 2 S') with
    its rate, since the derivatives of a motion by time and by a coordinate commute.

    Attributes:
        entries: The derivatives by positions, rates and accelerations.
        forces: The forces, by coordinates.
    """

    def __init__(
        self,
        bodies: Multibody,
        rates: Mapping[int, Number],
        accelerations: Mapping[int, Number],
    ) -> None:
        """Run it, for the rates and accelerations of all coordinates that move."""
        self._bodies, self._rates, self._accelerations = bodies, rates, accelerations
        self.entries: tuple[Entries, Entries, Entries] = ({}, {}, {})
        self.forces = joint_efforts(bodies, rates, accelerations)
        self._poses: list[Pose] = []
        self._motions: list[tuple[Vector6, Vector6]] = []
        self._columns: list[list[Column]] = []
        behind = [self._moved(k) for k in range(len(bodies.rows))]
        for k in reversed(range(len(behind))):
            self._collect(k, behind[k])
            parent = bodies.rows[k].parent
            if parent != GROUND:
                behind[parent].add(behind[k])
        for drive, dynamics in joint_dynamics(bodies):
            square = drive.multiplier**2
            own = dynamics.stiffness, dynamics.damping, dynamics.armature
            for entries, x in zip(self.entries, own, strict=True):
                add_to(entries, (drive.of, drive.of), square * x)

    # from the root on

    def _moved(self, k: int) -> Behind:
        """Return a body by itself, after its pose, motion and columns."""
        bodies = self._bodies
        row, own = bodies.rows[k], bodies.poses[k]
        if row.parent == GROUND:
            start = ZERO if row.is_free else row.before.position
            at = ZERO if row.is_free else subtract(own.position, start)
            pose = Pose(own.rotation, at)
            twist, rate = ZERO6, bodies.ground
        else:
            pose = self._poses[row.parent] @ own
            twist, rate = self._motions[row.parent]
        columns: list[Vector6] = []
        for i, column in bodies.columns[k]:
            S = transform_twist(pose, column)
            twist = add6(twist, scale6(self._rates.get(i, 0.0), S))
            rate = add6(rate, scale6(self._accelerations.get(i, 0.0), S))
            columns.append(S)
        if row.is_free:
            rate = add6(rate, (*cross(twist[:3], twist[3:]), *ZERO))
            found = self._of_free_base(k, columns, twist, rate)
        else:
            found, rate = self._of_joint(k, pose, columns, twist, rate)
        self._poses.append(pose)
        self._motions.append((twist, rate))
        self._columns.append([column for column in found if column.of in self._rates])
        return Behind.of(bodies.inertias[k].transformed(pose), twist, rate)

    def _of_joint(
        self, k: int, X: Pose, columns: list[Vector6], V: Vector6, rate: Vector6
    ) -> tuple[list[Column], Vector6]:
        """Return the columns of a joint, and its acceleration.

        S' = V x S + s', S'' = A x S + V x (S' + s') + s'', with the rates s', s'' of
        the column as seen from the body.

        Args:
            k: The body.
            X: Its pose.
            columns: Its columns.
            V: Its twist.
            rate: Its acceleration, without what depends on its joint's rates.
        """
        drives = self._bodies.rows[k].drives

        def turned(local: Sequence[Vector6]) -> list[Vector6]:
            return [
                scale6(drive.multiplier, transform_twist(X, each))
                for drive, each in zip(drives, local, strict=True)
            ]

        tree = self._bodies.tree
        motion = tree.links[self._bodies.rows[k].link].joint.motion
        q = [drive.at(self._bodies.q) for drive in drives]
        qd, qdd = (
            [drive.multiplier * rates.get(drive.of, 0.0) for drive in drives]
            for rates in (self._rates, self._accelerations)
        )
        own = turned(motion.column_rates(q, qd))
        rates = [add6(cross_twist(V, S), s) for S, s in zip(columns, own, strict=True)]
        products = (
            scale6(self._rates.get(drive.of, 0.0), each)
            for drive, each in zip(drives, rates, strict=True)
        )
        A = reduce(add6, products, rate)
        more = turned(motion.column_accelerations(q, qd, qdd))
        partials = [
            turned(motion.column_rates(q, [by * (c == d) for c in range(len(q))]))
            for d, (of, by, _) in enumerate(drives)
            if of in self._rates
        ]
        found: list[Column] = []
        for c, (drive, column) in enumerate(zip(drives, columns, strict=True)):
            product = cross_twist(V, add6(rates[c], own[c]))
            second = add6(add6(cross_twist(A, column), product), more[c])
            by_q = Change(rates[c], second)
            by_qd = Change(column, scale6(2.0, rates[c]))
            own_joint = [by[c] for by in partials]
            found.append(Column(drive.of, column, by_q, by_qd, own_joint))
        return found, A

    def _of_free_base(
        self, k: int, columns: list[Vector6], V: Vector6, A: Vector6
    ) -> list[Column]:
        """Return the columns of a free base, whose twist keeps its numbers in world.

        Moving it changes nothing, and turning it turns V, A and all columns back, as
        seen from the base.
        """
        drives = self._bodies.rows[k].drives
        found: list[Column] = []
        for c, (drive, column) in enumerate(zip(drives, columns, strict=True)):
            partials = [ZERO6] * 3 + [cross_twist(column, T) for T in columns[3:]]
            if c < 3:
                by_q, by_qd = Change(ZERO6, ZERO6), Change(column, ZERO6)
            else:
                turned = cross_twist(V, column)
                second = add6(cross_twist(A, column), cross_twist(V, turned))
                by_q = Change(turned, second)
                by_qd = Change(column, add6(turned, (*turned[:3], *ZERO)))
            found.append(Column(drive.of, column, by_q, by_qd, partials))
        return found

    # from the leaves back

    def _collect(self, k: int, behind: Behind) -> None:
        """Put the entries of the columns of a body with each other and those above."""
        by_q, by_qd, by_qdd = self.entries
        rows, own = self._bodies.rows, self._columns[k]
        F = behind.wrench
        above: list[Column] = []
        parent = rows[k].parent
        while parent != GROUND:
            above += self._columns[parent]
            parent = rows[parent].parent
        for d, column in enumerate(own):
            i = column.of
            add_to(self.forces, i, power(column.S, F))
            needs = behind.needs(column.by_q), behind.needs(column.by_qd)
            momentum, flow = behind.weighed(column.S)
            for other in own:
                j = other.of
                change = power(other.S, needs[0]) + power(other.partials[d], F)
                add_to(by_q, (j, i), change)
                add_to(by_qd, (j, i), power(other.S, needs[1]))
                add_to(by_qdd, (j, i), power(other.S, momentum))
            carried = add6(needs[0], cross_wrench(column.S, F))
            for other in above:
                j = other.of
                add_to(by_q, (j, i), power(other.S, carried))
                add_to(by_qd, (j, i), power(other.S, needs[1]))
                mass = power(other.S, momentum)
                add_to(by_qdd, (j, i), mass)
                add_to(by_qdd, (i, j), mass)
                for entries, change in (by_q, other.by_q), (by_qd, other.by_qd):
                    value = power(momentum, change.acceleration)
                    add_to(entries, (i, j), value + dot(flow, change.twist[3:]))
