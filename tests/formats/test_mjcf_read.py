"""MJCF is read: poses, masses, limits and loops as MuJoCo has them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.mjcf.rules import DefaultPairs
from armillary.model.workcell import Workcell
from mjcf_models import Judge, random_model
from work import lines

TOLERANCE = 1e-12


def read(tmp_path: Path, text: str, **options: object) -> tuple[Workcell, Report]:
    path = tmp_path / "model.xml"
    path.write_text(text, encoding="utf-8")
    return registry.read(path, **options)  # type: ignore[arg-type]


def cell_of(tmp_path: Path, text: str) -> arm.Cell:
    return arm.Cell.of(read(tmp_path, text)[0])


def body(inside: str, outside: str = "", *, head: str = "") -> str:
    return (
        f'<mujoco model="m">{head}<worldbody><body name="b"><geom size=".1"/>{inside}'
        f"</body></worldbody>{outside}</mujoco>"
    )


def errors(tmp_path: Path, text: str, **options: object) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text, **options)
    found = [d for d in caught.value.diagnostics if d.severity is Severity.ERROR]
    assert all(d.place.line > 0 for d in found), found
    return [d.code for d in found]


# Beside MuJoCo


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_poses_masses_and_limits_are_those_of_mujoco(tmp_path: Path, seed: int):
    text = random_model(seed, balls=seed % 2 == 0)
    model = mujoco.MjModel.from_xml_string(text)
    cell = cell_of(tmp_path, text)
    judge = Judge(model, cell)
    rng = np.random.default_rng(seed)
    Q = rng.uniform(-1.5, 1.5, (3, len(cell.joint_names)))
    assert judge.worst_pose(Q) < TOLERANCE
    if seed % 2:
        assert judge.worst_mass(Q) < TOLERANCE
    lower, upper = cell.limits
    for k in range(model.njnt):
        name = judge.name(mujoco.mjtObj.mjOBJ_JOINT, k)
        places = [p for p, j in enumerate(cell.joint_names) if j.endswith(f"/{name}")]
        if not places or not name:
            continue
        ends = model.jnt_range[k] if model.jnt_limited[k] else (-math.inf, math.inf)
        assert (lower[places[0]], upper[places[0]]) == pytest.approx(tuple(ends))
    links = {link.name: link for m in cell.manipulators for link in m.links}
    for k in range(1, model.nbody):
        link = links[judge.name(mujoco.mjtObj.mjOBJ_BODY, k)]
        assert link.inertia is not None
        assert link.inertia.mass == pytest.approx(model.body_mass[k], rel=TOLERANCE)


SETTINGS = {
    "from geoms": 'inertiafromgeom="true"',
    "never": 'inertiafromgeom="false"',
    "groups": 'inertiafromgeom="true" inertiagrouprange="1 2"',
    "bounded": 'boundmass="5" boundinertia=".3"',
    "total": 'settotalmass="7"',
    "balanced": 'balanceinertia="true"',
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_masses(tmp_path: Path, name: str):
    text = f"""<mujoco><compiler {SETTINGS[name]}/><worldbody><body name="b">
      <inertial pos="0 .1 0" mass="2" diaginertia=".1 .1 .4"/>
      <geom size=".1" group="1"/><geom type="box" size=".1 .2 .3" group="3"/>
      <body name="c"><geom size=".1 .3" type="capsule" group="2"/></body>
      </body></worldbody></mujoco>"""
    if name != "balanced":
        text = text.replace(".1 .1 .4", ".1 .2 .25")
    model = mujoco.MjModel.from_xml_string(text)
    for number, link in enumerate(read(tmp_path, text)[0].links, 1):
        mass = 0.0 if link.inertia is None else link.inertia.mass
        assert mass == pytest.approx(model.body_mass[number], rel=TOLERANCE)
        if link.inertia is not None:
            moments = np.linalg.eigvalsh(np.array(link.inertia.about_centre()))
            expected = sorted(model.body_inertia[number])
            assert moments == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["sphere", "box", "capsule", "cylinder"])
def test_shells(tmp_path: Path, kind: str):
    text = body(
        f'<geom type="{kind}" size=".1 .2 .3" pos="1 2 3" shellinertia="true"/>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    inertia = read(tmp_path, text)[0].links[0].inertia
    assert inertia is not None
    assert inertia.mass == pytest.approx(model.body_mass[1], rel=TOLERANCE)
    moments = np.linalg.eigvalsh(np.array(inertia.about_centre()))
    assert moments == pytest.approx(sorted(model.body_inertia[1]), rel=1e-9)


# Joints


def test_dynamics_and_limits(tmp_path: Path):
    cell, _ = read(
        tmp_path,
        body(
            '<joint name="j" range="-90 45" damping="2" frictionloss=".3" '
            'armature=".5" stiffness="4" springref="90" actuatorfrcrange="-7 7"/>',
            '<actuator><motor joint="j" gear="10" ctrlrange="-.5 .5"/></actuator>',
        ),
    )
    link = cell.links[-1]
    assert link.limits.lower == pytest.approx(-math.pi / 2)
    assert link.limits.upper == pytest.approx(math.pi / 4)
    assert link.limits.effort == 5.0  # the smaller of 7 and 10 * 0.5
    found = link.dynamics
    assert (found.damping, found.friction, found.stiffness) == (2.0, 0.3, 4.0)
    assert found.rest == pytest.approx(math.pi / 2)
    assert (found.armature, found.gear_ratio) == (0.5, 10.0)


def test_couplings_have_the_references_of_mujoco(tmp_path: Path):
    cell, report = read(
        tmp_path,
        body(
            '<joint name="a" axis="1 0 0" ref="20"/>'
            '<body name="c"><geom size=".1"/><joint name="d" ref="-10"/></body>'
            '<body name="e"><geom size=".1"/><joint name="f"/></body>',
            '<equality><joint joint1="d" joint2="a" polycoef=".1 2 0 0 0"/>'
            '<joint joint1="f" joint2="a" polycoef="0 1 3 0 0"/></equality>',
        ),
    )
    coupling = next(k.coupling for k in cell.links if k.coordinate == "d")
    assert coupling is not None
    assert coupling.multiplier == 2.0
    # d + 10 deg = 0.1 + 2 (a - 20 deg)
    assert coupling.offset == pytest.approx(math.radians(-10) + 0.1 - math.radians(40))
    assert any("not linear" in d.message for d in report.diagnostics)
    assert cell.joint_names == ("a", "f")
    assert [p.name for p in cell.properties] == ["mjcf.equality"]


FOUR_BAR = """<mujoco model="four_bar"><compiler angle="radian"/><worldbody>
  <body name="crank"><joint name="drive" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 .2" size=".01"/>
    <body name="coupler" pos="0 0 .2"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .5 0 .1" size=".01"/></body></body>
  <body name="rocker" pos=".5 0 0"><joint name="b" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 .3" size=".01"/></body>
  </worldbody>
  <equality>
    <connect name="pin" body1="coupler" body2="rocker" anchor=".5 0 .1"/>
    <joint joint1="b" joint2="drive" active="false"/>
  </equality>
  <actuator><motor name="m" joint="drive"/></actuator></mujoco>"""


def test_a_loop_across_bodies_of_the_world(tmp_path: Path):
    cell = cell_of(tmp_path, FOUR_BAR)
    assert [name.rpartition("/")[2] for name in cell.joint_names] == ["drive"]
    Q = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 1))
    (loop,) = cell.workcell.loops or cell.manipulators[0].loops
    a, b = (cell.fk(end)(Q)[:, :3, 3] for end in (loop.a, loop.b))
    assert np.abs(a - b).max() < 1e-10


def test_free_and_mocap_bodies_are_loose(tmp_path: Path):
    cell, _ = read(
        tmp_path,
        """<mujoco><worldbody>
        <body name="free" pos="1 2 3"><joint type="free" name="root"/>
          <geom size=".1"/></body>
        <body name="hand" mocap="true"/>
        <body name="table" pos="1 0 0"><geom type="box" size="1 1 .1"/></body>
        </worldbody></mujoco>""",
    )
    mounts = {mount.manipulator: mount for mount in cell.mounts}
    assert not mounts["free"].bolted
    assert not mounts["hand"].bolted
    assert mounts["table"].bolted
    assert mounts["free"].pose.position == (1.0, 2.0, 3.0)


def test_prefixes_make_manipulators(tmp_path: Path):
    cell, _ = read(
        tmp_path,
        """<mujoco model="two"><worldbody>
        <body name="arm/base"><geom size=".1"/>
          <body name="arm/link"><joint name="arm/j"/><geom size=".1"/>
            <body name="tool/base" pos="0 0 1"><geom size=".1"/>
              <body name="tool/finger"><joint name="tool/j" type="slide"/>
                <geom size=".1"/></body></body></body></body>
        </worldbody></mujoco>""",
    )
    assert [m.name for m in cell.manipulators] == ["arm", "tool"]
    assert cell.joint_names == ("arm/j", "tool/j")
    assert cell.mounts[0].on == "arm/link"


# Collisions


def test_pairs_are_those_that_mujoco_tests(tmp_path: Path):
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
      <body name="a"><geom name="a" size=".1"/>
        <body name="b"><joint/><geom name="b" size=".1"/>
          <body name="c"><joint/><geom name="c" size=".1" contype="2" conaffinity="4"/>
            <body name="d"><joint/><geom name="d" size=".1"/>
              <geom size=".2" contype="0" conaffinity="0"/></body></body></body></body>
      <body name="e"><freejoint/><geom name="e" size=".1" contype="4"/></body>
      </worldbody><contact><exclude body1="b" body2="d"/></contact></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)  # all of them are in one place
    expected = {
        frozenset(mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, g) for g in pair)
        for pair in data.contact.geom[: data.ncon]
    }
    cell = cell_of(tmp_path, text)
    bare = {"environment": "floor"}
    found = {
        frozenset(bare.get(x.rpartition("/")[2], x.rpartition("/")[2]) for x in pair)
        for pair in cell.collision().pairs
    }
    assert found == expected


# Shapes, keyframes, what is kept


def test_shapes_and_colours(tmp_path: Path):
    cell, _ = read(
        tmp_path,
        body(
            '<geom type="box" size=".1 .2 .3" material="red" group="3"/>'
            '<geom type="mesh" mesh="part" contype="0" conaffinity="0"/>'
            '<site name="tip" pos="0 0 1"/>',
            head='<compiler meshdir="meshes"/><asset><material name="red" '
            'rgba="1 0 0 1"/><mesh name="part" file="a.stl" scale="1 -1 1" '
            'refpos="0 0 1"/></asset>',
        ),
    )
    (link,) = cell.links
    box, mesh = link.collisions[1], link.visuals[1]
    assert isinstance(box, arm.shapes.Box)
    assert box.size == (0.2, 0.4, 0.6)
    assert box.colour == (1.0, 0.0, 0.0, 1.0)
    assert box not in link.visuals
    assert isinstance(mesh, arm.shapes.Mesh)
    assert (mesh.file, mesh.scale) == ("meshes/a.stl", (1.0, -1.0, 1.0))
    assert mesh.pose.position == (0.0, 0.0, -1.0)
    assert link.frames[0].name == "tip"


def test_keyframes_are_postures(tmp_path: Path):
    cell, _ = read(
        tmp_path,
        """<mujoco><worldbody><body name="f"><freejoint/><geom size=".1"/>
        <body name="g"><joint name="j" type="ball"/><geom size=".1"/>
        <body name="h"><joint name="k"/><geom size=".1"/></body></body></body>
        </worldbody><keyframe>
        <key name="home" qpos="0 0 1 1 0 0 0  .6 0 0 .8  .25" ctrl=""/>
        </keyframe></mujoco>""",
    )
    (robot,) = cell.manipulators
    posture = robot.posture("home")
    assert robot.home == "home"
    assert posture.joints == ("j_yaw", "j_pitch", "j_roll", "k")
    assert posture.q == pytest.approx((2.0 * math.atan2(0.8, 0.6), 0.0, 0.0, 0.25))


# Bad input


BAD = {
    "unknown-class": body('<joint class="none"/>'),
    "repeated-name": body('<body name="b"/>'),
    "bad-number": body('<joint axis="0 nan 1"/>'),
    "wrong-count": body('<joint axis="0 1"/>'),
    "zero-axis": body('<joint axis="0 0 0"/>'),
    "two-rotations": body('<body euler="0 0 0" zaxis="0 0 1"/>'),
    "bad-quaternion": body('<body quat="0 0 0 0"/>'),
    "bad-joint": body('<body><freejoint/><geom size="1"/></body>'),
    "unknown-joint": body("", '<actuator><motor joint="x"/></actuator>'),
    "unknown-link": body("", '<equality><weld body1="x"/></equality>'),
    "unknown-frame": body("", '<equality><connect site1="x" site2="y"/></equality>'),
    "global-coordinates": body("", head='<compiler coordinate="global"/>'),
    "unknown-value": body('<joint type="screw"/>'),
    "unknown-element": body("<joit/>"),
    "swapped-limits": body('<joint limited="true" range="30 10"/>'),
    "missing-attribute": body("", "<default><default/></default>"),
    "not-attached": body('<attach model="m" body="b" prefix="x"/>'),
    "bad-count": body('<replicate count="1e9"><geom size="1"/></replicate>'),
}


@pytest.mark.parametrize("code", BAD)
def test_bad_input(tmp_path: Path, code: str):
    assert code in errors(tmp_path, BAD[code])


@pytest.mark.parametrize("number", ["nan", "1e308", "-1e308", "1e999", "inf", "x"])
def test_a_number_that_cannot_be(tmp_path: Path, number: str):
    for text in (
        body(f'<body pos="0 0 {number}"><body pos="{number} 0 0"/></body>'),
        body(f'<joint ref="{number}" range="-1 {number}"/>'),
        body(f'<geom size="{number}" mass="{number}"/>'),
        body(f'<inertial pos="0 0 {number}" mass="{number}" diaginertia="1 1 1"/>'),
    ):
        try:
            read(tmp_path, text)
        except FormatError as error:
            assert all(d.code for d in error.diagnostics)


TOLERATED = {
    "no-mass": '<mujoco><worldbody><body name="b"><joint/></body></worldbody></mujoco>',
    "unknown-attribute": body('<joint dampin="1"/>'),
    "swapped-limits": body('<joint range="30 10"/>'),
    "negative-damping": body('<joint damping="-1"/>'),
    "unused-limit": body(
        '<joint range="-1 1"/>', head='<compiler autolimits="false"/>'
    ),
    "bad-inertia": body(
        '<body><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'
    ),
    "reference-missing": body(
        '<geom type="mesh" mesh="m" contype="0" conaffinity="0" mass="1"/>',
        head='<asset><mesh name="m" file="none.stl"/></asset>',
    ),
    "unknown-mesh": body('<geom type="mesh" mesh="none"/>'),
    "negative-size": body('<geom size="-1"/>'),
}


@pytest.mark.parametrize("code", TOLERATED)
def test_what_leaves_the_motion_clear(tmp_path: Path, code: str):
    _, report = read(tmp_path, TOLERATED[code])
    found = [d for d in report.diagnostics if d.code == code]
    assert found, report.diagnostics
    assert found[0].severity is Severity.WARNING
    assert found[0].place.line == 1
    assert found[0].place.column > 0


def test_includes(tmp_path: Path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/arm.xml").write_text(
        '<mujocoinclude><body name="b"><geom size=".1"/><joint name="j"/></body>'
        "</mujocoinclude>"
    )
    outer = '<mujoco><worldbody><include file="{}"/>{}</worldbody></mujoco>'
    cell, _ = read(tmp_path, outer.format("parts/arm.xml", ""))
    assert cell.joint_names == ("j",)
    twice = '<include file="parts/arm.xml"/>'
    assert errors(tmp_path, outer.format("parts/arm.xml", twice)) == [
        "repeated-include"
    ]
    assert errors(tmp_path, outer.format("model.xml", "")) == ["include-cycle"]
    assert errors(tmp_path, outer.format("../x.xml", "")) == ["reference-outside"]
    assert errors(tmp_path, outer.format("none.xml", "")) == ["reference-missing"]


def test_costs_are_bounded(tmp_path: Path):
    deep = '<body pos="0 0 1">' * 300 + "</body>" * 300
    assert errors(tmp_path, body(deep)) == ["xml-limit"]
    copies = '<replicate count="9999"><body><geom size="1"/></body></replicate>'
    nested = copies.replace("<body>", "<body>" + copies)
    assert errors(tmp_path, body(nested)) == ["xml-limit"]


@pytest.mark.parametrize("kind", ["convex", "legacy", "shell"])
def test_vertices_beyond_single_precision_are_said(tmp_path: Path, kind: str):
    text = f"""<mujoco><asset><mesh name="t" inertia="{kind}"
      vertex="0 0 0 1e154 0 0 0 1 0 0 0 1"/></asset>
      <worldbody><body><geom type="mesh" mesh="t"/></body></worldbody></mujoco>"""
    path = tmp_path / "x.xml"
    path.write_text(text)
    _, report = registry.read(path, format="mjcf")
    assert "bad-mesh" in {each.code for each in report.diagnostics}


def test_rules_of_many_bodies_take_no_work_for_each_pair(tmp_path: Path):
    """400 links have 80 000 pairs, in which reading took three quarters of its time."""
    counts: list[int] = []
    for bodies in (20, 80):
        some = "".join(
            f'<body name="b{k}" pos="{k} 0 0"><joint axis="0 0 1"/>'
            f'<geom size=".1" contype="{1 + k % 2}" conaffinity="{1 + k % 3}"/></body>'
            for k in range(bodies)
        )
        path = tmp_path / f"{bodies}.xml"
        path.write_text(f'<mujoco model="m"><worldbody>{some}</worldbody></mujoco>')
        document = registry.read(path)[0]
        names = [
            f"{m.name}/{link.name}" for m in document.manipulators for link in m.links
        ]
        default = DefaultPairs(document)
        counts.append(lines(lambda d=default, n=names: d.among(n)))
    assert counts[1] < 5 * counts[0]  # 16 times as many pairs
