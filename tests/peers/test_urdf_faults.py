"""Small files with the faults of URDFs in the wild, against Pinocchio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Severity

pytestmark = pytest.mark.peers

AXIS = '<axis xyz="0 0.6 0.8"/>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
ORIGIN = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
INERTIAL = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
BOX = '<geometry><box size="1 2 3"/></geometry>'


def robot(inside: str = "", *, body: str = "", type: str = "revolute") -> str:
    """Two links and a joint."""
    inside = inside or ORIGIN + AXIS + LIMIT
    return (
        f'<robot name="r">\n<link name="base">{body}</link>\n<link name="tip"/>\n'
        f'<joint name="j" type="{type}"><parent link="base"/><child link="tip"/>'
        f"{inside}</joint>\n</robot>"
    )


def joint(*inside: str) -> str:
    return robot("".join(inside))


def visual(*inside: str) -> str:
    return robot(body=f"<visual>{''.join(inside)}</visual>")


def geometry(shape: str) -> str:
    return visual(f"<geometry>{shape}</geometry>")


def material(name: str, inside: str = '<color rgba="1 0 0 1"/>') -> str:
    return f'<material name="{name}">{inside}</material>'


# What Pinocchio reads, and so do we.
TOLERATED: dict[str, str | bytes] = {
    "two materials": visual(BOX, material("a"), material("b")),
    "two colours": visual(BOX, material("a", '<color rgba="1 0 0 1"/>' * 2)),
    "a colour of three": visual(BOX, material("a", '<color rgba="1 0 0"/>')),
    "commas in a colour": visual(BOX, material("a", '<color rgba="1, 0, 0, 1"/>')),
    "a material without a name": robot().replace(
        "\n<link", "\n<material><color rgba='1 0 0 1'/></material><link", 1
    ),
    "two inertials": robot(body=INERTIAL + INERTIAL),
    "an empty inertial": robot(body="<inertial/>"),
    "no mass": robot(body=f"<inertial>{INERTIA}</inertial>"),
    "no inertia": robot(body='<inertial><mass value="1"/></inertial>'),
    "no products of inertia": robot(body=INERTIAL.replace('ixy="0" ', "")),
    "a mass of NaN": robot(body=INERTIAL.replace('"1"', '"nan"', 1)),
    "a negative mass": robot(body=INERTIAL.replace('"1"', '"-1"', 1)),
    "no mass in a mass": robot(body=INERTIAL.replace(' value="1"', "")),
    "words for an inertia": robot(body=INERTIAL.replace('ixy="0"', 'ixy="x"')),
    "an inertia at NaN": robot(
        body=INERTIAL.replace("<mass", '<origin xyz="nan 0 0"/><mass')
    ),
    "two axes": joint(ORIGIN, LIMIT, AXIS, '<axis xyz="1 0 0"/>'),
    "two origins": joint(ORIGIN, '<origin xyz="1 0 0"/>', LIMIT, AXIS),
    "two limits": joint(ORIGIN, AXIS, LIMIT, LIMIT.replace("-1", "-2")),
    "two parents": robot().replace(
        '<parent link="base"/>', '<parent link="base"/><parent link="tip"/>'
    ),
    "a misspelt axis of a fixed joint": robot(
        f'{ORIGIN}<axis xzy="0 0 1"/>', type="fixed"
    ),
    "half an axis of a fixed joint": robot(f'{ORIGIN}<axis xyz="0"/>', type="fixed"),
    "a long axis": joint(ORIGIN, LIMIT, '<axis xyz="0 3 4"/>'),
    "a macro in a visual": visual(BOX, '<xacro:material_red a="1"/>'),
    "a property": robot().replace("\n<link", "\n<xacro:property name='a'/><link", 1),
    "a substitution in a mesh": geometry('<mesh filename="$(find a)/b.stl"/>'),
    "one scale": geometry('<mesh filename="a.stl" scale="0.001"/>'),
    "a plane": geometry('<plane normal="0 0 1"/>'),
    "no geometry": visual(),
    "an empty geometry": geometry(""),
    "an unknown shape": geometry("<cone/>"),
    "two shapes": geometry('<box size="1 1 1"/><sphere radius="1"/>'),
    "a negative radius": geometry('<sphere radius="-1"/>'),
    "no radius": geometry("<sphere/>"),
    "a box of one number": geometry('<box size="1"/>'),
    "a box of NaN": geometry('<box size="1 nan 1"/>'),
    "a mesh without a file": geometry("<mesh/>"),
    "a shape at two numbers": visual('<origin xyz="0 0"/>', BOX),
    "text in a joint": joint(ORIGIN, AXIS, LIMIT, "text"),
    "a negative damping": joint(ORIGIN, AXIS, LIMIT, '<dynamics damping="-1"/>'),
    "an empty calibration": joint(ORIGIN, AXIS, LIMIT, "<calibration/>"),
    "version 0.0": '<?xml version="0.0" ?>\n' + robot(),
    "a late declaration": '\n<?xml version="1.0"?>' + robot(),
    "two hyphens in a comment": "<!-- a -- b -->" + robot(),
    "a frame of hyphens": "<!----- a ----->" + robot(),
    "Latin 1 in a comment": b"<!-- \xe9 -->" + robot().encode(),
    "an encoding called utf8": '<?xml version="1.0" encoding="utf8"?>' + robot(),
    "an encoding of China": '<?xml version="1.0" encoding="GB2312"?>' + robot(),
    "a lone ampersand": geometry('<mesh filename="a&b.stl"/>'),
    "zero bytes at the end": robot() + "\0\0",
    "an instruction": "<?foo bar?>" + robot(),
    "an empty name": robot().replace('name="r"', 'name=""'),
}

# What Pinocchio reads, and we only by a guess.
GUESSED = {
    "swapped limits": joint(ORIGIN, AXIS, LIMIT.replace("-1", "3")),
    "lower above no upper": joint(
        ORIGIN, AXIS, '<limit lower="1" effort="1" velocity="1"/>'
    ),
    "a mimic of nothing": joint(ORIGIN, AXIS, LIMIT, '<mimic joint="k"/>'),
    "a mimic of itself": joint(ORIGIN, AXIS, LIMIT, '<mimic joint="j"/>'),
}

# What nobody should move by, though Pinocchio does.
REFUSED = {
    "no axis": joint(ORIGIN, LIMIT, '<axis xyz="0 0 0"/>'),
    "a misspelt axis": joint(ORIGIN, LIMIT, '<axis xzy="0 0 1"/>'),
}


def written(text: str | bytes, folder: Path) -> Path:
    path = folder / "r.urdf"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_moves_as_in_pinocchio(path: Path, **how: bool) -> None:
    pin: Any = pytest.importorskip("pinocchio")
    cell, _ = registry.read(path, **how)
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    (manipulator,) = cell.manipulators
    assert list(model.names)[1:] == list(manipulator.joint_names)
    tip = manipulator.link("tip")
    for q in (-0.7, 0.0, 1.3):
        pin.framesForwardKinematics(model, data, np.full(model.nq, q))
        expected = data.oMf[model.getFrameId("tip")].homogeneous
        found = tip.joint.transform(q if tip.moves else 0.0).matrix()
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("name", TOLERATED)
def test_what_leaves_no_doubt_moves_as_in_pinocchio(name: str, tmp_path: Path):
    assert_moves_as_in_pinocchio(written(TOLERATED[name], tmp_path))


@pytest.mark.parametrize("name", GUESSED)
def test_guesses_move_as_in_pinocchio_if_they_are_wanted(name: str, tmp_path: Path):
    path = written(GUESSED[name], tmp_path)
    with pytest.raises(FormatError, match="lenient=True"):
        registry.read(path)
    assert_moves_as_in_pinocchio(path, lenient=True)
    _, report = registry.read(path, lenient=True)
    assert report.count(Severity.WARNING) == 1


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["strict", "lenient"])
def test_motions_that_nobody_can_know_are_refused(name: str, how: str, tmp_path: Path):
    with pytest.raises(FormatError):
        registry.read(written(REFUSED[name], tmp_path), **{how: True})
