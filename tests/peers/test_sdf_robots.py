"""SDF against Drake, whose parser is that of Gazebo: what is read and written.

Drake is not among the packages of the tests; `pip install drake` adds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.formats import registry
from armillary.model.workcell import Workcell

pytestmark = pytest.mark.peers
multibody = pytest.importorskip("pydrake.multibody")

OLD = """<sdf version="1.{}"><model name="m"><pose>1 2 0 0 0 0.4</pose>
<link name="a"/><link name="b"><pose>0.3 0 1 0.2 0.1 0.5</pose></link>
<link name="c"><pose>0 0.4 1 0 1 0</pose></link>
<joint name="j" type="revolute"><pose>0 0 0.1 0 0.3 0</pose><parent>a</parent>
<child>b</child><axis><xyz>0 0.6 0.8</xyz>{}</axis></joint>
<joint name="k" type="prismatic"><parent>b</parent><child>c</child>
<axis><xyz>0 1 0</xyz>{}</axis></joint></model></sdf>"""
FLAG = "<use_parent_model_frame>{}</use_parent_model_frame>"
NEW = """<sdf version="1.9"><model name="m" placement_frame="f">
<pose degrees="true">0 0 1 0 30 0</pose><link name="a"/>
<frame name="f" attached_to="a"><pose>0.1 0.2 0 0 0 1</pose></frame>
<model name="n"><pose relative_to="f">0 0 0.5 0.3 0 0</pose><link name="l">
<pose rotation_format="quat_xyzw">0 1 0 0 0 0.6 0.8</pose></link>
<link name="t"><pose relative_to="l">0 0 1 0 0 0</pose></link>
<joint name="s" type="screw"><parent>l</parent><child>t</child>
<screw_thread_pitch>0.1</screw_thread_pitch><axis><xyz>0 0 1</xyz></axis>
</joint></model>
<joint name="j" type="revolute"><pose relative_to="f"/><parent>a</parent>
<child>n::l</child><axis><xyz expressed_in="n">0 1 0</xyz></axis>
</joint></model></sdf>"""
SOURCES = {
    "1.4": OLD.format(4, "", ""),
    "1.6": OLD.format(6, FLAG.format("true"), FLAG.format("false")),
    "1.9": NEW,
}


def plant_of(path: Path) -> Any:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.Finalize()
    return plant


def check(path: Path, cell: Workcell) -> None:
    """Compare the poses of all links at random joint positions."""
    plant, ours = plant_of(path), arm.Cell.of(cell)
    context = plant.CreateDefaultContext()
    joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
    joints = [joint for joint in joints if joint.num_positions() == 1]
    names = [name.rpartition("/")[2].rpartition("::")[2] for name in ours.joint_names]
    assert sorted(joint.name() for joint in joints) == sorted(names)
    rng = np.random.default_rng(0)
    for _ in range(10):
        q = rng.uniform(-1, 1, len(names))
        positions = plant.GetPositions(context)
        for joint in joints:
            positions[joint.position_start()] = q[names.index(joint.name())]
        plant.SetPositions(context, positions)
        for manipulator in cell.manipulators:
            for link in manipulator.links:
                *scope, name = link.name.split("::")
                model = "::".join([manipulator.name, *scope])
                instance = plant.GetModelInstanceByName(model)
                if not plant.HasBodyNamed(name, instance):
                    continue  # a link between, which only the cell has
                body = plant.GetBodyByName(name, instance)
                expected = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
                found = ours.fk(f"{manipulator.name}/{link.name}")(q)
                assert np.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", SOURCES)
def test_poses_are_those_of_drake(tmp_path: Path, name: str):
    path = tmp_path / "m.sdf"
    path.write_text(SOURCES[name])
    check(path, registry.read(path)[0])


@pytest.mark.parametrize("name", ["irb2400"])
def test_drake_reads_what_is_written(tmp_path: Path, name: str):
    cell = arm.example(name).workcell
    bare = [
        m.replace(links=[k.replace(visuals=(), collisions=()) for k in m.links])
        for m in cell.manipulators
    ]
    cell = Workcell(name=cell.name, manipulators=bare, mounts=cell.mounts)
    path = tmp_path / "lab.sdf"
    registry.save(cell, path)
    check(path, cell)
