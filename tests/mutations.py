"""Damaged files of every format, drawn by a seed."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import armillary as arm
from armillary.errors import ArmillaryError
from armillary.formats import registry
from armillary.trajectories.motion_files import motion_bytes

WORDS = (
    *("", "nan", "inf", "-inf", "1e999", "1e308", "-1e308", "1e154", "1e-300", "-0"),
    *("0", "1", "-1", "1e16", "4294967296", "0x10", "1,5", "true", "false", "null"),
    *("world", "WORLD", "__model__", "::", "a::b", "a/b", "/", ".", "..", "../x"),
    *("x" * 2000, "[]", "{}", '"', "<", "&amp;", "\0", "\xff", "name", "type"),
)
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e-?\d+)?")
TEXT = re.compile(r'"[^"<>]*"|(?<=>)[^<>]*[^<>\s][^<>]*(?=<)')
KEY = re.compile(r'\w+(?==)|"\w+"(?=:)|(?<=<)\w+')
PART = re.compile(r"<[^<>]*>|\{[^{}]*\},?|\[[^\[\]]*\],?")
WHOLE = re.compile(r"<(\w+)\b[^<>]*>.*?</\1>|<\w[^<>]*/>", re.DOTALL)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a file with a few of its parts, names and numbers gone or changed."""
    text = data.decode("latin-1")
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        text = _changed(text, draw)
    return text.encode("latin-1")


def _changed(text: str, draw: random.Random) -> str:
    kind = draw.randrange(9)
    if kind == 0:
        at = draw.randrange(len(text) + 1)
        return text[:at] + chr(draw.randrange(256)) + text[at + draw.randrange(2) :]
    if kind == 1:
        at = draw.randrange(len(text) + 1)
        return text[:at] + text[at + draw.randrange(200) :]
    pattern = (NUMBER, NUMBER, TEXT, TEXT, KEY, PART, WHOLE)[kind - 2]
    spans = [match.span() for match in pattern.finditer(text)]
    if not spans:
        return text
    (a, b), (c, d) = draw.choice(spans), draw.choice(spans)
    quote = '"' if text[a : a + 1] == '"' else ""
    new = draw.choice(
        (
            f"{quote}{draw.choice(WORDS)}{quote}",
            text[c:d],  # what stands elsewhere
            text[c:d] if kind < 6 else "",
            text[a:b] * draw.choice((2, 5)) if kind > 6 else draw.choice(WORDS),
        )
    )
    return text[:a] + new + text[b:]


class Source(NamedTuple):
    """A sound file, and how it is read.

    Attributes:
        name: Of the file.
        data: Its bytes.
        read: Reads a file at a path.
        beside: Further files by name.
    """

    name: str
    data: bytes
    read: Callable[[Path], object] = arm.load
    beside: tuple[tuple[str, str], ...] = ()

    def faults(self, folder: Path, draw: random.Random, count: int) -> Iterator[str]:
        """Yield what is not an error of ours, for damaged files in a folder.

        A file that is still read must be written again.
        """
        for name, text in self.beside:
            (folder / name).write_text(text)
        path = folder / self.name
        for _ in range(count):
            data = self._damaged(draw)
            path.write_bytes(data)
            try:
                found = self.read(path)
                if isinstance(found, arm.Cell) and draw.random() < 0.3:
                    registry.write(found.workcell, format="cell")
            except ArmillaryError:
                continue
            except Exception as error:
                yield f"{error!r}\n{data.decode('latin-1')}"

    def _damaged(self, draw: random.Random) -> bytes:
        """Return a damaged file; of an archive, half of the time its contents."""
        if not zipfile.is_zipfile(io.BytesIO(self.data)) or draw.random() < 0.5:
            return mutated(self.data, draw)
        held = zipfile.ZipFile(io.BytesIO(self.data))
        damaged = io.BytesIO()
        with zipfile.ZipFile(damaged, "w") as archive:
            chosen = draw.choice(held.namelist())
            for name in held.namelist():
                content = held.read(name)
                archive.writestr(
                    name, mutated(content, draw) if name == chosen else content
                )
        return damaged.getvalue()


WORLD = """<sdf version="1.11"><world name="w"><frame name="f"><pose>1 0 0 0 0 0</pose>
</frame><include merge="false"><uri>arm.sdf</uri><name>one</name>
<pose relative_to="f">0 0 1 0 0 0.5</pose><placement_frame>tip</placement_frame>
</include><include><uri>lamp.urdf</uri><name>two</name></include>
<joint name="weld" type="fixed"><parent>one::tip</parent><child>two::base</child>
</joint><model name="m" canonical_link="b"><static>0</static>
<self_collide>1</self_collide><include merge="true"><uri>arm.sdf</uri></include>
<link name="b"><inertial auto="true"><density>3</density></inertial>
<collision name="c"><pose relative_to="tip">0 0 0 0 0 0</pose><density>2</density>
<geometry><box><size>1 1 1</size></box></geometry></collision></link>
<joint name="j" type="universal"><parent>b</parent><child>tip</child>
<axis><xyz expressed_in="__model__">1 0 0</xyz></axis>
<axis2><xyz>0 1 0</xyz><mimic joint="k"><multiplier>2</multiplier></mimic></axis2>
</joint>
<joint name="s" type="screw"><parent>b</parent><child>far</child>
<screw_thread_pitch>2</screw_thread_pitch></joint></model></world></sdf>"""
ARM = """<sdf version="1.9"><model name="arm"><link name="low"/><link name="far"/>
<joint name="k" type="revolute"><pose>0 0 1 0 0 0</pose><parent>low</parent>
<child>far</child><axis><xyz>0 0 1</xyz><limit><lower>-1</lower></limit></axis></joint>
<frame name="tip" attached_to="far"><pose degrees="true">0 1 0 0 0 90</pose></frame>
</model></sdf>"""
LAMP = """<robot name="lamp"><link name="base"/><link name="arm"/><joint name="turn"
type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
MODEL = """<mujoco model="m"><compiler angle="degree" autolimits="true"/>
<default><joint damping="1"/><default class="d"><geom size=".1" density="2"/></default>
</default><asset><model name="hand" file="hand.xml"/>
<mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
<frame pos="1 0 0"><attach model="hand" body="palm" prefix="l_"/></frame>
<replicate count="3" offset="0 1 0" euler="0 0 20"><body name="r"><joint name="q"/>
<geom class="d"/><site name="s"/></body></replicate>
<body name="a" pos="0 0 1" euler="10 0 20"><joint name="h" range="-30 40" axis="0 1 0"/>
<geom type="mesh" mesh="t" rgba="1 0 0 1"/><body name="b" pos="1 0 0"><joint name="g"
type="ball"/><geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/></body></body>
</worldbody><equality><connect body1="b" body2="r0" anchor="0 0 1"/>
<joint joint1="q1" joint2="q2" polycoef="0 2 0 0 0"/></equality>
<contact><exclude body1="a" body2="r1"/></contact>
<actuator><motor joint="h" gear="3" ctrlrange="-1 1"/></actuator>
<keyframe><key name="home" qpos="0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>"""
HAND = """<mujoco model="hand"><worldbody><body name="palm"><joint name="p"/>
<geom size=".1"/><site name="grip"/></body></worldbody></mujoco>"""
GROUPS = """<robot name="lamp"><group name="g"><joint name="turn"/><link name="arm"/>
</group><group_state name="home" group="g"><joint name="turn" value="0.5"/>
</group_state>
<disable_collisions link1="base" link2="arm" reason="Adjacent"/></robot>"""


def _with_srdf(path: Path) -> arm.Cell:
    return arm.load(path.with_name("lamp.urdf"), srdf=path)


def _program(path: Path) -> arm.Program:
    return arm.Program.from_json(path.read_bytes())


def sources() -> list[Source]:
    """Return a sound file of each kind that is read, USD and meshes apart."""
    cell = arm.example("pan_tilt")
    pan, tilt = cell.joint_names
    motion = cell.point_to_point(
        [0.0, 0.0], [0.5, 0.4], jerk=9.0, velocity=1.0, acceleration=3.0
    )
    program = arm.Program(
        tasks={
            "main": (
                arm.steps.PTP(to=(0.1, 0.2)),
                arm.steps.Set(signal="on", value=True),
            )
        },
        joints={"main": (pan, tilt)},
        signals={"on": False},
    )
    found = [
        Source("w.sdf", WORLD.encode(), beside=(("arm.sdf", ARM), ("lamp.urdf", LAMP))),
        Source("m.mjcf.xml", MODEL.encode(), beside=(("hand.xml", HAND),)),
        Source("lamp.srdf", GROUPS.encode(), _with_srdf, (("lamp.urdf", LAMP),)),
        Source("program.json", program.to_json().encode(), _program),
    ]
    for ending in (".json", ".npz"):
        data = motion_bytes(motion, ending)
        found.append(Source(f"motion{ending}", data, arm.Motion.read))
    for example in ("pan_tilt", "five_bar", "two_finger_gripper"):
        for each in registry.FORMATS:
            if each.name == "usd":
                continue  # whose library is a process of its own, see test_usd_hostile
            try:
                data, _ = registry.write(
                    arm.example(example).workcell, format=each.name
                )
            except ArmillaryError:
                continue  # such as loops in Actin
            found.append(Source(f"{example}{each.suffixes[0]}", data))
    return found
