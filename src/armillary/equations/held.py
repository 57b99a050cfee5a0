"""Programs of some joints of a state; what else decides the answer is an input too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from armillary.equations.chain import Key, Layout, common_ancestor, link_of, path_below
from armillary.equations.jacobian import Twist, jacobian
from armillary.equations.poses import FORMS, poses_of
from armillary.model.workcell import FrameAt
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Program, trace

__all__ = ["Held", "held_jacobians_program", "held_poses_program"]


class Held(NamedTuple):
    """What an answer depends on besides the joints that are asked about.

    Attributes:
        joints: The joints that are asked about, as places in the cell's q.
        others: Further places in q that decide the answer.
        bases: Manipulators between the frames that the state has placed, in order.
    """

    joints: tuple[int, ...]
    others: tuple[int, ...]
    bases: tuple[int, ...]

    @classmethod
    def between(
        cls, layout: Layout, frames: Sequence[FrameAt], joints: tuple[int, ...]
    ) -> Self:
        """Return what decides where frames are relative to each other."""
        path = _path(layout, frames)
        cell = layout.cell
        drives = ((m, cell.manipulators[m].drives[k]) for m, k in path)
        places = {cell.offsets[m] + drive.of for m, drive in drives if drive}
        bases = {m for m, k in path if cell.manipulators[m].parents[k] < 0}
        placed = (m for m in bases if layout.supports[m] != cell.supports[m])
        return cls(joints, tuple(sorted(places - {*joints})), tuple(sorted(placed)))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the inputs of a program: q, and what else there is to give."""
        shapes: dict[str, tuple[int, ...]] = {"q": (len(self.joints),)}
        if self.others:
            shapes["others"] = (len(self.others),)
        if self.bases:
            shapes["bases"] = (len(self.bases), 4, 4)
        return shapes

    def values(self, layout: Layout, q: Sequence[float]) -> list[Any]:
        """Return what a state gives for the inputs behind q."""
        values: list[Any] = []
        if self.others:
            values.append([q[k] for k in self.others])
        if self.bases:
            values.append([layout.supports[m].pose.matrix() for m in self.bases])
        return values

    def expand(
        self, layout: Layout, inputs: Sequence[Any]
    ) -> tuple[Layout, list[Number]]:
        """Return the layout and the whole q that inputs describe."""
        given = dict(zip(self.shapes, inputs, strict=True))
        whole: list[Number] = [0.0] * len(layout.cell.joint_names)
        for place, number in zip(self.joints, given["q"], strict=True):
            whole[place] = number
        for place, number in zip(self.others, given.get("others", ()), strict=True):
            whole[place] = number
        supports = list(layout.supports)
        for m, base in zip(self.bases, given.get("bases", ()), strict=True):
            supports[m] = supports[m]._replace(pose=Pose.from_matrix(base))
        return Layout(layout.cell, tuple(supports)), whole


def held_poses_program(
    layout: Layout,
    frames: Sequence[FrameAt],
    relative_to: FrameAt,
    *,
    single: bool,
    form: str,
    held: Held,
) -> Program:
    """Return the program of `poses_program` with what is held as further inputs."""
    write = FORMS[form]

    def equations(now: Layout, q: list[Number]) -> Any:
        written = [write(X) for X in poses_of(now, q, frames, relative_to)]
        return written[0] if single else written

    output = "pose" if single else "poses"
    return _program(equations, layout, held, name="fk", output=output)


def held_jacobians_program(
    layout: Layout, twists: Sequence[Twist], *, single: bool, held: Held
) -> Program:
    """Return the program q -> J, (6, n), or (k, 6, n) for a list of twists."""

    def equations(now: Layout, q: list[Number]) -> Any:
        written: list[Any] = []
        for twist in twists:
            columns = jacobian(now, q, twist)
            rows = ([columns[i][row] for i in held.joints] for row in range(6))
            written.append(list(rows))
        return written[0] if single else written

    return _program(equations, layout, held, name="jacobian", output="jacobian")


def _program(
    equations: Callable[[Layout, list[Number]], Any],
    layout: Layout,
    held: Held,
    *,
    name: str,
    output: str,
) -> Program:
    def of_inputs(*inputs: Any) -> Any:
        return equations(*held.expand(layout, inputs))

    return trace(of_inputs, name=name, outputs=(output,), **held.shapes)


def _path(layout: Layout, frames: Sequence[FrameAt]) -> list[Key]:
    """Return the links between frames, below the nearest one that carries all."""
    keys = [link_of(frame) for frame in frames]
    root = common_ancestor(layout, keys)
    found = dict.fromkeys(k for key in keys for k in path_below(layout, root, key))
    return list(found)
