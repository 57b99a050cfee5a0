"""Twists of frames per unit rate of each joint, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from armillary.kinematics.closing.rates import followed_rates, independent_columns
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.parameters import parameter_rates
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses, poses_of
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD
from armillary.spatial.pose import Pose, pose_of_entries
from armillary.spatial.twist import Vector6, halves
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    add,
    apply,
    cross,
    multiply,
    subtract,
    three,
    transpose,
)
from armillary.trace import Program, Scalar, jvp


class Twist(NamedTuple):
    """Which twist is asked for.

    Attributes:
        frame: Of which frame.
        relative_to: Relative to which.
        point: The frame whose origin, taken as fixed to `frame`, gives the linear part.
        axes: The frame in whose axes it is written.
    """

    frame: FrameRef
    relative_to: FrameRef
    point: FrameRef
    axes: FrameRef


def jacobian_program(
    tree: Tree,
    twists: Sequence[Twist],
    selection: Inputs,
    *,
    single: bool,
    name: str = "jacobian",
) -> Program:
    """Return the program of J, shape (6, n), or (k, 6, n) for a list of twists."""

    def equations(now: Tree, q: list[Number]) -> Any:
        written: list[Any] = []
        for twist in twists:
            columns = jacobian(now, q, twist)
            rows = ([columns[i][row] for i in selection.inputs] for row in range(6))
            written.append(list(rows))
        return written[0] if single else written

    return program_of(equations, tree, selection, name=name, output="jacobian")


def parameter_jacobian_program(
    tree: Tree, twists: Sequence[Twist], selection: Inputs, *, single: bool, name: str
) -> Program:
    """Return the program of twists per unit of each parameter, shape (6, k) each.

    With the pose X(q, p) = (R, x) of the frame: dx/dp, and w of dR/dp = [w] R; a point
    at r from there, fixed to the frame, moves by dx/dp + w x r.
    """

    def equations(now: Tree, q: list[Number]) -> Any:
        written: list[Any] = []
        moving = parameter_rates(now.cell, q, selection.passive)
        for twist in twists:
            X, at_point, to_axes = poses_of(
                now, q, [twist.frame, twist.point, twist.axes], twist.relative_to
            )
            r, turn = (
                subtract(at_point.position, X.position),
                transpose(to_axes.rotation),
            )
            columns = [_per_unit(X, each, r) for each in moving]
            turned = [(*apply(turn, v), *apply(turn, w)) for v, w in columns]
            written.append([[column[row] for column in turned] for row in range(6)])
        return written[0] if single else written

    return program_of(equations, tree, selection, name=name, output="jacobian")


def _per_unit(
    X: Pose, moving: Sequence[tuple[Any, Number]], r: Vector3
) -> tuple[Vector3, Vector3]:
    """Return how a frame moves: a point at `r` from its origin, fixed to it."""
    rate = pose_of_entries(jvp(list(X.entries), moving))
    spin = multiply(rate.rotation, transpose(X.rotation))
    w = (spin[2][1], spin[0][2], spin[1][0])
    return add(rate.position, cross(w, r)), w


def velocity_program(tree: Tree, twist: Twist, selection: Inputs) -> Program:
    """Return the program q, qd -> J qd, shape (6,)."""

    def equations(now: Tree, q: list[Number], qd: Sequence[Number]) -> Any:
        return velocity(now, q, twist, zip(selection.inputs, qd, strict=True))

    size = (len(selection.inputs),)
    return program_of(
        equations, tree, selection, name="velocity", output="twist", qd=size
    )


def acceleration_program(
    tree: Tree, twist: Twist, selection: Inputs, *, bias: bool
) -> Program:
    """Return the program q, qd, qdd -> J qdd + J' qd, or with `bias` q, qd -> J' qd.

    The derivative is taken as seen in `relative_to`, whatever the axes. With a and w
    at the origin of `frame`, the point at r from there, fixed to `frame`, has the
    acceleration (a + w' x r + w x (w x r), w').
    """
    at_origin = twist._replace(axes=twist.relative_to, point=twist.frame)
    joints = selection.inputs

    def equations(
        now: Tree, q: list[Any], qd: Sequence[Number], qdd: Sequence[Number] = ()
    ) -> Any:
        v = velocity(now, q, at_origin, zip(joints, qd, strict=True))
        rates = dict(zip(joints, qd, strict=True))
        rates |= followed_rates(now.cell, q, rates, selection.passive)
        moving: list[tuple[Scalar, Number]] = [(q[k], x) for k, x in rates.items()]
        total: list[Number] = jvp(v, moving)
        _warn_of_accelerations(now, twist)
        if not bias:
            steady = velocity(now, q, at_origin, zip(joints, qdd, strict=True))
            total = [a + b for a, b in zip(total, steady, strict=True)]
        linear, angular = three(total[:3]), three(total[3:])
        if twist.point != twist.frame:
            frame, point = twist.frame, twist.point
            ends = poses_of(now, q, [frame, point], twist.relative_to)
            r = subtract(ends[1].position, ends[0].position)
            w = three(v[3:])
            linear = add(linear, add(cross(angular, r), cross(w, cross(w, r))))
        if twist.axes == twist.relative_to:
            return [*linear, *angular]
        turn = _turn_to_axes(now, q, twist)
        return [*apply(turn, linear), *apply(turn, angular)]

    size = (len(joints),)
    shapes = {"qd": size} if bias else {"qd": size, "qdd": size}
    name = "bias_acceleration" if bias else "acceleration"
    return program_of(
        equations, tree, selection, name=name, output="acceleration", **shapes
    )


def _warn_of_accelerations(tree: Tree, twist: Twist) -> None:
    """Let the joints between both frames say where their accelerations are wrong."""
    ends = twist.frame.link, twist.relative_to.link
    root = tree.common_ancestor(ends)
    for link in (*tree.path(root, ends[0]), *tree.path(root, ends[1])):
        if tree.drives[link]:
            tree.links[link].joint.motion.warn_of_accelerations()


def velocity(
    tree: Tree,
    q: Sequence[Number],
    twist: Twist,
    rates: Iterable[tuple[int, Number]],
) -> list[Number]:
    """Return the twist J qd, six numbers.

    q: Where all joints are, passive ones last.
    rates: Of joints that move, each with its index in q.
    """
    columns = jacobian(tree, q, twist)
    total: list[Number] = [0.0] * 6
    for place, rate in rates:
        total = [t + c * rate for t, c in zip(total, columns[place], strict=True)]
    return total


def jacobian(
    tree: Tree, q: Sequence[Number], twist: Twist, poses: LinkPoses | None = None
) -> list[tuple[Number, ...]]:
    """Return the column of each joint of q; passive joints count in their columns.

    poses: Those of links at q in the world, where they are known; for twists relative
        to the world.
    """
    columns = open_jacobian(tree, q, twist, poses)
    return independent_columns(tree.cell, q, columns)


def open_jacobian(
    tree: Tree, q: Sequence[Number], twist: Twist, poses: LinkPoses | None = None
) -> list[tuple[Number, ...]]:
    """Return the column of each joint as if no loop were closed, passive ones last.

    With L the nearest link that carries both frames, joint j of the path L to `frame`
    adds the twist (R_Lj v_j + w x (p - p_Lj), w), w = R_Lj w_j, at the point p; joints
    of the path L to `relative_to` take theirs away.
    """
    at = twist.frame, twist.relative_to, twist.point, twist.axes
    root = tree.common_ancestor([frame.link for frame in at])
    poses = LinkPoses(tree, q, root) if poses is None else poses
    point = poses.pose(twist.point).position
    turns = twist.axes != IN_WORLD or root >= 0
    turn = transpose(poses.pose(twist.axes).rotation)
    columns: list[list[Number]] = [[0.0] * 6 for _ in tree.joint_links]
    forward = tree.path(root, twist.frame.link)
    backward = tree.path(root, twist.relative_to.link)
    for path, other, sign in ((forward, backward, 1.0), (backward, forward, -1.0)):
        for link in path:
            drives = tree.drives[link]
            if not drives or link in other:
                continue
            twists = twists_at_point(poses, link, point)
            for drive, V in zip(drives, twists, strict=True):
                linear, angular = halves(V)
                if turns:
                    linear, angular = apply(turn, linear), apply(turn, angular)
                column, factor = columns[drive.of], sign * drive.multiplier
                for row, number in enumerate((*linear, *angular)):
                    column[row] = column[row] + factor * number
    return [tuple(column) for column in columns]


def twists_at_point(poses: LinkPoses, link: int, point: Vector3) -> list[Vector6]:
    """Return a joint's unit twists about `point`, in the axes of the reference."""
    arm = subtract(point, poses.link_pose(link).position)
    return [(*add(v, cross(w, arm)), *w) for v, w in poses.turned_columns(link)]


def _turn_to_axes(tree: Tree, q: Sequence[Number], twist: Twist) -> Rows:
    """Return the rotation from the axes of `relative_to` to those asked for."""
    (X_EA,) = poses_of(tree, q, [twist.relative_to], twist.axes)
    return X_EA.rotation
