"""Steps of controllers that earlier processes have traced are the steps asked for."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.control.controller import Controller, StepKernels
from armillary.control.step_pipeline import step_pipeline
from armillary.control.task_stages import STEP_MAKERS
from armillary.disk_cache import FORMULAS
from armillary.ik.problem import MAKERS as IK_MAKERS
from armillary.ik.search_step import step_program


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is empty at first."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


def kernels(control: Controller, slots: int = 0) -> StepKernels:
    return control._step(slots, 7)


def traced(made: StepKernels) -> Any:
    """The pipeline that is traced now, whatever is kept."""
    return step_pipeline(
        made.twists,
        made.stages,
        made.approach,
        made.conflict,
        has_torques=made.torques is not None,
        coupled=made._coupled,
    )


def controllers() -> Iterator[tuple[str, Controller]]:
    """Controllers that differ in one thing each."""
    cell = arm.example("ur10_on_rail")
    frame = tasks.Frame("tool0")
    names = cell.joint_names
    *first, other = cell.manipulators
    *before, third = other.links[:3]
    behind = other.links[3:]
    yield "plain", cell.controller(frame)
    yield "slow", cell.controller(frame, conflict="slow")
    yield "no limits", cell.controller(frame, limits=False)
    yield "gain", cell.controller(tasks.Frame("tool0", gain=3.0, speed=0.1))
    yield "position", cell.controller(tasks.Frame("tool0", rotation=""))
    yield "xy", cell.controller(tasks.Frame("tool0", position="xy"))
    yield "own axes", cell.controller(tasks.Frame("tool0", axes="tool0"))
    yield "point", cell.controller(tasks.Position("tool0"))
    yield "axis", cell.controller(tasks.AlignAxis("tool0", axis=(0, 0, 1)))
    yield "looks", cell.controller(tasks.LookAt("tool0", axis=(0, 0, 1)))
    yield "two", cell.controller([frame, tasks.Posture()])
    yield "swapped", cell.controller([tasks.Posture(), frame])
    levels = [tasks.Position("tool0"), tasks.Posture()]
    yield "levels", cell.controller([*levels, tasks.Position("tool0", priority=1)])
    yield "one level", cell.controller([*levels, tasks.Position("tool0")])
    yield "sum", cell.controller([frame, tasks.Coupling({names[1]: 1.0})])
    yield "function", cell.controller([frame, tasks.Function(lambda q: q[1] * q[2])])
    yield "another", cell.controller([frame, tasks.Function(lambda q: q[1] + q[2])])
    yield "some joints", cell.controller(frame, joints=names[1:])
    yield "others", cell.controller(frame, joints=names[:-1])
    joint = third.joint.prepend(arm.Pose.translation(0.1, 0.0, 0.0))
    links = *before, third.replace(joint=joint), *behind
    longer = cell.replace(manipulators=[*first, other.replace(links=links)])
    yield "longer", longer.controller(frame)
    yield "torques", arm.example("scara").controller(tasks.Frame("tcp"))


def test_what_is_kept_is_what_would_be_traced(place: Path):
    """No two of these share a key unless they are the same computation."""
    expected = dict[str, str]()
    for name, control in controllers():
        made = kernels(control)
        expected[name] = traced(made).fingerprint
        assert made._pipeline.fingerprint == expected[name], name
    # Another time all come from the disk, but for those of functions of others.
    before = {path.name for path in place.glob(f"*{FORMULAS}")}
    for name, control in controllers():
        assert kernels(control)._pipeline.fingerprint == expected[name], name
    assert {path.name for path in place.glob(f"*{FORMULAS}")} == before
    assert expected["plain"] == expected["gain"] == expected["no limits"]
    assert len({expected[name] for name in ("plain", "slow", "xy", "longer")}) == 4


def test_a_second_controller_traces_nothing(monkeypatch: pytest.MonkeyPatch):
    first = arm.example("ur10_on_rail").controller(tasks.Frame("tool0"))
    pipeline = kernels(first)._pipeline

    def refused(self: Any) -> None:
        raise AssertionError("it is traced again")

    monkeypatch.setattr(StepKernels, "_traced", refused)
    # Gains, limits and weights are numbers in tables.
    task = tasks.Frame("tool0", gain=2.0, weight=3.0)
    again = arm.example("ur10_on_rail").controller(task, acceleration=2.0)
    assert kernels(again)._pipeline == pipeline


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_a_kept_step_has_all_that_was_traced(conflict: str):
    cell = arm.example("ur10_on_rail")
    made = kernels(cell.controller(tasks.Frame("tool0"), conflict=conflict))
    fresh = traced(made)
    again = pickle.loads(pickle.dumps(fresh))
    assert again == fresh
    assert again.columns == fresh.columns
    assert not any("instructions" in vars(one) for one in again.programs)
    for one, other in zip(again.programs, fresh.programs, strict=True):
        assert repr(one.instructions) == repr(other.instructions)  # some are NaN


def modules_in(make: Any) -> set[str]:
    """The modules of ours whose functions run."""
    seen: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        make()
    finally:
        sys.setprofile(before)
    return {name for name in seen if name.startswith("armillary.")}


# What computes no numbers: caches, locks and messages.
BESIDE = {
    "armillary.digests",
    "armillary.disk_cache",
    "armillary.errors",
    "armillary.forks",
    "armillary.late_names",
    "armillary.paused_collector",
    "armillary.replaced_file",
    "armillary.user_folder",
}


def is_in(name: str, packages: tuple[str, ...]) -> bool:
    return name in BESIDE or name in packages or name.rpartition(".")[0] in packages


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_the_source_of_all_that_makes_a_step_is_in_its_key(conflict: str):
    cell = arm.example("ur10_on_rail")
    listed = [tasks.Frame("tool0"), tasks.CentreOfMass(priority=1), tasks.Posture()]
    control = cell.controller(
        listed, conflict=conflict, avoid=cell.collision(), torque=True
    )
    names = modules_in(lambda: traced(kernels(control)))
    assert "armillary.control.solvers" in names
    assert {name for name in names if not is_in(name, STEP_MAKERS)} == set()


def test_the_source_of_all_that_makes_a_search_is_in_its_key():
    cell = arm.example("ur10_on_rail")

    problem = cell.ik("tool0", rotation="xy")._problem
    names = modules_in(lambda: [step_program(problem, near=k) for k in (False, True)])
    assert "armillary.ik.search_step" in names
    assert {name for name in names if not is_in(name, IK_MAKERS)} == set()


def test_other_grips_bases_and_weights_trace_and_load_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    """They are numbers in tables; steps are those of a cell that has nothing kept."""

    def step(cell: arm.Cell, number: int) -> Any:
        pose = arm.Pose.translation(0.01 * number, 0.0, 0.02)
        state = cell.home.place("part", arm.Pose.translation(0.1 * number, 3.0, 0.0))
        if number % 2:
            state = cell.home.attach("part", "tcp", pose=pose, replace=True)
        listed = [
            tasks.Frame("grasp" if number % 2 else "tcp", weight=1.0 + number),
            tasks.CentreOfMass(axes="z", weight=0.1),
            tasks.Coupling({cell.joint_names[1]: 1.0}, weight=0.1 * number),
            tasks.Posture(weight=0.01 * number),
        ]
        control = cell.controller(
            listed,
            state=state,
            torque=500.0,
            avoid=cell.collision(state, margin=0.01 * number),
        )
        X = arm.Pose.translation(0.0, 0.0, 0.1) @ cell.fk("tcp")(cell.home.q)
        return control(
            cell.home.q, np.zeros(len(cell.joint_names)), [X, np.ones(3), 0.3, None]
        )

    kept = arm.example("oval_track_cell")
    for number in (1, 2, 3, 4):
        step(kept, number)
    expected = {k: step(arm.example("oval_track_cell"), k).numbers for k in (5, 6)}

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("it is made again")

    monkeypatch.setattr("armillary.trace.program.Program.__init__", refused)
    monkeypatch.setattr("armillary.control.frame_tasks.kept_formula", refused)
    monkeypatch.setattr("armillary.control.controller.kept_formula", refused)
    monkeypatch.setattr("armillary.kernel.compiler.compiled", refused)
    for number, numbers in expected.items():
        np.testing.assert_allclose(step(kept, number).numbers, numbers, rtol=1e-12)
