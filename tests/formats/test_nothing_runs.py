"""Reading a file runs nothing: no code, no program, no connection, no import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import armillary as arm

ROOT = Path(__file__).resolve().parents[2]

# Reads the files once, then again with a hook that sees all that Python does.
READ = """
import sys
import armillary as arm
from armillary.errors import ArmillaryError
from armillary.formats.mesh import read_parts

def read(path):
    try:
        (read_parts if path.endswith((".glb", ".dae", ".obj")) else arm.load)(path)
    except ArmillaryError as error:
        assert "unexpected" not in str(error)

seen = []
for path in sys.argv[1:]:
    read(path)
HARMLESS = {"open", "os.listdir", "os.scandir", "object.__getattr__", "builtins.id"}
HARMLESS |= {"sys._getframe", "array.__new__"}
sys.addaudithook(lambda event, args: event in HARMLESS or seen.append(event))
for path in sys.argv[1:]:
    read(path)
print(*sorted(set(seen)))
"""


def files(folder: Path) -> list[str]:
    """Files of all formats that name code: scripts, libraries, plug-ins, programs."""
    cell = arm.example("ur5e_on_oval")
    robot = arm.Cell(manipulators=[cell.manipulators[0].replace(name="robot")])
    made: list[Path] = []
    for ending in ("cell.json", "actin.xml", "wc.xml"):
        made.append(folder / f"a.{ending}")
        arm.save(robot, made[-1])
    record = json.loads(made[0].read_text())
    for link in record["manipulators"][0]["links"]:
        link["joint"] = {"type": "os.system", "command": "touch mark"}
    record["manipulators"][0]["links"][-1]["joint"] = {
        "type": "script",
        "file": "a.py",
        "source": "open('mark', 'w')",
        "component": '{"joints": [{"name": "J1"}]}',
    }
    texts = {
        "b.cell.json": json.dumps(record),
        "c.urdf": "<robot name=\"${__import__('os').system('touch mark')}\">"
        '<link name="a"/><transmission name="t"><type>os.system</type></transmission>'
        "</robot>",
        "d.actin.xml": made[1].read_text().replace("library=", 'library="os" x='),
        "e.glb": "glTF",
        "f.obj": "mtllib f.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
        "g.dae": "<COLLADA/>",
    }
    for name, text in texts.items():
        made.append(folder / name)
        made[-1].write_text(text)
    return [str(path) for path in made]


def test_reading_runs_nothing(tmp_path: Path):
    paths = files(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", READ, *paths],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(arm.__file__).parents[1]),
            "ARMILLARY_CACHE": "off",  # writes what was read, and reads that instead
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
    assert sorted(os.listdir(tmp_path)) == before
