"""The bodies of a cell in one configuration, on floats or traced scalars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from armillary.dynamics.bodies import GROUND, Bodies
from armillary.dynamics.sparse import add_to
from armillary.kinematics.closing.rates import followed_rates, passive_rates
from armillary.model.drive import Drive
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.tree import Tree
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.twist import (
    ZERO6,
    Vector6,
    add6,
    cross_twist,
    inverse_transform_twist,
    scale6,
    transform_wrench,
)
from armillary.spatial.vector import (
    EYE,
    ZERO,
    Number,
    Vector3,
    apply,
    negate,
    transpose,
)
from armillary.trace import Scalar, Traced, jvp

__all__ = [
    "Accelerations",
    "Coordinates",
    "Multibody",
    "joint_dynamics",
    "joint_efforts",
]

Rates = Mapping[int, Number]
"""The rate or acceleration of each coordinate that moves, by its index."""


class Coordinates(NamedTuple):
    """Which coordinates there are, of all joints, passive ones and free bases.

    Attributes:
        independent: Those that the vectors of a question hold, in their order.
        passive: Those of joints that loops move with them.
    """

    independent: tuple[int, ...]
    passive: tuple[int, ...] = ()


class Accelerations(NamedTuple):
    """How each body moves: its twist and the rate of that, in its frame.

    Attributes:
        velocity: The twists.
        acceleration: The spatial accelerations, less that of falling bodies.
    """

    velocity: list[Vector6]
    acceleration: list[Vector6]


class Multibody:
    """The bodies of a cell at one vector of coordinates.

    Attributes:
        tree: The links.
        bodies: The bodies, and what is fixed to them.
        rows: The bodies alone.
        parents: The number of the body that carries each, or `GROUND`.
        q: The position of each coordinate: of all joints, passive ones last, then what
            stands for those of free bases.
        coordinates: Which of them move.
        inertias: Of the bodies.
        gravity: The acceleration of falling bodies, in the world [m/s^2].
        ground: The acceleration of the world less that, which stands for gravity.
        poses: Of each body in the one that carries it.
        columns: The coordinates that move each body in the one that carries it, each
            with the twist at unit rate of it, in the body's own frame.
    """

    def __init__(
        self,
        tree: Tree,
        bodies: Bodies,
        q: Sequence[Number],
        coordinates: Coordinates,
        inertias: Sequence[SpatialInertia],
        gravity: Vector3,
    ) -> None:
        """Compute the poses and the columns."""
        self.tree, self.bodies, self.q = tree, bodies, q
        self.rows, self.parents = bodies.rows, bodies.parents
        self.coordinates, self.inertias = coordinates, inertias
        self.gravity = gravity
        self.ground: Vector6 = (*negate(gravity), *ZERO)
        self.poses: list[Pose] = []
        self.columns: list[list[tuple[int, Vector6]]] = []
        for body in bodies.rows:
            if body.is_free:
                self.poses.append(body.before)
                own = _free_columns(body.before)
            else:
                motion = tree.links[body.link].joint.motion
                positions = [drive.at(q) for drive in body.drives]
                self.poses.append(body.before @ motion.pose(*positions))
                own = _by_drives(body.drives, motion.columns(*positions))
            moved_by = (drive.of for drive in body.drives)
            self.columns.append(list(zip(moved_by, own, strict=True)))

    @property
    def zeros(self) -> list[Number]:
        """Return a zero for each independent coordinate."""
        return [0.0] * len(self.coordinates.independent)

    @cached_property
    def world_poses(self) -> list[Pose]:
        """Return the pose of each body in the world."""
        in_world: list[Pose] = []
        for pose, body in zip(self.poses, self.rows, strict=True):
            above = body.parent
            in_world.append(pose if above == GROUND else in_world[above] @ pose)
        return in_world

    @cached_property
    def composites(self) -> list[SpatialInertia]:
        """Return the inertia of each body and all that it carries, in its frame.

        The last is that of all, in the world.
        """
        inertias = [*self.inertias, SpatialInertia.zero()]
        for k, parent in reversed(list(enumerate(self.parents))):
            inertias[parent] += inertias[k].transformed(self.poses[k])
        return inertias

    def gathered(self, wrenches: Sequence[Vector6]) -> list[Vector6]:
        """Return the sum of wrenches on each body and on all that it carries.

        The last is that of all, in the world.

        Args:
            wrenches: Of each body, about the origin of its frame, and written there.
        """
        sums = [*wrenches, ZERO6]
        for k, parent in reversed(list(enumerate(self.parents))):
            sums[parent] = add6(sums[parent], transform_wrench(self.poses[k], sums[k]))
        return sums

    # coordinates that follow others

    @cached_property
    def passive_rates(self) -> dict[int, dict[int, Number]]:
        """Return for each passive coordinate the rate of each one that moves it."""
        passive = self.coordinates.passive
        return passive_rates(self.tree.cell, self.q, passive) if passive else {}

    def all_rates(self, qd: Sequence[Number]) -> dict[int, Number]:
        """Return the rates of all coordinates that move.

        qd: Of the independent ones.
        """
        independent, passive = self.coordinates
        rates = dict(zip(independent, qd, strict=True))
        if not passive:
            return rates
        return rates | followed_rates(self.tree.cell, self.q, rates, passive)

    def all_accelerations(
        self, rates: Rates, qdd: Sequence[Number]
    ) -> dict[int, Number]:
        """Return the accelerations of all coordinates that move.

        With the passive p = p(u): p'' = G u'' + G' u', G = dp/du.

        Args:
            rates: Of all of them.
            qdd: Of the independent ones.
        """
        accelerations = self.all_rates(qdd)
        passive = self.coordinates.passive
        if passive:
            bias = self.rates_of([rates[k] for k in passive], rates)
            for k, more in zip(passive, bias, strict=True):
                accelerations[k] = accelerations[k] + more
        return accelerations

    def rates_of(self, values: Sequence[Number], rates: Rates) -> list[Number]:
        """Return the time derivatives of functions of positions of joints.

        rates: Of all coordinates that move.
        """
        return jvp(values, self.directions(rates))

    def directions(self, rates: Rates) -> list[tuple[Scalar, Number]]:
        """Return the position of each joint that moves, with its rate."""
        rows = self.rows
        free = {drive.of for row in rows if row.is_free for drive in row.drives}
        return [(self.q[k], rate) for k, rate in rates.items() if k not in free]

    def projected(self, forces: Mapping[int, Number]) -> list[Number]:
        """Return the forces of independent coordinates that are worth those of all."""
        projected = self.zeros
        for k, row in self.weights.items():
            for i, rate in row.items():
                projected[i] = projected[i] + rate * forces.get(k, 0.0)
        return projected

    @cached_property
    def indices(self) -> dict[int, int]:
        """Return the index of each independent coordinate in vectors."""
        return {k: i for i, k in enumerate(self.coordinates.independent)}

    @cached_property
    def weights(self) -> dict[int, dict[int, Number]]:
        """Return the rate of each coordinate per unit rate of those that move it.

        By coordinate, then by the index of the independent one in vectors.
        """
        weights: dict[int, dict[int, Number]] = {
            k: {i: 1.0} for k, i in self.indices.items()
        }
        for k in self.coordinates.passive:
            through = self.passive_rates[k].items()
            weights[k] = {self.indices[j]: x for j, x in through if j in self.indices}
        return weights

    # motion

    def body_rate(self, body: int, rates: Rates) -> Vector6:
        """Return the twist of a body in the one that carries it, in its own frame."""
        total = ZERO6
        for k, column in self.columns[body]:
            if k in rates:
                total = add6(total, scale6(rates[k], column))
        return total

    def velocities(self, rates: Rates) -> list[Vector6]:
        """Return the twist of each body, in its frame."""
        twists: list[Vector6] = []
        for k, body in enumerate(self.rows):
            own = self.body_rate(k, rates)
            if body.parent != GROUND:
                carried = inverse_transform_twist(self.poses[k], twists[body.parent])
                own = add6(carried, own)
            twists.append(own)
        return twists

    def accelerations(self, rates: Rates, accelerations: Rates) -> Accelerations:
        """Return the twist and the spatial acceleration of each body, in its frame.

        Args:
            rates: Of all coordinates that move.
            accelerations: Of all coordinates that move.
        """
        V, A = self.velocities(rates), list[Vector6]()
        for k, body in enumerate(self.rows):
            parent = self.ground if body.parent == GROUND else A[body.parent]
            a = inverse_transform_twist(self.poses[k], parent)
            a = add6(a, self.velocity_product(k, V[k], rates))
            A.append(add6(a, self.body_rate(k, accelerations)))
        return Accelerations(V, A)

    def velocity_product(self, body: int, V: Vector6, rates: Rates) -> Vector6:
        """Return V x J + S' q', what of an acceleration depends on rates alone.

        J is the twist of the body in the one that carries it, and S' q' the rate of its
        columns.
        """
        row = self.rows[body]
        J = self.body_rate(body, rates)
        if row.is_free:  # V = (R' v, R' w): its axes are those of the world
            return cross_twist((*ZERO, *negate(V[3:])), (*V[:3], *ZERO))
        total = ZERO6 if row.parent == GROUND else cross_twist(V, J)
        qd = [rates.get(k, 0.0) for k, _ in self.columns[body]]
        if not any(isinstance(rate, Traced) or rate for rate in qd):
            return total  # also of a script that cannot be differentiated
        for rate, change in zip(qd, self.column_rates(body, rates), strict=True):
            total = add6(total, scale6(rate, change))
        return total

    def column_rates(self, body: int, rates: Rates) -> list[Vector6]:
        """Return the time derivatives of the columns of a body, seen from it."""
        row = self.rows[body]
        if row.is_free:  # its columns are constant in the world
            turning = (*ZERO, *negate(self.body_rate(body, rates)[3:]))
            return [cross_twist(turning, column) for _, column in self.columns[body]]
        positions = [drive.at(self.q) for drive in row.drives]
        qd = [drive.multiplier * rates.get(drive.of, 0.0) for drive in row.drives]
        motion = self.tree.links[row.link].joint.motion
        return _by_drives(row.drives, motion.column_rates(positions, qd))


def _by_drives(drives: Sequence[Drive], twists: Sequence[Vector6]) -> list[Vector6]:
    """Return twists by what moves a joint, given those by the joint's coordinates."""
    return [
        twist if drive.multiplier == 1.0 else scale6(drive.multiplier, twist)
        for drive, twist in zip(drives, twists, strict=True)
    ]


def _free_columns(X_WB: Pose) -> list[Vector6]:
    """Return the twists in B of unit velocities of its origin, in the axes of W."""
    inverse = transpose(X_WB.rotation)
    axes = [apply(inverse, axis) for axis in EYE]
    return [(*axis, *ZERO) for axis in axes] + [(*ZERO, *axis) for axis in axes]


# forces in joints themselves: of motors, friction and springs


def joint_dynamics(bodies: Multibody) -> Iterator[tuple[Drive, JointDynamics]]:
    """Yield what moves each joint that has such forces, and how they depend on that."""
    tree = bodies.tree
    for link, drives in zip(tree.links, tree.drives, strict=True):
        dynamics = link.dynamics
        own = dynamics.motor_inertia, dynamics.damping
        own += dynamics.friction, dynamics.stiffness
        # Parameters, which are traced, may be anything.
        if any(isinstance(each, Traced) or each for each in own):
            yield drives[0], link.dynamics


def joint_efforts(
    bodies: Multibody,
    rates: Mapping[int, Number],
    accelerations: Mapping[int, Number],
) -> dict[int, Number]:
    """Return the forces of coordinates that motors, friction and springs take.

    Args:
        bodies: In their configuration.
        rates: Of all coordinates that move.
        accelerations: Of all coordinates that move.
    """
    efforts: dict[int, Number] = {}
    for drive, dynamics in joint_dynamics(bodies):
        by, k = drive.multiplier, drive.of
        rate, acceleration = by * rates.get(k, 0.0), by * accelerations.get(k, 0.0)
        add_to(efforts, k, by * dynamics.effort(drive.at(bodies.q), rate, acceleration))
    return efforts
