"""Imports are quick: what a program does not ask for is not loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

# Lines of Python that are executed, and modules beyond those of NumPy: a third more
# than when this was written.
MOST_LINES = 200_000
MOST_MODULES = 200
HEAVY = {"llvmlite", "scipy", "trimesh", "mujoco", "coal", "pinocchio", "jax"}

MEASURE = """
import json, sys
exec(sys.argv[1])
before = set(sys.modules)
lines = 0

def in_frame(frame, event, arg):
    global lines
    lines += event == "line"
    return in_frame

sys.settrace(lambda frame, event, arg: in_frame)
exec(sys.argv[2])
sys.settrace(None)
print(json.dumps([lines, sorted(set(sys.modules) - before)]))
"""


@cache
def loaded(code: str, before: str = "pass") -> tuple[int, list[str]]:
    """Lines that code executes in a fresh process, and modules that it loads."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MEASURE, before, code],
        check=True,
        capture_output=True,
        text=True,
    )
    lines, modules = json.loads(done.stdout)
    return lines, modules


def test_the_package_alone_loads_nothing_else():
    lines, modules = loaded("import armillary")
    assert 0 < lines < 20_000
    assert [each for each in modules if each.startswith("armillary")] == [
        "armillary",
        "armillary.errors",
    ]
    assert "numpy" not in modules


def test_a_cell_is_little_work():
    lines, modules = loaded("from armillary import Cell", "import numpy")
    assert "armillary.cell.cell" in modules
    assert 0 < lines < MOST_LINES
    assert len(modules) < MOST_MODULES


def test_a_cell_loads_no_question_that_is_not_asked():
    _, modules = loaded("from armillary import Cell", "import numpy")
    rooms = {".".join(each.split(".")[:2]) for each in modules}
    idle = {"collision", "control", "dynamics", "ik", "sweeps", "trajectories", "view"}
    assert rooms.isdisjoint({f"armillary.{each}" for each in idle | {"formats"}})
    assert {each.split(".")[0] for each in modules}.isdisjoint(HEAVY)


def test_a_file_loads_no_other_format(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")  # what was read before needs no reader
    _, modules = loaded("import armillary as arm; arm.example('scara')", "import numpy")
    formats = {each.split(".")[2] for each in modules if each.count(".") == 3}
    assert "armillary.formats.native.read" in modules
    assert formats.isdisjoint({"actin", "isaac", "robwork", "urdf", "srdf"})
    assert "importlib.metadata" not in modules  # nobody asked for plug-ins


@pytest.mark.parametrize("verb", ["info", "tree"])
def test_a_verb_loads_no_question_that_it_does_not_ask(verb: str, tmp_path: Path):
    path = tmp_path / "robot.urdf"
    path.write_text('<robot name="r"><link name="a"/></robot>')
    code = (
        "import contextlib, io\n"
        "from armillary.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main([{verb!r}, {os.fspath(path)!r}])"
    )
    _, modules = loaded(code, "import numpy")
    rooms = {".".join(each.split(".")[:2]) for each in modules}
    assert "armillary.cli" in rooms
    idle = {"collision", "control", "dynamics", "ik", "planning", "plugins", "scripts"}
    assert rooms.isdisjoint({f"armillary.{each}" for each in idle})
    assert "armillary.sweeps.samples" not in modules


# Modules beyond those of NumPy where everything is in the cache: a tenth more than when
# this was written.
FIRST_ANSWERS = {
    "cell.fk('tcp')(cell.home.q)": 250,
    "cell.ik('tcp')(cell.pose('tcp', cell.home))": 310,
    "cell.collision()(cell.home.q)": 305,
    "cell.controller(tasks.Frame('tcp'))(q, 0.0 * q, cell.pose('tcp', cell.home))": 308,
}
MAKERS = {
    "armillary.kernel.builder",
    "armillary.kernel.emit",
    "armillary.kernel.jit",
    "armillary.kernel.pipeline_code",
    "armillary.collision.distance.convex",
    "armillary.collision.distance.gjk",
    "armillary.collision.exact",
    "armillary.collision.obstacles",
    "armillary.control.approach_stages",
    "armillary.control.simulation",
    "armillary.control.step_pipeline",
    "armillary.control.stop_stages",
    "armillary.control.torque_limits",
    "armillary.formats.mesh.read",
    "armillary.formats.urdf.read",
    "armillary.ik.general_form",
    "armillary.ik.path_planner",
    "armillary.kinematics.closing.branch",
    "armillary.kinematics.frame_loop",
    "armillary.model.joints.curve",
    "armillary.model.linear_program",
    "armillary.model.scaling",
    "armillary.plugins",
    "hashlib",
    "importlib.resources",
    "llvmlite.binding",
    "numpy.random",
    "tempfile",
    "zipfile",
}
"""What nobody needs who asks a plain arm something that was asked before."""


@pytest.mark.parametrize("question", FIRST_ANSWERS)
def test_a_first_answer_loads_nothing_that_makes_what_is_kept(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path / "cache"))
    code = (
        "import armillary as arm; from armillary import tasks; "
        f"cell = arm.example('scara'); q = cell.home.q; {question}"
    )
    first, again = (set(loaded.__wrapped__(code, "import numpy")[1]) for _ in range(2))
    assert "armillary.kernel.builder" in first
    assert again.isdisjoint(MAKERS)
    assert len(again) < FIRST_ANSWERS[question]


def test_few_classes_are_made_from_text():
    """A dataclass takes 0.5 ms, a struct of msgspec a thirtieth of that."""
    count = """
import dataclasses
made, make = [], dataclasses._process_class

def counted(cls, *args, **options):
    made.append(cls)
    return make(cls, *args, **options)

dataclasses._process_class = counted
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{count}from armillary import Cell\nprint(len(made))"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert 0 < int(done.stdout) <= 8


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_line_answers_without_numpy(option: str):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "armillary", option],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert "armillary" in done.stdout
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "armillary.cli.main" in modules
    ours = {each for each in modules if each.startswith("armillary")}
    assert ours <= {
        "armillary",
        "armillary.cli",
        "armillary.cli.main",
        "armillary.cli.verbs",
        "armillary.errors",
    }
    assert modules.isdisjoint({"numpy", "msgspec", "llvmlite"})
    assert len(modules) < 200


def test_what_modules_make_is_not_collected_again():
    """It is with the oldest values at once; what users froze before stays frozen."""
    code = """
import gc, json
import numpy
{before}
seen = []
gc.callbacks.append(
    lambda phase, info: seen.append(len(gc.get_objects(generation=0)))
    if phase == "start" else None
)
young = len(gc.get_objects(generation=0))
from armillary import Cell
print(json.dumps([young, max(seen, default=0), gc.isenabled(), gc.get_freeze_count()]))
"""

    def run(before: str) -> list[int]:
        command = [sys.executable, "-c", code.format(before=before)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    young, looked_at, is_on, frozen = run("")
    assert looked_at < young + 2_000  # importing makes 10 000
    assert is_on
    assert frozen == 0
    *_, frozen = run("gc.freeze()")
    assert frozen > 10_000
    _, looked_at, is_on, _ = run("gc.disable()")
    assert not is_on
    assert looked_at == 0
