"""How a question to a cell becomes a kernel, each made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.kernel import Kernel
from armillary.kernel.native import real_type
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.bound_state import bound_state, branch_of
from armillary.kinematics.closing.kernel import Repeated, closed_kernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.trace import Program

__all__ = [
    "Joints",
    "kernel_of",
    "kernel_of_state",
    "listed_joints",
    "selection_of",
]

Joints = Sequence[str] | None
Frames = Callable[[], Sequence[FrameRef]]
Make = Callable[[Tree, Inputs], Program]


def kernel_of(
    cell: Workcell,
    question: Hashable,
    frames: Frames,
    make: Make,
    joints: Joints,
    state: State | None,
    dtype: npt.DTypeLike = np.float64,
    repeated: Repeated | None = None,
) -> AnyKernel:
    """Return the kernel of a question to a cell, which keeps it.

    Args:
        cell: What is asked.
        question: Equal for equal questions.
        frames: Gives the frames whose poses relative to each other decide the answer.
        make: The program of a tree and a selection of joints.
        joints: Names of the joints that are q, all by default.
        state: Where all else is, whose numbers are bound to the kernel; by default as
            the cell was built, with the other joints at home.
        dtype: The type that it computes in.
        repeated: How the program runs again and again.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A bare name is not unique, or one is named twice.
        StateError: The state is not one of this cell.
    """
    if state is not None:
        state = bound_state(cell, state)
        selection = selection_of(cell, joints, state, frames())
        return kernel_of_state(
            state, question, selection, make, dtype, repeated=repeated
        )
    key = "kernel", question, listed_joints(joints), _type_key(dtype)

    def made() -> Kernel:
        selection = selection_of(cell, joints, None, frames())
        program = make(Tree.of(cell), selection)
        return closed_kernel(cell, selection, program, dtype=dtype, repeated=repeated)

    return kept(cell, key, made)


def kernel_of_state(
    state: State,
    question: Hashable,
    selection: Inputs,
    make: Make,
    dtype: npt.DTypeLike = np.float64,
    values: Sequence[Any] = (),
    repeated: Repeated | None = None,
) -> AnyKernel:
    """Return the kernel of a question to a state, with the state's numbers bound.

    Two states share the kernel itself if the same links hold the bases on the path.

    Args:
        state: What is asked.
        question: Equal for equal questions.
        selection: Which joints are q, and what else is an input.
        make: The program of a tree and a selection of joints.
        dtype: The type that it computes in.
        values: Those of further inputs that are bound, behind those of `selection`.
        repeated: How the program runs again and again.
    """
    tree = state.tree
    holders = tuple(tree.bases[m].frame.link for m in selection.bases)
    chosen = selection.inputs, selection.others, selection.bases
    key = "kernel of a state", question, chosen, holders, _type_key(dtype)

    def program() -> Program:
        return make(tree, selection)

    def made() -> Kernel:
        found = kept(state.cell, (*key, "program"), program)
        return closed_kernel(
            state.cell,
            selection,
            found,
            branch=branch,
            dtype=dtype,
            repeated=repeated,
        )

    branch = branch_of(state) if selection.passive else None
    kernel = kept(branch or state.cell, key, made)
    return bind(kernel, [*selection.values(tree), *values])


def selection_of(
    cell: Workcell,
    joints: Joints,
    state: State | None = None,
    frames: Sequence[FrameRef] = (),
) -> Inputs:
    """Return which joints are q, by name, all by default.

    Args:
        cell: What has them.
        joints: Their names.
        state: What it decides between `frames` is an input; by default the other joints
            are constants, at home.
        frames: Those of the question.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A bare name is not unique, or one is named twice.
    """
    inputs = _indices(cell, joints)
    if state is None:
        return Inputs.at_home(Tree.of(cell), frames, inputs)
    rest = tuple(state.positions.tolist())
    return Inputs.between(state.tree, frames, inputs, rest)


def _indices(cell: Workcell, joints: Joints) -> tuple[int, ...]:
    names = listed_joints(joints)
    return kept(cell, ("joints", names), lambda: _found(cell, names))


def _found(cell: Workcell, names: tuple[str, ...] | None) -> tuple[int, ...]:
    if names is None:
        return tuple(range(len(cell.joint_names)))
    indices = tuple(map(cell.joint, names))
    if len(set(indices)) < len(indices):
        raise ModelError(f"joints= names a joint twice: {list(names)}.")
    return indices


def _type_key(dtype: npt.DTypeLike) -> str:
    return "d" if dtype is np.float64 else real_type(dtype).char


def listed_joints(joints: Joints) -> tuple[str, ...] | None:
    """Return names of joints as a tuple, which can be a part of a key; None for all.

    Raises:
        ModelError: They are a text, whose letters would be taken for names; or what has
            no order or can be read only once, such as a set or a generator.
    """
    if isinstance(joints, str):
        raise ModelError(f"joints= takes a list of names, not the text '{joints}'.")
    given: Any = joints
    is_list = isinstance(joints, Sequence) or np.ndim(given) == 1
    if given is not None and not is_list:
        raise ModelError(f"joints= takes a list of names, not {quote(given)}.")
    found: tuple[Any, ...] | None = None if joints is None else tuple(joints)
    for name in found or ():
        if not isinstance(name, Hashable):
            raise ModelError(f"joints= takes a list of names; one is {quote(name)}.")
    return found
