"""The tasks of a program, and which joints each moves."""

from __future__ import annotations

from difflib import get_close_matches
from typing import cast

import numpy as np

from armillary.errors import ModelError, quote
from armillary.model.workcell import Workcell
from armillary.programs.program import ALONE, Program
from armillary.programs.steps import Drive
from armillary.programs.tasks import Task
from armillary.programs.tracks import Track
from armillary.programs.world import World

__all__ = ["driven_name", "nearest_with_joints", "tasks_of"]


def tasks_of(program: Program, world: World) -> list[Task]:
    """Return the tasks, each with the joints that it moves, before their first step.

    Tracks of their joints, and of joints that are driven, become those of the world.

    Raises:
        ModelError: A joint is moved by two of them.
        UnknownName: A joint does not exist.
    """
    cell = world.cell
    driven = {
        cell.joint(step.joint) for _, step in program.walk() if isinstance(step, Drive)
    }
    q = world.state.q
    owners: dict[int, str] = {}
    tasks: list[Task] = []
    for name in program.tasks:
        joints = np.array(_joints(program, world, name, driven), np.int64)
        for k in cast("list[int]", joints.tolist()):
            if k in owners:
                if owners[k] == name:
                    raise ModelError(
                        f"joints= of the task {quote(name)} names "
                        f"{quote(cell.joint_names[k])} twice."
                    )
                raise ModelError(
                    f"The tasks {quote(owners[k])} and {quote(name)} both move "
                    f"{quote(cell.joint_names[k])}; say which moves what, "
                    "Program(tasks, joints={...})."
                )
            if k in driven:
                raise ModelError(
                    f"{quote(cell.joint_names[k])} is driven, and joints of "
                    f"the task {quote(name)}: a joint is moved by one of both."
                )
            owners[k] = name
        track = Track(name, joints, q[joints])
        world.tracks[name] = track
        tasks.append(Task(name, name, track, iter(())))
    for k in sorted(driven):
        name = driven_name(cell, k)
        world.tracks[name] = Track(name, np.array([k]), q[[k]])
    return tasks


def _joints(program: Program, world: World, name: str, driven: set[int]) -> list[int]:
    """Return the joints that a task moves."""
    cell = world.cell
    given = program.joints.get(name)
    if given is not None:
        return [cell.joint(joint) for joint in given]
    names = cell.joint_names
    if name == ALONE and len(program.tasks) == 1:
        return [k for k in range(len(names)) if k not in driven]
    if name not in cell.index:
        return []
    _, joints = world.chain(f"{name}/{_base(cell, name)}")
    number, links = cell.number(name), cell.joints.links
    own = (k for k in joints if cell.owners[links[k]] == number)
    return sorted(k for k in own if k not in driven)


def nearest_with_joints(cell: Workcell, name: str) -> str:
    """Return the manipulator with joints whose name is nearest to one."""
    names = [each.name for each in cell.manipulators if each.joint_names]
    return (get_close_matches(name, names, 1, 0.0) or [""])[0]


def _base(cell: Workcell, name: str) -> str:
    manipulator = cell.manipulators[cell.number(name)]
    return manipulator.links[manipulator.base].name


def driven_name(cell: Workcell, joint: int) -> str:
    """Return the name of the track of a joint that is driven."""
    return f"joint {cell.joint_names[joint]}"
