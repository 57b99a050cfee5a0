"""Files that mean harm, or that something has happened to."""

from __future__ import annotations

import random
import re

import pytest

from armillary import Cell
from armillary.errors import FormatError
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.robwork import FORMAT
from work import counted

CELL = """<?xml version="1.0"?>
<WorkCell name="w">
 <Define id="wrist"><Joint name="s" type="Spherical"/></Define>
 <Frame name="a" type="Movable"><RPY>10 20 30</RPY><Pos>1 2 3</Pos></Frame>
 <TreeDevice name="t">
  <Frame name="B"/>
  <Use id="wrist"/>
  <SerialChain name="f">
   <DHJoint name="h" alpha="10" a="1" b="2" offset="3" type="HGP"/>
   <DHJoint name="k" alpha="10" a="1" theta="2" offset="3" state="Passive"/>
  </SerialChain>
  <Joint name="d" type="Revolute"><Depend on="f.h" gain="2" offset="1"/></Joint>
  <PosLimit refjoint="d" min="0" max="10"/>
  <Drawable name="m" refframe="d"><RGB>1 0 0</RGB><Box x="1" y="1" z="1"/></Drawable>
  <Property name="p" refframe="d" type="Q">1 2 3</Property>
  <Q name="Home">1 2 3 0.4</Q>
 </TreeDevice>
 <Frame name="b" refframe="t.d"/>
 <Frame name="c" refframe="a" daf="true"><Transform>0 1 0 5 0 0 1 6 1 0 0 7
 </Transform></Frame>
 <ParallelDevice name="x">
  <Frame name="B"/>
  <SerialChain name="l"><Joint name="a" type="Revolute"/></SerialChain>
  <SerialChain name="r"><Joint name="b" refframe="B" type="Revolute" state="Passive"/>
  </SerialChain>
  <Junction><Chains>l</Chains><Chains>r</Chains></Junction>
 </ParallelDevice>
 <MobileDevice name="m" basename="Base"><AxelWidth>0.4</AxelWidth><LeftWheel name="L"/>
  <RightWheel name="R"/></MobileDevice>
</WorkCell>"""


def read(text: str) -> Cell:
    return Cell.of(FORMAT.read(text.encode(), "x.wc.xml", ReadOptions(), Report()))


def damaged(text: str, rng: random.Random) -> str:
    """A text with a few of its tags and values gone, repeated, moved or changed."""
    parts = re.findall(r"<[^>]*>|[^<]+", text)
    numbers = ("nan", "1e999", "1e300", "-0", "", "1e16", "360", "0x10", "1,5")
    words = ('""', '"WORLD"', '"B"', '"a/b"', '"."', '"Movable"', '"Universal"',
             '"environment"', '"world"', '"true"', '"f.h"')  # fmt: skip
    for _ in range(rng.choice((1, 1, 2, 4))):
        k, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(7):
            case 0:
                parts.pop(k)
            case 1:
                parts.insert(k, parts[j])
            case 2:
                parts[k], parts[j] = parts[j], parts[k]
            case 3:
                parts[k] = re.sub(
                    r"-?\d+\.?\d*", rng.choice(numbers), parts[k], count=1
                )
            case 4:
                parts[k] = re.sub(r'"[^"]*"', rng.choice(words), parts[k], count=1)
            case 5:
                parts[k] = re.sub(r"\w+=", rng.choice(("name=", "type=")), parts[k])
            case _:
                parts[k:k] = parts[k : k + rng.randrange(12)]
    return "".join(parts)


def joints(cell: Cell) -> list[str]:
    """Names without their devices: one called `environment` may be renamed."""
    return sorted(name for m in cell.manipulators for name in m.joint_names)


def test_sound_cell_loads():
    assert len(read(CELL).joint_names) == 8


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_damaged_files_load_or_are_refused(seed: int):
    """Never another error; and what loads can be written and read again."""
    rng = random.Random(seed)
    loaded = 0
    for _ in range(60):
        try:
            cell = read(damaged(CELL, rng))
        except FormatError as error:
            assert all(d.place.path == "x.wc.xml" for d in error.diagnostics)
            continue
        loaded += 1
        again = read(FORMAT.write(cell.workcell, Report()).decode())
        assert joints(again) == joints(cell)
    assert 5 < loaded < 55


def repeated(form: str, count: int) -> str:
    return "".join(form.format(k=k, before=k - 1) for k in range(1, count + 1))


JOINT = '<Joint name="J{k}" type="Revolute"/>'
LARGE = {
    "too many elements": ("xml-limit", repeated('<Frame name="f{k}"/>', 60_000)),
    "nested too deeply": (
        "xml-limit",
        "<Frame name='a'>" * 5000 + "</Frame>" * 5000,
    ),
    "unknown names": ("unknown-element", repeated('<Fram{k} name="x"/>', 5_000)),
    "repeated names": ("repeated-name", '<Frame name="x"/>' * 5_000),
    "unknown frames": (
        "unknown-frame",
        '<Frame name="x"/>' + repeated('<Frame name="f{k}" refframe="g{k}"/>', 2_000),
    ),
    "undefined uses": ("unknown-define", repeated('<Use id="u{k}"/>', 10_000)),
    "a cycle of frames": (
        "cycle",
        '<Frame name="x"/><Frame name="f0" refframe="f5000"/>'
        + repeated('<Frame name="f{k}" refframe="f{before}"/>', 5000),
    ),
    "open comments": ("xml-syntax", "<!--" * 1_000_000),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LARGE)
def test_large_files_are_refused_after_little_work(name: str):
    """Each by its own limit or fault, not by another that comes before."""
    code, body = LARGE[name]
    text = f'<WorkCell name="w">{body}</WorkCell>'
    with counted() as work, pytest.raises(FormatError) as caught:
        read(text)
    assert work.lines < 10_000_000
    assert len(caught.value.diagnostics) < 400
    assert caught.value.diagnostics[0].code == code


def test_long_chain_of_frames_is_not_a_recursion():
    frames = repeated('<Frame name="f{k}" refframe="f{before}"/>', 5000)
    cell = read(f'<WorkCell name="w"><Frame name="f0"/>{frames}</WorkCell>')
    assert len(cell.frame_names) == 5003


def test_long_chain_of_joints_is_not_a_recursion():
    """A device with more joints than Python has frames, below the limit of elements."""
    joints = repeated(JOINT, 5000)
    device = f'<SerialDevice name="d"><Frame name="b"/>{joints}</SerialDevice>'
    cell = read(f'<WorkCell name="w">{device}</WorkCell>')
    assert len(cell.joint_names) == 5000
    (manipulator,) = [m for m in cell.manipulators if m.name == "d"]
    parents = {link.name: link.parent for link in manipulator.links}
    assert parents["J5000"] == "J4999"


def test_limits_of_names():
    """A name with a dot may be that of a frame in a chain; both at once are refused."""
    chain = '<SerialChain name="c"><Frame name="f"/></SerialChain><Frame name="c.f"/>'
    with pytest.raises(FormatError, match=r"repeated-name.*'d\.c\.f' already"):
        read(f'<TreeDevice name="d"><Frame name="B"/>{chain}</TreeDevice>')


def test_an_empty_name_of_a_coordinate_names_none():
    name = '<Property name="armillary.coordinate">{}</Property>'
    joint = f'<Joint name="j" type="Revolute">{name}</Joint>'
    device = f'<SerialDevice name="d"><Frame name="B"/>{joint}<Q name="Home">1</Q>'
    text = f'<WorkCell name="w">{device}</SerialDevice></WorkCell>'
    assert read(text.format("")).joint_names == ("j",)
    assert read(text.format("turn")).joint_names == ("turn",)
