"""The cell: a workcell, and the questions that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from armillary.cell.methods import (
    Later,
    asks,
    asks_of_meshes,
    asks_once,
    edits,
    edits_with_meshes,
)
from armillary.forks import IMPORT_LOCK
from armillary.kinematics.state import State, bound_state, home
from armillary.model.coupled_limit import CoupledLimit
from armillary.model.limit_rows import LimitRows
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import DEFAULT_RULES, Workcell

# Nobody pays for questions that are not asked. Type checkers read the first list, at
# run time the second one counts.
if TYPE_CHECKING:
    from armillary.cell import device, differential_drive, tree_text
    from armillary.collision import own_points, pairs, violations, with_collisions
    from armillary.collision import questions as collisions
    from armillary.collision.check import CollisionCheck
    from armillary.control import questions as control
    from armillary.dynamics import quantities, simulation
    from armillary.dynamics import questions as dynamics
    from armillary.ik.differential import DifferentialSolver
    from armillary.ik.inverse_kinematics import InverseKinematics
    from armillary.kinematics import all_frames, frame_tree, questions
    from armillary.kinematics import loops as loop_questions
    from armillary.kinematics.kernels import Joints
    from armillary.model import cell_parameters
    from armillary.model.closed_form import ClosedForm
    from armillary.planning import cartesian
    from armillary.planning import planner as planning
    from armillary.planning import roadmap as roadmaps
    from armillary.portable import compiled
    from armillary.programs import run as programs
    from armillary.programs.post_processors import hand_over
    from armillary.sweeps import learned_rules, samples
    from armillary.trajectories import point_to_point, time_path
    from armillary.trajectories.motion import Motion
    from armillary.view import plan_view
    from armillary.view import questions as viewer
else:
    device = Later("armillary.cell.device")
    differential_drive = Later("armillary.cell.differential_drive")
    tree_text = Later("armillary.cell.tree_text")
    collisions = Later("armillary.collision.questions")
    pairs = Later("armillary.collision.pairs")
    violations = Later("armillary.collision.violations")
    own_points = Later("armillary.collision.own_points")
    with_collisions = Later("armillary.collision.with_collisions")
    control = Later("armillary.control.questions")
    quantities = Later("armillary.dynamics.quantities")
    simulation = Later("armillary.dynamics.simulation")
    dynamics = Later("armillary.dynamics.questions")
    all_frames = Later("armillary.kinematics.all_frames")
    frame_tree = Later("armillary.kinematics.frame_tree")
    questions = Later("armillary.kinematics.questions")
    loop_questions = Later("armillary.kinematics.loops")
    cell_parameters = Later("armillary.model.cell_parameters")
    cartesian = Later("armillary.planning.cartesian")
    planning = Later("armillary.planning.planner")
    roadmaps = Later("armillary.planning.roadmap")
    compiled = Later("armillary.portable.compiled")
    programs = Later("armillary.programs.run")
    hand_over = Later("armillary.programs.post_processors.hand_over")
    learned_rules = Later("armillary.sweeps.learned_rules")
    samples = Later("armillary.sweeps.samples")
    point_to_point = Later("armillary.trajectories.point_to_point")
    time_path = Later("armillary.trajectories.time_path")
    plan_view = Later("armillary.view.plan_view")
    viewer = Later("armillary.view.questions")

__all__ = ["Cell"]

Array = npt.NDArray[np.float64]

INSTEAD: Final = {
    "dynamics": "use cell.inverse_dynamics()(q, qd, qdd) and its neighbours; "
    "cell.carried(frame, state) is the inertia of a payload",
    "rnea": "use cell.inverse_dynamics()(q, qd, qdd)",
    "aba": "use cell.forward_dynamics()(q, qd, torque)",
    "crba": "use cell.mass_matrix()(q)",
    "plot": "use cell.view(state), which shows it in the browser",
    "forward_kinematics": "use cell.fk(frame)(q)",
    "inverse_kinematics": "use cell.ik(frame)(targets)",
    "joints": "use cell.joint_names",
    "links": "each of cell.manipulators has .links",
    "q": "a state has positions, such as cell.home.q",
}
"""What to use in place of attributes that people look for."""


NO_MOTIONS: Final[Mapping[str, Motion]] = MappingProxyType({})


@dataclass(frozen=True, init=False, repr=False)
class Cell:
    """A workcell that answers questions, each by a kernel made on first use.

    A kernel is a function of arrays: `fk(q)` for one vector, `fk(Q)` for any batch,
    `fk(Q, out=X)` into memory of yours. Cells are immutable; threads may share them.

    Kernels answer for the cell as it was built. Where a part is gripped or a base has
    been moved, pass that state: `cell.fk("part", state=state)`.

    Attributes:
        workcell: The manipulators, mounts and rules, to which questions are put.
        meshes: What reads the files of its meshes; None where it is not known.
        motions: The motions in the file that it was loaded from, by name.
    """

    workcell: Workcell
    meshes: MeshSource | None = field(default=None, compare=False)
    motions: Mapping[str, Motion] = field(
        default_factory=lambda: NO_MOTIONS, compare=False
    )

    def __init__(
        self,
        *,
        name: str = "cell",
        manipulators: Sequence[Manipulator] = (),
        mounts: Sequence[Mount] = (),
        properties: Sequence[Property] = (),
        rules: Rules = DEFAULT_RULES,
        loops: Sequence[Closure | Rod] = (),
        coupled_limits: Sequence[CoupledLimit] = (),
        meshes: MeshSource | None = None,
    ) -> None:
        """Make the workcell; see `Workcell` for its fields and errors.

        meshes: What reads the files of its meshes, such as
            `armillary.formats.mesh.MeshFiles(folder)`.
        """
        workcell = Workcell(
            name=name,
            manipulators=manipulators,
            mounts=mounts,
            properties=properties,
            rules=rules,
            loops=loops,
            coupled_limits=coupled_limits,
        )
        object.__setattr__(self, "workcell", workcell)
        object.__setattr__(self, "meshes", meshes)
        object.__setattr__(self, "motions", NO_MOTIONS)

    @classmethod
    def of(
        cls,
        workcell: Workcell,
        *,
        meshes: MeshSource | None = None,
        motions: Mapping[str, Motion] = NO_MOTIONS,
    ) -> Self:
        """Return the cell that asks `workcell`, with its meshes and motions."""
        cell = cls.__new__(cls)
        object.__setattr__(cell, "workcell", workcell)
        object.__setattr__(cell, "meshes", meshes)
        object.__setattr__(cell, "motions", MappingProxyType(dict(motions)))
        return cell

    def __reduce__(self) -> tuple[Any, ...]:
        extras = {"meshes": self.meshes, "motions": dict(self.motions)}
        return partial(type(self).of, **extras), (self.workcell,)

    def __repr__(self) -> str:
        return repr(self.workcell)

    def _repr_html_(self) -> str:
        rows = (
            (m.name, self.home.parent(m.name), len(m.links), ", ".join(m.joint_names))
            for m in self.manipulators
        )
        with IMPORT_LOCK:
            from armillary.model.display import table

        return table(repr(self), ("manipulator", "on", "links", "joints"), rows)

    def __getattr__(self, name: str) -> Any:
        if name not in INSTEAD:
            return self.__getattribute__(name)  # raises what it raised before
        raise AttributeError(f"A cell has no '{name}': {INSTEAD[name]}.")

    # what it is made of

    @property
    def name(self) -> str:
        """Return its name, for messages and files."""
        return self.workcell.name

    @property
    def manipulators(self) -> tuple[Manipulator, ...]:
        """Return its manipulators; their order gives the order of q."""
        return self.workcell.manipulators

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Return where manipulators stand that are not at the origin of the world."""
        return self.workcell.mounts

    @property
    def properties(self) -> tuple[Property, ...]:
        """Return what else files say of the cell as a whole."""
        return self.workcell.properties

    @property
    def rules(self) -> Rules:
        """Return which pairs of links are tested for collision."""
        return self.workcell.rules

    @property
    def index(self) -> dict[str, int]:
        """Return the position of each manipulator by name."""
        return self.workcell.index

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of all joints in the order of q.

        They are `manipulator/joint` where the cell has more than one manipulator.
        """
        return self.workcell.joint_names

    @property
    def passive_names(self) -> tuple[str, ...]:
        """Return the names of the joints that loops determine, as in `joint_names`."""
        return self.workcell.passive_names

    @property
    def loops(self) -> tuple[Closure | Rod, ...]:
        """Return what closes loops between manipulators."""
        return self.workcell.loops

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Return the names of all frames as `manipulator/frame`, the world's first."""
        return self.workcell.frame_names

    @property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest q, each of shape (n,) [m or rad]."""
        return self.workcell.limits

    @property
    def coupled_limits(self) -> tuple[CoupledLimit, ...]:
        """Return the limits that couple joints of manipulators."""
        return self.workcell.coupled_limits

    @property
    def limit_rows(self) -> LimitRows:
        """Return all limits that couple joints, as rows A q <= b.

        The limits of each joint, `limits`, are not among them.
        """
        return self.workcell.limit_rows

    within_limits = asks(Workcell.within_limits)

    @property
    def velocity_limits(self) -> Array:
        """Return the greatest rates, shape (n,) [m/s or rad/s]."""
        return self.workcell.velocity_limits

    @property
    def acceleration_limits(self) -> Array:
        """Return the greatest accelerations, shape (n,) [m/s^2 or rad/s^2]."""
        return self.workcell.joints.acceleration_limits

    @property
    def effort_limits(self) -> Array:
        """Return the greatest forces or torques, shape (n,) [N or N m]."""
        return self.workcell.effort_limits

    @property
    def movable_bases(self) -> tuple[str, ...]:
        """Return the manipulators whose bases states may place, attach and grip.

        The base of every other one is fixed: it stays where its mount has it.
        """
        with IMPORT_LOCK:
            from armillary.kinematics.frame_tree import movable_bases

        return movable_bases(self.workcell)

    @cached_property
    def home(self) -> State:
        """Return the state in which the cell starts: home postures, else zero.

        Where limits exclude zero, a joint is at the limit nearest to zero.
        """
        return home(self.workcell)

    frame = asks(Workcell.frame)
    joint = asks(Workcell.joint)
    qualified = asks(Workcell.qualified)
    parameters = asks(cell_parameters.parameters)

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` has the same manipulators with nearly equal numbers.

        tolerance: The largest difference of two numbers; names must be equal.
        """
        return isinstance(other, Cell) and self.workcell.approx_equal(
            other.workcell, tolerance
        )

    # editing: each gives a new cell that shares what did not change

    add = edits(Workcell.add)
    remove = edits(Workcell.remove)
    exchange = edits(Workcell.exchange)
    replace = edits(Workcell.replace)
    mount = edits(Workcell.mount)
    scaled = edits(Workcell.scaled)
    with_parameters = edits(cell_parameters.with_parameters)
    with_collisions = edits_with_meshes(with_collisions.with_collisions)

    # kernels of joint positions

    fk = asks_once(questions.fk)
    jacobian = asks_once(questions.jacobian)
    velocity = asks_once(questions.velocity)
    acceleration = asks_once(questions.acceleration)
    bias_acceleration = asks_once(questions.bias_acceleration)
    pose_error = asks_once(questions.pose_error)
    parameter_jacobian = asks_once(questions.parameter_jacobian)

    def ik(  # noqa: PLR0913
        self,
        frames: str | Sequence[str],
        *,
        relative_to: str = WORLD,
        joints: Joints = None,
        state: State | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
        closed: ClosedForm | None = None,
        avoid: CollisionCheck | None = None,
    ) -> InverseKinematics:
        """Return the solver of inverse kinematics: targets to joint positions.

        Args:
            frames: The frame to place, or a list of frames to place at once.
            relative_to: The frame in which targets are given.
            joints: Names of the joints that may move, in the order of q; the others
                stay at home, or as in `state`. By default all.
            state: Whose attachments and moved bases count, as for `fk`.
            position: Which of x, y and z count, such as `xy`; empty for none.
            rotation: Rotations about which axes count: `xy` leaves the tool free to
                spin about its z; empty leaves the direction free.
            axes: Whether these axes are those of the `target` or of `relative_to`.
            closed: A closed form of your own for these joints.
            avoid: A check such as `cell.collision(state)`, of the same state: answers
                where its links touch do not count.

        Returns:
            A solver to call with targets (..., 4, 4), or (..., k, 4, 4) for k frames.

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: A bare name is not unique, nothing is asked for, no joint
                moves a frame, or the check is of another cell or state.
        """
        with IMPORT_LOCK:
            from armillary.ik.factory import solver_of  # nobody else pays for it

        return solver_of(
            self.workcell,
            frames,
            relative_to=relative_to,
            joints=joints,
            state=state,
            position=position,
            rotation=rotation,
            axes=axes,
            closed=closed,
            avoid=avoid,
        )

    def differential_ik(  # noqa: PLR0913
        self,
        frame: str,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
        joints: Joints = None,
        state: State | None = None,
        limits: bool = True,
    ) -> DifferentialSolver:
        """Return the solver of differential inverse kinematics: twists to rates.

        Args:
            frame: The frame whose twist is wanted.
            relative_to: As for `jacobian`.
            point: As for `jacobian`.
            axes: As for `jacobian`.
            position: Which linear velocities count, such as `xy`; empty for none.
            rotation: About which axes angular velocities count.
            joints: As for `ik`.
            state: As for `fk`.
            limits: Whether limits of positions and rates hold.

        Returns:
            A solver to call with q (..., n) and twists (..., 6); its `then` adds
            tasks of lower priority, `for_purpose` what the freedom left is used for.

        Raises:
            UnknownName: A frame or joint does not exist.
            ModelError: A bare name is not unique, or nothing is asked for.
        """
        with IMPORT_LOCK:
            from armillary.ik.differential import differential_of

        names = (frame, relative_to, point, axes)
        return differential_of(
            self.workcell, names, (position, rotation), joints, state, limits
        )

    controller = asks(control.controller)

    # one state at a time

    def bind(self, state: State) -> State:
        """Return a state that came from elsewhere as one of this cell.

        Raises:
            StateError: It is not a `State`, or has other joints.
            UnknownName: It names a manipulator or frame that is not here.
        """
        return bound_state(self.workcell, state)

    pose = asks(all_frames.pose)
    poses = asks(all_frames.poses)
    between = asks(questions.between)
    twist = asks(questions.twist)
    carried = asks(frame_tree.carried)

    inverse_dynamics = asks_once(dynamics.inverse_dynamics)
    forward_dynamics = asks_once(dynamics.forward_dynamics)
    inverse_dynamics_derivatives = asks_once(dynamics.inverse_dynamics_derivatives)
    forward_dynamics_derivatives = asks_once(dynamics.forward_dynamics_derivatives)
    inertial_regressor = asks_once(dynamics.inertial_regressor)
    inertial_parameters = asks(dynamics.inertial_parameters)
    mass_matrix = asks_once(dynamics.mass_matrix)
    gravity_torque = asks_once(dynamics.gravity_torque)
    bias_torque = asks_once(dynamics.bias_torque)
    simulate = asks(simulation.simulate)
    coriolis_matrix = asks_once(quantities.coriolis_matrix)
    kinetic_energy = asks_once(quantities.kinetic_energy)
    potential_energy = asks_once(quantities.potential_energy)
    centre_of_mass = asks_once(quantities.centre_of_mass)
    centre_of_mass_jacobian = asks_once(quantities.centre_of_mass_jacobian)
    momentum = asks_once(quantities.momentum)
    operational_inertia = asks_once(quantities.operational_inertia)
    null_space_projector = asks_once(quantities.null_space_projector)
    reaction = asks_once(quantities.reaction)
    torque_of_wrench = asks_once(quantities.torque_of_wrench)
    pairs = asks_of_meshes(pairs.pairs)
    collision = asks_of_meshes(collisions.collision)
    violations = asks_of_meshes(violations.violations)
    line = asks(cartesian.line)
    own_points = asks_of_meshes(own_points.own_points)
    time_path = asks(time_path.time_path)
    point_to_point = asks(point_to_point.point_to_point)

    planner = asks(planning.planner)
    roadmap = asks(roadmaps.roadmap)
    run = asks_of_meshes(programs.run)
    runs = asks_of_meshes(programs.runs)
    hand_over = asks(hand_over.hand_over)

    samples = asks(samples.samples)
    learn_rules = asks_of_meshes(learned_rules.learn_rules)

    # closed loops

    close_loops = asks(loop_questions.close_loops)
    branches = asks(loop_questions.branches)
    mobility = asks(loop_questions.mobility)

    # to see it

    view = asks_of_meshes(viewer.view)
    export = asks_of_meshes(viewer.export)
    shot = asks_of_meshes(viewer.shot)
    plan_view = asks_of_meshes(plan_view.plan_view)

    # for machines without Python

    compile_to = asks(compiled.compile_to)

    # the tree of frames

    parent = asks(frame_tree.parent)
    children = asks(frame_tree.children)
    common_ancestor = asks(frame_tree.common_ancestor)
    rigid_with = asks(frame_tree.rigid_with)
    is_movable = asks(frame_tree.is_movable)
    tree = asks(tree_text.tree)

    # devices

    device = asks(device.device)
    differential_drive = asks(differential_drive.differential_drive)
