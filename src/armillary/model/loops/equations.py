"""The equations of a loop: rows that are zero where it is closed, and their rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from armillary.errors import ArmillaryError, ModelError
from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.joint_drives import Ranges
from armillary.model.link import Link
from armillary.model.link_poses import LinkPoses, LinkTree, common_ancestor
from armillary.model.loops.loop import Closure, Loop, Rod
from armillary.model.parents import ancestors
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, dot, subtract
from armillary.trace import Program, evaluate, jvp, trace
from armillary.trace.functions import sqrt
from armillary.trace.ops import Op

__all__ = ["LoopEquations", "LoopJoint", "PlacedLoop", "loop_equations", "loop_joints"]

AXES = "xyz"

# a joint, as far as loops care


class LoopJoint(NamedTuple):
    """A joint, as far as loops care.

    Attributes:
        name: For messages.
        unit: Of its coordinate.
        start: Its position at home; that of a passive joint is a guess.
        lower: Its least position.
        upper: Its greatest position.
        rank: Joints of higher rank are rather passive.
    """

    name: str
    unit: Unit
    start: float
    lower: float
    upper: float
    rank: int


def loop_joints(
    links: Sequence[Link], ranges: Ranges, start: Sequence[float]
) -> list[LoopJoint]:
    """Return joints as loops see them.

    Args:
        links: The link behind each joint.
        ranges: Of the joints.
        start: Where they are before loops are closed.
    """
    lower, upper, _ = ranges
    rows = zip(links, start, lower.tolist(), upper.tolist(), strict=True)
    return [
        LoopJoint(link.coordinate, link.joint.unit, *rest, rank=int(link.passive))
        for link, *rest in rows
    ]


# the equations of a loop: rows that are zero where it is closed, and their rates


class PlacedLoop(NamedTuple):
    """A loop, where its frames are, and what moves its own joint.

    Attributes:
        loop: What closes.
        a: Its first frame.
        b: Its second.
        drive: Of the joint that adds to the length of a rod, None without one.
    """

    loop: Loop
    a: FrameRef
    b: FrameRef
    drive: Drive | None = None

    def moved(self, *, links: int, joints: int) -> PlacedLoop:
        """Return it among more links and joints, which come before its own."""
        a, b = (at._replace(link=links + at.link) for at in (self.a, self.b))
        drive = self.drive
        if drive is not None:
            drive = drive._replace(of=joints + drive.of)
        return PlacedLoop(self.loop, a, b, drive)


class LoopRows(NamedTuple):
    """The rows of a loop, and their derivatives.

    Attributes:
        values: Each zero where the loop is closed [m or rad].
        rates: For each row one derivative for each joint of the loop.
    """

    values: list[Any]
    rates: list[list[Any]]


class LoopEquations(NamedTuple):
    """What is zero where a loop is closed, on floats or traced scalars.

    Attributes:
        loop: It.
        joints: The joints that decide whether it is closed: places in the vector of
            all joints.
        program: From their positions, and parameters if there are any, to the rows,
            those in metres first, and rates.
        parameters: Numbers of the cell that are inputs of the program.
    """

    loop: Loop
    joints: tuple[int, ...]
    program: Program
    parameters: tuple[Number, ...] = ()

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return self.program.outputs[0].size

    @property
    def lengths(self) -> int:
        """Return the number of rows that are in metres."""
        return len(self.loop.position) if isinstance(self.loop, Closure) else 1

    def rows(self, q: Sequence[Any]) -> LoopRows:
        """Return the rows at a vector of all joints, or at many.

        q: For each joint a number, or an array of its positions, shape (s,).
        """
        own = [q[k] for k in self.joints]
        if any(isinstance(each, np.ndarray) for each in own):
            numbers = evaluate(self.program, [*own, *self.parameters], _on_arrays)
        else:
            numbers = evaluate(self.program, [*own, *self.parameters])
        count, width = self.size, len(self.joints)
        rates = numbers[count:]
        return LoopRows(
            numbers[:count],
            [rates[k * width : (k + 1) * width] for k in range(count)],
        )


def _on_arrays(meaning: Any) -> Any:
    """Return what an operation does to arrays; a number stays what it is."""
    return meaning.on_arrays if isinstance(meaning, Op) else meaning


def loop_equations(tree: LinkTree, placed: PlacedLoop) -> LoopEquations:
    """Return the equations of a loop.

    Args:
        tree: What moves.
        placed: The loop.

    Raises:
        ModelError: Nothing moves in it, or a joint of it cannot be traced.
    """
    joints = tuple(sorted(set(_joints(tree, placed))))
    label = placed.loop.label
    if not joints:
        raise ModelError(
            f"Nothing moves in {label}: no joint with a coordinate is between the two "
            "frames, so there is no loop to close."
        )

    def equations(own: Sequence[Number]) -> LoopRows:
        return loop_rows(tree, placed, joints, own)

    try:
        program = trace(
            equations, name=label, outputs=("rows", "rates"), own=(len(joints),)
        )
    except ModelError:
        raise
    except ArmillaryError as error:
        raise ModelError(
            f"The equations of {label} cannot be traced. {error}"
        ) from error
    return LoopEquations(placed.loop, joints, program)


def loop_rows(
    tree: LinkTree, placed: PlacedLoop, joints: Sequence[int], own: Sequence[Number]
) -> LoopRows:
    """Return the rows of a loop at traced positions of its joints.

    joints: Their places in the vector of all joints.
    """
    values = list(_values(tree, placed, dict(zip(joints, own, strict=True))))
    columns = [jvp(values, [(q, 1.0)]) for q in own]
    return LoopRows(values, [list(row) for row in zip(*columns, strict=True)])


def _joints(tree: LinkTree, placed: PlacedLoop) -> Iterator[int]:
    """Yield the joints on the way between the frames of a loop, and its own."""
    root = common_ancestor(tree, [placed.a.link, placed.b.link])
    for end in (placed.a.link, placed.b.link):
        line = ancestors(tree.parents, end)
        for link in line[: line.index(root)]:
            yield from (drive.of for drive in tree.drives[link])
    if placed.drive is not None:
        yield placed.drive.of


def _values(tree: LinkTree, placed: PlacedLoop, q: Any) -> Iterator[Number]:
    """Yield the rows of a loop at the positions of its joints."""
    loop, a, b, drive = placed
    poses = LinkPoses(tree, q, common_ancestor(tree, [a.link, b.link]))
    X_A, X_B = poses.pose(a), poses.pose(b)
    if isinstance(loop, Rod):
        yield _of_rod(loop, X_A, X_B, 0.0 if drive is None else drive.at(q))
    elif isinstance(loop, Closure):
        yield from _of_closure(loop, X_A.inverse() @ X_B)
    else:
        raise ModelError(f"{loop!r} is not a loop: give a Closure or a Rod.")


def _of_rod(rod: Rod, X_A: Pose, X_B: Pose, extension: Number) -> Number:
    """Return how much too far apart the ends of a rod are, near enough.

    (d^2 - l^2) / 2 l needs no root. Where a joint makes the length, it might be
    negative, which d - l is not deceived by.
    """
    way = subtract(X_B.position, X_A.position)
    if rod.by:
        return sqrt(dot(way, way)) - (rod.length + extension)
    return (dot(way, way) - rod.length**2) * (0.5 / rod.length)


def _of_closure(closure: Closure, X_AB: Pose) -> Iterator[Number]:
    """Yield the rows of a closure.

    A single rotation, and all three, are components of the Gibbs vector 2 tan(angle/2)
    axis; two are the tilt of the third axis, projected from the opposite pole. None has
    a second zero half a turn away.
    """
    R, p = X_AB.rotation, X_AB.position
    for axis in closure.position:
        yield p[AXES.index(axis)]
    if len(closure.rotation) == 2:
        (free,) = (k for k, axis in enumerate(AXES) if axis not in closure.rotation)
        for axis in closure.rotation:
            # about x tilts the free axis against y, about y against x
            other = 3 - free - AXES.index(axis)
            yield 2.0 * R[other][free] / (1.0 + R[free][free])
        return
    trace_of_R = 1.0 + R[0][0] + R[1][1] + R[2][2]
    for axis in closure.rotation:
        k = AXES.index(axis)
        i, j = (k + 1) % 3, (k + 2) % 3
        yield 2.0 * (R[j][i] - R[i][j]) / trace_of_R
