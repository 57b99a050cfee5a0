"""How a question to a cell becomes a kernel, each made once; options of questions.

Questions take their options as keywords. Inside they are one `KernelOptions`, which
checks them and makes the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.native import real_type
from armillary.kernel.python_kernel import PythonProgram
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.joint_vector import finite_numbers
from armillary.kinematics.state import State, bound_state, branch_of
from armillary.model.cell_parameters import named_parameters
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Vector3, vector
from armillary.trace import Program

if TYPE_CHECKING:
    from armillary.kinematics.closing.branch import Branch
    from armillary.kinematics.closing.kernel import Repeated
    from armillary.kinematics.jacobian import Twist

__all__ = [
    "EARTH",
    "Joints",
    "KernelOptions",
    "check_frame_name",
    "chosen_axes",
    "frame_list",
    "gravity_vector",
    "listed_joints",
    "named_twist",
    "program_kernel",
    "selection_of",
]

EARTH: Final = (0.0, 0.0, -9.81)
"""The acceleration of falling bodies [m/s^2], z being up."""

Joints = Sequence[str] | None
Frames = Callable[[], Sequence[FrameRef]]
Make = Callable[[Tree, Inputs], Program]


class KernelOptions(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The options that questions to a cell have in common.

    Attributes:
        cell: What is asked.
        joints: Names of the joints that are q, in that order, all by default; the
            others stay at home, or as in `state`.
        state: The state whose attachments, moved bases and other joints are used, and
            bound to the kernel; by default the cell as it was built, with the other
            joints at home.
        relative_to: The frame relative to which poses and twists are given.
        dtype: The type that kernels compute in, float64 or float32.
        parameters: Names of numbers of the cell that are inputs, as one vector behind
            q.
    """

    cell: Workcell
    joints: Joints = None
    state: State | None = None
    relative_to: str = WORLD
    dtype: npt.DTypeLike = np.float64
    parameters: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the name of the frame.

        Raises:
            ModelError: It is not a text.
        """
        check_frame_name(self.relative_to)

    def twist(
        self,
        frame: str,
        point: str | npt.ArrayLike | None,
        axes: str | None,
        cell: Workcell | None = None,
    ) -> Twist:
        """Return which twist is asked for by names; see `named_twist`.

        cell: With the same names, by default that which is asked.
        """
        named = self.cell if cell is None else cell
        return named_twist(named, frame, self.relative_to, point, axes)

    def kernel(
        self,
        question: Hashable,
        frames: Frames,
        make: Make,
        *,
        values: Sequence[Any] = (),
        free: tuple[int, ...] = (),
        repeated: Repeated | None = None,
    ) -> AnyKernel:
        """Return the kernel of a question, cached by the cell.

        The kernel of a state has the state's numbers bound. Two states share the kernel
        itself if the same links hold the bases on the path.

        Args:
            question: Equal for equal questions.
            frames: Gives the frames whose poses relative to each other decide the
                answer.
            make: The program of a tree and a selection of joints.
            values: Those of further inputs that are bound, behind what the state gives.
            free: Manipulators whose base poses the caller gives.
            repeated: How the program runs again and again.

        Raises:
            UnknownName: A joint does not exist.
            ModelError: A bare name is not unique, or one is named twice.
            StateError: The state is not one of this cell.
        """
        parameters = named_parameters(self.cell, self.parameters)
        if parameters:
            with IMPORT_LOCK:
                from armillary.kinematics.parameters import made_with

            make = made_with(make, parameters)
        varied = tuple(each.name for each in parameters)
        key = question, _type_key(self.dtype), free, varied
        if self.state is None:
            return self._of_home(key, frames, make, (free, parameters), repeated)
        state = bound_state(self.cell, self.state)
        selection = selection_of(self.cell, self.joints, state, frames())
        placed = tuple(m for m in selection.bases if m not in free)
        selection = selection._replace(bases=placed, free=free, parameters=parameters)
        kernel = self._of_state(key, state, selection, make, repeated)
        return bind(kernel, [*selection.values(state.tree), *values])

    def _of_home(
        self,
        key: tuple[Hashable, ...],
        frames: Frames,
        make: Make,
        inputs: tuple[tuple[int, ...], Any],
        repeated: Repeated | None,
    ) -> Kernel:
        """Return the kernel of the cell as it was built.

        Args:
            key: Equal for equal questions of the same type.
            frames: As for `kernel`.
            make: As for `kernel`, with parameters.
            inputs: Manipulators whose base poses are given, and the parameters.
            repeated: As for `kernel`.
        """
        cell = self.cell
        free, parameters = inputs

        def made() -> Kernel:
            selection = selection_of(cell, self.joints, None, frames())
            selection = selection._replace(free=free, parameters=parameters)
            program = make(Tree.of(cell), selection)
            return program_kernel(
                cell, selection, program, dtype=self.dtype, repeated=repeated
            )

        return kept(cell, ("kernel", *key, listed_joints(self.joints)), made)

    def _of_state(
        self,
        key: tuple[Hashable, ...],
        state: State,
        selection: Inputs,
        make: Make,
        repeated: Repeated | None,
    ) -> Kernel:
        """Return the kernel of a state, whose numbers are not bound.

        Args:
            key: As for `_of_home`.
            state: The state.
            selection: Which joints are q, and what else is an input.
            make: As for `_of_home`.
            repeated: As for `kernel`.
        """
        cell, tree = self.cell, state.tree
        holders = tuple(tree.bases[m].frame.link for m in selection.bases)
        chosen = selection.inputs, selection.others, selection.bases
        key = "kernel of a state", *key, chosen, holders
        branch = branch_of(state) if selection.passive else None

        def made() -> Kernel:
            program = kept(cell, (*key, "program"), lambda: make(tree, selection))
            return program_kernel(
                cell,
                selection,
                program,
                branch=branch,
                dtype=self.dtype,
                repeated=repeated,
            )

        return kept(branch or cell, key, made)


def program_kernel(
    cell: Workcell,
    selection: Inputs,
    program: Program,
    *,
    branch: Branch | None = None,
    dtype: npt.DTypeLike = np.float64,
    repeated: Repeated | None = None,
) -> Kernel:
    """Return the kernel of a program, by `closed_kernel` if joints of it are passive.

    The arguments are those of `closed_kernel`, which is imported only where it is
    needed.
    """
    if not (selection.passive or repeated):
        if selection.parameters and not isinstance(program, PythonProgram):
            with IMPORT_LOCK:
                from armillary.kernel.shared_input import kernel_of_shared_input
                from armillary.kinematics.parameters import PARAMETERS

            return kernel_of_shared_input(program, PARAMETERS, dtype=dtype)
        return shared_kernel(program, dtype=dtype)
    with IMPORT_LOCK:
        from armillary.kinematics.closing.kernel import closed_kernel

    return closed_kernel(
        cell, selection, program, branch=branch, dtype=dtype, repeated=repeated
    )


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


def frame_list(frames: str | Sequence[str], question: str) -> tuple[str, ...]:
    """Return the names of frames that are asked about, one or a list of them.

    question: What messages call it.

    Raises:
        ModelError: The list is empty, or holds anything but texts.
    """
    if isinstance(frames, str):
        return (frames,)
    try:
        names = tuple(frames)
    except TypeError as error:
        raise ModelError(
            f"{question} takes the name of a frame or a list of names, not "
            f"{quote(frames)}."
        ) from error
    if not names:
        raise ModelError(f"{question} needs at least one frame.")
    for name in names:
        check_frame_name(name)
    return names


def check_frame_name(name: object) -> None:
    """Check that a frame is given by its name.

    Raises:
        ModelError: It is something else.
    """
    if not isinstance(name, str):
        raise ModelError(f"A frame is given by its name, a text, not {quote(name)}.")


def named_twist(
    cell: Workcell,
    frame: str,
    relative_to: str,
    point: str | npt.ArrayLike | None,
    axes: str | None,
) -> Twist:
    """Return which twist is asked for by names.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: A bare name is not unique, a name is not a text, or a point is not
            three finite numbers.
    """
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import Twist

    for name in (frame, relative_to, axes):
        if name is not None:
            check_frame_name(name)
    return Twist(
        frame=cell.frame(frame),
        relative_to=cell.frame(relative_to),
        point=_point_of(cell, frame, point),
        axes=cell.frame(relative_to if axes is None else axes),
    )


def _point_of(
    cell: Workcell, frame: str, point: str | npt.ArrayLike | None
) -> FrameRef:
    """Return the frame whose origin is a point: a frame's, or one within a frame."""
    if point is None or isinstance(point, str):
        return cell.frame(frame if point is None else point)
    xyz = finite_numbers(point, 3)
    if xyz is None:
        raise ModelError(
            "point= takes the name of a frame, or three finite numbers [m] in the "
            f"frame asked about; not {quote(point)}."
        )
    at = cell.frame(frame)
    return at._replace(pose=at.pose @ Pose.translation(*xyz.tolist()))


def chosen_axes(text: str, what: str) -> tuple[bool, bool, bool]:
    """Return which of x, y and z a text such as `xy` names.

    Raises:
        ModelError: It holds other letters, or one twice.
    """
    given: Any = text
    is_text = isinstance(given, str)
    if not is_text or not set(text) <= set("xyz") or len(set(text)) < len(text):
        raise ModelError(f"{what}= takes letters of 'xyz', each once; not '{text}'.")
    return "x" in text, "y" in text, "z" in text


def gravity_vector(gravity: Any) -> Vector3:
    """Return the gravity that is given, or that of the earth.

    Raises:
        ModelError: It is not three finite numbers.
    """
    if gravity is None:
        return EARTH
    acceleration = finite_numbers(gravity, 3)
    if acceleration is None:
        raise ModelError(
            f"gravity= takes three finite numbers [m/s^2], such as (0, 0, -9.81), not "
            f"{quote(gravity)}."
        )
    return vector(acceleration.tolist())
