"""How a question of dynamics to a cell becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypedDict, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.dynamics.bodies import Bodies
from armillary.dynamics.forward import massless
from armillary.dynamics.multibody import Coordinates, Multibody
from armillary.errors import ModelError, StateError, quote, unknown
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.closing.kernel import Repeated
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.kernels import (
    EARTH,
    Joints,
    KernelOptions,
    gravity_vector,
    listed_joints,
    selection_of,
)
from armillary.kinematics.state import State, bound_state, home
from armillary.model.cell_parameters import named_parameters
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.user_warning import warn_user
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY
from armillary.spatial.vector import Number, Vector3, vector
from armillary.trace import Program

__all__ = ["DynamicsOptions", "Options", "options_of"]

MOST_BODIES: Final = 256
"""Bodies of a compiled program; compiling takes 25 to 60 ms for each of them.

Loops are solved for and simulations run in compiled code only, without such a bound.
"""

MOST_OF_MATRICES: Final = 128
"""The same for `MATRICES`."""

MATRICES: Final = {
    "coriolis_matrix",
    "forward_dynamics_derivatives",
    "inertial_regressor",
    "inverse_dynamics_derivatives",
}
"""Questions whose programs grow with the square of the number of bodies."""

SAMPLES: Final = 3
"""Configurations in which a mass matrix is singular that is so everywhere."""

Equations = Callable[..., Any]

Further = Callable[[Tree, Bodies], Sequence[SpatialInertia]]
"""Gives inertias that an answer depends on, besides those of bodies."""


class Options(TypedDict, total=False):
    """The options that all questions of dynamics have; see `inverse_dynamics`."""

    joints: Joints
    state: State | None
    gravity: Sequence[float] | None
    free_bases: Sequence[str]
    dtype: npt.DTypeLike
    parameters: Sequence[str]


def options_of(cell: Workcell, options: Options) -> DynamicsOptions:
    """Return what a question is about.

    Raises:
        UnknownName: There is no such option.
    """
    for name in options:
        if name not in Options.__annotations__:
            raise unknown("option of dynamics", name, Options.__annotations__)
    return DynamicsOptions(cell, **options)


class _Physics(NamedTuple):
    """Gravity and inertias: constants of a program, or inputs that are bound.

    Attributes:
        gravity: The acceleration of falling bodies, in the world [m/s^2].
        inertias: Those of bodies, then further ones; None where they follow from
            parameters, and are computed by the program.
        is_bound: Whether they are inputs, so that other numbers compile nothing.
    """

    gravity: Vector3
    inertias: Sequence[SpatialInertia] | None
    is_bound: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the inputs by name."""
        if not self.is_bound:
            return {}
        known = {} if self.inertias is None else {"inertias": (len(self.inertias), 10)}
        return {"gravity": (3,), **known}

    @property
    def values(self) -> list[Any]:
        """Return what the inputs are bound to."""
        if not self.is_bound:
            return []
        known = [] if self.inertias is None else [[x.parameters for x in self.inertias]]
        return [list(self.gravity), *known]

    def of(
        self, inputs: tuple[Any, ...]
    ) -> tuple[Vector3, Sequence[SpatialInertia] | None, tuple[Any, ...]]:
        """Return gravity and inertias, and the inputs behind those."""
        if not self.is_bound:
            return self.gravity, self.inertias, inputs
        gravity, *further = inputs
        if self.inertias is None:
            return vector(gravity), None, tuple(further)
        rows, *further = further
        inertias = [SpatialInertia.from_parameters(row) for row in rows]
        return vector(gravity), inertias, tuple(further)


class DynamicsOptions(msgspec.Struct, frozen=True, dict=True):
    """What a question of dynamics is about, besides its vectors.

    Attributes:
        cell: What is asked.
        joints: Names of the joints that vectors hold, all by default; the others are
            locked.
        state: Whose attachments, moved bases and other joints count.
        gravity: The acceleration of falling bodies, in the world [m/s^2], shape (3,).
        free_bases: Names of the manipulators whose bases nothing holds.
        dtype: The type that kernels compute in.
        parameters: Names of numbers of the cell that are an input behind q.
    """

    cell: Workcell
    joints: Joints = None
    state: State | None = None
    gravity: Any = None
    free_bases: Sequence[str] = ()
    dtype: npt.DTypeLike = np.float64
    parameters: Sequence[str] = ()

    def kernel(
        self,
        question: str | tuple[Any, ...],
        equations: Equations,
        vectors: Sequence[str] = (),
        *,
        output: str | tuple[str, ...],
        frames: Sequence[FrameRef] = (),
        repeated: Repeated | None = None,
        further_inertias: Further = lambda _tree, _bodies: (),
        needs_inertia: bool = True,
        **more: tuple[int, ...],
    ) -> AnyKernel:
        """Return the kernel of a question, cached by the cell.

        Its inputs are the poses of free bases, where there are any, q, parameters, the
        vectors, then `more`. What a state and a gravity of its own decide is bound.

        Args:
            question: Its name, or that and what else differs between questions.
            equations: Takes a `Multibody`, `further_inertias`, and what is given for
                each further input.
            vectors: The names of inputs that have a number for each coordinate.
            output: Name of the output, or of each of several.
            frames: Frames whose poses the answer depends on, besides those of bodies.
            repeated: How the equations are evaluated again and again.
            further_inertias: Those that the answer depends on, besides those of bodies.
            needs_inertia: Whether it is refused where no body has an inertia.
            more: Shapes of further inputs.

        Raises:
            UnknownName: A joint or manipulator does not exist.
            ModelError: No link that joints move has an inertia.
            StateError: The state is not one of this cell, or a base moves in it that is
                not free.
        """
        tree, bodies = self.tree_and_bodies
        is_needed = needs_inertia and not self._varies_inertia
        inertias = self._inertias(tree, bodies, is_needed=is_needed)
        known = (
            None if self.parameters else [*inertias, *further_inertias(tree, bodies)]
        )
        is_bound = self.state is not None or self.gravity is not None
        physics = _Physics(gravity_vector(self.gravity), known, is_bound)

        def make(now: Tree, selection: Inputs) -> Program:
            size = 6 * len(selection.free) + len(selection.inputs)
            return self._program(
                now,
                selection,
                physics,
                equations,
                further_inertias,
                is_repeated=repeated is not None,
                name=question if isinstance(question, str) else question[0],
                output=output,
                **(dict.fromkeys(vectors, (size,)) | more),
            )

        def at() -> list[FrameRef]:
            # With parameters the program adds inertias, so it must know all placements.
            whole = range(len(tree.links)) if self.parameters else ()
            links = (*(body.link for body in bodies.rows), *whole)
            return [IN_WORLD, *(FrameRef(k, IDENTITY) for k in links), *frames]

        # Which body carries which is a part of the program of a state.
        order = tuple((body.link, body.parent) for body in bodies.rows)
        key = "dynamics", question, self._free, order if is_bound else None
        options = KernelOptions(
            cell=self.cell,
            joints=self.joints,
            state=self._state if is_bound else None,
            dtype=self.dtype,
            parameters=self.parameters,
        )
        return options.kernel(
            key, at, make, values=physics.values, free=self._free, repeated=repeated
        )

    def _program(
        self,
        tree: Tree,
        selection: Inputs,
        physics: _Physics,
        equations: Equations,
        further_inertias: Further,
        *,
        is_repeated: bool,
        name: str,
        output: str | tuple[str, ...],
        **more: tuple[int, ...],
    ) -> Program:
        """Return the program of equations of bodies, with inputs behind q.

        Args:
            tree: The links.
            selection: Which joints are q, and what else is an input.
            physics: Gravity and inertias, which are constants or inputs.
            equations: As for `kernel`.
            further_inertias: As for `kernel`.
            is_repeated: Whether it runs again and again, in compiled code only.
            name: Of the program.
            output: Name of its output, or of each of several.
            more: Shapes of the inputs behind q.
        """

        def of_inputs(now: Tree, positions: list[Number], *inputs: Any) -> Any:
            gravity, inertias, inputs = physics.of(inputs)
            bodies = self._bodies(now, positions)
            if inertias is None:
                inertias = [*bodies.inertias(now), *further_inertias(now, bodies)]
            own, further = inertias[: len(bodies.rows)], inertias[len(bodies.rows) :]
            at = self._multibody(now, bodies, positions, selection, own, gravity)
            return equations(at, *further, *inputs)

        most = min(MOST_BODIES, MOST_OF_MATRICES) if name in MATRICES else MOST_BODIES
        count = len(self.tree_and_bodies[1].rows)
        is_compiled = bool(count <= most or selection.passive or is_repeated)
        if not is_compiled:
            self._warn_of_python(name, count, most)
        return program_of(
            of_inputs,
            tree,
            selection,
            physics.shapes,
            is_compiled,
            name=name,
            output=output,
            **more,
        )

    def _warn_of_python(self, name: str, bodies: int, most: int) -> None:
        """Warn, once for a cell and a question, that Python computes it."""
        warned = kept(self.cell, "dynamics in Python", set[str])
        if name not in warned:
            warned.add(name)
            warn_user(
                f"{name} of {bodies} bodies runs in Python, at some 0.1 ms for each of "
                f"them and row: only up to {most} are compiled, since more would take "
                "minutes. Ask cells of fewer manipulators, which are apart as far as "
                "nothing couples them."
            )

    def check_regular(self) -> None:
        """Refuse joints that move no mass wherever they are.

        Raises:
            ModelError: The mass matrix is singular in several configurations, because
                of these joints; and as for `kernel`.
        """
        if self._varies_inertia:
            return  # rows are NaN where the mass matrix is singular
        cell, free = self.cell, self._free
        tree, bodies = self.tree_and_bodies

        def found() -> list[str]:
            inertias = self._inertias(tree, bodies)
            selection = selection_of(cell, self.joints)
            # All joints move, also locked ones: the answer is kept for all states.
            positions = np.array(home(cell).positions)
            low, high = cell.limits
            passive = tuple(range(len(low), len(positions)))
            selection = selection._replace(passive=passive)
            rng = np.random.default_rng(0)
            singular = set(range(len(positions) + 6 * len(free)))
            for _ in range(1 if passive or len(inertias) > MOST_BODIES else SAMPLES):
                q = positions
                if not passive:
                    q = rng.uniform(
                        np.maximum(low, np.minimum(q, high) - 1.0),
                        np.minimum(high, np.maximum(q, low) + 1.0),
                    )
                at = self._multibody(
                    tree, bodies, q.tolist(), selection, inertias, EARTH
                )
                singular &= massless(at)
            names = (*cell.joint_names, *cell.passive_names)
            bases = [cell.manipulators[k].name for k in free for _ in range(6)]
            return [quote((*names, *bases)[k]) for k in sorted(singular)]

        key = "massless", free, listed_joints(self.joints)
        names = kept(tree, key, found)
        if names:
            raise ModelError(
                "The mass matrix is singular, so accelerations are unknown: no mass "
                f"resists {', '.join(dict.fromkeys(names))}. Give what they move an "
                "inertia, or the joint a motor with "
                "dynamics=JointDynamics(motor_inertia=...)."
            )

    @property
    def _varies_inertia(self) -> bool:
        """Return whether parameters may give mass to what has none."""
        names = self.parameters
        found = named_parameters(self.cell, names) if names else ()
        return any({"inertia", "motor_inertia"} & set(each.path) for each in found)

    def _bodies(self, tree: Tree, positions: Sequence[Number]) -> Bodies:
        """Return the bodies of a tree, with coordinates of free bases last."""
        return Bodies.of(tree, self._free, len(positions))

    def _multibody(
        self,
        tree: Tree,
        bodies: Bodies,
        positions: Sequence[Number],
        selection: Inputs,
        inertias: Sequence[SpatialInertia],
        gravity: Vector3,
    ) -> Multibody:
        """Return the bodies with all joints at positions, passive ones last.

        Behind these are six coordinates for each free base.
        """
        free, first = self._free, len(positions)
        independent = *range(first, first + 6 * len(free)), *selection.inputs
        return Multibody(
            tree,
            bodies,
            [*positions, *[0.0] * (6 * len(free))],
            Coordinates(independent, selection.passive),
            inertias,
            gravity,
        )

    @property
    def tree_and_bodies(self) -> tuple[Tree, Bodies]:
        """Return the tree of the state, and its bodies.

        Raises:
            UnknownName: A manipulator does not exist.
            ModelError: A base cannot be free.
            StateError: A base moves that is not free.
        """
        state, free = self._state, self._free
        self._check_bases(state)
        tree, first = state.tree, len(self.cell.joints.home)
        return tree, kept(tree, ("bodies", free), lambda: Bodies.of(tree, free, first))

    @property
    def _state(self) -> State:
        cell = self.cell
        return home(cell) if self.state is None else bound_state(cell, self.state)

    @property
    def _free(self) -> tuple[int, ...]:
        given: Any = self.free_bases
        if not isinstance(given, (list, tuple)):
            raise ModelError(
                "free_bases= takes a list of names of manipulators, not "
                f"{quote(given)}."
            )
        numbers = tuple(map(self.cell.number, cast("Sequence[str]", given)))
        if len(set(numbers)) < len(numbers):
            raise ModelError(f"free_bases= names a manipulator twice: {given}.")
        return numbers

    def _inertias(
        self, tree: Tree, bodies: Bodies, *, is_needed: bool = True
    ) -> list[SpatialInertia]:
        def found() -> tuple[list[SpatialInertia], bool]:
            inertias = bodies.inertias(tree)
            return inertias, any(any(each.parameters) for each in inertias)

        inertias, is_known = kept(tree, ("inertias", self._free), found)
        if is_needed and not is_known:
            raise ModelError(
                "Nothing that joints move has an inertia here, so there are no "
                "dynamics. Give links theirs: Link(inertia=SpatialInertia."
                "from_centre(...)), or link.inertia_of_shapes(density). Manipulators "
                "that float, such as drones, are named in free_bases=."
            )
        return inertias

    def _check_bases(self, state: State) -> None:
        """Refuse bases that are fixed or attached and yet free, or move by themselves.

        Raises:
            ModelError: A free base is fixed, or what carries it is a link.
            StateError: A base has a velocity in the state, and is not free.
        """
        cell = self.cell
        for k in self._free:
            base = state.tree.bases[k]
            if base.mode == "fixed" or base.frame.link >= 0:
                name = quote(cell.manipulators[k].name)
                hint = f"Pass state=cell.home.release({name})"
                if base.mode == "fixed":
                    hint = f"Mount it loosely: cell.mount({name}, bolted=False)"
                mode = base.mode or "fixed"
                raise ModelError(
                    f"The base of {name} cannot be free: it is {mode} on "
                    f"{quote(base.on)}. {hint}."
                )
        if self.state is not None:
            free = {cell.manipulators[k].name for k in self._free}
            for V in state.base_velocities:
                if V.manipulator not in free:
                    raise StateError(
                        f"The base of {quote(V.manipulator)} moves in this state. Name "
                        "it in free_bases=, or give it no velocity."
                    )
