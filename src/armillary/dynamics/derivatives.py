"""Exact derivatives of inverse and forward dynamics, by recursions over bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import msgspec

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.forward import forward_dynamics, mass_solver
from armillary.dynamics.inverse import inertial_wrench, inverse_dynamics
from armillary.dynamics.multibody import Multibody, joint_dynamics, joint_efforts
from armillary.dynamics.sparse import Entries, add_to, product, total
from armillary.kinematics.parameters import parameter_rates
from armillary.model.cell_parameters import values_in
from armillary.spatial.inertia import SpatialInertia, VelocityInertia
from armillary.spatial.ldl import Rows
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
from armillary.trace import Scalar, jvp

__all__ = [
    "Derivatives",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "torque_rates",
]


# derivatives of the forces of a tree of bodies, by one recursion for all of them


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


class DerivativeColumn(msgspec.Struct):
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


class Behind(msgspec.Struct):
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
        self._columns: list[list[DerivativeColumn]] = []
        # Outwards: poses, motions and columns. Back: what all bodies behind one need.
        behind = [self._moved(k) for k in range(len(bodies.rows))]
        for k in reversed(range(len(behind))):
            self._collect(k, behind[k])
            parent = bodies.rows[k].parent
            if parent != GROUND:
                behind[parent].add(behind[k])
        # Springs depend on q, dampers on q', motors on q''; a joint that follows at the
        # multiplier m has its force through m too, hence its square.
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
            # All vectors are about the place where the first body of a tree stands:
            # where its joint starts, or a free base's own origin, whose position then
            # is zero.
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
            # The acceleration v' of its origin is given; the spatial one is v' + v x w.
            rate = add6(rate, (*cross(twist[:3], twist[3:]), *ZERO))
            moving = self._of_free_base(k, columns, twist, rate)
        else:
            moving, rate = self._of_joint(k, pose, columns, twist, rate)
        self._poses.append(pose)
        self._motions.append((twist, rate))
        self._columns.append([column for column in moving if column.of in self._rates])
        return Behind.of(bodies.inertias[k].transformed(pose), twist, rate)

    def _of_joint(
        self, k: int, X: Pose, columns: list[Vector6], V: Vector6, rate: Vector6
    ) -> tuple[list[DerivativeColumn], Vector6]:
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
        # s', seen from the body, and S' = V x S + s', seen from the world.
        own = turned(motion.column_rates(q, qd))
        rates = [add6(cross_twist(V, S), s) for S, s in zip(columns, own, strict=True)]
        products = (
            scale6(self._rates.get(drive.of, 0.0), each)
            for drive, each in zip(drives, rates, strict=True)
        )
        # A = X A_parent + S q'' + S' q'.
        A = reduce(add6, products, rate)
        # s'' and, column by column, dS_c/dq_d: joints of several coordinates.
        more = turned(motion.column_accelerations(q, qd, qdd))
        partials = [
            turned(motion.column_rates(q, [by * (c == d) for c in range(len(q))]))
            for d, (of, by, _) in enumerate(drives)
            if of in self._rates
        ]
        made: list[DerivativeColumn] = []
        for c, (drive, column) in enumerate(zip(drives, columns, strict=True)):
            product = cross_twist(V, add6(rates[c], own[c]))
            second = add6(add6(cross_twist(A, column), product), more[c])
            # (S', S'') with the position and (S, 2 S') with the rate, as the class
            # says.
            by_q = Change(rates[c], second)
            by_qd = Change(column, scale6(2.0, rates[c]))
            own_joint = [by[c] for by in partials]
            made.append(DerivativeColumn(drive.of, column, by_q, by_qd, own_joint))
        return made, A

    def _of_free_base(
        self, k: int, columns: list[Vector6], V: Vector6, A: Vector6
    ) -> list[DerivativeColumn]:
        """Return the columns of a free base, whose twist keeps its numbers in world.

        Moving it changes nothing, and turning it turns V, A and all columns back, as
        seen from the base.
        """
        drives = self._bodies.rows[k].drives
        made: list[DerivativeColumn] = []
        for c, (drive, column) in enumerate(zip(drives, columns, strict=True)):
            # Turning the base by one of its columns turns the other ones back.
            partials = [ZERO6] * 3 + [cross_twist(column, T) for T in columns[3:]]
            if c < 3:
                by_q, by_qd = Change(ZERO6, ZERO6), Change(column, ZERO6)
            else:
                turned = cross_twist(V, column)
                second = add6(cross_twist(A, column), cross_twist(V, turned))
                by_q = Change(turned, second)
                by_qd = Change(column, add6(turned, (*turned[:3], *ZERO)))
            made.append(DerivativeColumn(drive.of, column, by_q, by_qd, partials))
        return made

    # from the leaves back

    def _collect(self, k: int, behind: Behind) -> None:
        """Put the entries of the columns of a body with each other and those above."""
        by_q, by_qd, by_qdd = self.entries
        rows, own = self._bodies.rows, self._columns[k]
        F = behind.wrench
        # The columns of all bodies between this one and the ground.
        above: list[DerivativeColumn] = []
        parent = rows[k].parent
        while parent != GROUND:
            above += self._columns[parent]
            parent = rows[parent].parent
        for d, column in enumerate(own):
            i = column.of
            add_to(self.forces, i, power(column.S, F))
            # What all that the coordinate moves needs in addition, for its q and its
            # q'.
            needs = behind.needs(column.by_q), behind.needs(column.by_qd)
            momentum, flow = behind.weighed(column.S)
            # Within the joint, columns depend on each other's coordinates by
            # `partials`.
            for other in own:
                j = other.of
                change = power(other.S, needs[0]) + power(other.partials[d], F)
                add_to(by_q, (j, i), change)
                add_to(by_qd, (j, i), power(other.S, needs[1]))
                add_to(by_qdd, (j, i), power(other.S, momentum))
            # Seen from bodies above, the wrench F on all that moves is turned with it.
            carried = add6(needs[0], cross_wrench(column.S, F))
            for other in above:
                j = other.of
                add_to(by_q, (j, i), power(other.S, carried))
                add_to(by_qd, (j, i), power(other.S, needs[1]))
                mass = power(other.S, momentum)
                # The mass matrix is symmetric; by q and q' the two halves differ: row j
                # is the force above that i causes, row i the force here that j causes.
                add_to(by_qdd, (j, i), mass)
                add_to(by_qdd, (i, j), mass)
                for entries, change in (by_q, other.by_q), (by_qd, other.by_qd):
                    value = power(momentum, change.acceleration)
                    add_to(entries, (i, j), value + dot(flow, change.twist[3:]))


# exact derivatives of inverse and forward dynamics, by recursions over bodies


class Derivatives(NamedTuple):
    """The derivatives of the forces of independent coordinates, row by row.

    Attributes:
        by_q: By positions, shape (n, n) [N m/rad and the like]; of a free base, by a
            twist of it in the axes of the world.
        by_qd: By rates, shape (n, n) [N m s/rad and the like].
        by_qdd: By accelerations: the mass matrix, shape (n, n).
    """

    by_q: Rows
    by_qd: Rows
    by_qdd: Rows


def inverse_dynamics_derivatives(
    bodies: Multibody, qd: Sequence[Number], qdd: Sequence[Number]
) -> tuple[Rows, ...]:
    """Return the derivatives of `inverse_dynamics`, by parameters last, if any.

    Args:
        bodies: In their configuration.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
    """
    by_motion = _by_motion(bodies, qd, qdd)
    if not values_in(bodies.tree.cell):
        return by_motion
    return *by_motion, torque_rates(bodies, qd, qdd)


def torque_rates(
    bodies: Multibody, qd: Sequence[Number], qdd: Sequence[Number]
) -> Rows:
    """Return dtau/dp by the parameters of a varied cell, passive joints following."""
    cell = bodies.tree.cell
    torque = inverse_dynamics(bodies, qd, qdd)
    moving = parameter_rates(cell, bodies.q, bodies.coordinates.passive)
    # Partial derivatives: accelerations that torques cause are not to follow.
    still = [(each, 0.0) for each in qdd if isinstance(each, Scalar)]
    columns = [jvp(torque, [*changes, *still]) for changes in moving]
    return [list(row) for row in zip(*columns, strict=True)]


def _by_motion(
    bodies: Multibody, qd: Sequence[Number], qdd: Sequence[Number]
) -> Derivatives:
    rates = bodies.all_rates(qd)
    accelerations = bodies.all_accelerations(rates, qdd)
    recursion = DerivativeRecursion(bodies, rates, accelerations)
    if not bodies.coordinates.passive:
        W, size = bodies.weights, len(bodies.indices)
        return Derivatives(*(product(W, each, W, size) for each in recursion.entries))
    return _along_loops(bodies, recursion, rates, list(zip(qd, qdd, strict=True)))


def forward_dynamics_derivatives(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> tuple[Rows, ...]:
    """Return the derivatives of accelerations, by q, qd and the forces, row by row.

    With tau(q, qd, qdd) and M = dtau/dqdd they are -M^-1 dtau/dq, -M^-1 dtau/dqd and
    M^-1, where qdd is what the forces cause; then by parameters, if any, -M^-1 dtau/dp.
    """
    qdd = forward_dynamics(bodies, qd, forces)
    by_q, by_qd, M, *by_p = inverse_dynamics_derivatives(bodies, qd, qdd)
    solved = mass_solver(bodies, M)

    def of_all(B: Rows, sign: float) -> Rows:
        columns = [solved([sign * x for x in c]) for c in zip(*B, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    unit = [[float(i == j) for j in range(len(M))] for i in range(len(M))]
    own = of_all(by_q, -1.0), of_all(by_qd, -1.0), of_all(unit, 1.0)
    return *own, *(of_all(each, -1.0) for each in by_p)


def _along_loops(
    bodies: Multibody,
    recursion: DerivativeRecursion,
    rates: Mapping[int, Number],
    motion: Sequence[tuple[Number, Number]],
) -> Derivatives:
    """Return the derivatives where passive coordinates follow as p = p(u).

    With the rates W of all coordinates y by those of u, the forces are W' tau(y). Along
    u_j, y changes by W_j, its rate by W'_j (dot) and its acceleration by W''_j, and W
    itself by p_uu; along the rate of u_j, y' changes by W_j and y'' by 2 W'_j.

    motion: The rate and acceleration of each independent coordinate.
    """
    W, size = bodies.weights, len(bodies.indices)
    keys = [(k, i) for k in bodies.coordinates.passive for i in W[k]]
    values = [W[k][i] for k, i in keys]
    bends: list[dict[tuple[int, int], Number]] = []
    for j in range(size):
        bend = bodies.rates_of(values, {k: w[j] for k, w in W.items() if j in w})
        bends.append(dict(zip(keys, bend, strict=True)))
    first = bodies.rates_of(values, rates)
    second = jvp(first, [*bodies.directions(rates), *motion])
    once: dict[int, dict[int, Number]] = {}
    twice: dict[int, dict[int, Number]] = {}
    for derivatives, values in (once, first), (twice, second):
        for (k, i), x in zip(keys, values, strict=True):
            derivatives.setdefault(k, {})[i] = x
    by_q, by_qd, by_qdd = recursion.entries
    doubled = {k: {i: 2.0 * x for i, x in row.items()} for k, row in once.items()}
    whole_q = total(
        product(W, by_q, W, size),
        product(W, by_qd, once, size),
        product(W, by_qdd, twice, size),
    )
    for j, bend in enumerate(bends):
        for (k, i), x in bend.items():
            whole_q[i][j] = whole_q[i][j] + x * recursion.forces.get(k, 0.0)
    whole_qd = total(product(W, by_qd, W, size), product(W, by_qdd, doubled, size))
    return Derivatives(whole_q, whole_qd, product(W, by_qdd, W, size))
