"""How far a tool is from a curve while joints move straight from sample to sample.

Between two samples joints move as q = q_0 + t dq and the curve's parameter as s_0 +
t h, for t from 0 to 1. Of a point of the tool, say e(t) is the way to it from where it
is to be. On the straight line from e(0) to e(1) it is at most as long as the longer, so

    |e(t)| <= max(|e(0)|, |e(1)|) + max |e''| / 8
    |e''(t)| <= max(|e''(0)|, |e''(1)|) + J / 2 + G

where e'' at the samples is computed: J' dq of the joints less the curve's. J bounds the
third derivatives of both. Of joints in a chain, each with the rate v_k, a bound l_k of
the speed of the point at unit rate and w_k of the turn, and with k_k of
`speed_bounds.bending`,

    |d3p / dq_i dq_j dq_k| <= w_i w_j l_k,    i < j < k, and with k_i w_i for i = j < k,
                              w_i k_k l_k for j = k, and k_k^2 l_k for i = j = k

since what a joint moves is turned by those before it. The last holds for joints that
turn or slide; of others, such as tracks that are bent, the pure second derivative may
jump, which adds G = sum_k 2 k_k l_k v_k^2. Where even the velocity of joint k may jump,
as its angular one does where a straight of a track ends, k_k is infinite, and

    |e| <= max(|e(0)|, |e(1)|) + A / 8 + l_k v_k / 2

where A bounds |e''| without that joint's pure second derivative, as a velocity that
jumps by no more than 2 l_k v_k leads off a straight way by no more than a quarter. For
rotations the point is any unit vector of the tool, with l = w, and the angle t from
|e| = 2 sin(t / 2).

A chain may begin at a frame that joints move, such as a positioner's: seen from there
these joints move the tool, nearest first, by the inverse motion. The inverse of one
that does not turn steadily has k + 2 w in place of k, as the second derivative of R p
has a term 2 R' p'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.jacobian import Twist, velocity
from armillary.kinematics.kernels import Joints, KernelOptions, selection_of
from armillary.kinematics.moving_links import MovingLinks, straight_links
from armillary.kinematics.speed_bounds import (
    SpeedBounds,
    bending,
    ranges_of,
    speeds_are_known,
)
from armillary.kinematics.state import State, bound_state, home
from armillary.model.drive import Drive
from armillary.model.fields import kept_few
from armillary.model.frame import FrameRef
from armillary.model.joint import Joint
from armillary.model.link_poses import poses_of
from armillary.model.speed_bound import is_steady
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.planning.curve_pieces import three_rows
from armillary.planning.frame_chain import FrameChain, second_bounds
from armillary.planning.joint_bending import BendTable, bend_table
from armillary.planning.tool_curve import Directions, ToolCurve
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    norm,
    subtract,
    subtract_rows,
    three,
)
from armillary.trace import Program, Scalar, jvp
from armillary.trace.functions import sqrt

__all__ = ["Deviations", "ToolChain", "are_bounded", "chain_of", "path_error"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

ROOM_AROUND_CURVE: Final = 0.05
"""How far from the curve the tool may be where bounds of its speed hold [m]."""

ROUNDING: Final = 1e-12
"""What rounding may add to a bound [m, rad]."""


class Deviations(NamedTuple):
    """Bounds of how far a tool is from a curve between samples.

    Attributes:
        bound: Distance [m] and angle [rad], shape (k, 2).
        bend: The part of both that falls as the square of the distance of samples.
    """

    bound: Array
    bend: Array


class RoughJoint(NamedTuple):
    """A joint in a chain that does not turn or slide steadily.

    Attributes:
        place: Its place in the chain.
        joint: The place in q of what drives it.
        multiplier: Its coordinate is this times that, plus `offset`.
        offset: See there.
        more: What the inverse motion adds to how it bends.
        table: How it bends.
    """

    place: int
    joint: int
    multiplier: float
    offset: float
    more: float
    table: BendTable

    def bending(self, first: Array, last: Array) -> Array:
        """Return bounds between joint positions, (k, n) each, to shape (k,)."""
        a, b = (self.multiplier * q[:, self.joint] + self.offset for q in (first, last))
        return self.table.greatest(np.minimum(a, b), np.maximum(a, b)) + self.more


class ToolChain(NamedTuple):
    """The joints between two frames, from `relative_to` to the tool, c coordinates.

    Attributes:
        chain: They, with bounds of how fast they move it.
        rates: Rates of coordinates for unit rates of the joints that move, (c, n).
        bending: Of those that turn or slide steadily, see above; else 0; shape (c,).
        steady: Which of them do, shape (c,).
        rough: How the others bend.
    """

    chain: FrameChain
    rates: Array
    bending: Array
    steady: npt.NDArray[np.bool_]
    rough: tuple[RoughJoint, ...]

    @property
    def is_known(self) -> bool:
        """Return whether there are bounds."""
        numbers = self.chain.linear, self.chain.angular, self.bending
        return all(bool(np.isfinite(each).all()) for each in numbers) and all(
            joint.table.is_known for joint in self.rough
        )

    def deviations(
        self, q: Array, errors: Array, curve: ToolCurve, piece: Indices, h: Array
    ) -> Deviations:
        """Return bounds between samples.

        Args:
            q: Joint positions of the samples, shape (k + 1, n).
            errors: From `path_error`, at both ends of each interval, shape (2, k, 4).
            curve: What is followed.
            piece: The piece of it that each is on, shape (k,).
            h: Its length [m], shape (k,).
        """
        rates = np.abs(np.diff(q, axis=0)) @ self.rates.T
        W = rates * self.chain.angular
        B = rates * self.bending
        leaps = np.zeros(W.shape, np.bool_)  # where velocities may jump
        for joint in self.rough:
            k = joint.place
            bent = joint.bending(q[:-1], q[1:])
            leaps[:, k] = np.isinf(bent) & (rates[:, k] > 0.0)
            B[:, k] = rates[:, k] * np.where(np.isfinite(bent), bent, 0.0)
        far = curve.farthest + ROOM_AROUND_CURVE
        L = rates * self.chain.moves(far)
        # Sums over the joints before each.
        S = np.cumsum(W, axis=1) - W
        WW = np.cumsum(W * W, axis=1) - W * W
        BW = np.cumsum(B * W, axis=1) - B * W
        once = 3.0 * (S * S - WW) + 3.0 * BW + 3.0 * S * B + self.steady * B * B
        jumps = 2.0 * ~self.steady * B
        both = np.stack([L, W], axis=2)
        third = np.einsum("kc,kcp->kp", once, both) + curve.jerk[piece] * (
            h[:, None] ** 3
        )
        apart, bent = errors.max(axis=0).reshape(-1, 2, 2).transpose(1, 0, 2)
        bend = 0.125 * (bent + 0.5 * third + np.einsum("kc,kcp->kp", jumps, both))
        rows = np.flatnonzero(leaps.any(axis=1))
        if rows.size:
            second = second_bounds(L[rows], W[rows], B[rows])
            second += curve.bend[piece[rows]] * h[rows, None] ** 2
            leap = np.einsum("kc,kcp->kp", 1.0 * leaps[rows], both[rows])
            bend[rows] = 0.125 * second + 0.5 * leap
        bound = apart + bend + ROUNDING
        # Chords of unit vectors to angles.
        for array in (bound, bend):
            array[:, 1] = 2.0 * np.arcsin(np.minimum(0.5 * array[:, 1], 1.0))
        bound[~np.isfinite(bound) | (np.abs(bound[:, :1]) > ROOM_AROUND_CURVE)] = (
            math.inf
        )
        return Deviations(bound, bend)


def are_bounded(cell: Workcell, state: State | None) -> bool:
    """Return whether there may be bounds of how fast links move; see `chain_of`."""
    now = home(cell) if state is None else bound_state(cell, state)
    return speeds_are_known(straight_links(cell), now)


def chain_of(
    cell: Workcell,
    ends: tuple[FrameRef, FrameRef],
    joints: Joints,
    state: State | None,
    box: tuple[Array, Array],
) -> ToolChain | None:
    """Return the joints between two frames; None where nothing is known of them.

    Args:
        cell: What has them.
        ends: The tool, and what it is seen from.
        joints: Names of the joints that move; by default all.
        state: Whose attachments and other joints count.
        box: Least and greatest positions of all joints that it is to hold for.
    """
    if not are_bounded(cell, state):
        return None
    moving = straight_links(cell)
    now = home(cell) if state is None else bound_state(cell, state)
    chosen = list(selection_of(cell, joints).inputs)
    where = tuple((m, base.frame) for m, base in enumerate(now.tree.bases))
    key = where, ends, tuple(chosen), box[0].tobytes(), box[1].tobytes()

    def made() -> ToolChain:
        return _made(moving, now, ends, chosen, box)

    return kept_few(cell, "chains of lines", key, made)


def _made(
    moving: MovingLinks,
    state: State,
    ends: tuple[FrameRef, FrameRef],
    chosen: list[int],
    box: tuple[Array, Array],
) -> ToolChain:
    """Return the chain between two frames, of the joints that are chosen."""
    tree = state.tree
    speeds = SpeedBounds.of(moving, tree, *box)
    chain = FrameChain.between(moving, tree, speeds, ends)
    both, is_inverse, angular = chain.coordinates, chain.inverse, chain.angular
    drives: list[tuple[Drive, ...]] = [
        tuple(tree.drives[link]) if link >= 0 else () for link in moving.links
    ]
    starts = np.cumsum([0, *map(len, drives)])
    bends, steady = np.zeros(len(both)), np.ones(len(both), np.bool_)
    rough: list[RoughJoint] = []
    for place, k in enumerate(map(int, both)):
        owner = int(speeds.owners[k])
        joint: Any = tree.links[moving.links[owner]].joint
        drive: Drive = drives[owner][k - int(starts[owner])]
        (low, high), *others = ranges_of(
            drives[owner], lambda j: (float(box[0][j]), float(box[1][j]))
        )
        if others or not isinstance(joint, Joint):
            bends[place] = math.inf  # of mechanisms nothing is known
        elif is_steady(joint.motion):
            bends[place] = bending(joint, ((low, high),))
        elif drive.of in chosen:
            steady[place] = False
            more = 2.0 * float(angular[place]) if is_inverse[place] else 0.0
            at = chosen.index(drive.of)
            table = bend_table(joint, low, high)
            rough.append(
                RoughJoint(place, at, drive.multiplier, drive.offset, more, table)
            )
    return ToolChain(chain, chain.rates[:, chosen], bends, steady, tuple(rough))


def path_error(
    cell: Workcell,
    names: tuple[str, str],
    joints: Joints,
    state: State | None,
    directions: Directions = (0, 1, 2),
) -> AnyKernel:
    """Return the kernel of how a tool deviates from a curve at a sample.

    Args:
        cell: What has the tool.
        names: The tool's frame, and that in which the curve is given.
        joints: Names of the joints that move.
        state: Whose attachments and other joints count.
        directions: Which axes of the tool have directions that count, see
            `curve_through`.

    Returns:
        A kernel of q (n,), rates (n,), and of the curve the pose (4, 4), the twist (6,)
        and the rate of that (6,), all by t, to four numbers: distance [m], chord of the
        angle; |p'' - p_d''| and a bound of |R'' - R_d''|. Where the direction u of one
        axis counts, the last is |u'' - u_d''|.
    """
    tool, seen = (cell.frame(name) for name in names)
    twist = Twist(frame=tool, relative_to=seen, point=tool, axes=seen)
    options = KernelOptions(cell=cell, joints=joints, state=state)

    def make(tree: Tree, selection: Inputs) -> Program:
        return _error_program(tree, twist, selection, directions)

    return options.kernel(("path_error", twist, directions), lambda: [seen, tool], make)


def _error_program(
    tree: Tree, twist: Twist, selection: Inputs, directions: Directions
) -> Program:
    joints = selection.inputs

    def equations(
        now: Tree, q: list[Any], qd: Sequence[Number], target: Any, rate: Any, bend: Any
    ) -> Any:
        (X,) = poses_of(now, q, [twist.frame], twist.relative_to)
        moved = dict(zip(joints, qd, strict=True))
        v = velocity(now, q, twist, moved.items())
        seeds: list[tuple[Scalar, Number]] = [(q[k], x) for k, x in moved.items()]
        a: list[Number] = jvp(v, seeds)
        apart = subtract(X.position, _column(target, 3))
        bent = subtract(three(a[:3]), three(bend[:3]))
        if not directions:
            return [norm(apart), 0.0, norm(bent), 0.0]
        if len(directions) == 1:
            u, u_d = (_column(matrix, *directions) for matrix in (X.rotation, target))
            off = subtract(_second(u, v, a), _second(u_d, rate, bend))
            return [norm(apart), norm(subtract(u, u_d)), norm(bent), norm(off)]
        turned = subtract_rows(X.rotation, three_rows(target))
        chord = sqrt(0.5 * sum((dot(row, row) for row in turned), 0.0))
        # R'' = ([w'] + [w]^2) R, and |[w]^2 - [u]^2| <= |w - u| (|w| + |u|).
        w, u = three(v[3:]), three(rate[3:])
        w_rate = three(a[3:])
        off = norm(subtract(w_rate, three(bend[3:])))
        both = norm(subtract(w, u)) * (norm(w) + norm(u))
        own = norm(w_rate) + dot(w, w)
        return [norm(apart), chord, norm(bent), off + both + own * chord]

    size = (len(joints),)
    return program_of(
        equations,
        tree,
        selection,
        name="path_error",
        output="error",
        qd=size,
        target=(4, 4),
        rate=(6,),
        bend=(6,),
    )


def _second(u: Vector3, twist: Any, change: Any) -> Vector3:
    """Return u'' = w' x u + w x (w x u) of a unit vector that turns."""
    w = three(twist[3:])
    return add(cross(three(change[3:]), u), cross(w, cross(w, u)))


def _column(matrix: Any, k: int) -> Vector3:
    return matrix[0][k], matrix[1][k], matrix[2][k]
