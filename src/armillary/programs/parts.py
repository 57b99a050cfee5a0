"""Parts that are gripped, released, appear and leave while a program runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.kinematics.placement import placed_frame
from armillary.kinematics.state import State
from armillary.model.end_effectors import end_effectors
from armillary.model.mount import WORLD
from armillary.model.shapes.mesh import MeshSource
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.sensors import distance_to_part
from armillary.programs.steps import Appear, Grip, Leave, Release
from armillary.programs.world import World, absent_pose
from armillary.spatial.pose import pose_of_matrix

__all__ = ["PartStep", "part_moved"]

Array = npt.NDArray[np.float64]
PartStep = Grip | Release | Appear | Leave


def part_moved(world: World, step: PartStep, meshes: MeshSource | None) -> State:
    """Return the state after a step with a part, and note what is gripped or absent.

    Args:
        world: What is known now; it learns who has the part.
        step: The step.
        meshes: What reads meshes.

    Raises:
        Impossible: The part is not there, or another gripper has it.
        StateError: The part cannot be moved.
    """
    part = world.part(step.part)
    if isinstance(step, Grip):
        return _gripped(world, step, part, meshes)
    if isinstance(step, Release):
        return _released(world, step, part)
    if isinstance(step, Appear):
        return _appeared(world, step, part)
    return _left(world, part)


def _gripped(world: World, step: Grip, part: str, meshes: MeshSource | None) -> State:
    by = world.cell.qualified(step.by)
    if part in world.absent:
        raise Impossible(
            RunReason.NOT_THERE, f"{quote(part)} is absent; it must appear first"
        )
    holder = world.gripped.get(part) or _other_holder(world, part, by)
    if holder:
        raise Impossible(
            RunReason.TAKEN,
            f"{quote(holder)} has gripped {quote(part)}; it can hand it "
            f"over by Release(part={part!r}, onto={step.by!r})",
        )
    distance = distance_to_part(world, part, by, meshes)
    if distance > step.within:
        raise Impossible(
            RunReason.NOT_THERE,
            f"{quote(by)} is {distance:.4g} m from {quote(part)}, farther than "
            f"within={step.within:g}",
        )
    world.gripped[part] = by
    return _attached(world, part, by, _pose(world, part))


def _released(world: World, step: Release, part: str) -> State:
    if world.gripped.pop(part, None) is None and not _is_held_from_the_start(
        world, part
    ):
        raise Impossible(
            RunReason.NOT_HELD,
            f"{quote(part)} is not gripped: a Grip comes before, or the state in which "
            "the run begins attaches it to a frame that a task moves",
        )
    if step.onto != WORLD and world.is_tool(step.onto):
        world.gripped[part] = world.cell.qualified(step.onto)
    X = _pose(world, part)
    if step.onto == WORLD:
        return world.now().release(part, pose=pose_of_matrix(X).normalised())
    return _attached(world, part, step.onto, X)


def _other_holder(world: World, part: str, by: str) -> str:
    """Return the tool of another robot that has had a part since the run began.

    A part on any other frame, such as that of a positioner, may be gripped.
    """
    holder = _first_holder(world, part)
    if not _is_end_effector(world, holder):
        return ""
    # Where one carries the other, as an arm its gripper, both are of one robot.
    own, others = world.chain(by)[1], world.chain(holder)[1]
    return "" if own <= others or others <= own else holder


def _is_held_from_the_start(world: World, part: str) -> bool:
    """Return whether a tool has had a part since the run began."""
    holder = _first_holder(world, part)
    if _is_end_effector(world, holder):
        return bool(world.chain(holder)[1])
    return holder != WORLD and world.is_tool(holder)


def _first_holder(world: World, part: str) -> str:
    """Return the frame that has had a part since the run began, or the world."""
    holder = world.state.parent(part)
    return holder if holder == world.changes[0][1].parent(part) else WORLD


def _is_end_effector(world: World, frame: str) -> bool:
    if frame == WORLD:
        return False
    number = world.cell.number(frame.partition("/")[0])
    return frame in end_effectors(world.cell.manipulators[number])


def _appeared(world: World, step: Appear, part: str) -> State:
    if part not in world.absent:
        raise Impossible(RunReason.TAKEN, f"{quote(part)} is there already")
    world.absent.discard(part)
    if step.on == WORLD:
        return world.now().place(part, step.at, relative_to=step.relative_to)
    X = world.pose(step.relative_to) @ np.asarray(step.at.matrix(), np.float64)
    return _attached(world, part, step.on, X)


def _left(world: World, part: str) -> State:
    if part in world.absent:
        raise Impossible(RunReason.NOT_THERE, f"{quote(part)} is absent")
    if part in world.gripped:
        raise Impossible(
            RunReason.TAKEN, f"{quote(world.gripped[part])} has gripped {quote(part)}"
        )
    state = world.now()
    for each in (part, *_carried(state, part)):
        world.absent.add(each)
        world.gripped.pop(each, None)
        if state.parent(each) != WORLD:
            state = state.release(each)
        state = state.place(each, absent_pose(world.cell, each))
    return state


def _carried(state: State, part: str) -> list[str]:
    """Return the parts that a part carries, those of these among them."""
    cell, found = state.cell, [part]
    for carrier in found:
        found += [
            each.name
            for k, each in enumerate(cell.manipulators)
            if state.tree.bases[k].mode != "fixed"
            and state.tree.bases[k].on.partition("/")[0] == carrier
        ]
    return found[1:]


def _pose(world: World, part: str) -> Array:
    """Return the pose of a part's base in the world now, shape (4, 4)."""
    return world.poses_at(placed_frame(world.cell, part), world.values(world.time).q)


def _attached(world: World, part: str, to: str, X: Array) -> State:
    """Return the state in which a frame carries a part.

    The same as `State.grip`, by the kernels that the run has for poses.

    X: The pose of the part's base in the world, shape (4, 4).
    """
    offset = np.asarray(np.linalg.solve(world.pose(to), X), np.float64)
    pose = pose_of_matrix(offset).normalised()
    return world.now().attach(part, to=to, pose=pose, replace=True)
