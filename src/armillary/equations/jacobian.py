"""Twists of frames per unit rate of each joint, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from armillary.equations.chain import (
    Chains,
    Key,
    Layout,
    common_ancestor,
    link_of,
    path_below,
)
from armillary.equations.selection import Selection
from armillary.model.workcell import FrameAt
from armillary.spatial.twist import Vector6, halves
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    add,
    apply,
    cross,
    subtract,
    transpose,
)
from armillary.trace import Program, Scalar, tangent, trace


class Twist(NamedTuple):
    """Which twist is asked for.

    Attributes:
        frame: Of which frame.
        relative_to: Relative to which.
        point: The frame whose origin, taken as fixed to `frame`, gives the linear part.
        axes: The frame in whose axes it is written.
    """

    frame: FrameAt
    relative_to: FrameAt
    point: FrameAt
    axes: FrameAt


def jacobian_program(layout: Layout, twist: Twist, selection: Selection) -> Program:
    """Return the program q -> J, shape (6, n)."""

    def equations(q: Sequence[Number]) -> Any:
        columns = jacobian(layout, selection.expand(q), twist)
        return [[columns[i][row] for i in selection.inputs] for row in range(6)]

    size = len(selection.inputs)
    return trace(equations, name="jacobian", outputs=("jacobian",), q=(size,))


def velocity_program(layout: Layout, twist: Twist, selection: Selection) -> Program:
    """Return the program q, qd -> J qd, shape (6,)."""

    def equations(q: Sequence[Number], qd: Sequence[Number]) -> Any:
        return velocity(layout, selection, q, qd, twist)

    size = (len(selection.inputs),)
    return trace(equations, name="velocity", outputs=("twist",), q=size, qd=size)


def acceleration_program(
    layout: Layout, twist: Twist, selection: Selection, *, bias: bool
) -> Program:
    """Return the program q, qd, qdd -> J qdd + J' qd, or with `bias` q, qd -> J' qd.

    The derivative is taken as seen in `relative_to`, whatever the axes.
    """
    own_axes = twist._replace(axes=twist.relative_to)

    def equations(
        q: Sequence[Scalar], qd: Sequence[Number], qdd: Sequence[Number] = ()
    ) -> Any:
        v = velocity(layout, selection, q, qd, own_axes)
        total: list[Number] = tangent(v, zip(q, qd, strict=True))
        if not bias:
            steady = velocity(layout, selection, q, qdd, own_axes)
            total = [a + b for a, b in zip(total, steady, strict=True)]
        if twist.axes == twist.relative_to:
            return total
        turn = _turn_to_axes(layout, selection.expand(q), twist)
        linear, angular = total[:3], total[3:]
        return [*apply(turn, _three(linear)), *apply(turn, _three(angular))]

    size = (len(selection.inputs),)
    shapes = {"q": size, "qd": size} if bias else {"q": size, "qd": size, "qdd": size}
    name = "bias_acceleration" if bias else "acceleration"
    return trace(equations, name=name, outputs=("acceleration",), **shapes)


def velocity(
    layout: Layout,
    selection: Selection,
    q: Sequence[Number],
    qd: Sequence[Number],
    twist: Twist,
) -> list[Number]:
    """Return the twist J qd, six numbers."""
    columns = jacobian(layout, selection.expand(q), twist)
    total: list[Number] = [0.0] * 6
    for place, rate in zip(selection.inputs, qd, strict=True):
        total = [t + c * rate for t, c in zip(total, columns[place], strict=True)]
    return total


def jacobian(
    layout: Layout, q: Sequence[Number], twist: Twist
) -> list[tuple[Number, ...]]:
    """Return the column of each joint of the cell.

    With L the nearest link that carries both frames, joint j of the path L to `frame`
    adds the twist (R_Lj v_j + w x (p - p_Lj), w), w = R_Lj w_j, at the point p; joints
    of the path L to `relative_to` take theirs away.
    """
    at = twist.frame, twist.relative_to, twist.point, twist.axes
    root = common_ancestor(layout, [link_of(frame) for frame in at])
    chains = Chains(layout, q, root)
    point = chains.pose(twist.point).position
    turn = transpose(chains.pose(twist.axes).rotation)
    columns: list[list[Number]] = [[0.0] * 6 for _ in layout.cell.joint_names]
    forward = path_below(layout, root, link_of(twist.frame))
    backward = path_below(layout, root, link_of(twist.relative_to))
    for path, sign in ((forward, 1.0), (backward, -1.0)):
        other = backward if path is forward else forward
        for key in path:
            if key not in other:
                _add_column(columns, layout, chains, key, point, turn, sign)
    return [tuple(column) for column in columns]


def _add_column(
    columns: list[list[Number]],
    layout: Layout,
    chains: Chains,
    key: Key,
    point: Vector3,
    turn: Rows,
    sign: float,
) -> None:
    """Add the twist of one joint to the column of the coordinate that drives it."""
    manipulator, k = key
    drive = layout.cell.manipulators[manipulator].drives[k]
    if drive is None:
        return
    V = _at_point(chains, key, point)
    linear, angular = (apply(turn, half) for half in halves(V))
    column = columns[layout.cell.offsets[manipulator] + drive.of]
    factor = sign * drive.multiplier
    for row, number in enumerate((*linear, *angular)):
        column[row] = column[row] + factor * number


def _at_point(chains: Chains, key: Key, point: Vector3) -> Vector6:
    """Return a joint's unit twist about `point`, in the axes of the reference."""
    X = chains.carried(key).pose
    v, w = halves(chains.subspace(key))
    w_L = apply(X.rotation, w)
    arm = subtract(point, X.position)
    return (*add(apply(X.rotation, v), cross(w_L, arm)), *w_L)


def _turn_to_axes(layout: Layout, q: Sequence[Number], twist: Twist) -> Rows:
    """Return the rotation from the axes of `relative_to` to those asked for."""
    keys = [link_of(twist.axes), link_of(twist.relative_to)]
    chains = Chains(layout, q, common_ancestor(layout, keys))
    X_EA = chains.pose(twist.axes).inverse() @ chains.pose(twist.relative_to)
    return X_EA.rotation


def _three(values: Sequence[Number]) -> Vector3:
    a, b, c = values
    return (a, b, c)
