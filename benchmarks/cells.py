"""Large cells: all poses, files, edits, grips."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import armillary as arm
from armillary.kernel import kernel
from armillary.testing.samples import random_pose
from benchmarks.measure import (
    Figure,
    best_times,
    duration,
    faster,
    within,
    without_cache,
)

ARMS, PARTS = 16, 4
STATES, ROWS, FEW = 100_000, 100, 10
LINKS = 20_000
MANY = 2_000
EDITS = 10_000


def figures() -> Iterator[Figure]:
    """Yield the figures of large cells."""
    yield from pose_figures()
    yield from many_frames_figures()
    yield from file_figures()
    yield from edit_figures()
    yield from grip_figures()
    yield from grip_solver_figures()


def twenty() -> tuple[arm.Cell, arm.State]:
    """Return 20 manipulators of 400 links, arms on arms, and a state with two grips."""
    arms = [tree(f"arm{k}", 22, 7, k) for k in range(ARMS)]
    parts = [tree(f"part{k}", 12, 0, k) for k in range(PARTS)]
    random = np.random.default_rng(0)
    mounts = [
        arm.Mount(
            manipulator=f"arm{k}",
            on=f"arm{k - 8}/link6" if k >= 12 else "world",
            pose=random_pose(random),
        )
        for k in range(ARMS)
    ]
    cell = arm.Cell(name="twenty", manipulators=[*arms, *parts], mounts=mounts)
    state = cell.home.place("part0", random_pose(random))
    state = state.grip("part0", by="arm0/link20").grip("part1", by="arm1/link20")
    return cell, state


def tree(name: str, links: int, joints: int, seed: int) -> arm.Manipulator:
    """Return a chain of links, the first of which move."""
    random = np.random.default_rng(seed)
    chain = [arm.Link(name="base")]
    for k in range(links - 1):
        kind = arm.joints.Revolute if k < joints else arm.joints.Fixed
        joint = kind(precursor=random_pose(random))
        chain.append(arm.Link(name=f"link{k}", parent=chain[-1].name, joint=joint))
    return arm.Manipulator(name=name, links=chain)


def pose_figures() -> Iterator[Figure]:
    """Yield the figures of all poses, beside Pinocchio on the same tree."""
    import pinocchio as pin

    cell, state = twenty()
    model, frames = as_pinocchio(cell, state)
    data = model.createData()
    Q = np.random.default_rng(0).uniform(-3.0, 3.0, (ROWS, len(state.q)))
    states = [state.replace(q=q) for q in Q]

    def inside() -> None:
        for q in Q[:FEW]:
            pin.framesForwardKinematics(model, data, q)

    def copied() -> list[list[np.ndarray]]:
        found = []
        for q in Q[:FEW]:
            pin.framesForwardKinematics(model, data, q)
            found.append([data.oMf[k].homogeneous for k in frames])
        return found

    ours = cell.poses(state, q=Q[:FEW])
    expected = np.swapaxes(np.array(copied()), 0, 1)
    assert np.abs(np.array(list(ours.values())) - expected).max() < 1e-9
    for name, X in cell.poses(states[3]).items():
        assert np.abs(X - ours[name][3]).max() < 1e-12

    def one_by_one() -> None:
        for each in states:
            cell.poses(each)

    # Many short turns: long ones never have a busy machine for themselves.
    single, batch, loop, bare = best_times(
        one_by_one, lambda: cell.poses(state, q=Q), copied, inside, turns=300
    )
    what = f"all {len(ours)} poses of a state, two parts held"
    yield within(what, single / ROWS, at_most=40e-6, peer=loop / FEW)
    what = f"the same for {STATES} states, {ROWS} at a time"
    yield faster(what, batch / ROWS, loop / FEW, at_least=50)
    yield Figure(
        "the same, Pinocchio's poses left inside of it",
        duration(batch / ROWS),
        duration(bare / FEW),
        "for comparison",
        f"{bare / FEW * ROWS / batch:.1f} times",
        True,
    )
    rows = np.random.default_rng(1).uniform(-3.0, 3.0, (STATES, len(state.q)))
    start = time.process_time()
    for k in range(0, STATES, ROWS):
        cell.poses(state, q=rows[k : k + ROWS])
    whole = (time.process_time() - start) / STATES
    what = f"all {STATES} in one run, processor time of each"
    yield faster(what, whole, loop / FEW, at_least=50)


def many_frames_figures() -> Iterator[Figure]:
    """Yield the figure of all poses of a large cell, beside Pinocchio."""
    import pinocchio as pin

    # Memory of Pinocchio grows with the third power of the number of joints.
    count = MANY // 100
    cell = arm.Cell(manipulators=[tree(f"arm{k}", 100, 7, k) for k in range(count)])
    state = cell.home
    model, frames = as_pinocchio(cell, state)
    data, q = model.createData(), np.zeros(len(state.q))

    def copied() -> list[np.ndarray]:
        pin.framesForwardKinematics(model, data, q)
        return [data.oMf[k].homogeneous for k in frames]

    start = time.process_time()
    ours = cell.poses(state)
    made = time.process_time() - start
    assert np.abs(np.array(list(ours.values())) - copied()).max() < 1e-9
    one, inside = best_times(
        lambda: cell.poses(state),
        lambda: pin.framesForwardKinematics(model, data, q),
        turns=100,
    )
    (whole,) = best_times(copied, turns=30)
    yield within(f"all poses of {MANY} frames", one, at_most=30e-6, peer=whole)
    what = "the same, Pinocchio's poses left inside of it"
    yield within(what, one, at_most=30e-6, peer=inside)
    yield within("the first of them, processor time", made, at_most=2.0)


def as_pinocchio(cell: arm.Cell, state: arm.State) -> tuple[Any, list[int]]:
    """Return the tree of a state as Pinocchio's, and the number of each frame there."""
    import pinocchio as pin

    model = pin.Model()
    known: dict[int, tuple[int, Any]] = {-1: (0, pin.SE3.Identity())}
    frames: dict[int, int] = {}
    waiting = list(range(len(cell.manipulators)))
    while waiting:
        m = waiting.pop(0)
        frame, start = state.tree.bases[m].frame, cell.workcell.starts[m]
        if frame.link not in known:
            waiting.append(m)
            continue
        manipulator = cell.manipulators[m]
        for k in manipulator.order:
            link = manipulator.links[k]
            if manipulator.parents[k] < 0:
                joint, X = known[frame.link]
                X = X * pin.SE3(frame.pose.matrix())
            else:
                joint, X = known[start + manipulator.parents[k]]
            X = X * pin.SE3(link.joint.precursor.matrix())
            name = f"{manipulator.name}/{link.name}"
            if link.moves:
                turn = pin.JointModelRZ()
                joint, X = model.addJoint(joint, turn, X, name), pin.SE3.Identity()
            known[start + k] = joint, X
            kind = pin.FrameType.OP_FRAME
            frames[start + k] = model.addFrame(pin.Frame(name, joint, 0, X, kind))
    assert model.nq == len(cell.joint_names)
    assert [n for k, n in enumerate(model.names) if k] == list(cell.joint_names)
    return model, [frames[key] for key in sorted(frames)]


def file_figures() -> Iterator[Figure]:
    """Yield the figures of native files of many links."""
    robot = arm.example("ur5e_on_oval").manipulators[1]
    count = LINKS // len(robot.links) + 1
    robots = [robot.replace(name=f"ur{k}") for k in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.cell.json"
        arm.save(arm.Cell(manipulators=robots), path)
        cell = arm.load(path)  # here no two links are the same value in memory
        read, written = best_times(
            without_cache(partial(arm.load, path)),
            lambda: arm.save(cell, path),
            turns=16,
            clock=time.process_time,
        )
    size = sum(len(m.links) for m in cell.manipulators)
    yield within(
        f"native file of {size} links, read, processor time", read, at_most=1.0
    )
    yield within(
        f"native file of {size} links, written, the same", written, at_most=0.3
    )


def edit_figures() -> Iterator[Figure]:
    """Yield the figures of ten thousand edits of a cell of 200 links, all kept."""
    robots = [tree(f"arm{k}", 20, 7, k) for k in range(10)]
    other = tree("arm4", 20, 7, 99)
    cells = [arm.Cell(manipulators=robots)]
    best = float("inf")
    tracemalloc.start()
    before = 0
    for turn in range(EDITS // 10):
        if turn == 100:  # the rest is timed
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        start = time.perf_counter()
        for k in range(5):
            cells.append(cells[-1].exchange(other if k % 2 else robots[4]))
            cells.append(cells[-1].mount("arm7", on=f"arm{k % 7}/link5"))
        if turn >= 100:
            best = min(best, (time.perf_counter() - start) / 10)
    yield within(f"an edit of {EDITS}, cell of 200 links", best, at_most=1e-3)
    each = before / 1000 / 1024
    shown = f"{each:.1f} kB"
    what = "memory of each of those cells, all kept"
    yield Figure(what, shown, "", "<= 10 kB", shown, each <= 10.0)


def grip_figures() -> Iterator[Figure]:
    """Yield the figures of grips: the first on a frame, later ones, their kernels."""
    cell, state = twenty()
    cell.poses(state)
    before = kernel._shared.cache_info().misses
    first = timed(lambda: cell.poses(state.grip("part3", by="arm13/link20")))
    yield within("first grip on a new frame, all poses after it", first, at_most=0.05)
    free = state.replace(q=state.q)
    grip, both = best_times(
        lambda: free.grip("part3", by="arm13/link20"),
        lambda: cell.poses(free.grip("part3", by="arm13/link20")),
        turns=200,
    )
    yield within("a later grip", grip, at_most=1e-3)
    yield within("a later grip, all poses after it", both, at_most=1e-3)
    made = kernel._shared.cache_info().misses - before
    what = "kernels compiled for them"
    yield Figure(what, str(made), "", "0", str(made), made == 0)


def grip_solver_figures() -> Iterator[Figure]:
    """Yield the figures of inverse kinematics of a part in a grip that is new."""
    cell = arm.example("oval_track_cell")
    random = np.random.default_rng(0)
    robot = [name for name in cell.joint_names if name.startswith("ur5e/")]

    def answered(joints: list[str] | None, *, near: bool) -> float:
        state = cell.home.attach("part", "tcp", pose=random_pose(random))
        q = np.full(len(joints or cell.joint_names), 0.02)
        X = cell.fk("grasp", joints=joints, state=state)(q)
        there = q + 0.01 if near else None
        return timed(
            lambda: cell.ik("grasp", joints=joints, state=state)(X, near=there)
        )

    for joints, near, what, at_most in (
        (robot, False, "in closed form", 1e-3),
        (robot, True, "in closed form, near a vector", 1e-3),
        (None, True, "by search, near a vector", 1e-3),
        (None, False, "by search", 1e-3),
    ):
        answered(joints, near=near)
        times = [answered(joints, near=near) for _ in range(20)]
        shown = f"new grip: ik of the part and its first answer, {what}"
        yield within(shown, float(np.median(times)), at_most=at_most)


def timed(task: Callable[[], object]) -> float:
    """Return the time of a task that can be done only once [s]."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
