"""What nothing refers to any more is freed: cells, with all that was asked of them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import armillary as arm
from armillary import steps, tasks

TURNED = np.array([0.1, 0.2, 0.1, 0.3, 0.5, 0.2])


def ask_poses(cell: arm.Cell) -> None:
    """Ask for the pose of a frame and its derivatives, of one row and of many."""
    q = cell.home.q
    frame = "flange" if cell.passive_names else "tcp"
    for kernel in (cell.fk(frame), cell.jacobian(frame)):
        kernel(q)
        kernel(np.stack([q, q]))
        kernel(np.tile(q, (20_000, 1)))
    cell.fk(frame).vjp()(q, np.ones((4, 4)))
    cell.pose(frame, cell.home.replace(q=q + 0.01))


def ask_answers(cell: arm.Cell) -> None:
    """Ask for joint positions: the next ones, all, and some that touch nothing."""
    X = cell.fk("tool0")(TURNED)
    cell.ik("tool0")(X)
    cell.ik("tool0").all(X)
    cell.ik("tool0", avoid=cell.collision())(X)


def ask_torques(cell: arm.Cell) -> None:
    """Ask for torques, matrices and a simulation, also with a part in the gripper."""
    q, held = cell.home.q, cell.home.attach("part", "tcp", replace=True)
    cell.inverse_dynamics(state=held)(q, q, q)
    cell.mass_matrix()(np.stack([q, q]))
    cell.simulate(held, dt=1e-3, steps=2)


def ask_touches(cell: arm.Cell) -> None:
    """Ask a check all that it answers, at home and with a part in the gripper."""
    q = cell.home.q
    for state in (cell.home, cell.home.attach("part", "tcp", replace=True)):
        check = cell.collision(state, margin=0.01)
        check(q)
        check(np.stack([q, q]))
        check.distances(q)
        check.contacts(q)
        check.motion(q, q + 0.01)


def ask_plans(cell: arm.Cell) -> None:
    """Ask for a plan, with times, and for a line of the tool."""
    plan = cell.planner(cell.collision())(TURNED, TURNED + 0.3)
    assert plan.success
    cell.time_path(plan.q, velocity=1.0, acceleration=2.0)
    X = cell.fk("tool0")(TURNED)
    X[2, 3] += 0.05
    cell.line("tool0", [X], start=TURNED)


def ask_rates(cell: arm.Cell) -> None:
    """Ask a controller for a step that avoids collisions."""
    q = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
    avoid = cell.collision(margin=0.02)
    control = cell.controller(tasks.Frame("tool0"), avoid=avoid, acceleration=15.0)
    control(q, np.zeros(7), cell.fk("tool0")(q))


def ask_a_run(cell: arm.Cell) -> None:
    """Ask for the timeline of a program."""
    X = cell.fk("tool0")(TURNED)
    X[2, 3] += 0.05
    there = steps.PTP(to=arm.Pose.from_matrix(X), frame="tool0")
    program = arm.Program({cell.manipulators[0].name: [there]})
    timeline = cell.run(program, cell.home.replace(q=TURNED), acceleration=8.0)
    assert timeline.success
    timeline.loads()


QUESTIONS = [
    (ask_poses, "oval_track_cell"),
    (ask_poses, "delta"),  # passive joints are solved for in a pipeline
    (ask_answers, "irb2400"),
    (ask_torques, "oval_track_cell"),
    (ask_touches, "oval_track_cell"),
    (ask_plans, "irb2400"),
    (ask_rates, "ur10_on_rail"),
    (ask_a_run, "irb2400"),
]


class Mark:
    """Is freed with what keeps it."""


def mark_of(ask: Callable[[arm.Cell], None], name: str) -> weakref.ref[Mark]:
    """Ask a new cell, and return a reference to what it keeps besides the answers."""
    cell, mark = arm.example(name), Mark()
    vars(cell.workcell)["mark"] = mark
    ask(cell)
    return weakref.ref(mark)


@pytest.mark.parametrize(("ask", "name"), QUESTIONS)
def test_a_cell_is_freed_with_its_answers(
    ask: Callable[[arm.Cell], None], name: str
) -> None:
    mark = mark_of(ask, name)
    gc.collect()
    assert mark() is None


def test_a_state_that_knows_its_cell_is_seen_by_the_garbage_collector() -> None:
    cell = arm.example("oval_track_cell")
    moved = cell.home.replace(q=cell.home.q + 0.1)
    for state in (cell.home, moved, moved.attach("part", "tcp", replace=True)):
        assert gc.is_tracked(state)
