"""Cells compiled to a folder run without Python and give the numbers of kernels."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import KernelError, ModelError, UnknownName
from armillary.kernel import compile
from armillary.kernel.gpu_entry import THREADS
from armillary.portable.asked import Asked, asked_of
from armillary.trace import trace
from armillary.trace.functions import select
from webassembly import run_webassembly

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc here")


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("irb2400")


def ran(
    folder: Path, name: str, *compiler: str, runner: str = "", ending: str = ""
) -> str:
    """Build the self-test of a folder with its library, and return what it prints.

    Args:
        folder: The folder.
        name: What names in it begin with.
        compiler: How C is compiled; by default gcc.
        runner: What runs the program; by default this machine.
        ending: Of the name of the program.
    """
    source = folder / f"{name}.c"
    library = source if source.exists() else folder / f"lib{name}.a"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", str(folder)]
    test = folder / f"{name}_test.c"
    program = folder / f"self_test{ending}"
    subprocess.run(
        [*(compiler or ("gcc",)), *strict, test, library, "-lm", "-o", program],
        check=True,
    )
    done = subprocess.run(
        [runner, program] if runner else [program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ("WRONG" in done.stdout), done.stderr
    return done.stdout


def errors_of(printed: str) -> list[float]:
    """The largest errors that a self-test prints."""
    return [float(x) for x in re.findall(r"right, largest error (\S+)", printed)]


@needs_gcc
def test_what_can_be_asked_agrees_to_the_last_bit_on_this_machine(
    cell: arm.Cell, tmp_path: Path
):
    ask = [
        *("fk:tool0", "jacobian:tool0", "ik:tool0"),
        *("inverse_dynamics", "mass_matrix", "forward_dynamics"),
        *("gravity_torque", "bias_torque"),
    ]
    made = cell.compile_to(tmp_path / "new" / "folder", ask=ask)
    assert len(made.functions) == len(ask)
    assert {path.name for path in made.path.iterdir()} == set(made.sizes)
    errors = errors_of(ran(made.path, "irb2400"))
    assert len(errors) == 2 * (len(ask) + 4)  # the solver has five results
    assert max(errors) == 0.0


@needs_gcc
def test_self_test_finds_a_wrong_number(cell: arm.Cell, tmp_path: Path):
    cell.compile_to(tmp_path, ask=["fk:tool0"])
    assert "WRONG" not in ran(tmp_path, "irb2400")
    path = tmp_path / "irb2400_test.c"
    text = path.read_text()
    start = text.index("irb2400_fk_tool0_p1[304] = {") + 40
    number = re.search(r"-?0\.\d{8,}", text[start:])
    assert number is not None
    changed = text[start:].replace(number[0], repr(float(number[0]) + 1e-9), 1)
    path.write_text(text[:start] + changed)
    assert ran(tmp_path, "irb2400").count("WRONG") == 2


def test_self_tests_have_no_rows_that_rounding_decides():
    """As near singularities, where each machine has results of its own."""

    def formula(q: Any) -> Any:
        return select(q[0] > 0.5, np.sin(1e9 * q[0]), q[0])

    kernel = compile(trace(formula, name="f", q=(1,)))
    one = Asked(name="f", title="f", kernel=kernel, bound={})
    limits = np.array([-1.0]), np.array([1.0])
    q, found = one.samples(np.random.default_rng(0), 30, limits)
    assert q.max() <= 0.5
    np.testing.assert_array_equal(found, q[:, 0])
    assert q.shape == (30, 1)
    assert len(np.unique(q)) == 30


def test_self_tests_have_no_rows_that_some_roundings_change():
    """A digit that is lost tips such a number over in one case of two."""

    def formula(q: Any) -> Any:
        return select(q[0] > 0.5, 1e-6 * np.fmod(np.floor(q[0] * 2.0**52), 2.0), q[0])

    kernel = compile(trace(formula, name="f", q=(1,)))
    one = Asked(name="f", title="f", kernel=kernel, bound={})
    limits = np.array([-1.0]), np.array([0.8])
    for seed in range(5):
        q, _ = one.samples(np.random.default_rng(seed), 30, limits)
        assert q.max() <= 0.5


@needs_gcc
def test_source_agrees_within_rounding(cell: arm.Cell, tmp_path: Path):
    cell.compile_to(tmp_path, ask=["fk:tool0", "inverse_dynamics"], target="c99")
    assert max(errors_of(ran(tmp_path, "irb2400", "gcc", "-O1"))) < 1e-14


@needs_gcc
@pytest.mark.thorough
def test_loops_and_searches_are_compiled_with_their_tables(tmp_path: Path):
    """Of a cell whose loops are solved for, from stored assemblies."""
    linkage = arm.example("five_bar")
    for target in ("host", "c99"):
        folder = tmp_path / target
        frame = linkage.frame_names[-1].partition("/")[2]
        linkage.compile_to(folder, ask=[f"fk:{frame}"], target=target)
        assert max(errors_of(ran(folder, "five_bar", "gcc", "-O1"))) < 1e-14
        assert (folder / "five_bar_test.c").read_text().count("NAN") < 200
    rail = arm.example("ur10_on_rail")
    rail.compile_to(tmp_path / "search", ask=["ik:tool0"], name="rail")
    printed = ran(tmp_path / "search", "rail")
    assert max(errors_of(printed)) == 0.0
    assert "rail_ik_tool0_rows found" in printed


@needs_gcc
@pytest.mark.thorough
def test_rates_and_steps_of_controllers_are_compiled(cell: arm.Cell, tmp_path: Path):
    step = cell.controller([arm.tasks.Frame("tool0"), arm.tasks.Posture()])
    ask = {"rates": "differential_ik:tool0", "step": step}
    cell.compile_to(tmp_path, ask=ask, name="lab")
    assert max(errors_of(ran(tmp_path, "lab"))) == 0.0
    # The targets of the test can be followed.
    text = (tmp_path / "lab_test.c").read_text()
    rows = re.search(r"lab_step_p6\[\d+\] = \{(.*?)\};", text, re.DOTALL)
    assert rows is not None
    numbers = np.array([float(x) for x in rows[1].split(",")]).reshape(19, -1)
    reasons = {arm.RateReason(int(x)) for x in numbers[:, 12]}
    assert arm.RateReason.MET in reasons
    assert arm.RateReason.INVALID not in reasons


@pytest.fixture(scope="module")
def posts() -> arm.Cell:
    """Two links that turn among posts, all of them capsules."""

    def rod(x: float, turn: float, y: float = 0.0) -> arm.shapes.Capsule:
        pose = arm.Pose.translation(x, y, 0.0) @ arm.Pose.rotation_y(turn)
        return arm.shapes.Capsule(radius=0.08, length=0.4, pose=pose)

    turn = arm.joints.Revolute(axis=(0, 0, 1))
    on = arm.joints.Revolute(
        axis=(0, 0, 1), precursor=arm.Pose.translation(0.6, 0.0, 0.0)
    )
    limits = arm.Limits(lower=-2.8, upper=2.8)
    links = [
        arm.Link(name="base", collisions=[rod(-0.6, 0.0)]),
        arm.Link(
            name="a",
            parent="base",
            joint=turn,
            limits=limits,
            collisions=[rod(0.3, 1.5)],
        ),
        arm.Link(
            name="b", parent="a", joint=on, limits=limits, collisions=[rod(0.3, 1.2)]
        ),
    ]
    post = [arm.Link(name="post", collisions=[rod(0.0, 0.0, 0.9)])]
    both = [
        arm.Manipulator(name="arm", links=links),
        arm.Manipulator(name="posts", links=post),
    ]
    cell = arm.Cell(manipulators=both)
    return cell.replace(rules=cell.rules.include_self("arm"))


@needs_gcc
@pytest.mark.parametrize("target", ["host", "c99"])
def test_collision_checks_are_compiled_with_what_they_call(
    posts: arm.Cell, tmp_path: Path, target: str
):
    """Records of calls have numbers of code, where those here have addresses."""
    check = posts.collision(margin=0.02)
    ask = {"near": check, "far": check.clearance}
    posts.compile_to(tmp_path, ask=ask, target=target, name="lab")
    errors = errors_of(ran(tmp_path, "lab", "gcc", "-O1"))
    assert len(errors) == 4
    assert max(errors) <= (0.0 if target == "host" else 1e-14)
    # The numbers of the self-test are those of the check.
    text = (tmp_path / "lab_test.c").read_text()
    q, found, far_q, far = (
        np.array([float(x) for x in rows.split(",")])
        for rows in re.findall(
            r"lab_(?:near|far)_p\d\[\d+\] = \{(.*?)\};", text, re.DOTALL
        )
    )
    np.testing.assert_array_equal(found == 1.0, check(q.reshape(-1, 2)))
    assert 0 < found.sum() < len(found)
    np.testing.assert_allclose(far, check.clearance(far_q.reshape(-1, 2)), atol=1e-12)


@needs_gcc
@pytest.mark.parametrize("target", ["host", "c99"])
def test_a_check_of_spheres_alone_calls_nothing(tmp_path: Path, target: str):
    ball = arm.shapes.Sphere(radius=0.1)
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    limits = arm.Limits(lower=-1.0, upper=1.0)
    links = [
        arm.Link(name="a", collisions=[ball]),
        arm.Link(name="b", parent="a", joint=slide, limits=limits, collisions=[ball]),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    cell = cell.replace(rules=cell.rules.include("arm/a", "arm/b"))
    cell.compile_to(tmp_path, ask=["check"], target=target, name="lab")
    assert errors_of(ran(tmp_path, "lab", "gcc", "-O1")) == [0.0, 0.0]


def test_vectors_have_no_form_in_source(tmp_path: Path):
    """As of clearances of hulls, whose points are compared several at once."""
    cell = arm.example("irb2400")
    with pytest.raises(KernelError, match="no form in C; compile to an object"):
        cell.compile_to(tmp_path, ask=["clearance"], target="c99")
    assert not list(tmp_path.iterdir())


def test_checks_that_cannot_answer_alone_are_refused(posts: arm.Cell, tmp_path: Path):
    with pytest.raises(KernelError, match="not known well enough in float32"):
        posts.compile_to(tmp_path, ask=["clearance"], dtype="float32", name="lab")
    still = arm.Cell(manipulators=[posts.manipulators[1]])
    with pytest.raises(KernelError, match="no pair of links moves"):
        still.compile_to(tmp_path, ask=["check"], name="lab")


@needs_gcc
@pytest.mark.thorough
def test_a_controller_that_avoids_is_compiled(posts: arm.Cell, tmp_path: Path):
    step = posts.controller(
        arm.tasks.Posture(), avoid=posts.collision(margin=0.01), rate=1000.0
    )
    posts.compile_to(tmp_path, ask={"step": step}, name="lab")
    assert max(errors_of(ran(tmp_path, "lab"))) == 0.0


@needs_gcc
@pytest.mark.thorough
def test_a_controller_with_limits_of_torques_is_compiled(
    cell: arm.Cell, tmp_path: Path
):
    """Masses are computed in it, where calls here ask a kernel of dynamics before."""
    step = cell.controller(arm.tasks.Frame("tool0"), torque=True)
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-0.5, 0.5, (2, 20, 6))
    X = cell.fk("tool0")(q + 0.1)
    wanted = step(q, qd, X)
    numbers = step.kernel(q, qd, X, np.zeros(6))
    # Rounding: here masses are part of one program, there another kernel's.
    np.testing.assert_allclose(numbers, wanted.numbers, rtol=1e-9, atol=1e-12)
    assert (wanted.reason == arm.RateReason.LIMITS).any()
    cell.compile_to(tmp_path, ask={"step": step}, name="lab")
    assert max(errors_of(ran(tmp_path, "lab"))) == 0.0


@needs_gcc
def test_a_controller_among_obstacles_is_compiled(posts: arm.Cell, tmp_path: Path):
    """Their numbers are an input; how many, and of which kind, an example says."""
    step = posts.controller(
        arm.tasks.Posture(), avoid=posts.collision(margin=0.01), rate=1000.0
    )
    centres, velocities = [[0.9, 0.5, 0.0], [0.0, -1.2, 0.1]], [0.0, -0.5, 0.0]
    obstacles = arm.Obstacles.spheres(centres, 0.1, velocities)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2))
    still = np.zeros(2)
    wanted = step(q, still, still, obstacles=obstacles)
    given = q, still, still, still, obstacles.numbers
    numbers = step.kernel_with(obstacles)(*given)
    # Joint positions, rates and reasons; pairs have other numbers.
    np.testing.assert_array_equal(numbers[:, :6], wanted.numbers[:, :6])
    assert np.abs(wanted.numbers - step(q, still, still).numbers)[:, :4].max() > 1e-6
    posts.compile_to(tmp_path, ask={"step": (step, obstacles)}, name="lab")
    assert max(errors_of(ran(tmp_path, "lab"))) == 0.0
    header = (tmp_path / "lab.h").read_text()
    assert "obstacles: 2 x 10: of each obstacle the ends of its segment [m]" in header
    with pytest.raises(ModelError, match="give avoid="):
        posts.controller(arm.tasks.Posture()).kernel_with(obstacles)


@pytest.mark.thorough
def test_controllers_run_in_webassembly(
    cell: arm.Cell, posts: arm.Cell, tmp_path: Path
):
    """With limits of torques, and among obstacles that move: beside the process."""
    avoid = posts.controller(
        arm.tasks.Posture(), avoid=posts.collision(margin=0.01), rate=1000.0
    )
    obstacles = arm.Obstacles.spheres(
        [[0.9, 0.5, 0.0], [0.0, -1.2, 0.1]], 0.1, [0.0, -0.5, 0.0]
    )
    torque = cell.controller(arm.tasks.Frame("tool0"), torque=True)
    asked: list[tuple[arm.Cell, Any]] = [(cell, torque), (posts, (avoid, obstacles))]
    for k, (of, step) in enumerate(asked):
        folder = tmp_path / str(k)
        of.compile_to(folder, ask={"step": step}, target="wasm32", name="lab")
        (one,) = asked_of(
            of.workcell, {"step": step}, state=None, dtype=np.dtype(np.float64)
        )
        *given, wanted = one.samples(np.random.default_rng(1), 25, of.limits)
        module = (folder / "lab.wasm").read_bytes()
        status, (many,), (single,) = run_webassembly(
            module, "lab_step", given, [wanted[0].size], folder
        )
        assert status == 0
        np.testing.assert_array_equal(many, single)
        np.testing.assert_allclose(many, wanted, rtol=1e-11, atol=1e-11)
        assert len(np.unique(many[:, 0])) == 25


CROSS = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")


@needs_gcc
@pytest.mark.thorough
def test_inverse_kinematics_of_closed_loops_is_compiled(tmp_path: Path):
    """What is found is on the branch of the loops, as of the solver here."""
    cell = arm.example("five_bar")
    solver = cell.ik("tip", position="xy", rotation="")
    kernel, home = solver.kernel, np.array(cell.home.q)
    q = np.random.default_rng(0).uniform(*cell.limits, (200, 2))
    X = cell.fk("tip")(q)
    X = X[np.isfinite(X).all(axis=(1, 2))]
    found, errors, is_found = kernel(X.reshape(-1, 16), home)
    assert is_found.all()
    assert len(X) > 50
    np.testing.assert_allclose(cell.fk("tip")(found)[:, :2, 3], X[:, :2, 3], atol=1e-8)
    assert np.sqrt(errors).max() < 1e-8
    far = X[0].copy()
    far[0, 3] += 5.0
    assert kernel(far.reshape(16), home)[2] == 0.0
    assert kernel(2.0 * X[0].reshape(16), home)[2] == -1.0
    for target in ("host", "c99", "aarch64"):
        folder = tmp_path / target
        cell.compile_to(folder, ask={"ik": solver}, target=target, name="lab")
        compiler, runner = ("gcc", "-O1"), ""
        if target == "aarch64":
            if None in CROSS:
                continue
            compiler, runner = (str(CROSS[0]), "-static"), str(CROSS[1])
        printed = ran(folder, "lab", *compiler, runner=runner)
        assert max(errors_of(printed)) < (1e-15 if target == "host" else 1e-8)


def not_poses(X: Any) -> list[Any]:
    """Matrices near a pose that are not poses."""
    mirrored, scaled, ended, unknown, endless = (X.copy() for _ in range(5))
    mirrored[:3, 0] *= -1.0
    scaled[:3, :3] *= 1.001
    ended[3, 2] = 0.5
    unknown[0, 3] = np.nan
    endless[2, 3] = np.inf
    return [mirrored, scaled, ended, unknown, endless]


def test_targets_that_are_not_poses_have_a_reason(cell: arm.Cell):
    """By what is compiled, as by the solver here."""
    solver = cell.ik("tool0")
    X = cell.fk("tool0")(np.full(6, 0.3))
    for bad in not_poses(X):
        reasons = solver.kernel(bad)[2]
        assert (reasons == arm.Reason.INVALID_TARGET).all()
        assert solver(bad).reason == arm.Reason.INVALID_TARGET
    rail = arm.example("ur10_on_rail")
    solver, home = rail.ik("tool0"), np.array(rail.home.q)
    X = rail.fk("tool0")(home)
    assert solver.kernel(X.reshape(16), home)[2] == 1.0
    for bad in not_poses(X):
        q, errors, found = solver.kernel(bad.reshape(16), home)
        assert found == -1.0
        assert np.isnan([*q, *errors]).all()
        assert solver(bad).reason == arm.Reason.INVALID_TARGET


def test_what_one_kernel_does_not_compute_is_refused(cell: arm.Cell, tmp_path: Path):
    two = cell.differential_ik("tool0").then("link_3")
    with pytest.raises(KernelError, match="one whole twist"):
        cell.compile_to(tmp_path, ask={"rates": two})


@pytest.mark.skipif(None in CROSS, reason="needs gcc for aarch64, and qemu-user")
def test_aarch64_runs_and_agrees(cell: arm.Cell, tmp_path: Path):
    ask = ["fk:tool0", "jacobian:tool0", "inverse_dynamics"]
    cell.compile_to(tmp_path, ask=ask, target="aarch64")
    compiler = "aarch64-linux-gnu-gcc", "-static"
    printed = ran(tmp_path, "irb2400", *compiler, runner="qemu-aarch64")
    assert max(errors_of(printed)) < 4e-15


MINGW = shutil.which("x86_64-w64-mingw32-gcc")
WINE = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine")


@pytest.mark.skipif(
    None in (MINGW, WINE) or platform.machine() != "x86_64",
    reason="needs MinGW's gcc and wine64, on x86-64",
)
@pytest.mark.thorough
def test_windows_runs_and_agrees_to_the_last_bit(
    cell: arm.Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also a clearance, whose frame is of many pages."""
    monkeypatch.setenv("WINEPREFIX", str(tmp_path / "wine"))
    monkeypatch.setenv("WINEDEBUG", "-all")
    ask = ["fk:tool0", "ik:tool0", "inverse_dynamics", "clearance"]
    folder = tmp_path / "lab"
    made = cell.compile_to(folder, ask=ask, target="x86-64-windows", name="lab")
    assert {"lab.obj", "lab.lib"} <= set(made.sizes)
    assert (
        '"${CMAKE_CURRENT_SOURCE_DIR}/lab.lib"'
        in (folder / "CMakeLists.txt").read_text()
    )
    (folder / "lab.lib").rename(folder / "liblab.a")  # what `ran` links
    printed = ran(folder, "lab", str(MINGW), runner=str(WINE), ending=".exe")
    errors = errors_of(printed)
    assert len(errors) == 2 * (len(ask) + 4)
    assert max(errors) == 0.0


LEVELS = {"Nehalem": 2, "Haswell": 3, "Haswell,-xsave": 2}
QEMU = shutil.which("qemu-x86_64")


@pytest.mark.skipif(
    None in (GCC, QEMU) or platform.machine() != "x86_64",
    reason="needs gcc for x86-64, and qemu-user",
)
def test_one_library_has_the_code_of_each_level(cell: arm.Cell, tmp_path: Path):
    """Machines with a fused multiply-add give the numbers of others with one."""
    asked = cell.compile_to(tmp_path, ask=["inverse_dynamics"], target="x86-64")
    assert "keeps one number" in (asked.path / "irb2400.h").read_text()
    ran(tmp_path, "irb2400")
    for machine, level in LEVELS.items():
        command = ["qemu-x86_64", "-cpu", machine, tmp_path / "self_test"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        errors = errors_of(done.stdout)
        assert len(errors) == 2
        assert (max(errors) == 0.0) == (level > 2)


ARM = shutil.which("arm-linux-gnueabihf-gcc"), shutil.which("qemu-arm")


@pytest.mark.skipif(None in ARM, reason="needs gcc for 32-bit Arm, and qemu-user")
@pytest.mark.parametrize(
    ("target", "dtype", "error"),
    [("armv7em", "float32", 1e-5), ("armv7em-dp", "float64", 4e-15)],
)
def test_microcontrollers_run_and_agree(
    cell: arm.Cell, tmp_path: Path, target: str, dtype: str, error: float
):
    """Their code, with a C library of Linux, which is for another profile of Arm."""
    ask = ["fk:tool0", "jacobian:tool0", "inverse_dynamics"]
    cell.compile_to(tmp_path, ask=ask, target=target, dtype=dtype)
    compiler = "arm-linux-gnueabihf-gcc", "-static", "-Wl,--no-warn-mismatch"
    printed = ran(tmp_path, "irb2400", *compiler, runner="qemu-arm")
    assert max(errors_of(printed)) < error


@needs_gcc
def test_python_example_runs(cell: arm.Cell, tmp_path: Path):
    cell.compile_to(tmp_path, ask=["fk:tool0"])
    library = tmp_path / "libirb2400.so"
    code = tmp_path / "irb2400.o"
    subprocess.run(["gcc", "-shared", code, "-o", library], check=True)
    done = subprocess.run(
        [sys.executable, tmp_path / "irb2400_example.py", library],
        capture_output=True,
        text=True,
        check=True,
    )
    name, status, *_ = done.stdout.split()
    assert (name, status) == ("irb2400_fk_tool0", "0")
    shown = [float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", done.stdout)]
    text = (tmp_path / "irb2400_example.py").read_text()
    given = re.search(r"q = array\((.*)\)", text)
    assert given is not None
    pose = cell.fk("tool0")([float(x) for x in given[1].split(",")])
    np.testing.assert_allclose(shown, pose.ravel()[:12], atol=1e-15)


@pytest.mark.skipif(
    None in (shutil.which("cmake"), GCC), reason="needs cmake and a compiler"
)
def test_cmake_builds_and_tests_it(cell: arm.Cell, tmp_path: Path):
    cell.compile_to(tmp_path, ask=["fk:tool0"])
    build = tmp_path / "build"
    for command in (
        ["cmake", "-S", tmp_path, "-B", build],
        ["cmake", "--build", build],
        ["ctest", "--test-dir", build],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (build / "libirb2400.so").exists()


def test_header_states_joints_and_functions(cell: arm.Cell, tmp_path: Path):
    cell.compile_to(tmp_path, ask={"pose": "fk:tool0"}, name="lab")
    text = (tmp_path / "lab.h").read_text()
    assert "#define LAB_JOINTS 6" in text
    lower = re.search(r"lab_lower\[LAB_JOINTS\] =.*\{(.*)\};", text)
    assert lower is not None
    np.testing.assert_array_equal(
        [float(x) for x in lower[1].split(",")], cell.limits[0]
    )
    assert "int lab_pose(const double q[6], double pose[16]);" in text
    assert "int lab_pose_rows(const double *q, double *pose, size_t count);" in text
    assert '"joint_1"' in text


def test_the_same_cell_gives_the_same_files(cell: arm.Cell, tmp_path: Path):
    a, b = (
        cell.compile_to(tmp_path / end, ask=["jacobian:tool0"], target="x86-64-v3").path
        for end in "ab"
    )
    for path in a.iterdir():
        assert path.read_bytes() == (b / path.name).read_bytes()


def test_states_and_kernels_are_compiled_with_their_numbers(tmp_path: Path):
    """What a state decides is a constant of the library."""
    lab = arm.example("two_arms_positioner")
    frame = next(x for x in lab.frame_names if x.endswith("tool0"))
    state = lab.home
    kernel = lab.fk(frame, state=state)
    made = lab.compile_to(
        tmp_path, ask={"here": kernel, "there": f"fk:{frame}"}, state=state, name="lab"
    )
    assert made.functions == ("lab_here", "lab_there")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"ask": ["fk:tool1"]}, UnknownName, "'tool0'"),
    ({"ask": ["kf:tool0"]}, UnknownName, "no question named 'kf:tool0'"),
    ({"ask": ["fk"]}, ModelError, "needs a frame, as in fk:tool0"),
    ({"ask": []}, ModelError, "names no question"),
    ({"ask": "fk:tool0"}, ModelError, "takes a list"),
    ({"ask": ["fk:irb2400/tool0"]}, ModelError, "name=fk:irb2400/tool0"),
    ({"ask": ["fk:tool0", "fk:tool0"]}, ModelError, "Two questions have the name"),
    ({"ask": {"double": "fk:tool0"}}, ModelError, "cannot be a name in C"),
    ({"ask": ["f_rows=fk:tool0", "f=fk:tool0"]}, ModelError, "name 'f_rows', or func"),
    ({"ask": ["f=fk:tool0", "f_x2_b=fk:tool0"]}, ModelError, "name 'f_x2_b', or func"),
    ({"ask": ["lower=fk:tool0"]}, ModelError, "'irb2400_lower' has another meaning"),
    ({"ask": ["ptr=fk:tool0"], "name": "load"}, ModelError, "'load_ptr' has another"),
    ({"ask": ["JOINTS=fk:tool0"], "name": "LAB"}, ModelError, "'LAB_JOINTS' has"),
    ({"ask": None}, ModelError, "takes a list of questions, not None"),
    ({"ask": [3]}, ModelError, "lists texts such as fk:tool0, not 3"),
    ({"ask": {3: "fk:tool0"}}, ModelError, "name of a question is a text, not 3"),
    ({"ask": ["fk:tool0"], "name": 3}, ModelError, "3 cannot be the name"),
    ({"ask": ["fk:tool0"], "name": "a" * 64}, ModelError, "at most 63 letters"),
    ({"ask": {"f": 3}}, ModelError, "int, which cannot be compiled"),
    ({"ask": ["fk:tool0"], "name": "1st"}, ModelError, "identifier of C"),
    ({"ask": ["fk:tool0"], "name": "test"}, ModelError, "CMake has a target 'test'"),
    ({"ask": ["fk:tool0"], "target": "vax"}, UnknownName, "no target named 'vax'"),
    ({"ask": ["fk:tool0"], "target": "armv7em"}, KernelError, "for float32"),
    ({"ask": ["ik:tool0"], "dtype": "float32"}, KernelError, "dtype=float64"),
    ({"ask": ["fk:tool0"], "dtype": "int32"}, KernelError, "not in int32"),
]


@pytest.mark.parametrize(("given", "kind", "message"), BAD)
def test_bad_input(
    cell: arm.Cell,
    tmp_path: Path,
    given: dict[str, Any],
    kind: type[Exception],
    message: str,
):
    with pytest.raises(kind, match=re.escape(message)):
        cell.compile_to(tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_a_folder_is_a_path(cell: arm.Cell):
    with pytest.raises(ModelError, match="A folder is a path, not 3"):
        cell.compile_to(3, ask=["fk:tool0"])  # pyright: ignore[reportArgumentType]


@needs_gcc
@pytest.mark.parametrize("target", ["host", "c99"])
def test_cells_without_joints_are_compiled(tmp_path: Path, target: str):
    """Poses of them are constants: functions have no input."""
    post = arm.Link(
        name="top",
        parent="base",
        joint=arm.joints.Fixed(precursor=arm.Pose.translation(1.0, 2.0, 3.0)),
    )
    still = arm.Manipulator(name="post", links=[arm.Link(name="base"), post])
    cell = arm.Cell(manipulators=[still])
    cell.compile_to(tmp_path, ask=["fk:top"], target=target, name="lab")
    assert "int lab_fk_top(double pose[16]);" in (tmp_path / "lab.h").read_text()
    assert errors_of(ran(tmp_path, "lab")) == [0.0, 0.0]


def test_files_in_the_way_are_kept(cell: arm.Cell, tmp_path: Path):
    (tmp_path / "irb2400.h").write_text("mine")
    with pytest.raises(ModelError, match=r"has irb2400\.h already.*overwrite=True"):
        cell.compile_to(tmp_path, ask=["fk:tool0"])
    assert [x.name for x in tmp_path.iterdir()] == ["irb2400.h"]
    cell.compile_to(tmp_path, ask=["fk:tool0"], overwrite=True)
    assert "irb2400_fk_tool0" in (tmp_path / "irb2400.h").read_text()
    (tmp_path / "irb2400.h").unlink()
    (tmp_path / "irb2400.h").mkdir()
    with pytest.raises(ModelError, match="cannot be written to"):
        cell.compile_to(tmp_path, ask=["fk:tool0"], overwrite=True)
    (tmp_path / "irb2400.h").rmdir()
    (tmp_path / "irb2400.h").write_text("a file")
    with pytest.raises(ModelError, match="cannot be made"):
        cell.compile_to(tmp_path / "irb2400.h" / "x", ask=["fk:tool0"])


PTXAS = shutil.which("ptxas")


def test_kernels_of_gpus_have_the_form_of_ptx(cell: arm.Cell, tmp_path: Path):
    """No GPU runs them here; the assembler of NVIDIA does where it is installed."""
    ask = ["fk:tool0", "jacobian:tool0", "inverse_dynamics"]
    made = cell.compile_to(tmp_path, ask=ask, target="ptx")
    assert list(made.sizes) == ["irb2400.ptx"]
    text = (tmp_path / "irb2400.ptx").read_text()
    assert re.findall(r"\.visible \.entry (\w+)\(", text) == list(made.functions)
    assert ".extern" not in text  # nothing from elsewhere
    first, *_ = text.split(".visible .entry irb2400_jacobian_tool0")
    entry = first[first.index(".visible .entry irb2400_fk_tool0") :]
    # The row is the number of the thread, of which some have none.
    assert all(f"%{part}.x" in entry for part in ("ctaid", "tid"))
    assert f".reqntid {THREADS}" in entry
    assert "setp" in entry
    # Warps copy rows through memory that they share; nothing is left on the stack.
    moved = re.findall(r"(ld|st)\.(global|shared)\.b64", entry)
    assert Counter(moved) == {
        ("ld", "global"): 6, ("st", "shared"): 6 + 16,
        ("ld", "shared"): 6 + 16, ("st", "global"): 16,
    }  # fmt: skip
    assert not re.search(r"\b(ld|st)\.(local|b64)", entry)
    assert text.count("fma.rn.f64") > 200
    if PTXAS is not None:
        command = [PTXAS, "-arch=sm_90", made.path / "irb2400.ptx", "-o", "/dev/null"]
        subprocess.run(command, check=True)
