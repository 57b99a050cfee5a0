"""What a program takes as inputs: chosen joints, other joints, and moved bases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

from armillary.kinematics.chains import (
    Key,
    Layout,
    common_ancestor,
    link_of,
    path_below,
)
from armillary.model.workcell import FrameRef, Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Program, trace

__all__ = ["Inputs", "bases_of", "path_between", "program_of"]


class Inputs(NamedTuple):
    """The joints that are q, and what else is an input.

    Programs of a cell as it was built have no other inputs: all else is constant. In
    programs of a state, whatever of it decides the answer is an input, so that other
    numbers there compile nothing.

    Attributes:
        inputs: The joints that are q, as indices into the cell's q.
        rest: A whole q, from which the other joints take their positions [m or rad].
        others: Joints besides `inputs` whose positions are inputs.
        bases: Manipulators whose base poses are inputs.
    """

    inputs: tuple[int, ...]
    rest: tuple[float, ...]
    others: tuple[int, ...] = ()
    bases: tuple[int, ...] = ()

    @classmethod
    def between(
        cls,
        layout: Layout,
        frames: Sequence[FrameRef],
        inputs: tuple[int, ...],
        rest: tuple[float, ...],
    ) -> Self:
        """Return the selection in which all that a state decides is an input.

        Args:
            layout: Of the state.
            frames: Whose poses relative to each other are asked for.
            inputs: The joints that are q.
            rest: The q of the state.
        """
        path, cell = path_between(layout, frames), layout.cell
        drives = ((m, cell.manipulators[m].drives[k]) for m, k in path)
        moved = {cell.offsets[m] + drive.of for m, drive in drives if drive}
        bases = bases_of(cell, path)
        placed = (m for m in bases if layout.supports[m] != cell.supports[m])
        return cls(inputs, rest, tuple(sorted(moved - {*inputs})), tuple(placed))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the inputs of a program besides q, by name."""
        shapes: dict[str, tuple[int, ...]] = {}
        if self.others:
            shapes["others"] = (len(self.others),)
        if self.bases:
            shapes["bases"] = (len(self.bases), 4, 4)
        return shapes

    def values(self, layout: Layout) -> list[Any]:
        """Return what `rest` and the layout of a state give for those inputs."""
        values: list[Any] = []
        if self.others:
            values.append([self.rest[k] for k in self.others])
        if self.bases:
            values.append([layout.supports[m].pose.matrix() for m in self.bases])
        return values

    def expand(self, q: Sequence[Number]) -> list[Number]:
        """Return the whole q, the positions of `others` among the constants."""
        whole: list[Number] = list(self.rest)
        for place, number in zip(self.inputs, q, strict=True):
            whole[place] = number
        return whole

    def applied(
        self, layout: Layout, q: Sequence[Number], values: Sequence[Any]
    ) -> tuple[Layout, list[Number]]:
        """Return the layout and the whole q that the inputs of a program describe.

        values: As from `values`, of floats or traced.
        """
        given = dict(zip(self.shapes, values, strict=True))
        whole = self.expand(q)
        for place, number in zip(self.others, given.get("others", ()), strict=True):
            whole[place] = number
        if not self.bases:
            return layout, whole
        supports = list(layout.supports)
        for m, base in zip(self.bases, given["bases"], strict=True):
            supports[m] = supports[m]._replace(pose=Pose.from_matrix(base))
        return Layout(layout.cell, tuple(supports)), whole


def path_between(layout: Layout, frames: Sequence[FrameRef]) -> set[Key]:
    """Return the links between frames, below the nearest one that carries all."""
    keys = [link_of(frame) for frame in frames]
    root = common_ancestor(layout, keys)
    return {link for key in keys for link in path_below(layout, root, key)}


def bases_of(cell: Workcell, path: Iterable[Key]) -> list[int]:
    """Return the manipulators whose bases are among links, in order."""
    return sorted(m for m, k in path if cell.manipulators[m].parents[k] < 0)


def program_of(
    equations: Callable[..., Any],
    layout: Layout,
    selection: Inputs,
    *,
    name: str,
    output: str,
    **more: tuple[int, ...],
) -> Program:
    """Return the program of equations of a layout and the whole q.

    Its inputs are those of `selection.shapes`, q, and `more`.

    Args:
        equations: Takes a layout, the whole q, and what is given for `more`.
        layout: What moves.
        selection: Which joints are q, and what else is an input.
        name: Of the program.
        output: Name of its output.
        more: Shapes of the further inputs.
    """
    bound = selection.shapes

    def of_inputs(*given: Any) -> Any:
        q, *rest = given[len(bound) :]
        now, whole = selection.applied(layout, q, given[: len(bound)])
        return equations(now, whole, *rest)

    size = len(selection.inputs)
    return trace(of_inputs, name=name, outputs=(output,), **bound, q=(size,), **more)
