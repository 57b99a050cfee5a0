"""`armillary ik`: what `armillary fk` turns back into the pose, and reasons."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.cli import ik as verb
from armillary.cli import targets
from armillary.spatial import dual_quaternion
from armillary.spatial.euler import fixed_xyz
from armillary.sweeps import row_files

ARM = arm.example("ur5e_on_oval")
JOINTS = ARM.joint_names[1:]  # of the arm, which has a closed form
BASE = ("--frame", "tool0", "--relative-to", "ur5e/base")
DEVICE = ARM.device(joints=JOINTS, base="ur5e/base", ends="tool0")
Q = np.random.default_rng(5).uniform(-2.0, 2.0, (23, 6))
X = DEVICE.fk()(Q)


def numbers(text: str) -> np.ndarray:
    return np.array([float(word) for word in text.replace(",", " ").split()])


def whole(out: str) -> str:
    """The joint vector that an answer ends with."""
    (line,) = [line for line in out.splitlines() if line.startswith("--q ")]
    return line.removeprefix("--q ")


def quaternions(poses: np.ndarray) -> np.ndarray:
    """Rows qw, qx, qy, qz, x, y, z."""
    turned = [arm.Pose.from_matrix(pose).quaternion() for pose in poses]
    return np.hstack([turned, poses[:, :3, 3]])


def dual_quaternions(poses: np.ndarray) -> np.ndarray:
    """Rows of eight numbers, real part first."""
    made = [dual_quaternion.from_pose(arm.Pose.from_matrix(pose)) for pose in poses]
    return np.array(made)


def angles(poses: np.ndarray) -> np.ndarray:
    """Rows x, y, z, roll, pitch, yaw."""
    turned = [fixed_xyz(arm.Pose.from_matrix(pose).rotation) for pose in poses]
    return np.hstack([poses[:, :3, 3], turned])


FORMS = {
    "matrices": lambda poses: poses.reshape(-1, 16),
    "quaternions": quaternions,
    "dual quaternions": dual_quaternions,
    "angles": angles,
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    arm.save(ARM, "arm.cell.json")
    return "arm.cell.json"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("way", [[], ["--degrees"], ["--method", "numeric"]])
def test_fk_turns_it_back(run, file: str, form, way: list[str]):
    row = form(X[:1])[0]
    if "--degrees" in way and len(row) == 6:
        row[3:] *= 180 / np.pi
    text = ",".join(map(repr, row.tolist()))
    result = run("ik", file, *BASE, f"--pose={text}", *way)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("solved: ")
    degrees = [option for option in way if option == "--degrees"]
    back = run("fk", file, *BASE, "--q", whole(result.out), *degrees)
    assert np.abs(numbers(back.out).reshape(4, 4) - X[0]).max() < 5e-6


def test_joints_are_aligned_and_named(run, file: str):
    result = run("ik", file, *BASE, "--pose", *map(str, angles(X[:1])[0]))
    lines = [line for line in result.out.splitlines() if line.startswith("ur5e/")]
    assert [line.split()[0] for line in lines] == list(JOINTS)
    assert len({len(line) for line in lines}) == 1
    shown = [float(line.split()[1]) for line in lines]
    assert np.allclose(shown, numbers(whole(result.out))[1:], rtol=0, atol=1e-11)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", ["csv", "npy"])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_files(
    run, file: str, monkeypatch: pytest.MonkeyPatch, form, kind: str, chunk: int
):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", chunk)
    monkeypatch.setattr(verb, "AT_ONCE", 5)
    if kind == "npy":
        np.save("x.npy", form(X))
    else:
        np.savetxt("x.csv", form(X), delimiter=",", fmt="%.17g")
    result = run("ik", file, *BASE, "--poses", f"x.{kind}", "--out", "q.npy")
    assert (result.code, result.err) == (0, ""), result
    assert result.out.startswith("23 of 23 targets solved\n")
    q = np.load("q.npy")
    assert q.shape == (23, 6)
    assert np.abs(DEVICE.fk()(q) - X).max() < 5e-6


@pytest.mark.sampled(4)
@pytest.mark.parametrize("batch", [(), (0,), (23,), (23, 1), (1, 23), (0, 3)])
@pytest.mark.parametrize("core", [(4, 4), (7,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_batch_keeps_its_shape(run, file: str, batch, core, order: str):
    count = int(np.prod(batch))
    given = X[:count] if core == (4, 4) else quaternions(X[:count] if count else X)
    array = given[:count].reshape(*batch, *core)
    np.save("x.npy", np.asarray(array, order=order))
    result = run("ik", file, *BASE, "--poses", "x.npy", "--out", "q.npy")
    assert result.code == 0, result.err
    q = np.load("q.npy")
    assert q.shape == (*batch, 6)
    assert np.abs(DEVICE.fk()(q.reshape(-1, 6)) - X[:count]).max(initial=0) < 5e-6


def test_lines_are_exact_and_alone(run, file: str):
    np.save("x.npy", X)
    result = run("ik", file, *BASE, "--poses", "x.npy")
    found = np.array([numbers(line) for line in result.out.splitlines()])
    assert np.array_equal(found, DEVICE.ik()(X).q)
    assert result.err.startswith("23 of 23 targets solved\n")


def test_names_say_the_order(run, file: str):
    rows = quaternions(X)[:, [4, 5, 6, 1, 2, 3, 0]]
    header = "x,y,z,qx,qy,qz,qw"
    np.savetxt("x.csv", rows, delimiter=",", header=header, comments="")
    result = run("ik", file, *BASE, "--poses", "x.csv", "--out", "q.npy")
    assert result.code == 0, result.err
    assert np.abs(DEVICE.fk()(np.load("q.npy")) - X).max() < 5e-6


def test_reasons_of_a_batch(run, file: str):
    given = X.copy()
    given[3, 0, 3] = np.nan
    given[5, :3, 3] = 9.0
    given[7, :3, :3] *= 1.1
    np.save("x.npy", given)
    result = run("ik", file, *BASE, "--poses", "x.npy", "--out", "q.npy")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("20 of 23 targets solved\n")
    assert "2 the target is not a rigid pose; the first is 3\n" in result.out
    assert "1 out of reach: no joint positions lead there; the first is 5\n" in (
        result.out
    )
    assert np.flatnonzero(np.isnan(np.load("q.npy")).any(axis=1)).tolist() == [3, 5, 7]


@pytest.mark.parametrize(
    ("pose", "said"),
    [
        ("9,0,0,0,0,0", "out of reach: no joint positions lead there: 8"),
        ("nan,0,0,0,0,0", "the target is not a rigid pose\n"),
        ("0,0,0,0,0.5,0,0", "the target is not a rigid pose\n"),
        ("2,0,0,0,0.5,0,0", "the target is not a rigid pose\n"),
        ("0.3,0.2,0.4,1,0,0,0", "the target is not a rigid pose\n"),
        ("1," * 15 + "1", "the target is not a rigid pose\n"),
    ],
)
@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_why_not(run, file: str, pose: str, said: str, method: str):
    result = run("ik", file, *BASE, "--pose", pose, "--method", method, "--out=q.npy")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith(said)
    assert result.out.splitlines()[-1].endswith(".")  # what to do
    assert np.isnan(np.load("q.npy")).all()


def test_limits_are_reported(run, file: str):
    base, *links = ARM.manipulators[1].links
    narrow = arm.Limits(lower=-0.1, upper=0.1)
    links = [base, *(msgspec.structs.replace(link, limits=narrow) for link in links)]
    changed = arm.Cell(manipulators=[arm.Manipulator(name="ur5e", links=links)])
    arm.save(changed, "narrow.cell.json")
    text = ",".join(map(repr, quaternions(X[:1])[0].tolist()))
    result = run("ik", "narrow.cell.json", *BASE, f"--pose={text}")
    assert result.code == 1
    assert result.out.startswith("blocked by joint limits: found only beyond them")


def test_every_answer(run, file: str):
    text = ",".join(map(repr, quaternions(X[:1])[0].tolist()))
    result = run("ik", file, *BASE, f"--pose={text}", "--all", "--out", "q.npy")
    assert (result.code, result.err) == (0, "")
    header, *rows, count = result.out.splitlines()
    assert header.split() == [
        "branch",
        *(n.partition("/")[2] for n in JOINTS),
        "reason",
    ]
    q = np.load("q.npy")
    assert q.shape == (8, 6)
    good = ~np.isnan(q).any(axis=1)
    assert count == f"{good.sum()} answers"
    assert [row.endswith("SOLVED") for row in rows] == good.tolist()
    assert np.abs(DEVICE.fk()(q[good]) - X[0]).max() < 5e-6


def test_every_answer_of_a_file(run, file: str):
    given = X[:3].copy()
    given[1, :3, 3] = 9.0
    np.save("x.npy", given)
    result = run("ik", file, *BASE, "--poses", "x.npy", "--all", "--out", "q.npy")
    assert result.code == 1
    q = np.load("q.npy")
    assert q.shape == (3, 8, 6)
    assert np.isnan(q[1]).all()
    lines = run("ik", file, *BASE, "--poses", "x.npy", "--all").out.splitlines()
    rows = np.array([numbers(line) for line in lines])
    assert set(rows[:, 0]) == {0.0, 2.0}
    good = ~np.isnan(q[[0, 2]]).any(axis=2)
    assert np.array_equal(rows[:, 1:], q[[0, 2]][good])


def test_every_answer_of_a_search(run, file: str):
    text = ",".join(map(repr, quaternions(X[:1])[0].tolist()))
    found = run("ik", file, *BASE, f"--pose={text}", "--all", "--method", "numeric")
    assert found.code == 0
    assert found.out.splitlines()[-1].endswith(
        "there may be others: a search found them, from many starts"
    )
    np.save("x.npy", X[:2])
    shape = ("--poses", "x.npy", "--all", "--method", "numeric", "--out", "q.npy")
    refused = run("ik", file, *BASE, *shape)
    assert refused.code == 2
    assert "leave --out away" in refused.err


def test_a_path(run, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verb, "AT_ONCE", 10)
    s = np.linspace(0.0, 1.0, 45)
    q = Q[0] + 0.8 * np.sin(3 * s)[:, None] * np.ones(6)
    np.save("x.npy", DEVICE.fk()(q))
    near = ["--near", *map(str, Q[0])]
    path = ("--poses", "x.npy", "--path", "--out", "q.npy", *near)
    result = run("ik", file, *BASE, *path)
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("0 jumps\n")
    found = np.load("q.npy")
    assert np.abs(np.diff(found, axis=0)).max() < 0.2
    assert np.abs(found - q).max() < 1e-3

    there = np.concatenate([q[:20], Q[2:3], q[20:]])
    np.save("x.npy", DEVICE.fk()(there))
    result = run("ik", file, *BASE, *path)
    assert result.code == 0
    assert "2 jumps, at 20, 21" in result.out


def test_joints_state_and_freedom(run, file: str):
    state = ARM.home.joints({"track/cart": 2.5, "ur5e/elbow": 0.7})
    Path("state.json").write_text(state.to_json())
    pose = ARM.pose("tool0", state)
    given = ",".join(map(repr, quaternions(pose[None])[0].tolist()))
    some = ("--joints", "ur5e/shoulder_pan,shoulder_lift,wrist_1", "--rotation", "none")
    question = ("ik", file, "--frame", "tool0", f"--pose={given}", *some)
    result = run(*question, "--state", "state.json")
    assert result.code == 0, result
    q = numbers(whole(result.out))
    assert q[[0, 3, 5, 6]].tolist() == [2.5, 0.7, 0.0, 0.0]
    assert np.abs(ARM.fk("tool0")(q)[:3, 3] - pose[:3, 3]).max() < 2e-6
    assert run(*question).code == 1


def test_near_chooses(run, file: str):
    text = ",".join(map(repr, quaternions(X[:1])[0].tolist()))
    for q in DEVICE.ik().all(X[0]).distinct():
        near = ["--near", *map(str, np.degrees(q + 0.01)), "--degrees"]
        result = run("ik", file, *BASE, f"--pose={text}", *near)
        found = np.radians(numbers(whole(result.out))[1:])
        assert np.abs(found - q).max() < 1e-4


def test_the_best_is_farthest_from_limits(run, file: str):
    text = ",".join(map(repr, quaternions(X[:1])[0].tolist()))
    result = run("ik", file, *BASE, f"--pose={text}", "--best", "limits")
    assert result.code == 0
    best = DEVICE.ik().best(X[:1], "limits").q[0]
    assert np.abs(numbers(whole(result.out))[1:] - best).max() < 1e-9


def test_the_arm_angle_of_seven_joints(run, file: str):
    links, along = [arm.Link(name="base")], 0.0
    quarter = arm.Pose.rotation_x(np.pi / 2)
    for k, length in enumerate([0.3, 0.0, 0.4, 0.0, 0.4, 0.0, 0.1]):
        turned = quarter if k % 2 else quarter.inverse()
        behind = arm.Pose.translation(0, 0, along) @ (turned if k else turned @ quarter)
        joint, along = arm.joints.Revolute(precursor=behind), length
        links.append(arm.Link(name=f"l{k}", parent=links[-1].name, joint=joint))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="seven", links=links)])
    arm.save(cell, "seven.cell.json")
    ik, frame = cell.ik("l6"), ["seven.cell.json", "--frame", "l6"]
    pose = cell.fk("l6")(np.array([0.3, 0.5, -0.2, 1.1, 0.4, 0.6, 0.1]))
    text = ",".join(map(repr, pose.ravel().tolist()))
    given = ["--arm-angle", "40", "--degrees"]
    result = run("ik", *frame, f"--pose={text}", *given)
    assert result.code == 0, result
    angle = ik.closed.arm_angle(np.radians(numbers(whole(result.out))))
    assert angle == pytest.approx(np.radians(40))
    every = run("ik", *frame, f"--pose={text}", "--all", *given)
    assert every.out.endswith("8 answers\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1,2\n",
            "x.csv: 2 numbers do not make a pose. A pose is x,y,z,roll,",
        ),
        ("1,2,3,4,5,6\n1,2\n", "x.csv:2: 2 numbers; the lines before have 6."),
        ("1,2,3,4,5,x\n", "both names and numbers"),
        (
            "a,b,c,d,e,f\n1,2,3,4,5,6\n",
            "names 'a,b,c,d,e,f' do not describe a pose.",
        ),
        ("x,y,z,roll,pitch,yaw\n1,2\n", "x.csv: 2 numbers below 6 names."),
        ("\0" * 99, "do not describe a pose"),
    ],
)
def test_bad_csv(run, file: str, text: str, message: str):
    Path("x.csv").write_text(text)
    result = run("ik", file, *BASE, "--poses", "x.csv", "--out", "q.npy")
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert sorted(path.name for path in Path().iterdir()) == [file, "x.csv"]


@pytest.mark.parametrize("text", ["", "x,y,z,roll,pitch,yaw\n", "# nothing\n"])
def test_empty_csv(run, file: str, text: str):
    Path("x.csv").write_text(text)
    result = run("ik", file, *BASE, "--poses", "x.csv", "--out", "q.npy")
    assert result.code == 0
    assert result.out == "0 of 0 targets solved\n"
    assert np.load("q.npy").shape == (0, 6)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 3)), "3 numbers are a position; add --rotation none"),
        (np.zeros((2, 3, 4)), "4 numbers do not make a pose"),
        (np.zeros(()), "an array (..., n) of real numbers is needed"),
        (np.zeros((4, 7), dtype=complex), "holds complex128"),
        (np.zeros((5, 0)), "0 numbers do not make a pose"),
    ],
)
def test_bad_npy(run, file: str, array: np.ndarray, message: str):
    np.save("x.npy", array)
    result = run("ik", file, *BASE, "--poses", "x.npy", "--out", "q.npy")
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not Path("q.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pose", "1,2"], "--pose: 2 numbers do not make a pose."),
        (["--pose", "1,2,3,4,5,b"], "--pose: 'b' is not a number."),
        (["--pose", "1,0,0,0,0,0", "--near", "1,2"], "--near has 2 numbers; 6 joints"),
        (["--pose", "1,0,0,0,0,0", "--tolerance", "1e-3"], "takes two numbers"),
        (["--pose", "1,0,0,0,0,0", "--tolerance", "-1,1"], "both must be above 0"),
        (
            ["--pose", "1,0,0,0,0,0", "--starts", "0"],
            "'0' is not an integer of",
        ),
        (["--pose", "1,0,0,0,0,0", "--path"], "use --poses"),
        (["--poses", "x.npy", "--path", "--starts", "9"], "way: no --starts."),
        (["--pose", "1,0,0,0,0,0", "--best", "limits", "--near=1"], "no --near"),
        (
            ["--pose", "1,0,0,0,0,0", "--best", "limits", "--arm-angle=1"],
            "no arm angle",
        ),
        (["--pose", "1,0,0,0,0,0", "--joints", "elbw"], "no joint named 'elbw'"),
        (["--pose", "1,0,0,0,0,0", "--joints", "track/cart"], "None of these joints"),
        (["--pose", "1,0,0,0,0,0", "--rotation", "xq"], "takes letters of 'xyz'"),
        (["--pose", "1,0,0,0,0,0", "--out", "q.txt"], "--out: 'q.txt' does not end in"),
        (["--poses", "absent.csv"], "absent.csv: No such file or directory"),
        (["--poses", "."], ".: this is not a plain file."),
        (["--pose", "1,0,0,0,0,0", "--poses", "x.csv"], "not allowed with"),
        ([], "one of the arguments --pose --poses is required"),
    ],
)
def test_bad_arguments(run, file: str, arguments: list[str], message: str):
    result = run("ik", file, *BASE, *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_no_closed_form_says_why(run, file: str):
    pose = ("--pose", "1,0,0.9,0,0,0", "--method", "closed")
    result = run("ik", file, "--frame", "tool0", *pose)
    assert result.code == 2
    assert "There is no closed form here: 'track/cart'" in result.err


def test_memory_stays_bounded(run, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "ROWS_PER_CHUNK", 500)
    monkeypatch.setattr(verb, "AT_ONCE", 500)
    rows = 30_000  # 3.8 MB of poses
    np.save("x.npy", np.resize(X, (1, rows, 4, 4)))
    np.save("few.npy", np.resize(X, (1, 3, 4, 4)))
    assert run("ik", file, *BASE, "--poses", "few.npy").code == 0  # which compiles
    tracemalloc.start()
    try:
        result = run("ik", file, *BASE, "--poses", "x.npy", "--out", "q.npy")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.code == 0, result.err
    assert np.load("q.npy", mmap_mode="r").shape == (1, rows, 6)
    assert peak < 2.5e6  # the poses and answers are 5.3 MB


def test_forms_are_described_once():
    assert targets.FORMS in verb.DESCRIPTION


def test_targets_that_a_search_does_not_find_are_counted(run, file: str):
    """Also from one start it finds what a call does; half of the targets are folded."""
    count = 60
    q = np.random.default_rng(7).uniform(-3.0, 3.0, (count, 6))
    targets = DEVICE.fk()(q).copy()
    targets[::2, :3, 3] *= 0.02  # nearer to the base than the arm can fold
    np.save("x.npy", targets)
    few = ("--all", "--method", "numeric", "--starts", "1")
    result = run("ik", file, *BASE, "--poses", "x.npy", *few)
    met = {int(line.partition(",")[0]) for line in result.out.splitlines()}
    assert met == set(range(1, count, 2))
    assert result.code == 1
    assert result.err.startswith(f"{len(met)} of {count} targets solved\n")
    assert "not found within the budget" in result.err


@pytest.mark.thorough
def test_answers_that_avoid_collisions(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    cell = arm.example("oval_track_cell")
    arm.save(cell, "work.cell.json")
    still = ",".join(cell.joint_names[1:7])
    place = "0,-1.6,%s,3.14159265358979,0,0"
    given = ["ik", "work.cell.json", "--frame", "tcp", "--joints", still]
    inside = run(*given, "--pose", place % 0.5)
    assert inside.code == 0
    refused = run(*given, "--pose", place % 0.5, "--avoid", "0")
    assert refused.code == 1
    assert refused.out.startswith("in collision: ")
    contacts = refused.out.partition("touching there:\n")[2].split("\n\n")[0]
    found = cell.collision().contacts(numbers(whole(refused.out)))
    shown = [" and ".join(each.links) for each in found]
    assert shown
    assert all(each in contacts for each in shown)
    above = run(*given, "--pose", place % 0.9, "--avoid", "0.01", "--all")
    assert above.code == 0
    assert "SOLVED" in above.out
    every = run(*given, "--pose", place % 0.9, "--avoid", "0.1", "--all")
    assert "IN_COLLISION" in every.out


def test_positions_are_enough_without_rotation(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(ARM, "arm.cell.json")
    np.savetxt("p.csv", X[:, :3, 3], delimiter=",", header="x,y,z", comments="")
    given = ("ik", "arm.cell.json", *BASE, "--rotation", "none")
    result = run(*given, "--poses", "p.csv", "--out", "q.csv")
    assert result.code == 0, result.err
    q = np.loadtxt("q.csv", delimiter=",", skiprows=1)
    assert np.allclose(DEVICE.fk()(q)[:, :3, 3], X[:, :3, 3], atol=1e-5)

    position = ",".join(map(str, X[0, :3, 3].tolist()))
    found = json.loads(run(*given, "--pose", position, "--json").out)
    assert found["reason"] == "SOLVED"
    pose = DEVICE.fk()(list(found["joints"].values()))
    assert np.allclose(pose[:3, 3], X[0, :3, 3], atol=1e-5)


def test_positions_are_refused_where_rotations_count(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(ARM, "arm.cell.json")
    result = run("ik", "arm.cell.json", *BASE, "--pose", "0.4,0.2,0.3")
    assert result.code == 2
    assert "3 numbers are a position; add --rotation none" in result.err


def test_json_of_all_answers(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(ARM, "arm.cell.json")
    pose = ",".join(map(repr, X[0].ravel().tolist()))
    result = run("ik", "arm.cell.json", *BASE, "--pose", pose, "--all", "--json")
    found = json.loads(result.out)
    assert found["complete"]
    solved = [each for each in found["answers"] if each["success"]]
    assert solved
    for each in solved:
        pose = DEVICE.fk()(list(each["joints"].values()))
        assert np.allclose(pose, X[0], atol=1e-5)


def test_another_base_for_each_pose(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "AT_ONCE", 3)
    stand = arm.Cell().add(arm.example("irb2400").manipulators[0], bolted=False)
    arm.save(stand, "stand.cell.json")
    poses = np.tile(stand.fk("tool0")(stand.home.q), (8, 1, 1))
    bases = np.tile(np.eye(4), (8, 1, 1))
    bases[:, 0, 3] = np.linspace(-0.3, 0.3, 8)
    np.save("poses.npy", poses)
    np.save("bases.npy", bases)
    given = ["stand.cell.json", "--frame", "tool0", "--poses", "poses.npy"]
    for way in ([], ["--path"], ["--best", "limits"]):
        code, _, error = run(
            *("ik", *given, *way, "--bases", "irb2400=bases.npy", "--out", "q.npy")
        )
        assert code == 0, error
        found = np.load("q.npy")
        for q, X, base in zip(found, poses, bases, strict=True):
            placed = stand.home.place("irb2400", arm.Pose.from_matrix(base))
            assert stand.fk("tool0", state=placed)(q) == pytest.approx(X, abs=1e-6)
    np.save("bases.npy", bases[:5])
    code, _, error = run("ik", *given, "--bases", "irb2400=bases.npy")
    assert code == 2
    assert "--bases irb2400 has 5 poses" in error
    np.save("bases.npy", np.concatenate([bases, bases]))
    code, _, error = run("ik", *given, "--bases", "irb2400=bases.npy")
    assert code == 2
    assert "16 poses, one for each of --poses; here are 8 poses" in error
    code, _, error = run("ik", *given, "--bases", "irb2400")
    assert code == 2
    assert "NAME=FILE" in error
