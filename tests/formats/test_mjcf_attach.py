"""Models that attach other models are read as MuJoCo compiles them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Severity
from mjcf_models import Judge

TOLERANCE = 1e-12

HAND = """<mujoco model="hand">
  <compiler angle="radian" eulerseq="ZYX"/>
  <default><geom density="500"/><joint damping="2"/>
    <default class="big"><geom size=".3"/></default><motor ctrlrange="-3 3"/></default>
  <asset><material name="red" rgba="1 0 0 1"/>
    <mesh name="tet" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <frame name="side" pos="0 2 0" euler="0 0 .5">
      <body name="a" pos="0 0 1" euler=".1 .2 .3" childclass="big">
        <joint name="j" range="-1 1" ref=".2"/><geom material="red"/><site name="s"/>
        <body name="b" pos="1 0 0"><joint name="k"/><geom type="mesh" mesh="tet"/>
        </body>
      </body>
      <site name="mark" pos="1 0 0"/>
    </frame>
    <body name="c"><joint name="l"/><geom size=".1"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="b"/><exclude body1="a" body2="c"/></contact>
  <equality><joint joint1="l" joint2="k" polycoef="0 2 0 0 0"/></equality>
  <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator><motor name="m" joint="j"/><motor name="ml" joint="l" gear="3"/>
    <motor name="mt" tendon="t"/></actuator>
  <sensor><jointpos joint="k"/></sensor>
  <keyframe><key name="home" qpos=".5 .6 .7"/></keyframe>
</mujoco>"""

ARM = """<mujoco model="arm">
  <default><geom density="2000"/><joint armature="1"/></default>
  <asset><model name="hand" file="hands/hand.xml"/></asset>
  <worldbody>
    <body name="stand" pos="0 0 .5" euler="0 0 90"><joint name="root"/>
      <geom size=".1"/>{inside}</body>
    {beside}
  </worldbody>
  <keyframe><key name="own" qpos="{qpos}"/></keyframe>
</mujoco>"""

PLACES = {
    "a body": (
        '<frame pos="0 1 0"><attach model="hand" body="a" prefix="x_"/></frame>',
        "",
        3,
    ),
    "a frame": ('<attach model="hand" frame="side" prefix="x_"/>', "", 3),
    "all": ("", '<frame pos="5 0 0"><attach model="hand" prefix="y_"/></frame>', 4),
    "copies": (
        '<replicate count="3" offset="0 .5 0" euler="0 20 0" sep="-">'
        '<attach model="hand" body="a" prefix="x_"/></replicate>',
        "",
        7,
    ),
    "itself": (
        "",
        '<body name="p" pos="1 1 1"><joint name="own"/><geom size=".2"/></body>'
        '<body name="o"><geom size=".1"/><attach body="p" prefix="n_"/></body>',
        3,
    ),
}


def files(tmp_path: Path, text: str, hand: str = HAND) -> Path:
    (tmp_path / "hands").mkdir(exist_ok=True)
    (tmp_path / "hands/hand.xml").write_text(hand)
    path = tmp_path / "arm.xml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", PLACES)
def test_an_attached_model_is_that_of_mujoco(tmp_path: Path, name: str):
    inside, beside, count = PLACES[name]
    qpos = " ".join(str(0.1 * k) for k in range(count))
    path = files(tmp_path, ARM.format(inside=inside, beside=beside, qpos=qpos))
    model = mujoco.MjModel.from_xml_path(str(path))
    workcell, report = registry.read(path, format="mjcf")
    assert not [d for d in report.diagnostics if d.code.startswith("unknown")]
    cell = arm.Cell.of(workcell)
    judge = Judge(model, cell)
    joints = [mujoco.mj_id2name(model, 3, k) for k in range(model.njnt)]
    followers = ["y_l"] if name == "all" else []
    names = [each.rpartition("/")[2] for each in cell.joint_names]
    assert sorted(names + followers) == sorted(joints)
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (3, len(names)))
    if not followers:
        assert judge.worst_pose(Q) < TOLERANCE
        assert judge.worst_mass(Q) < TOLERANCE
    # Keyframes: the other joints stand as in the file.
    of_joint = {
        joint: model.key_qpos[:, model.jnt_qposadr[k]] for k, joint in enumerate(joints)
    }
    keys = [
        mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, k) for k in range(model.nkey)
    ]
    for manipulator in workcell.manipulators:
        for posture in manipulator.postures:
            if posture.name == "start":
                continue  # no keyframe, but the positions of the file
            at = keys.index(posture.name)
            for joint, value in zip(posture.joints, posture.q, strict=True):
                assert value == pytest.approx(of_joint[joint][at], abs=1e-15)
    postures = {p.name for m in workcell.manipulators for p in m.postures}
    # Of replicates MuJoCo keeps the keyframe of what is copied, for none of the copies.
    assert postures - {"start"} == set(keys) - {"x_home" * (name == "copies")}
    tested = arm.Cell.of(workcell).collision().pairs
    for one, other in tested:
        assert {one[-1], other[-1]} != {"a", "b"}, "excluded by the attached model"


def test_limits_and_actuators_of_an_attached_model(tmp_path: Path):
    inside, _, _ = PLACES["a body"]
    path = files(tmp_path, ARM.format(inside=inside, beside="", qpos="1 2 3"))
    (robot,) = arm.load(path).manipulators
    link = robot.link("x_a")
    assert (link.limits.lower, link.limits.upper, link.limits.effort) == (
        -1.0,
        1.0,
        3.0,
    )
    assert (link.dynamics.damping, link.dynamics.armature) == (2.0, 0.0)
    assert robot.link("stand").dynamics.armature == 1.0
    assert link.visuals[0].colour == (1.0, 0.0, 0.0, 1.0)


def test_meshes_of_an_attached_model_are_named_from_the_first_file(tmp_path: Path):
    (tmp_path / "hands/parts").mkdir(parents=True)
    (tmp_path / "hands/parts/tet.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    hand = HAND.replace(
        '<mesh name="tet" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>', '<mesh file="tet.obj"/>'
    ).replace("<compiler", '<compiler meshdir="parts"')
    inside, _, _ = PLACES["a body"]
    path = files(tmp_path, ARM.format(inside=inside, beside="", qpos="1 2 3"), hand)
    cell = arm.load(path)
    (shape,) = cell.manipulators[0].link("x_b").visuals
    assert shape.file == "hands/parts/tet.obj"
    model = mujoco.MjModel.from_xml_path(str(path))
    masses = {link.name: link.inertia for link in cell.manipulators[0].links}
    assert masses["x_b"].mass == pytest.approx(model.body("x_b").mass[0], rel=1e-12)


FAULTS = {
    "not-attached": '<attach model="foot" prefix="x"/>',
    "unknown-link": '<attach model="hand" body="z" prefix="x"/>',
    "unknown-frame": '<attach model="hand" frame="z" prefix="x"/>',
    "missing-attribute": '<attach model="hand"/>',
    "repeated-name": '<attach body="p" prefix=""/>',
}


@pytest.mark.parametrize("code", FAULTS)
def test_attachments_that_cannot_be(tmp_path: Path, code: str):
    beside = f'<body name="p"><geom size=".1"/></body>{FAULTS[code]}'
    path = files(tmp_path, ARM.format(inside="", beside=beside, qpos="1"))
    with pytest.raises(FormatError) as caught:
        registry.read(path, format="mjcf")
    assert [
        d.code for d in caught.value.diagnostics if d.severity is Severity.ERROR
    ] == [code]
    assert all(d.place.line > 0 for d in caught.value.diagnostics)


def test_models_that_attach_each_other_or_grow_without_end(tmp_path: Path):
    asset = '<asset><model name="arm" file="../arm.xml"/></asset>'
    hand = HAND.replace("<worldbody>", f"{asset}<worldbody>", 1)
    beside = '<attach model="hand" prefix="x"/>'
    path = files(tmp_path, ARM.format(inside="", beside=beside, qpos="1"), hand)
    with pytest.raises(FormatError, match="include-cycle"):
        registry.read(path, format="mjcf", folders=[tmp_path])
    doubled = "".join(
        f'<attach body="q{k}" prefix="a{k}"/>'
        f'<body name="q{k + 1}"><geom size=".1"/><attach body="q{k}" prefix="b{k}"/>'
        f'<attach body="q{k}" prefix="c{k}"/></body>'
        for k in range(30)
    )
    beside = f'<body name="q0"><geom size=".1"/></body>{doubled}'
    path = files(tmp_path, ARM.format(inside="", beside=beside, qpos="1"))
    with pytest.raises(FormatError, match="xml-limit"):
        registry.read(path, format="mjcf")


REPLICAS = {
    "exclude": '<contact><exclude body1="a" body2="b"/></contact>',
    "pair": '<contact><pair geom1="g" geom2="h"/></contact>',
    "coupling": '<equality><joint joint1="j" joint2="k"/></equality>',
    "connect": '<equality><connect body1="a" anchor="0 0 0"/></equality>',
    "tendon": '<tendon><spatial name="t"><site site="s"/><site site="w"/></spatial>'
    '</tendon><actuator><motor name="m" tendon="t"/></actuator>',
    "motor": '<actuator><motor name="m" joint="j" gear="2"/></actuator>',
    "sensor": '<sensor><framepos name="q" objtype="site" objname="s"/></sensor>',
}


@pytest.mark.parametrize("name", REPLICAS)
def test_what_refers_to_a_replicate_is_replicated(tmp_path: Path, name: str):
    text = (
        '<mujoco model="r"><worldbody><site name="w"/>'
        '<replicate count="3" offset="1 0 0" sep="-"><body name="a"><joint name="j"/>'
        '<geom name="g" size=".1"/><site name="s"/><body name="b"><joint name="k"/>'
        '<geom name="h" size=".2"/></body></body></replicate></worldbody>'
        f"{REPLICAS[name]}</mujoco>"
    )
    path = tmp_path / "replicas.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(path))
    cell, report = registry.read(path, format="mjcf")
    assert not [d for d in report.diagnostics if d.code.startswith("unknown")]
    path.write_bytes(registry.write(cell, format="mjcf")[0])
    again = mujoco.MjModel.from_xml_path(str(path))
    for count in ("nu", "neq", "ntendon", "nsensor", "npair"):
        assert getattr(again, count) == getattr(model, count), count
    if name == "exclude":
        assert len(arm.Cell.of(cell).collision().pairs) == 0 or model.nexclude == 3
    if name == "motor":
        gears = [
            link.dynamics.gear_ratio
            for each in cell.manipulators
            for link in each.links
            if link.coordinate.startswith("j")
        ]
        assert gears == [2.0, 2.0, 2.0]
