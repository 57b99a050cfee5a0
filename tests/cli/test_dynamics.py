"""`armillary dynamics`: torques and limits of a state, and of joint vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm

MASS, LENGTH, G = 2.0, 0.5, 9.81


def crane() -> arm.Cell:
    """A hoist that lifts a beam, which turns a mass at its end; and a weight."""
    ball = arm.SpatialInertia.from_centre(MASS, (LENGTH, 0, 0), np.zeros((3, 3)))
    crane = arm.Manipulator(
        name="crane",
        links=[
            arm.Link(name="floor"),
            arm.Link(
                name="hoist",
                parent="floor",
                joint=arm.joints.Prismatic(axis=(0, 0, 1)),
                limits=arm.Limits(effort=50.0),
            ),
            arm.Link(
                name="beam",
                parent="hoist",
                joint=arm.joints.Revolute(axis=(0, 1, 0)),
                inertia=ball,
                limits=arm.Limits(effort=12.0),
            ),
            arm.Link(name="fan", parent="hoist", joint=arm.joints.Revolute()),
        ],
    )
    lead = arm.SpatialInertia.from_centre(5.0, (0, 0, 0), np.zeros((3, 3)))
    weight = arm.Manipulator(name="weight", links=[arm.Link(name="w", inertia=lead)])
    return arm.Cell(name="site", manipulators=[crane, weight])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    arm.save(crane(), "site.cell.json")
    return "site.cell.json"


def joints(text: str) -> dict[str, dict[str, float]]:
    """Return the rows of joints of what is printed as JSON."""
    return {row["name"]: row for row in json.loads(text)["joints"]}


def test_weight_and_inertia_of_a_pendulum(run, site: str):
    # At rest the hoist lifts the weight, and the beam holds it at arm's length; both
    # accelerate it: upward, and along the circle, which is down.
    result = run("dynamics", site, "--qdd", "3,4,0", "--json")
    assert result.code == 0, result.err
    found = joints(result.out)
    hoist, beam, fan = (found[f"crane/{name}"] for name in ("hoist", "beam", "fan"))
    assert hoist["holding"] == pytest.approx(MASS * G)
    assert hoist["torque"] == pytest.approx(MASS * (G + 3.0 - 4.0 * LENGTH))
    assert beam["holding"] == pytest.approx(-MASS * G * LENGTH)
    turned = MASS * LENGTH * (4.0 * LENGTH - 3.0 - G)
    assert beam["torque"] == pytest.approx(turned)
    assert (fan["torque"], fan["limit"]) == (0.0, None)
    # Turning at 6 rad/s pulls the mass sideways through the hoist, and changes nothing;
    # where the beam hangs down, it pulls at the hoist.
    level = joints(run("dynamics", site, "--qd", "0,6,0", "--json").out)
    assert level["crane/hoist"]["torque"] == pytest.approx(MASS * G)
    hanging = run(
        "dynamics", site, "--degrees", "--q", "0,90,0", "--qd", "0,180,0", "--json"
    )
    pull = MASS * (G + np.pi**2 * LENGTH)
    assert joints(hanging.out)["crane/hoist"]["torque"] == pytest.approx(pull)
    weightless = joints(run("dynamics", site, "--gravity", "0,0,0", "--json").out)
    assert weightless["crane/beam"]["holding"] == 0.0


def test_the_table(run, site: str):
    result = run("dynamics", site, "--qdd", "3,0,0")
    assert (result.code, result.err) == (1, "")
    head, hoist, beam, fan, _, *totals, _, unknown, _, last = result.out.splitlines()
    assert head.split()[:3] == ["q", "joint", "position"]
    share = 100.0 * MASS * (G + 3.0) / 50.0
    assert hoist.split() == [
        *("0", "crane/hoist", "0", "0", "3", "m", "19.62", "25.62", "N", "50"),
        *(f"{share:.1f}", "%"),
    ]
    assert beam.split()[-5:] == ["m", "12", "106.8", "%", "exceeded"]
    assert fan.split()[-2:] == ["-", "-"]
    assert [line.split()[-4:] for line in totals] == [
        ["joints", "move", "2", "kg"],
        [f"{LENGTH}", "0", "0", "m"],
        ["kinetic", "energy", "0", "J"],
        ["potential", "energy", "0", "J"],
    ]
    assert unknown == (
        "2 of 3 links that joints move have no inertia and count nothing: "
        "crane/hoist, crane/fan"
    )
    assert last == "1 of 2 effort limits exceeded"


def test_mass_and_energies(run, site: str):
    result = run(
        *("dynamics", site, "--q", "3,0.5,0", "--qd", "1,2,0"),
        *("--gravity", "1,0,-10", "--json"),
    )
    found = json.loads(result.out)
    x, z = LENGTH * np.cos(0.5), 3.0 - LENGTH * np.sin(0.5)
    v = np.array([-LENGTH * np.sin(0.5) * 2.0, 1.0 - LENGTH * np.cos(0.5) * 2.0])
    assert found["mass"] == MASS
    assert found["centre_of_mass"] == pytest.approx([x, 0.0, z])
    assert found["kinetic_energy"] == pytest.approx(MASS * v @ v / 2)
    assert found["potential_energy"] == pytest.approx(MASS * (10.0 * z - x))


def test_a_gripped_part_counts(run, site: str):
    cell = arm.load(site)
    there = cell.home.place("weight", arm.Pose.translation(LENGTH, 0, 0))
    Path("free.json").write_text(there.to_json())
    Path("held.json").write_text(there.grip("weight", by="beam").to_json())
    free = run("dynamics", site, "--state", "free.json", "--json")
    held = run("dynamics", site, "--state", "held.json", "--json")
    assert (free.code, held.code) == (0, 1)
    lifted = [joints(each.out)["crane/hoist"]["holding"] for each in (free, held)]
    assert [json.loads(each.out)["mass"] for each in (free, held)] == [MASS, MASS + 5.0]
    assert lifted == pytest.approx([MASS * G, (MASS + 5.0) * G])
    assert joints(held.out)["crane/hoist"]["exceeded"] is True


def test_rates_of_a_state_count(run, site: str):
    cell = arm.load(site)
    running = cell.home.replace(q=[0, np.pi / 2, 0], qd=[0, 2.0, 0])
    Path("state.json").write_text(running.to_json())
    pull = MASS * (G + 4.0 * LENGTH)
    result = run("dynamics", site, "--state", "state.json", "--json")
    assert joints(result.out)["crane/hoist"]["torque"] == pytest.approx(pull)
    still = run("dynamics", site, "--state", "state.json", "--qd", "0,0,0", "--json")
    assert joints(still.out)["crane/hoist"]["torque"] == pytest.approx(MASS * G)


def test_files_of_vectors(run, site: str):
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 50, 3))
    np.save("q.npy", Q)
    cell = crane()
    expected = cell.gravity_torque(state=cell.home)(Q)
    result = run("dynamics", site, "--q-file", "q.npy")
    assert result.code == 0
    rows = [list(map(float, line.split(","))) for line in result.out.splitlines()]
    np.testing.assert_array_equal(rows, expected.reshape(-1, 3))
    first, head, hoist, beam, _ = result.err.splitlines()
    assert first == "0 of 200 vectors exceed an effort limit"
    assert head.split() == ["joint", "greatest", "limit", "at", "vector"]
    sizes = np.abs(expected).reshape(-1, 3)
    assert beam.split()[1:] == [
        f"{sizes[:, 1].max():.6g}", "12", str(sizes[:, 1].argmax())
    ]  # fmt: skip
    assert hoist.split()[1] == "19.62"

    result = run("dynamics", site, "--q-file", "q.npy", "--out", "t.npy")
    assert result.out.startswith(first)
    np.testing.assert_array_equal(np.load("t.npy"), expected)

    result = run("dynamics", site, "--q-file", "q.npy", "--gravity", "0,0,-20")
    held = np.abs(2 * MASS * 10.0 * LENGTH * np.cos(Q[..., 1])) > 12.0
    assert result.code == 1
    assert result.err.startswith(f"{held.sum()} of 200 vectors exceed")


def test_a_file_may_name_joints(run, site: str):
    Path("q.csv").write_text("beam\n0.5\n0\n")
    result = run("dynamics", site, "--q-file", "q.csv")
    cell = crane()
    torque = cell.gravity_torque(state=cell.home)
    expected = torque([[0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    rows = [list(map(float, line.split(","))) for line in result.out.splitlines()]
    np.testing.assert_array_equal(rows, expected)


def test_what_is_not_known_counts_as_exceeding(run, site: str):
    np.save("q.npy", np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]]))
    result = run("dynamics", site, "--q-file", "q.npy")
    assert result.code == 1
    assert result.err.startswith("1 of 2 vectors exceed")


def test_bad_input_is_refused(run, site: str, file: str):
    for given, said in {
        ("--qd", "1,2"): "--qd has 2 numbers; cell 'site' has 3 joints: crane/hoist",
        ("--qdd", "1,2,x"): "--qdd: 'x' is not a number",
        ("--gravity", "0,-9.81"): "gravity= takes three finite numbers",
        ("--out", "t.npy"): "--out writes the torques of the vectors of --q-file",
        ("--q-file", "q.npy", "--json"): "--qd, --qdd and --json are of one state",
    }.items():
        result = run("dynamics", site, *given)
        assert result.code == 2, given
        assert said in result.err
    result = run("dynamics", file)
    assert result.code == 2
    assert "Nothing that joints move has an inertia here" in result.err


def test_a_limit_of_zero(run, site: str):
    cell = crane()
    robot, _ = cell.manipulators
    links = [
        link.replace(limits=arm.Limits(effort=0.0)) if link.parent else link
        for link in robot.links
    ]
    arm.save(cell.exchange(robot.replace(links=links)), site)
    hoist, beam, fan = run("dynamics", site).out.splitlines()[1:4]
    assert hoist.split()[-3:] == beam.split()[-3:] == ["0", "-", "exceeded"]
    assert fan.split()[-2:] == ["0", "-"]


def test_moments_without_mass(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rotor = arm.SpatialInertia(0.0, (0.0, 0.0, 0.0), np.eye(3).tolist())
    wheel = arm.Link(
        name="wheel", parent="base", joint=arm.joints.Revolute(), inertia=rotor
    )
    links = [arm.Link(name="base"), wheel]
    arm.save(
        arm.Cell(manipulators=[arm.Manipulator(name="w", links=links)]), "w.cell.json"
    )
    result = run("dynamics", "w.cell.json", "--qd", "2", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["mass"], found["centre_of_mass"]) == (0.0, [None] * 3)
    assert found["kinetic_energy"] == 2.0


def test_effort_limits_are_in_the_order_of_q():
    assert crane().effort_limits.tolist() == [50.0, 12.0, np.inf]
    cell = arm.example("palletiser")  # whose loops determine further joints
    (robot,) = cell.manipulators
    efforts = {link.coordinate: 10.0 + k for k, link in enumerate(robot.links)}
    links = [
        link.replace(limits=arm.Limits(effort=efforts[link.coordinate]))
        if link.has_coordinate
        else link
        for link in robot.links
    ]
    limited = cell.exchange(robot.replace(links=links))
    assert limited.passive_names
    expected = [efforts[name] for name in limited.joint_names]
    assert limited.effort_limits.tolist() == expected
