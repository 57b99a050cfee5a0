"""A workcell in its states: where each frame is, and what moves with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.cell.tree_text import tree_lines
from armillary.collision.pairs import PairsOfStates
from armillary.errors import ModelError
from armillary.kinematics.all_frames import Survey
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.frame_poses import Poses
from armillary.kinematics.payload import carried_by
from armillary.kinematics.placement import movable
from armillary.kinematics.poses import poses_of
from armillary.kinematics.relative_pose import Between
from armillary.kinematics.state import State
from armillary.kinematics.state_twist import named_twist, twist_in
from armillary.kinematics.violations import Violation, violations_of
from armillary.model.display import table
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rules
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD, Workcell
from armillary.spatial.inertia import SpatialInertia

Array = npt.NDArray[np.float64]

INSTEAD: Final = {
    "dynamics": "dynamics are not computed yet; link.inertia has the masses, and "
    "cell.carried(frame, state) the inertia of a payload",
    "collision": "collisions are not computed yet; cell.pairs(state) has the pairs of "
    "links to test, and link.collision_shapes their shapes",
    "plot": "there is no viewer yet; print(cell.tree()) shows the frames, and "
    "cell.poses(state) has their poses",
    "forward_kinematics": "use cell.fk(frame)(q)",
    "inverse_kinematics": "use cell.ik(frame)(targets)",
    "joints": "use cell.joint_names",
    "links": "each of cell.manipulators has .links",
    "q": "a state has positions, such as cell.home.q",
}
"""What to use in place of attributes that people look for."""


class Scene(Workcell, frozen=True, kw_only=True, dict=True):
    """A workcell that is asked about one state at a time.

    `Cell` adds the questions that are kernels of joint positions.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in INSTEAD:
            return self.__getattribute__(name)  # raises what it raised before
        raise AttributeError(f"A cell has no '{name}': {INSTEAD[name]}.")

    def _repr_html_(self) -> str:
        rows = (
            (m.name, self.home.parent(m.name), len(m.links), ", ".join(m.joint_names))
            for m in self.manipulators
        )
        return table(repr(self), ("manipulator", "on", "links", "joints"), rows)

    @cached_property
    def home(self) -> State:
        """Return the state in which the cell starts: see `home_q`."""
        return State(q=self.home_q).bound(self)

    def between(self, frame: str, state: State, *, relative_to: str = WORLD) -> Between:
        """Return the pose of one frame in another over many states.

        Args:
            frame: Whose pose.
            state: A state with the attachments of them all.
            relative_to: In which frame.

        Raises:
            UnknownName: A frame does not exist.
            StateError: The state is not one of this cell.
        """
        return Between(self, frame, relative_to, self.bind(state))

    def rigid_with(self, frame: str, state: State | None = None) -> tuple[str, ...]:
        """Return the frames that never move relative to a frame while held so.

        Args:
            frame: Whose group is asked for; it is the group's first.
            state: Whose attachments count; those at home by default.

        Raises:
            UnknownName: There is no such frame.
        """
        tree = self.bind(state or self.home).tree
        name = self.qualified(frame)
        names = self.frame_names
        movers = tree.movers(self.frame(each).link for each in names)
        wanted = movers[names.index(name)]
        others = (
            other
            for other, mover in zip(names, movers, strict=True)
            if other != name and mover == wanted
        )
        return (name, *others)

    def bind(self, state: State) -> State:
        """Return a state that came from elsewhere as one of this cell.

        Raises:
            StateError: It is not a `State`, or has another number of joints.
            UnknownName: It names a manipulator or frame that is not here.
        """
        return bound_state(self, state)

    def pose(self, frame: str, state: State, *, relative_to: str = WORLD) -> Array:
        """Return the pose of a frame in a state, shape (4, 4).

        It is computed without a kernel, so that no state asks for compilation.

        Raises:
            UnknownName: A frame does not exist.
            StateError: The state is not one of this cell.
        """
        state = self.bind(state)
        at = [self.frame(frame)]
        (X,) = poses_of(state.tree, state.q, at, self.frame(relative_to))
        return X.matrix()

    def poses(self, state: State, *, q: npt.ArrayLike | None = None) -> Poses:
        """Return the poses of all frames in a state, each computed once.

        q: Joint positions in place of the state's, shape (..., n) [m or rad]; each
            frame's poses then have the shape (..., 4, 4).

        Raises:
            StateError: The state is not one of this cell.
            ShapeError: `q` has another number of joints.
        """
        survey, tree = self._survey, self.bind(state).tree
        matrices = survey.one(state.q, tree) if q is None else survey.many(q, tree)
        return Poses(self, survey.rows, matrices)

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self)

    @property
    def movable_bases(self) -> tuple[str, ...]:
        """Return the manipulators whose bases states may place, attach and grip.

        The base of every other one is bolted down: it stays where its mount has it.
        """
        return tuple(self.manipulators[k].name for k in movable(self))

    def is_movable(self, frame: str) -> bool:
        """Return whether states may move a frame by moving a base.

        That is the base of its own manipulator, or of one that carries this as built.

        Raises:
            UnknownName: There is no such frame.
        """
        tree = Tree.of(self)
        bases = tree.bases_among(tree.ancestors(self.frame(frame).link))
        return any(tree.bases[k].manner != "bolted" for k in bases)

    # motion and mass

    def twist(
        self,
        frame: str,
        state: State,
        *,
        relative_to: str = WORLD,
        point: str | None = None,
        axes: str | None = None,
    ) -> Array:
        """Return the twist of a frame in a state: linear [m/s], then angular [rad/s].

        It follows from the rates of joints, the velocities of bases, and the
        attachments: what is attached moves with its holder. No kernel is compiled.

        Args:
            frame: Whose twist.
            state: Where everything is, and how it moves.
            relative_to: Relative to which frame.
            point: The frame whose origin, taken as fixed to `frame`, gives the linear
                part; by default the origin of `frame`.
            axes: The frame in whose axes it is written; by default `relative_to`.

        Returns:
            Shape (6,).

        Raises:
            UnknownName: A frame does not exist.
            StateError: The state is not one of this cell.
        """
        twist = named_twist(self, frame, relative_to, point, axes)
        return twist_in(self.bind(state), twist)

    def carried(
        self,
        frames: str | Sequence[str],
        state: State,
        *,
        relative_to: str | None = None,
    ) -> SpatialInertia:
        """Return the inertia of everything that stands on frames in a state.

        That is the payload of a tool's frame; of a link, also the links behind it, but
        not the link itself; of the world, everything. Links of unknown inertia count
        nothing. The result has `.mass` [kg], `.centre()` [m], `.about_centre()` and
        `.rotational` [kg m^2].

        Args:
            frames: A frame or a list of them; what stands on two counts once.
            state: The attachments, and where everything is.
            relative_to: The frame about whose origin, and in whose axes, it is given;
                by default the first of `frames`.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: `frames` is an empty list.
            StateError: The state is not one of this cell.
        """
        listed = (frames,) if isinstance(frames, str) else frames
        names = [self.qualified(name) for name in listed]
        if not names:
            raise ModelError("carried needs at least one frame.")
        about = names[0] if relative_to is None else relative_to
        return carried_by(names, self.bind(state), about)

    # the tree of frames

    def parent(self, frame: str, state: State) -> str | None:
        """Return the frame that carries a frame in a state; None for the world.

        A named frame stands on its link, a link on its parent, a base on what holds it.

        Raises:
            UnknownName: There is no such frame.
            StateError: The state is not one of this cell.
        """
        return self.bind(state).tree.frame_parent(self.qualified(frame))

    def children(self, frame: str, state: State) -> tuple[str, ...]:
        """Return the frames that stand on a frame in a state: see `parent`.

        Raises:
            UnknownName: There is no such frame.
            StateError: The state is not one of this cell.
        """
        tree = self.bind(state).tree
        return tuple(tree.frame_children(self.qualified(frame)))

    def common_ancestor(self, frames: Sequence[str], state: State) -> str:
        """Return the nearest frame that is or carries each of these in a state.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: There is none to ask about.
            StateError: The state is not one of this cell.
        """
        if isinstance(frames, str) or not frames:
            raise ModelError(f"common_ancestor takes a list of frames, not {frames!r}.")
        names = [self.qualified(name) for name in frames]
        return self.bind(state).tree.common_frame(names)

    def tree(self, state: State | None = None) -> str:
        """Return the tree of frames in a state as text: a line for each, in columns.

        They tell what each frame is, what moves it, the coordinate of its joint [m or
        rad], and its position in the world [m].

        state: The one at home by default.

        Raises:
            StateError: The state is not one of this cell.
        """
        return "\n".join(tree_lines(self, self.bind(state or self.home)))

    # rules

    def pairs(self, state: State, *, rules: Rules | None = None) -> Pairs:
        """Return the pairs of links that are tested for collision in a state.

        They depend on the attachments, not on where things are. `rules` replace
        those of the cell; `.why(a, b)` of the result tells the reason for one pair.

        Raises:
            StateError: The state is not one of this cell.
            UnknownName: The rules name a link that does not exist.
            ModelError: There are too many pairs.
        """
        chosen = self.rules if rules is None else rules
        return self._juries.pairs(self.bind(state), chosen)

    @cached_property
    def _juries(self) -> PairsOfStates:
        return PairsOfStates(self)

    def violations(
        self, state: State, *, tolerance: float = 0.0
    ) -> tuple[Violation, ...]:
        """Return what of a state breaks the limits of joints, in the order of links.

        Limits are inclusive, and widened by `tolerance` [in the unit of each].

        Raises:
            StateError: The state is not one of this cell.
        """
        given = self.bind(state)
        return tuple(violations_of(self, given.q, given.qd, tolerance))
