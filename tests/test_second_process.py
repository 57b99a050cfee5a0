"""What a process has made, the next one finds on disk and makes nothing of it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CUBE = """v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"""
URDF = """<robot name="r">
  <link name="base"/>
  <link name="tip"><collision><geometry>
    <mesh filename="cube.obj"/>
  </geometry></collision></link>
  <joint name="slide" type="prismatic">
    <parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/>
  </joint>
</robot>
"""

ASK = """
import json, sys
from collections import Counter
import numpy as np
import armillary as arm
from armillary.ik import numeric
from armillary.ik.closed_forms import program
from armillary.control import step_pipeline
from armillary.kernel import jit
from armillary.kinematics.closing import branch
from armillary.kinematics.poses import ReleasedFrames
from armillary.model import bounding_volumes
from armillary.model.geometry import hull

made = Counter()

def counted(owner, name, what):
    function = getattr(owner, name)
    def call(*args, **options):
        made[what] += 1
        return function(*args, **options)
    setattr(owner, name, call)

counted(jit, "to_object", "code")
counted(numeric, "make_seed_table", "starts")
counted(hull, "outer_hull", "hulls")
counted(bounding_volumes, "sphere_cover", "spheres")
counted(branch.Branch, "_fill", "loops")
counted(program, "branches_of", "closed forms")
counted(numeric, "step_program", "searches")
counted(step_pipeline, "step_pipeline", "steps")
counted(ReleasedFrames, "program", "links")

cell = arm.load(sys.argv[1])
target = np.eye(4)
target[2, 3] = 0.3
answers = [cell.ik("tip", position="z", rotation="")(target).q]
links = [cell.with_collisions("hulls"), cell.with_collisions("spheres", count=1)]
for each in links:
    (shape,) = each.manipulators[0].links[1].collisions
    answers.append(getattr(shape, "vertices", getattr(shape, "radius", None)))
scara = arm.example("scara")
answers.append(scara.ik("tcp")(scara.pose("tcp", scara.home)).q)
control = scara.controller(arm.tasks.Frame("tcp"))
step = control(scara.home.q, 0.0 * scara.home.q, scara.pose("tcp", scara.home))
answers += [step.q_next, scara.collision()(scara.home.q)]
five_bar = arm.example("five_bar")
answers.append(five_bar.fk(five_bar.frame_names[-1])(five_bar.home.q + 0.1))
shown = repr([np.asarray(each).tolist() for each in answers])
print(json.dumps([made, shown, "scipy" in sys.modules]))
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    (tmp_path / "cube.obj").write_text(CUBE)
    path = tmp_path / "robot.urdf"
    path.write_text(URDF)
    return path


def asked(robot: Path, cache: Path) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(robot)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "ARMILLARY_CACHE": str(cache)},
    )
    return json.loads(done.stdout)


def test_a_second_process_makes_nothing(robot: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    made, answers, _ = asked(robot, cache)
    arrays_made = {"starts", "hulls", "spheres", "loops"}
    formulas_made = {"closed forms", "searches", "steps", "links"}
    assert set(made) == {"code", *formulas_made, *arrays_made}
    arrays, formulas = (
        sorted(cache.glob(f"*.{end}")) for end in ("arrays", "formulas")
    )
    assert arrays
    assert formulas
    again, same, loads_scipy = asked(robot, cache)
    assert again == {}
    assert same == answers
    assert not loads_scipy
    for path in arrays:  # whatever happens to the files, the answers are the same
        path.write_bytes(path.read_bytes()[:-1])
    again, same, _ = asked(robot, cache)
    assert set(again) == arrays_made
    assert same == answers
    for path in formulas:
        path.write_bytes(path.read_bytes()[:-1])
    again, same, _ = asked(robot, cache)
    assert set(again) == formulas_made
    assert same == answers
    # What cannot be written is used, and what is gone is made without being kept.
    cache.chmod(0o500)
    again, same, _ = asked(robot, cache)
    assert again == {}
    assert same == answers
    cache.chmod(0o700)
    for path in cache.glob("*.formulas"):
        path.unlink()
    again, same, _ = asked(robot, cache)
    assert set(again) == formulas_made
    assert same == answers


def test_two_processes_at_once_make_the_same(robot: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", ASK, str(robot)]
    environment = {**os.environ, "ARMILLARY_CACHE": str(cache)}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    answers = [json.loads(each.communicate()[0])[1] for each in both]
    assert answers[0] == answers[1]
    made, same, _ = asked(robot, cache)
    assert made == {}
    assert same == answers[0]
