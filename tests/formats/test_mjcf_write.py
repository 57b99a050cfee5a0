"""MJCF is written: opened by MuJoCo without a warning, and read again as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

import mujoco

import armillary as arm
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.model.workcell import Workcell
from mjcf_models import Judge, random_model

TOLERANCE = 1e-12


def written(cell: arm.Cell | Workcell, path: Path) -> Report:
    workcell = cell if isinstance(cell, Workcell) else cell.workcell
    data, report = registry.write(workcell, format="mjcf")
    path.write_bytes(data)
    return report


def warnings(report: Report) -> list[str]:
    found = [d for d in report.diagnostics if d.severity is Severity.WARNING]
    return [d.code for d in found]


def opened(path: Path, capfd: pytest.CaptureFixture[str]) -> mujoco.MjModel:
    """Open a file with MuJoCo, which prints its warnings."""
    model = mujoco.MjModel.from_xml_path(str(path))
    assert capfd.readouterr().err == ""
    return model


def read(path: Path) -> Workcell:
    return registry.read(path, format="mjcf")[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_is_read_again_as_it_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int
):
    path = tmp_path / "model.xml"
    path.write_text(random_model(seed, balls=seed == 0))
    first = read(path)
    capfd.readouterr()
    report = written(first, path)
    assert warnings(report) == []
    assert read(path).approx_equal(first, TOLERANCE)
    model = opened(path, capfd)
    cell = arm.Cell.of(first)
    Q = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, len(cell.joint_names)))
    assert model.nq == 7 + len(cell.joint_names)  # balls are hinges now
    assert Judge(model, cell).worst_pose(Q) < TOLERANCE


KEPT = """<mujoco model="kept">
  <option timestep="0.001"/>
  <visual><global azimuth="30"/></visual>
  <asset><texture name="t" type="2d" builtin="flat" width="8" height="8"/>
    <material name="m" texture="t" rgba="0 1 0 1"/>
    <hfield name="hills" nrow="2" ncol="2" size="1 1 1 .1" elevation="0 1 2 3"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="hfield" hfield="hills"/>
    <body name="a"><freejoint name="root"/><geom name="g" size=".1" friction=".5"
      material="m"/><camera name="eye" euler="10 20 30" pos="0 0 .1"/>
      <site name="s" size=".01" pos="0 0 .1"/>
      <body name="b" pos="0 0 1" gravcomp="1"><joint name="j" margin=".01"/>
        <geom size=".1"/><site name="t" pos="0 0 .1"/></body>
      <body name="c" pos="0 1 1"><joint name="k" range="-1 1"/><geom size=".1"/></body>
    </body>
    <body name="hand" mocap="true" pos="0 0 2"/>
  </worldbody>
  <contact><pair geom1="g" geom2="g2"/></contact>
  <tendon><spatial name="rope" range="0 2"><site site="s"/><site site="t"/></spatial>
    <fixed name="both"><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed>
  </tendon>
  <equality><weld body1="hand" body2="b"/><joint joint1="k" polycoef=".5 0 0 0 0"/>
    <tendon tendon1="both"/></equality>
  <actuator><position name="p" joint="j" kp="20" gear="3" forcerange="-2 2"/>
    <general name="r" tendon="rope" gainprm="4"/></actuator>
  <sensor><jointpos joint="j"/><framepos objtype="site" objname="t"/>
    <framequat objtype="body" objname="b"/></sensor>
  <keyframe><key name="home" qpos="1 2 3 1 0 0 0 .5 .25" ctrl="1 2"/></keyframe>
</mujoco>""".replace('<contact><pair geom1="g" geom2="g2"/></contact>', "")


def test_what_has_no_counterpart_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    path = tmp_path / "model.xml"
    path.write_text(KEPT)
    before = mujoco.MjModel.from_xml_path(str(path))
    first, report = registry.read(path, format="mjcf")
    listed = " ".join(d.message for d in report.diagnostics)
    for what in ("<spatial>", "<fixed>", "<position>", "hfield", "'friction'"):
        assert what in listed
    capfd.readouterr()
    assert warnings(written(first, path)) == []
    assert read(path).approx_equal(first, TOLERANCE)
    after = opened(path, capfd)
    for name in ("nq", "nu", "ntendon", "nsensor", "neq", "nhfield", "ncam", "nlight"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.key_qpos[0] == pytest.approx(before.key_qpos[0])
    assert after.key_ctrl[0] == pytest.approx([1.0, 2.0])
    assert after.opt.timestep == 0.001
    assert after.actuator_gainprm[0][0] == 20.0
    assert after.body_gravcomp[after.body("a/b").id] == 1.0
    data = [mujoco.MjData(model) for model in (before, after)]
    for model, each in zip((before, after), data, strict=True):
        mujoco.mj_resetDataKeyframe(model, each, 0)
        mujoco.mj_forward(model, each)
    assert data[1].ten_length == pytest.approx(data[0].ten_length, abs=1e-12)
    assert data[1].sensordata == pytest.approx(data[0].sensordata, abs=1e-12)
    assert data[1].actuator_force == pytest.approx(data[0].actuator_force, abs=1e-12)


@pytest.mark.parametrize("name", ["irb2400", "pan_tilt", "ur10_on_rail", "stewart"])
def test_cells_of_other_formats(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
):
    cell = arm.example(name)
    path = tmp_path / "model.xml"
    capfd.readouterr()
    found = warnings(written(cell, path))
    model = opened(path, capfd)
    if name == "stewart":
        assert {"lost-joint", "open-loop"} <= set(found)
        return
    again = read(path)
    bare = [each.rpartition("/")[2] for each in cell.joint_names]
    assert [each.rpartition("/")[2] for each in again.joint_names] == bare
    assert model.nq == len(bare)
    lower, upper = cell.limits
    both = np.isfinite(lower) & np.isfinite(upper)
    assert model.jnt_range[both].tolist() == np.c_[lower, upper][both].tolist()
    for before, after in zip(
        (k for k in cell.workcell.links if k.inertia is not None),
        (k for k in again.links if k.inertia is not None),
        strict=True,
    ):
        old, new = (k.inertia.matrix() for k in (before, after) if k.inertia)
        assert np.abs(old - new).max() < 1e-9


def cell_with(**fields: object) -> Workcell:
    sphere = arm.shapes.Sphere(radius=0.1)
    body = arm.SpatialInertia.from_centre(1.0, (0, 0, 0), np.diag([0.1] * 3).tolist())
    links = [
        arm.Link(name="base", collisions=(sphere,)),
        arm.Link(
            name="a",
            parent="base",
            joint=arm.joints.Revolute(),
            collisions=(sphere,),
            inertia=body,
            frames=(arm.Frame(name="end", pose=arm.Pose.translation(0.3, 0, 0)),),
        ),
        arm.Link(
            name="b",
            parent="base",
            joint=arm.joints.Revolute(),
            collisions=(sphere,),
            inertia=body,
            frames=(arm.Frame(name="tip", pose=arm.Pose.translation(0.3, 0, 0)),),
        ),
    ]
    robot = arm.Manipulator(name="robot", links=links)
    return Workcell(name="robot", manipulators=(robot,)).replace(**fields)


def test_rules_are_excludes(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    rules = arm.Rules(within=True).exclude("robot/a", "robot/b")
    cell = cell_with(rules=rules)
    path = tmp_path / "model.xml"
    written(cell, path)
    model = opened(path, capfd)
    assert model.nexclude == 3  # and the base, with which both share a joint
    pairs = arm.Cell.of(read(path)).collision().pairs
    assert set(pairs) == set(arm.Cell.of(cell).collision().pairs) == set()


def test_couplings_loops_and_postures(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    (robot,) = cell_with().manipulators
    coupled = robot.links[2].replace(
        coupling=arm.Coupling(of="a", multiplier=-2.0, offset=0.5)
    )
    robot = robot.replace(
        links=(*robot.links[:2], coupled),
        postures=(arm.Posture(name="out", joints=("a",), q=(0.25,)),),
    )
    cell = cell_with(manipulators=(robot,))
    path = tmp_path / "model.xml"
    assert warnings(written(cell, path)) == []
    model = opened(path, capfd)
    assert model.key_qpos.tolist() == [[0.25, 0.0]]
    assert model.eq_data[0][:2].tolist() == [0.5, -2.0]
    (again,) = read(path).manipulators
    assert again.links[2].coupling == coupled.coupling
    assert again.posture("out") == robot.posture("out")


def test_a_closure_is_a_constraint(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (robot,) = cell_with().manipulators
    robot = robot.replace(loops=(arm.Closure("end", "tip", name="pin"),))
    path = tmp_path / "model.xml"
    written(cell_with(manipulators=(robot,)), path)
    model = opened(path, capfd)
    assert model.neq == 1
    (again,) = read(path).manipulators
    assert again.loops == robot.loops
    assert again.joint_names == robot.joint_names


def test_shapes_that_mujoco_does_not_have(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    shapes = (
        arm.shapes.Cone(bottom=0.1, length=0.3),
        arm.shapes.ConvexPolyhedron(
            vertices=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        ),
        arm.shapes.Mesh(file="a.dae"),
    )
    (robot,) = cell_with().manipulators
    base = robot.links[0].replace(collisions=shapes)
    robot = robot.replace(links=(base, *robot.links[1:]))
    path = tmp_path / "model.xml"
    report = written(cell_with(manipulators=(robot,)), path)
    assert warnings(report) == ["shape-replaced", "not-kept"]
    assert opened(path, capfd).nmesh == 2
    found = read(path).links[0].collisions
    assert found[1].vertices == shapes[1].vertices


def test_a_body_without_mass(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (robot,) = cell_with().manipulators
    bare = robot.links[1].replace(inertia=None)
    robot = robot.replace(links=(robot.links[0], bare, robot.links[2]))
    path = tmp_path / "model.xml"
    written(cell_with(manipulators=(robot,)), path)
    assert opened(path, capfd).body("a").mass == pytest.approx(1e-9)
    again, report = registry.read(path)
    assert again.links[1].inertia is None
    assert all(d.severity is Severity.NOTE for d in report.diagnostics)


def rod_cell(*, telescopes: bool) -> Workcell:
    """Two arms with a rod between their ends, or a slide that holds one up."""
    (robot,) = cell_with().manipulators
    base = robot.links[0].replace(
        frames=(arm.Frame(name="pin", pose=arm.Pose.translation(0.1, 0.2, 0.3)),)
    )
    slide = robot.links[2].replace(joint=arm.joints.Prismatic(axis=(0, 1, 0)))
    links = (base, robot.links[1].replace(passive=True), *robot.links[2:])
    rod = arm.Rod("end", "tip", length=0.45, name="bar")
    if telescopes:
        links = (base, robot.links[1].replace(passive=True), slide)
        rod = arm.Rod("pin", "end", length=0.4, by="b", name="bar")
    return cell_with(manipulators=(robot.replace(links=links, loops=(rod,)),))


def test_bare_links_stay_where_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """Several joints of one body are read as links that are not turned in it."""
    joints, turned = arm.joints, arm.Pose.from_rpy(0.3, -0.5, 1.1, (0.1, 0.2, 0.3))
    links = [
        arm.Link(name="base"),
        arm.Link(name="x", parent="base", joint=joints.Prismatic(axis=(1, 0, 0))),
        arm.Link(name="y", parent="x", joint=joints.Revolute(axis=(0, 1, 0))),
        arm.Link(name="bare", parent="y", joint=joints.Revolute(), joint_name="named"),
        arm.Link(name="z", parent="bare", joint=joints.Revolute(precursor=turned)),
        arm.Link(name="tip", parent="z", joint=joints.Revolute(precursor=turned)),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="r", links=links)])
    path = tmp_path / "model.xml"
    written(cell, path)
    model = opened(path, capfd)
    # x and y are joints of the body of "bare".
    names = [model.body(k).name for k in range(1, model.nbody)]
    assert names == ["bare", "z", "tip"]
    back = arm.Cell.of(read(path))
    q = [0.1, 0.2, -0.3, 0.4, 0.5]
    for link in links[1:]:
        assert np.allclose(back.fk(link.name)(q), cell.fk(link.name)(q), atol=1e-14)


@pytest.mark.parametrize("telescopes", [False, True])
def test_a_rod_is_a_tendon_of_one_length(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], telescopes: bool
):
    cell = rod_cell(telescopes=telescopes)
    path = tmp_path / "model.xml"
    report = written(cell, path)
    assert "open-loop" not in [d.code for d in report.diagnostics]
    model = opened(path, capfd)
    again = read(path)
    assert again.manipulators[0].loops == cell.manipulators[0].loops
    assert again.passive_names == cell.passive_names
    # MuJoCo finds the constraint fulfilled wherever armillary closes the loop.
    closed = arm.Cell.of(cell)
    data = mujoco.MjData(model)
    for q in (0.05, 0.1, -0.07):
        found = closed.close_loops([q])
        assert found.success
        data.joint("b").qpos = q
        data.joint("a").qpos = found.passive[..., 0]
        mujoco.mj_forward(model, data)
        of_tendons = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert of_tendons.sum() == 1
        assert np.abs(data.efc_pos[of_tendons]).max() < TOLERANCE


def test_a_manipulator_may_be_called_environment(tmp_path: Path):
    """Reading uses the name where something is fixed to the world itself."""
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="tip", parent="base", joint=arm.joints.Revolute(axis=(0.0, 0.0, 1.0))
        ),
    ]
    robots = [arm.Manipulator(name=n, links=links) for n in ("environment", "b")]
    arm.save(arm.Cell(manipulators=robots), tmp_path / "a.mjcf.xml")
    back = arm.load(tmp_path / "a.mjcf.xml")
    assert [m.name for m in back.manipulators] == ["environment", "b"]


def test_home_is_the_keyframe_start_where_that_called_home_leaves_gaps(tmp_path: Path):
    """As of a walking robot whose `home` was taken from a simulation."""
    path = tmp_path / "a.mjcf.xml"
    cell = arm.example("five_bar")
    arm.save(cell, path)
    open_ = '<key name="home" qpos="0.0 0.0 3.1 0.0"/><key name="start"'
    path.write_text(path.read_text().replace('<key name="home"', open_))
    back, report = registry.read(path)
    (robot,) = back.manipulators
    assert robot.home == "start" and len(robot.postures) == 2
    assert back.home_q == pytest.approx(cell.workcell.home_q)
    assert "cannot be closed in 'home'" in "".join(map(str, report.diagnostics))
