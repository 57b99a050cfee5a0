"""`armillary collide`: contacts of a state, and of files of joint vectors."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import armillary as arm
from armillary.shapes import HalfSpace, Sphere


def sledges() -> arm.Cell:
    """Two balls on a rail of their own each, and one on the floor at 2 m."""
    parts = [
        arm.Manipulator(
            name=name,
            links=[
                arm.Link(name="rail"),
                arm.Link(
                    name="ball",
                    parent="rail",
                    joint=arm.joints.Prismatic(axis=(1, 0, 0)),
                    collisions=[Sphere(radius=0.1, name="round")],
                ),
            ],
        )
        for name in ("left", "right")
    ]
    post = arm.Link(name="top", collisions=[Sphere(radius=0.5)])
    return arm.Cell(
        name="sledges",
        manipulators=[*parts, arm.Manipulator(name="post", links=[post])],
        mounts=[
            arm.Mount(
                manipulator="post", pose=arm.Pose.translation(2, 0, 0), bolted=False
            )
        ],
    )


@pytest.fixture
def balls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    arm.save(sledges(), "balls.cell.json")
    return "balls.cell.json"


def test_contacts_and_nearest_pairs(run, balls: str):
    result = run("collide", balls, "--q", "0,0.15")
    assert (result.code, result.err) == (1, "")
    title, _, touching, head, contact, _, nearest, _, *free = result.out.splitlines()
    assert title == "3 pairs tested: 1 touch"
    assert (touching, nearest) == ("touching:", "nearest:")
    assert head.split()[:3] == ["distance", "link", "link"]
    assert contact.split() == [
        *("-0.050000", "left/ball", "right/ball", "0.1", "0", "0"),
        *("0.05", "0", "0", "round", "round"),
    ]
    assert [line.split()[0] for line in free] == ["1.250000", "1.400000"]
    assert run("collide", balls, "--q", "0,1").code == 0
    assert run("collide", balls, "--q", "0,0.25", "--margin", "0.06").code == 1


def test_the_output_agrees_with_the_library(run, balls: str):
    q = [0.3, 1.35]
    result = run("collide", balls, "--q", "0.3,1.35", "--json", "--margin", "0.1")
    found = json.loads(result.out)
    check = sledges().collision(margin=0.1)
    assert found["pairs"] == 3
    assert found["margin"] == 0.1
    (touching,) = found["touching"]
    (contact,) = check.contacts(q)
    assert tuple(touching["links"]) == contact.links
    assert touching["distance"] == contact.distance
    np.testing.assert_array_equal(touching["points"], contact.points)
    np.testing.assert_array_equal(touching["normal"], contact.normal)
    others = [each["distance"] for each in found["nearest"]]
    np.testing.assert_allclose(others, np.sort(check.distances(q))[1:])
    assert "untested" not in found
    for count in (0, 1):
        few = run("collide", balls, "--json", "--nearest", str(count))
        assert len(json.loads(few.out)["nearest"]) == count


def test_untested_pairs_and_why(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    cell = arm.example("irb2400")
    arm.save(cell, "x.cell.json")
    result = run("collide", "x.cell.json", "--untested")
    assert result.code == 0
    pairs = cell.pairs(cell.home)
    lines = result.out.partition("not tested")[2].splitlines()[1:]
    count = len(pairs.links) * (len(pairs.links) - 1) // 2
    assert len(lines) == count - len(pairs) > 0
    assert all(" adjacent by the rule: " in line for line in lines)


def test_states_and_attachments(run, balls: str):
    cell = arm.load(balls)
    near = cell.home.replace(q=[0.0, 0.19])
    Path("state.json").write_text(near.to_json())
    assert run("collide", balls, "--state", "state.json").code == 1
    apart = cell.home.place("post", arm.Pose.translation(0, 5, 0)).replace(q=[2.0, 0])
    Path("state.json").write_text(apart.to_json())
    assert run("collide", balls, "--state", "state.json").code == 0
    assert run("collide", balls, "--q", "2,0").code == 1


def test_files_of_vectors(run, balls: str):
    Q = np.random.default_rng(0).uniform(-2, 2, (6, 50, 2))
    np.save("q.npy", Q)
    check = sledges().collision()
    touching = check(Q).ravel()
    result = run("collide", balls, "--q-file", "q.npy")
    assert result.code == 1
    rows = [line.split(",") for line in result.out.splitlines()]
    assert [int(row[0]) for row in rows] == np.flatnonzero(touching).tolist()
    distances = check.distances(Q.reshape(-1, 2))
    pairs = list(check.pairs)
    for k, value, a, b in rows:
        assert float(value) == distances[int(k)].min()
        assert distances[int(k), pairs.index((a, b))] == float(value)
    first = np.flatnonzero(touching)[0]
    expected = f"{touching.sum()} of 300 vectors touch; the first is {first}\n"
    assert result.err == expected

    result = run("collide", balls, "--q-file", "q.npy", "--out", "d.npy")
    assert result.code == 1
    np.testing.assert_array_equal(np.load("d.npy"), check.clearance(Q))
    least = check.clearance(Q).ravel()
    assert result.out.startswith(expected.rstrip())
    assert result.out.endswith(f"m at {least.argmin()}\n")
    assert f"{least.min():.6g} m" in result.out


def test_a_file_may_name_joints_and_state_the_rest(run, balls: str):
    Path("q.csv").write_text("right/ball\n1.0\n0.1\n")
    result = run("collide", balls, "--q-file", "q.csv")
    assert result.out.split(",")[0] == "1"
    state = arm.load(balls).home.replace(q=[0.9, 0.0])
    Path("state.json").write_text(state.to_json())
    result = run("collide", balls, "--q-file", "q.csv", "--state", "state.json")
    assert result.out.split(",")[0] == "0"
    np.save("free.npy", np.array([[0.0, 1.0]]))
    result = run("collide", balls, "--q-file", "free.npy")
    assert (result.code, result.out) == (0, "")
    assert result.err == "0 of 1 vector touch\n"


def test_vectors_of_another_length_are_refused(run, balls: str):
    np.save("q.npy", np.zeros((4, 3)))
    result = run("collide", balls, "--q-file", "q.npy")
    assert result.code == 2
    assert "the vectors have 3 numbers; 2 are expected" in result.err


def test_nan_counts_as_touching(run, balls: str):
    np.save("q.npy", np.array([[0.0, 1.0], [np.nan, 1.0]]))
    result = run("collide", balls, "--q-file", "q.npy")
    assert result.code == 1
    assert result.out.startswith("1,nan,left/ball,")
    result = run("collide", balls, "--q-file", "q.npy", "--out", "d.npy")
    assert result.out.startswith("1 of 2 vectors touch; the first is 1; ")


def test_what_does_not_go_together_is_refused(run, balls: str):
    for given in (
        ["--out", "d.npy"],
        ["--q-file", "q.npy", "--json"],
        ["--margin=-1"],
    ):
        result = run("collide", balls, *given)
        assert result.code == 2, given
        assert result.err


def test_warnings_are_lines_on_stderr(run, tmp_path: Path, balls: str):
    (tmp_path / "cube.stl").write_bytes(cube())
    links = [
        arm.Link(name=n, collisions=[arm.shapes.Mesh(file="cube.stl")]) for n in "ab"
    ]
    parts = [arm.Manipulator(name=each.name, links=[each]) for each in links]
    there = arm.Mount(manipulator="b", pose=arm.Pose.translation(3, 0, 0), bolted=False)
    arm.save(arm.Cell(manipulators=parts, mounts=[there]), "meshes.cell.json")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("collide", "meshes.cell.json")
    assert result.code == 0
    assert result.err.startswith("warning: Collision shapes of 'a/a', 'b/b' are meshes")
    assert result.err.count("\n") == 1
    assert "2.000000  a/a" in result.out


def two_cubes() -> arm.Link:
    """Return a link with a mesh of two cubes; its hull fills the gap between them."""
    apart = [cube(), cube(3.0)]
    count = sum(int(np.frombuffer(each, "<u4", 1, 80)[0]) for each in apart)
    rows = b"".join(each[84:] for each in apart)
    Path("two.stl").write_bytes(bytes(80) + np.uint32(count).tobytes() + rows)
    return arm.Link(name="two", collisions=[arm.shapes.Mesh(file="two.stl")])


@pytest.mark.peers
def test_triangles_of_meshes(run, balls: str):
    two = two_cubes()
    ball = arm.Link(name="ball", collisions=[Sphere(radius=0.1)])
    parts = [arm.Manipulator(name=each.name, links=[each]) for each in (two, ball)]
    at = arm.Pose.translation(1.5, 0, 0)
    between = arm.Mount(manipulator="ball", pose=at, bolted=False)
    arm.save(arm.Cell(manipulators=parts, mounts=[between]), "two.cell.json")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("collide", "two.cell.json")
    assert result.code == 1
    assert "'armillary collide --exact' tests their triangles instead" in result.err
    result = run("collide", "two.cell.json", "--exact", "--json")
    assert (result.code, result.err) == (0, "")
    (nearest,) = json.loads(result.out)["nearest"]
    assert np.isclose(nearest["distance"], 0.9, atol=1e-6)


@pytest.mark.peers
@pytest.mark.filterwarnings("default")
def test_triangles_where_answers_and_sweeps_avoid_contact(run, balls: str):
    limits = arm.Limits(lower=0.0, upper=3.0)
    slider = arm.Manipulator(
        name="slider",
        links=[
            arm.Link(name="rail"),
            arm.Link(
                name="ball",
                parent="rail",
                joint=arm.joints.Prismatic(axis=(1, 0, 0)),
                limits=limits,
                collisions=[Sphere(radius=0.1)],
            ),
        ],
    )
    cubes = arm.Manipulator(name="cubes", links=[two_cubes()])
    arm.save(arm.Cell(manipulators=[cubes, slider]), "slide.cell.json")
    pose = ("--pose", "1.5,0,0", "--rotation", "none", "--position", "x")
    ik = ("ik", "slide.cell.json", "--frame", "ball", *pose)
    assert run(*ik, "--avoid", "0").code == 1
    assert run(*ik, "--avoid", "0", "--exact").code == 0
    refused = run(*ik, "--exact")
    assert refused.code == 2
    assert "add --avoid M" in refused.err
    asked = ("sweep", "slide.cell.json", "--ask", "collision", "--grid", "0.5:2.5:3")
    for exact, touching in ((), [True] * 3), (("--exact",), [True, False, True]):
        out = f"out{len(exact)}.npy"
        assert run(*asked, *exact, "--out", out).code == 0
        assert np.load(out).tolist() == touching


def cube(x: float = 0.0) -> bytes:
    """Return a cube of 1 m with its centre at x as binary STL."""
    corners = np.array(list(np.ndindex(2, 2, 2)), np.float32) - 0.5
    faces = ConvexHull(corners).simplices
    corners[:, 0] += x
    rows = np.zeros(len(faces), [("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")])
    rows["p"] = corners[faces]
    return bytes(80) + np.uint32(len(faces)).tobytes() + rows.tobytes()


def test_cells_without_pairs_and_untestable_ones(run, file: str):
    result = run("collide", file)
    assert (result.code, result.out) == (2, "0 pairs tested: 0 touch\n")
    assert "No pair of links is tested for collision: no link has" in result.err
    np.save("q.npy", np.zeros((3, 3)))
    assert run("collide", file, "--q-file", "q.npy").code == 2
    assert run("collide", file, "--q-file", "q.npy", "--out", "d.npy").code == 2
    floors = [
        arm.Manipulator(name=n, links=[arm.Link(name="l", collisions=[HalfSpace()])])
        for n in "ab"
    ]
    arm.save(arm.Cell(manipulators=floors), "floors.cell.json")
    result = run("collide", "floors.cell.json")
    assert result.code == 2
    assert "half spaces" in result.err


def test_other_verbs_say_that_nothing_is_tested(run, file: str):
    rows = "--samples", "4", "--within", "hand/wheel=0:1"
    result = run("sweep", file, "--ask", "collision", *rows, "--out", "touching.npy")
    assert result.code == 0
    assert "warning: No pair of links is tested for collision" in result.err
