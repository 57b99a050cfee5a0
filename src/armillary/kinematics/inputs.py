"""What a program takes as inputs: chosen joints, other joints, and moved bases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, cast

import numpy as np

from armillary.errors import NotCompiled
from armillary.kernel.python_kernel import PythonProgram
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.cell_parameters import CellParameter, followed
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.tree import Base, Tree
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Port, Program, trace

__all__ = ["PASSIVE", "Formula", "Inputs", "program_of"]

PASSIVE: Final = "passive"
"""The input of programs that holds the passive joints of loops: it is solved for."""

FREE_BASES: Final = "free_bases"
"""The input of programs that holds the poses of free bases, shape (k, 4, 4)."""

NO_INPUTS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({})


class Formula(NamedTuple):
    """What a program computes, before it is traced.

    Attributes:
        function: Takes the inputs by position.
        name: Of the program.
        output: Name of its output, or of each where there are several.
        shapes: Names and shapes of the inputs.
    """

    function: Callable[..., Any]
    name: str
    output: str | tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]


class Inputs(NamedTuple):
    """The joints that are q, and what else is an input.

    Programs of a cell as it was built have no other inputs: all else is constant. In
    programs of a state, whatever of it decides the answer is an input, so that other
    numbers there compile nothing.

    Attributes:
        inputs: The joints that are q, as indices into the cell's q.
        rest: Where all joints are, passive ones last, from which the others take their
            positions [m or rad].
        others: Joints besides `inputs` whose positions are inputs; also passive ones
            that no joint of `inputs` moves.
        bases: Manipulators whose base poses are inputs.
        passive: Joints that loops determine and that are solved for.
        free: Manipulators that nothing holds: the caller gives the poses of their bases
            in the world, as the input `FREE_BASES`.
        parameters: Numbers of the cell that are inputs too, behind q.
        is_formula: Whether `program_of` returns the `Formula` in place of its program,
            to be evaluated within the trace of another.
    """

    inputs: tuple[int, ...]
    rest: tuple[float, ...]
    others: tuple[int, ...] = ()
    bases: tuple[int, ...] = ()
    passive: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    parameters: tuple[CellParameter, ...] = ()
    is_formula: bool = False

    @classmethod
    def at_home(
        cls, tree: Tree, frames: Sequence[FrameRef], inputs: tuple[int, ...]
    ) -> Self:
        """Return the selection in which all but q is constant, as at home.

        Args:
            tree: Of the cell as it was built.
            frames: Whose poses relative to each other are asked for; none where only
                `inputs` are.
            inputs: The joints that are q.
        """
        home = tree.cell.joints.home
        if not frames or not tree.cell.loop_system.blocks:
            return cls(inputs, home)
        passive = tree.passive_joints(tree.between(frames))
        return cls(inputs, home, passive=_moved(tree, passive, inputs))

    @classmethod
    def between(
        cls,
        tree: Tree,
        frames: Sequence[FrameRef],
        inputs: tuple[int, ...],
        rest: tuple[float, ...],
    ) -> Self:
        """Return the selection in which all that a state decides is an input.

        Args:
            tree: Of the state.
            frames: Whose poses relative to each other are asked for.
            inputs: The joints that are q.
            rest: Where all joints are in the state, passive ones last.
        """
        links = tuple(frame.link for frame in frames)
        decisive = kept(
            tree, ("inputs", links, inputs), lambda: _decisive(tree, frames, inputs)
        )
        return cls(inputs, rest, *decisive)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the inputs of a program besides q, by name."""
        shapes: dict[str, tuple[int, ...]] = {}
        if self.others:
            shapes["others"] = (len(self.others),)
        if self.bases:
            shapes["bases"] = (len(self.bases), 4, 4)
        return shapes

    def values(self, tree: Tree) -> list[Any]:
        """Return what `rest` and the tree of a state give for those inputs."""
        values: list[Any] = []
        if self.others:
            values.append([self.rest[k] for k in self.others])
        if self.bases:
            values.append([tree.bases[m].frame.pose.matrix() for m in self.bases])
        return values

    def vector(
        self,
        q: Sequence[Number],
        others: Sequence[Number] = (),
        passive: Sequence[Number] = (),
    ) -> list[Number]:
        """Return where all joints are, passive ones last; constants where not given."""
        whole = with_numbers(self.rest, self.inputs, q)
        if len(others):
            whole = with_numbers(whole, self.others, others)
        return with_numbers(whole, self.passive, passive) if len(passive) else whole

    def applied(
        self,
        tree: Tree,
        q: Sequence[Number],
        values: Sequence[Any],
        passive: Sequence[Number] = (),
        free_bases: Sequence[Any] = (),
    ) -> tuple[Tree, list[Number]]:
        """Return the tree and the positions of all joints that inputs describe.

        Args:
            tree: Of the state.
            q: Positions of `inputs`.
            values: As from `values`, of floats or traced.
            passive: Positions of `passive`.
            free_bases: Poses of the bases of `free`, shape (k, 4, 4).
        """
        by_name = dict(zip(self.shapes, values, strict=True))
        whole = self.vector(q, by_name.get("others", ()), passive)
        poses = *by_name.get("bases", ()), *free_bases
        if not poses:
            return tree, whole
        changes: dict[int, Base] = {}
        for m, matrix in zip((*self.bases, *self.free), poses, strict=True):
            base = tree.bases[m]
            pose = followed(tree.cell, base.on, Pose.from_matrix(matrix))
            changes[m] = base._replace(frame=base.frame._replace(pose=pose))
        return tree.attached(changes), whole


def _decisive(
    tree: Tree, frames: Sequence[FrameRef], inputs: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return other joints, moved bases and passive joints that decide poses."""
    path, built = tree.between(frames), tree.cell.base_frames
    moved = set(tree.moving_joints(path))
    bases = sorted(tree.bases_among(path))
    placed = (m for m in bases if tree.bases[m].frame != built[m])
    solved = tree.passive_joints(path)
    passive = _moved(tree, solved, inputs)
    others = tuple(sorted({*moved, *solved} - {*inputs, *passive}))
    return others, tuple(placed), passive


def _moved(
    tree: Tree, passive: Sequence[int], inputs: Sequence[int]
) -> tuple[int, ...]:
    """Return the passive joints that some independent joints move."""
    system = tree.cell.loop_system
    return tuple(
        k for k in passive if not system.deciding([k]).keys().isdisjoint(inputs)
    )


def program_of(
    equations: Callable[..., Any],
    tree: Tree,
    selection: Inputs,
    before: Mapping[str, tuple[int, ...]] = NO_INPUTS,
    is_compiled: bool = True,
    /,
    *,
    name: str,
    output: str | tuple[str, ...],
    **more: tuple[int, ...],
) -> Program:
    """Return the program of equations of a tree and the positions of all joints.

    Where a script cannot be compiled, the program runs as Python.

    Its inputs are those of `selection.shapes`, `before`, poses of free bases and
    passive joints of loops if there are any, q, and `more`.

    Args:
        equations: Takes a tree, where all joints are, and what is given for `before`
            and for `more`.
        tree: What moves.
        selection: Which joints are q, and what else is an input.
        before: Shapes of further inputs before those that the caller gives.
        is_compiled: Whether to trace it; otherwise it runs as Python.
        name: Of the program.
        output: Name of its output, or of each where there are several.
        more: Shapes of further inputs behind it.
    """
    free = {FREE_BASES: (len(selection.free), 4, 4)} if selection.free else {}
    passive = {PASSIVE: (len(selection.passive),)} if selection.passive else {}

    def of_inputs(*given: Any) -> Any:
        values, given = _split(given, len(selection.shapes))
        further, given = _split(given, len(before))
        bases, given = _split(given, len(free))
        solved, (q, *rest) = _split(given, len(passive))
        p, X_WB = solved[0] if solved else (), bases[0] if bases else ()
        now, whole = selection.applied(tree, q, values, p, X_WB)
        return equations(now, whole, *further, *rest)

    size = (len(selection.inputs),)
    shapes = {**selection.shapes, **before, **free, **passive, "q": size, **more}
    if selection.is_formula:
        return cast(Program, Formula(of_inputs, name, output, shapes))
    try:
        if not is_compiled:
            raise NotCompiled("It is too large.")
        return trace(of_inputs, name=name, outputs=output, **shapes)
    except NotCompiled as reason:  # mostly because a script moves something
        first, last = (*before.values(), *free.values()), tuple(more.values())
        try:
            results = of_inputs(*_example(tree, selection, first, last))
        except AttributeError:  # it takes derivatives of traced scalars
            raise reason from None
        if isinstance(output, str):
            output, results = (output,), (results,)
        inputs = tuple(Port(*each) for each in shapes.items())
        named = zip(output, map(np.shape, results), strict=True)
        outputs = tuple(Port(*each) for each in named)
        return PythonProgram(name, inputs, outputs, (), (), of_inputs)


def _example(
    tree: Tree,
    selection: Inputs,
    before: Sequence[tuple[int, ...]],
    behind: Sequence[tuple[int, ...]],
) -> list[Any]:
    """Return values of all inputs, which tell the shapes of results.

    Joints are where they rest; inputs of the given shapes, before those and behind
    them, are zero.
    """
    q = [selection.rest[k] for k in selection.inputs]
    passive = [selection.rest[k] for k in selection.passive]
    return [
        *selection.values(tree),
        *map(np.zeros, before),
        *([passive] if passive else []),
        q,
        *map(np.zeros, behind),
    ]


def _split(values: tuple[Any, ...], count: int) -> tuple[tuple[Any, ...], ...]:
    return values[:count], values[count:]
