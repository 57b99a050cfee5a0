"""Programs for controllers, read back as the controllers are stated to play them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from scipy.interpolate import CubicHermiteSpline

import armillary as arm
from armillary.cell.cell import Cell
from armillary.programs.post_processors.instructions import (
    Instruction,
    Pause,
    SetSignal,
    WaitForSignal,
)
from armillary.programs.post_processors.points import levers_of
from armillary.programs.post_processors.post_processor import Axis
from armillary.trajectories.motion import Motion
from controllers import Played, play_krl, play_rapid, play_urscript

Array = npt.NDArray[np.float64]

UM = 1e-6
US = 1e-6
RAIL = "track/carriage"
PLAYERS: dict[str, Callable[..., Played]] = {
    ".script": play_urscript,
    ".src": play_krl,
    ".mod": play_rapid,
}


@cache
def on_rail() -> Cell:
    return arm.example("ur10_on_rail")


@cache
def motion(*, rides: bool) -> Motion:
    """A motion through random points, of polynomials of polynomials."""
    cell = on_rail()
    rng = np.random.default_rng(1)
    way = np.array(cell.home.q) + np.cumsum(rng.uniform(-0.3, 0.3, (4, 7)), axis=0)
    way[:, 0] = np.linspace(2.0, 2.4, 4) if rides else 2.0
    return cell.time_path(way, acceleration=2.0).motion().bound(cell)


@cache
def stops() -> Motion:
    """Two motions with a rest between them."""
    made = motion(rides=False)
    return made.then(made.reversed(), pause=0.5)


def tool_error(given: Motion, played: Played, axes: list[int]) -> tuple[float, float]:
    """How far the tool is from the motion, and joints, at and between the points."""
    cell = on_rail()
    times = np.unique(
        np.concatenate([played.times, np.linspace(0, given.duration, 4001)])
    )
    times = times[times <= played.times[-1]]
    wanted = given.at(times).q
    found = wanted.copy()
    found[:, axes] = played.at(times)
    fk: Any = cell.fk("tool0")
    apart = np.linalg.norm(fk(found)[:, :3, 3] - fk(wanted)[:, :3, 3], axis=1)
    return float(apart.max()), float(np.abs(found - wanted).max())


# The same motion


@pytest.mark.parametrize("suffix", [".src", ".mod"])
@pytest.mark.parametrize("rides", [False, True])
def test_linear_controllers_make_the_same_motion(
    tmp_path: Path, suffix: str, rides: bool
):
    given = motion(rides=rides)
    external = [RAIL] if rides else []
    names = [name for name in given.joint_names if name != RAIL]
    done = on_rail().hand_over(
        given,
        tmp_path / f"pick{suffix}",
        axes=names,
        external=external,
        tool="tool0",
    )
    played = PLAYERS[suffix](done.files[-1], slides=(6,) if rides else ())
    axes = [1, 2, 3, 4, 5, 6, 0][: played.q.shape[1]]
    assert played.times[-1] == pytest.approx(given.duration, abs=US)
    apart, _ = tool_error(given, played, axes)
    # Rounding of the rail's millimetres, of 24 bits, is part of it.
    assert apart <= done.deviation <= UM
    assert apart >= 0.1 * done.deviation  # the bound is not idle
    assert len(played.times) == done.points
    # Fewer points do not keep the tolerance: they are bounded, not sampled.
    assert done.points < 2500


@pytest.mark.parametrize("step", [0.002, 0.008, 0.0005])
def test_universal_robots_make_the_same_motion(tmp_path: Path, step: float):
    given = motion(rides=False)
    names = given.joint_names[1:]
    done = on_rail().hand_over(
        given, tmp_path / "pick.script", axes=names, tool="tool0"
    )
    played = play_urscript(done.files[-1], step)
    wanted = given.at(played.times).q
    assert np.diff(played.times) == pytest.approx(step, abs=1e-9)
    assert played.times[-1] <= given.duration + US
    assert played.times[-1] > given.duration - step - US
    found = wanted.copy()
    found[:, 1:] = played.q
    fk: Any = on_rail().fk("tool0")
    apart = np.linalg.norm(fk(found)[:, :3, 3] - fk(wanted)[:, :3, 3], axis=1)
    assert apart.max() <= done.deviation <= UM
    # Polynomials need few points: about those of the motion itself.
    assert done.points < 3 * len(given.times)


@pytest.mark.parametrize("suffix", list(PLAYERS))
def test_a_tolerance_is_kept_of_each_joint_without_a_tool(tmp_path: Path, suffix: str):
    given = motion(rides=False)
    counts = list[int]()
    for tolerance in (1e-3, 1e-5):
        done = on_rail().hand_over(
            given,
            tmp_path / f"pick{suffix}",
            axes=given.joint_names[1:],
            tolerance=tolerance,
        )
        played = PLAYERS[suffix](done.files[-1])
        if suffix != ".script":
            _, apart = tool_error(given, played, [1, 2, 3, 4, 5, 6])
            assert apart <= done.deviation <= tolerance
        counts.append(done.points)
    assert counts[0] <= counts[1]


def test_points_are_few_where_the_motion_is_straight(tmp_path: Path):
    cell = on_rail()
    q = np.array([cell.home.q, cell.home.q])
    q[1] += 0.5
    rate = np.full((2, 7), 0.25)
    straight = Motion.through([0.0, 2.0], q, rate, 0.0 * rate, start=cell.home)
    names = straight.joint_names
    done = cell.hand_over(
        straight,
        tmp_path / "go.mod",
        axes=names[1:],
        external=names[:1],
        tool="tool0",
    )
    assert done.points == 2


def test_each_robot_of_a_cell_has_its_program(tmp_path: Path):
    cell = arm.example("two_arms_positioner")
    rng = np.random.default_rng(3)
    lower, upper = cell.limits
    way = np.array(cell.home.q) + rng.uniform(-0.2, 0.2, (3, len(lower)))
    way = np.clip(way, lower, upper)
    given = cell.time_path(way, velocity=1.0, acceleration=2.0).motion().bound(cell)
    tool = [name for name in cell.frame_names if name.startswith("left/")][-1]
    fk: Any = cell.fk(tool)
    names = [name for name in given.joint_names if name.startswith("left/")]
    rest = [name for name in given.joint_names if name not in names]
    with pytest.raises(arm.errors.ModelError, match="elsewhere="):
        cell.hand_over(given, tmp_path / "left.csv", axes=names)
    done = cell.hand_over(given, tmp_path / "left.csv", elsewhere=rest, tool=tool)
    played = Motion.read(done.files[-1])
    assert list(played.joint_names) == names
    times = np.linspace(0.0, given.duration, 501)
    wanted = given.at(times).q
    found = wanted.copy()
    found[:, [given.joint_names.index(name) for name in names]] = played.at(times).q
    apart = np.linalg.norm(fk(found)[:, :3, 3] - fk(wanted)[:, :3, 3], axis=1)
    assert apart.max() <= done.deviation <= UM


def test_axes_count_as_the_controller_does(tmp_path: Path):
    given = motion(rides=False)
    axes = [Axis(name, -1.0, 0.25) for name in given.joint_names[1:]]
    done = on_rail().hand_over(given, tmp_path / "pick.mod", axes=axes)
    played = play_rapid(done.files[-1])
    expected = 0.25 - given.at(played.times).q[:, 1:]
    assert played.q == pytest.approx(expected, abs=2e-6)
    assert "axis 1 turns: -ur10/shoulder_pan + 0.25" in done.assumptions


@pytest.mark.parametrize("rides", [False, True])
def test_plain_rows_make_the_same_motion(tmp_path: Path, rides: bool):
    given, cell = motion(rides=rides), on_rail()
    wanted, fk = given.at(np.linspace(0.0, given.duration, 3001)), cell.fk("tool0")
    paths = [tmp_path / "pick.csv", tmp_path / "pick.json"]
    done = [cell.hand_over(given, path, tool="tool0") for path in paths]
    # One is read as any motion is, the other by SciPy.
    read = Motion.read(paths[0]).at(wanted.time).q
    rows = json.loads(paths[1].read_text())
    spline: Any = CubicHermiteSpline(rows["times"], rows["positions"], rows["rates"])
    for found, each in zip((read, spline(wanted.time)), done, strict=True):
        X, Y = (np.asarray(fk(q))[:, :3, 3] for q in (found, wanted.q))
        apart = np.linalg.norm(X - Y, axis=1).max()
        assert 0.02 * each.deviation <= apart <= each.deviation <= UM
    assert rows["times"][-1] == given.duration
    assert [axis["joint"] for axis in rows["axes"]] == list(given.joint_names)
    assert done[0].points == len(rows["times"]) < 400


def test_plain_rows_have_instructions_in_json(tmp_path: Path):
    given = stops()
    instructions = between(given)
    options: dict[str, Any] = {
        "instructions": instructions,
        "outputs": {"glue": 1, "done": "two"},
        "inputs": {"ready": 3},
    }
    on_rail().hand_over(given, tmp_path / "pick.json", **options)
    rows = json.loads((tmp_path / "pick.json").read_text())
    read = msgspec.convert(rows["instructions"], list[Instruction])
    assert read == instructions
    assert (np.diff(rows["times"]) > 0.0).all()
    with pytest.raises(arm.errors.ModelError, match=r"a \.json has"):
        on_rail().hand_over(given, tmp_path / "pick.csv", **options)


def test_rates_that_jump_are_refused(tmp_path: Path):
    q = np.array([[0.0] * 7, [0.1] * 7, [0.3] * 7]) + on_rail().home.q
    jumps = Motion.on(
        on_rail().home,
        (),
        times=np.arange(3.0),
        law=np.tile([0.0, 1.0, 0, 0, 0, 0], (2, 1)),
        curve=np.stack([q[:2], np.diff(q, axis=0)] + 4 * [0 * q[:2]], axis=1),
        piece=np.arange(2),
    )
    with pytest.raises(
        arm.errors.ModelError, match=r"jumps by 0\.1 m/s or rad/s at 1 s"
    ):
        on_rail().hand_over(jumps, tmp_path / "pick.csv")


# Instructions

AT_REST: list[Instruction] = [
    SetSignal(time=0.0, signal="glue"),
    WaitForSignal(time=0.0, signal="ready", value=False),
]


def between(made: Motion) -> list[Instruction]:
    rest = motion(rides=False).duration + 0.25
    return [
        *AT_REST,
        Pause(time=rest, duration=0.125),
        SetSignal(time=rest, signal="glue", value=False),
        SetSignal(time=made.duration, signal="done"),
    ]


OUTPUTS = {".script": (3, 5), ".src": (3, 5), ".mod": ("doGlue", "doDone")}
INPUTS = {".script": 1, ".src": 1, ".mod": "diReady"}


def hand_over(
    folder: Path, suffix: str, given: Motion, instructions: list[Instruction]
) -> Played:
    glue, done = OUTPUTS[suffix]
    made = on_rail().hand_over(
        given,
        folder / f"pick{suffix}",
        axes=given.joint_names[1:],
        instructions=instructions,
        outputs={"glue": glue, "done": done},
        inputs={"ready": INPUTS[suffix]},
        tolerance=1e-4,
    )
    return PLAYERS[suffix](made.files[-1])


@pytest.mark.parametrize(
    ("suffix", "says"),
    [
        (
            ".script",
            [
                "set_standard_digital_out(3, True)",
                "get_standard_digital_in(1,)",
                "sleep(0.125,)",
                "set_standard_digital_out(3, False)",
                "set_standard_digital_out(5, True)",
            ],
        ),
        (
            ".src",
            [
                "$OUT[3]=TRUE",
                "WAIT FOR NOT $IN[1]",
                "WAIT SEC 0.125",
                "$OUT[3]=FALSE",
                "$OUT[5]=TRUE",
            ],
        ),
        (
            ".mod",
            [
                "SetDO doGlue,1",
                "WaitDI diReady,0",
                "WaitTime 0.125",
                "SetDO doGlue,0",
                "SetDO doDone,1",
            ],
        ),
    ],
)
def test_instructions_are_done_in_time(tmp_path: Path, suffix: str, says: list[str]):
    given = stops()
    instructions = between(given)
    if suffix == ".script":  # it asks until the answer is what is waited for
        instructions[1] = WaitForSignal(time=0.0, signal="ready")
    played = hand_over(tmp_path, suffix, given, instructions)
    assert [text for _, text in played.events] == says
    expected = [each.time for each in instructions]
    assert [time for time, _ in played.events] == pytest.approx(expected, abs=US)


@pytest.mark.parametrize(("suffix", "late"), [(".script", 0.002), (".src", US)])
def test_signals_are_set_in_motion(tmp_path: Path, suffix: str, late: float):
    given = motion(rides=False)
    glue = [SetSignal(time=0.3, signal="glue"), SetSignal(time=0.3, signal="done")]
    played = hand_over(tmp_path, suffix, given, glue)
    assert len(played.events) == 2
    for time, _ in played.events:
        assert time == pytest.approx(0.3, abs=late)


@pytest.mark.parametrize("suffix", list(PLAYERS))
def test_signals_next_to_points_make_no_points(tmp_path: Path, suffix: str):
    given = motion(rides=False)
    a, b = given.times[[40, -1]]
    close = [
        SetSignal(time=1e-9, signal="glue"),
        SetSignal(time=b - 1e-9, signal="done"),
    ]
    if suffix != ".mod":  # which has no signals in motion
        close.insert(1, SetSignal(time=a + 1e-9, signal="glue", value=False))
    played = hand_over(tmp_path, suffix, given, close)
    assert len(played.events) == len(close)
    times = [time for time, _ in played.events]
    assert times == pytest.approx([each.time for each in close], abs=0.002)
    assert np.diff(played.times).min() > 1e-4


def test_rapid_refuses_signals_in_motion(tmp_path: Path):
    with pytest.raises(arm.errors.ModelError, match="where the robot moves"):
        hand_over(
            tmp_path, ".mod", motion(rides=False), [SetSignal(time=0.3, signal="glue")]
        )
    assert not list(tmp_path.iterdir())


def test_grips_are_signals(tmp_path: Path):
    cell = arm.example("oval_track_cell")
    q = np.array([cell.home.q] * 3)
    given = Motion.through([0, 1, 2], q, 0 * q, start=cell.home)
    given = given.gripping("part", by="gripper/tcp", time=0.5)
    given = given.releasing("part", time=1.5)
    path = tmp_path / "move.src"
    axes = [cell.joint_names[k] for k in range(1, 7)]

    def events(**options: Any) -> list[tuple[float, str]]:
        cell.hand_over(given, path, axes=axes, **options)
        return play_krl(path).events

    with pytest.raises(arm.errors.UnknownName, match="grips="):
        events()
    assert events(grips={"gripper/tcp": "closed"}, outputs={"closed": 7}) == [
        (pytest.approx(0.5, abs=US), "$OUT[7]=TRUE"),
        (pytest.approx(1.5, abs=US), "$OUT[7]=FALSE"),
    ]
    assert events(grips={"gripper/tcp": None}) == []
    assert events(grips={"tcp": None}) == []  # as in steps of programs


# Robots that lack axes, and tools behind closed loops

LOOPED: dict[str, tuple[str, list[str | None]]] = {
    # the flange of a palletiser turns by axis 6
    "palletiser": (
        "flange",
        ["turret", "upper_arm", "crank", None, None, "spindle"],
    ),
    "delta": ("flange", ["J1", "J2", "J3", None, None, None]),
    "five_bar": ("tip", ["right", "left", None, None, None, None]),
}


@cache
def looped_motion(name: str) -> Motion:
    """A motion through random points near home."""
    cell = arm.example(name)
    rng = np.random.default_rng(2)
    steps = rng.uniform(-0.2, 0.2, (4, len(cell.joint_names)))
    way = np.array(cell.home.q) + np.cumsum(steps, axis=0) - steps[0]
    made = cell.time_path(way, velocity=2.0, acceleration=4.0).motion()
    return made.bound(cell)


@pytest.mark.parametrize("suffix", [".src", ".mod"])
@pytest.mark.parametrize("name", list(LOOPED))
def test_robots_may_lack_axes_and_have_loops(tmp_path: Path, suffix: str, name: str):
    cell, given = arm.example(name), looped_motion(name)
    tool, axes = LOOPED[name]
    path = tmp_path / f"pick{suffix}"
    done = cell.hand_over(given, path, axes=axes, tool=tool)
    lacks = tuple(k for k, axis in enumerate(axes) if axis is None)
    played = PLAYERS[suffix](path, lacks=lacks)
    assert played.times[-1] == pytest.approx(given.duration, abs=US)
    times = np.union1d(played.times, np.linspace(0, given.duration, 4001))
    times = times[times <= played.times[-1]]
    found = np.empty((len(times), len(given.joint_names)))
    order = [given.joint_names.index(axis) for axis in axes if axis is not None]
    found[:, order] = played.at(times)
    fk: Any = cell.fk(tool)
    wanted = fk(given.at(times).q)[:, :3, 3]
    apart = np.linalg.norm(fk(found)[:, :3, 3] - wanted, axis=1).max()
    assert 0.1 * done.deviation <= apart <= done.deviation <= UM
    assert f"axis {axes.index(given.joint_names[-1]) + 1} turns" in path.read_text()


def test_levers_hold_behind_closed_loops():
    # Differences of poses along a motion, beside the bounds of its tool's speed.
    for name, (tool, _) in LOOPED.items():
        cell, given = arm.example(name), looped_motion(name)
        levers = levers_of(given, cell.home, tool)
        q = given.at(np.linspace(0.0, given.duration, 301)).q
        fk: Any = cell.fk(tool)
        for k, lever in enumerate(levers):
            step = 1e-4 * (np.arange(len(levers)) == k)
            ways = (fk(q + step) - fk(q - step))[:, :3, 3] / 2e-4
            fastest = np.linalg.norm(ways, axis=1).max()
            assert fastest <= lever * (1.0 + 1e-6), (name, k)
            assert lever <= 4.0 * fastest + 0.1, (name, k)  # and is of use


def test_what_is_not_proven_beside_a_singularity_is_refused(tmp_path: Path):
    # The five-bar is stretched where both forearms are in line.
    cell = arm.example("five_bar")
    first, last = np.array(cell.home.q), np.array([0.2, np.pi - 0.2])
    given = cell.time_path([first, last], velocity=2.0, acceleration=4.0).motion()
    with pytest.raises(arm.errors.ModelError, match="near to a singularity"):
        cell.hand_over(given.bound(cell), tmp_path / "move.json", tool="tip")


def test_a_robot_says_which_axes_it_lacks(tmp_path: Path):
    cell, given = arm.example("palletiser"), looped_motion("palletiser")
    _, axes = LOOPED["palletiser"]
    for suffix in (".src", ".mod"):
        with pytest.raises(arm.errors.ModelError, match="with None for each that"):
            cell.hand_over(given, tmp_path / f"move{suffix}")
        with pytest.raises(arm.errors.ModelError, match="has 6 axes, and these are 5"):
            cell.hand_over(given, tmp_path / f"move{suffix}", axes=axes[:4] + axes[5:])
        with pytest.raises(arm.errors.ModelError, match="these are 7: 'turret', "):
            cell.hand_over(given, tmp_path / f"move{suffix}", axes=[*axes, None])
        with pytest.raises(arm.errors.ModelError, match="axes= is a list of joints"):
            cell.hand_over(given, tmp_path / f"move{suffix}", axes="turret")
        with pytest.raises(arm.errors.ModelError, match="no axis of the robot"):
            cell.hand_over(given, tmp_path / f"move{suffix}", axes=[None] * 6)
    # Controllers of Universal Robots have six axes, and rows have no gaps.
    with pytest.raises(arm.errors.ModelError, match="lack no axis"):
        cell.hand_over(given, tmp_path / "move.script", axes=axes)
    with pytest.raises(arm.errors.ModelError, match=r"fewer to a \.json file"):
        cell.hand_over(given, tmp_path / "move.script")
    with pytest.raises(arm.errors.ModelError, match="no gaps"):
        cell.hand_over(given, tmp_path / "move.json", axes=axes)
    done = cell.hand_over(given, tmp_path / "move.json")
    assert done.deviation <= 1e-6


# Bad input


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pick.xyz", {}, "ending of programs"),
        ("pick", {}, "ending of programs"),
        ("1pick.src", {}, "takes a letter"),
        ("a-b.mod", {}, "takes a letter"),
        ("while.script", {}, "no word of the language"),
        ("a" * 25 + ".src", {}, "at most 24"),
        ("pick.script", {"axes": None}, "has 6 axes, and these are 7"),
        ("pick.src", {"axes": ["ur10/elbow"] * 6}, "named twice"),
        ("pick.src", {"axes": ["ur10/elbo"]}, "elbo"),
        ("pick.mod", {"axes": [3] * 6}, "joint's name or an Axis"),
        ("pick.script", {"external": [RAIL]}, "up to 0 axes"),
        ("pick.src", {"tool": "tol0"}, "tool0"),
        ("pick.src", {"tolerance": 0.0}, "tolerance"),
        ("pick.src", {"tolerance": 1e-9}, "24 bits"),
        ("pick.script", {"tolerance": np.nan}, "tolerance"),
        ("pick.script", {"outputs": {"glue": 8}}, "from 0 to 7"),
        ("pick.src", {"outputs": {"glue": 0}}, "from 1 to 4096"),
        ("pick.mod", {"outputs": {"glue": "do glue"}}, "name of a signal"),
        ("pick.mod", {"outputs": {"glue": "do\nglue"}}, "name of a signal"),
        (
            "pick.mod",
            {"instructions": [SetSignal(time=0.0, signal="glue")]},
            "outputs={'glue': port}",
        ),
        (
            "pick.src",
            {"instructions": [Pause(time=0.3, duration=1.0)]},
            "waits at 0.3 s, where joint",
        ),
        (
            "pick.src",
            {"instructions": [Pause(time=9e9, duration=1.0)]},
            "motion is from 0",
        ),
        ("pick.src", {"instructions": [Pause(time=0.0, duration=-1.0)]}, "at least 0"),
        ("pick.src", {"language": "krll"}, "krl"),
        ("pick.src", {"language": "rapid"}, "in a file .mod"),
        ("pick.src", {"plugins": "krl"}, "list of names"),
    ],
)
def test_bad_input_is_refused(
    tmp_path: Path, name: str, options: dict[str, Any], message: str
):
    given = motion(rides=False)
    options = {"axes": given.joint_names[1:], **options}
    if options.get("plugins"):
        options["language"] = "other"
    with pytest.raises(arm.ArmillaryError, match=message):
        on_rail().hand_over(given, tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_motions_that_no_controller_does_are_refused(tmp_path: Path):
    cell, path = on_rail(), tmp_path / "pick.src"
    given = motion(rides=True)
    names = given.joint_names

    def says(message: str, made: Any, **options: Any) -> None:
        options = {"axes": names[1:], "external": names[:1], **options}
        with pytest.raises(arm.ArmillaryError, match=message):
            cell.hand_over(made, path, **options)

    says("moves, and the program does not have it", given, external=())
    says("axes of robots of krl turn", given, axes=names[:6], external=names[6:])
    says("not finite", replace(given, curve=given.curve * np.nan))
    says(
        "its limit is",
        replace(given, times=given.times / 9, law=given.law * 9.0 ** np.arange(6)),
    )
    says("beyond a limit of positions", replace(given, curve=given.curve * 99))
    says("A motion is handed over", given.q)
    says("another content", replace(given, start=None, cell_digest="0" * 64))
    with pytest.raises(arm.errors.FormatError, match="No such file"):
        cell.hand_over(
            given, tmp_path / "no" / "pick.src", axes=names[1:], external=names[:1]
        )


def test_names_cannot_become_instructions(tmp_path: Path):
    cell = arm.Cell(
        name="a\nHALT",
        manipulators=on_rail().manipulators,
        mounts=on_rail().mounts,
    )
    given = replace(motion(rides=False), start=None, cell_digest="")
    done = cell.hand_over(given, tmp_path / "pick.src", axes=given.joint_names[1:])
    lines = done.files[-1].read_text().splitlines()
    assert not [line for line in lines if line.startswith("HALT")]


# Plug-ins

PLUGIN = """
from dataclasses import replace
from armillary.programs.post_processors.krl import KRL
OTHER = replace(KRL, name="other", suffix=".txt", write=lambda job: {
    "count.dat": "", job.name + ".txt": str(len(job.steps))})
NOTHING = 3
"""


def test_plug_ins_offer_languages(tmp_path: Path, install: Any):
    offered = {"other": "acme:OTHER", "none": "acme:NOTHING"}
    install("acme", offered, {"acme": PLUGIN}, group="armillary.post_processors")
    given = motion(rides=False)

    def made(**options: Any) -> Any:
        return on_rail().hand_over(
            given, tmp_path / "pick.txt", axes=given.joint_names[1:], **options
        )

    with pytest.raises(arm.errors.UnknownName, match="plugins="):
        made(language="other")
    assert made(language="other", plugins=["acme"]).files[-1].read_text() == "1"
    with pytest.raises(arm.errors.PluginError, match="broken"):
        made(language="none", plugins=["acme"])
    with pytest.raises(arm.errors.UnknownName, match="post-processors"):
        made(language="other", plugins=["numpy"])


def test_joints_may_have_their_bare_names(tmp_path: Path):
    given, path = motion(rides=True), tmp_path / "pick.mod"
    texts = list[str]()
    for axes, rail in (
        (given.joint_names[1:], RAIL),
        ([name.partition("/")[2] for name in given.joint_names[1:]], "carriage"),
    ):
        on_rail().hand_over(given, path, axes=axes, external=[rail], tolerance=1e-3)
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    with pytest.raises(arm.errors.UnknownName, match="ur10/elbow"):
        on_rail().hand_over(given, path, axes=["elbo"], external=[RAIL])
