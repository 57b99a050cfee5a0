"""Poses of frames relative to a frame, as programs of the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from armillary.kinematics.inputs import Inputs, program_of
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.spatial import dual_quaternion
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number
from armillary.trace import Program

FORMS: dict[str, Callable[[Pose], Any]] = {
    "matrix": lambda X: [*([*r, p] for r, p in _rows(X)), [0.0, 0.0, 0.0, 1.0]],
    "quaternion": lambda X: [*X.quaternion(), *X.position],
    "dual_quaternion": lambda X: list(dual_quaternion.from_pose(X)),
}
"""How a pose leaves a program: (4, 4), (7,) as wxyz xyz, (8,) real part first."""

READERS: dict[str, Callable[[Any], Pose]] = {
    "matrix": Pose.from_matrix,
    "quaternion": lambda numbers: Pose.from_quaternion(numbers[:4], numbers[4:]),
    "dual_quaternion": lambda numbers: dual_quaternion.to_pose(tuple(numbers)),
}
"""How a pose comes into a program; quaternions of any length and either sign."""

SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (4, 4),
    "quaternion": (7,),
    "dual_quaternion": (8,),
}


def _rows(X: Pose) -> list[tuple[tuple[Number, ...], Number]]:
    return list(zip(X.rotation, X.position, strict=True))


def poses_program(
    tree: Tree,
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
    *,
    single: bool,
    form: str,
    selection: Inputs,
) -> Program:
    """Return the program q -> poses of `frames` in `relative_to`.

    Args:
        tree: What moves.
        frames: Whose poses.
        relative_to: In which frame.
        single: Whether the output is one pose, rather than a list of them.
        form: A key of `FORMS`.
        selection: Which joints are q, and what else is an input.
    """
    write = FORMS[form]

    def equations(now: Tree, q: list[Number]) -> Any:
        written = [write(X) for X in poses_of(now, q, frames, relative_to)]
        return written[0] if single else written

    output = "pose" if single else "poses"
    return program_of(equations, tree, selection, name="fk", output=output)


def pose_error_program(
    tree: Tree,
    frame: FrameRef,
    relative_to: FrameRef,
    selection: Inputs,
    *,
    form: str,
) -> Program:
    """Return the program q, target -> V with X_target = X(q) exp(V), shape (6,).

    V is the logarithm of the dual quaternion X(q)* X_target, so that a target's sign
    does not matter; it is written in the axes of `frame`.
    """

    def equations(now: Tree, q: list[Number], target: Any) -> Any:
        (X,) = poses_of(now, q, [frame], relative_to)
        wanted = READERS[form](target)
        return dual_quaternion.screw_between(
            dual_quaternion.from_pose(X), dual_quaternion.from_pose(wanted)
        )

    return program_of(
        equations,
        tree,
        selection,
        name="pose_error",
        output="twist",
        target=SHAPES[form],
    )


def poses_of(
    tree: Tree,
    q: Sequence[Number],
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
) -> list[Pose]:
    """Return the poses of `frames` in `relative_to` at the whole vector q."""
    root = tree.common_ancestor([at.link for at in (relative_to, *frames)])
    links = LinkPoses(tree, q, root)
    if relative_to.link == root and relative_to.pose.is_identity:
        return [links.pose(at) for at in frames]
    X_AR = links.pose(relative_to).inverse()
    return [X_AR @ links.pose(at) for at in frames]


class _Factors(NamedTuple):
    """A link's pose as that of the joint that moves it, and a constant behind it."""

    moving: Pose
    constant: Pose


class LinkPoses:
    """The poses of links in one frame of reference, at one whole vector q.

    Each is computed once. Constant poses are multiplied with each other before they
    meet moving ones, so that fixed joints cost nothing.
    """

    def __init__(self, tree: Tree, q: Sequence[Number], root: int) -> None:
        """Start with the link `root`, whose outer frame is the frame of reference."""
        self._tree = tree
        self._q = q
        self._known: dict[int, _Factors] = {root: _Factors(IDENTITY, IDENTITY)}

    def pose(self, at: FrameRef) -> Pose:
        """Return the pose of a frame fixed to `root` or to what it carries."""
        moving, constant = self._factors(at.link)
        return moving @ (constant @ at.pose)

    def link_pose(self, link: int) -> Pose:
        """Return the pose of a link's outer frame."""
        moving, constant = self._factors(link)
        return moving @ constant

    def _factors(self, link: int) -> _Factors:
        known, parents = self._known, self._tree.parents
        path: list[int] = []
        while link not in known:
            path.append(link)
            link = parents[link]
        factors = known[link]
        for step in reversed(path):
            factors = known[step] = self._next(step, factors)
        return factors

    def _next(self, link: int, parent: _Factors) -> _Factors:
        """Return the pose of a link from that of its parent."""
        tree = self._tree
        joint = tree.cell.links[link].joint
        moving, constant = parent
        base = tree.base_of[link]
        if base >= 0:
            constant = constant @ tree.bases[base].frame.pose
        constant = constant @ joint.precursor
        q = self.joint_positions(link)
        if not q:
            return _Factors(moving, constant)
        return _Factors(moving @ constant @ joint.motion.pose(*q), IDENTITY)

    def joint_positions(self, link: int) -> list[Number]:
        """Return the coordinates of a link's joint, none where it is fixed."""
        return [
            drive.multiplier * self._q[drive.of] + drive.offset
            for drive in self._tree.drives[link]
        ]

    def columns(self, link: int) -> list[Vector6]:
        """Return the twists of a link per unit rate of each coordinate of its joint.

        They are written in the link's frame.
        """
        joint = self._tree.cell.links[link].joint
        return joint.motion.columns(*self.joint_positions(link))
