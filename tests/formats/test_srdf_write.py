from __future__ import annotations

import re
from pathlib import Path

import pytest

from armillary.cell.cell import Cell
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.srdf import FORMAT, collisions
from armillary.formats.srdf.read import read_onto
from armillary.model.group import Group
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.shapes.sphere import Sphere
from armillary.model.workcell import Workcell

BALL = (Sphere(radius=1.0),)
Z = (0.0, 0.0, 1.0)


def chain(name: str, count: int, **given: object) -> Manipulator:
    links = [Link(name="l0", collisions=BALL)]
    for k in range(1, count):
        links.append(
            Link(
                name=f"l{k}",
                parent=f"l{k - 1}",
                joint=Revolute(axis=Z),
                joint_name=f"j{k}",
                passive=k == 2,
                collisions=BALL,
            )
        )
    return Manipulator(name=name, links=tuple(links), **given)  # type: ignore[arg-type]


PROPERTIES = (
    Property(name="srdf.end_effector", of="l3", text='{"name":"tool","group":"arm"}'),
    Property(
        name="srdf.virtual_joint",
        of="l0",
        text='{"name":"root","type":"floating","parent_frame":"map","groups":["arm"]}',
    ),
    Property(
        name="srdf.joint_property",
        of="l1",
        text='{"joint":"j1","name":"weight","value":"<2>"}',
    ),
    Property(name="srdf.sphere", of="l2", numbers=(0.0, 0.1, 0.2, 0.3)),
    Property(name="srdf.sphere", of="l2", numbers=(0.0, 0.0, 0.0, 1e-3)),
    Property(name="srdf.base_pose", of="l0", text="up", numbers=(0, 0, 1, 0, 0, 0, 1)),
)

ROBOT = chain(
    "robot",
    5,
    groups=(
        Group(name="arm", chains=(("l0", "l3"),)),
        Group(name="wrist", joints=("j4",), links=("l3",)),
        Group(name="all", groups=("arm", "wrist")),
    ),
    postures=(
        Posture(name="up", joints=("j2", "j1"), q=(0.1, 1 / 3)),
        Posture(name="bent", joints=("j3", "j4"), q=(-1e-9, 2.0)),
    ),
    properties=PROPERTIES,
)


def bare(manipulator: Manipulator) -> Manipulator:
    """The same without anything that an SRDF says."""
    return chain(manipulator.name, len(manipulator.links)).__class__(
        name=manipulator.name,
        links=tuple(
            Link(
                name=each.name,
                parent=each.parent,
                joint=each.joint,
                joint_name=each.joint_name,
                collisions=each.collisions,
            )
            for each in manipulator.links
        ),
    )


def written(cell: Workcell) -> tuple[str, Report]:
    report = Report()
    return FORMAT.write(cell, report).decode(), report


def told(cell: Workcell) -> list[str]:
    return [str(d) for d in written(cell)[1].diagnostics]


def pairs(cell: Workcell) -> list[tuple[str, str]]:
    found = Cell.of(cell)
    return list(found.pairs(found.home))


RULES = {
    "default": Rules(),
    "everything": Rules.everything(),
    "nothing": Rules.nothing(),
    "self": Rules().include("*", "*"),
    "named": Rules.everything()
    .exclude("robot/l0", "robot/l1", reason="adjacent")
    .exclude("robot/l4", "robot/l0", reason="never")
    .exclude("robot/l3", "robot/l1", reason="because <it> is & will be"),
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_what_is_written_is_read_again(rules: Rules):
    cell = Workcell(name="robot", manipulators=(ROBOT,), rules=rules)
    text, report = written(cell)
    assert not report.count(Severity.WARNING)
    start = Workcell(name="robot", manipulators=(bare(ROBOT),))
    found = Report()
    again = read_onto(start, text.encode(), "a.srdf", found)
    assert not found.count(Severity.WARNING)
    assert again.manipulators == cell.manipulators
    everything = len(rules.rules) == 0 and rules.within
    if not everything:  # an SRDF that disables nothing says nothing of collisions
        assert pairs(again) == pairs(cell)
    assert written(again)[0] == text or everything
    for a, b in (("l0", "l1"), ("l0", "l4"), ("l1", "l3")):
        if rules is RULES["named"]:
            verdicts = [
                Cell.of(each).pairs(Cell.of(each).home).why(a, b)
                for each in (cell, again)
            ]
            assert verdicts[0].reason == verdicts[1].reason


def test_reasons_are_written_as_moveit_has_them():
    rules = RULES["named"].include("robot/l2", "robot/l3")
    text, _ = written(Workcell(name="robot", manipulators=(ROBOT,), rules=rules))
    assert re.findall(
        r'<disable_collisions link1="(.*)" link2="(.*)" reason="(.*)"/>', text
    ) == [
        ("l0", "l1", "Adjacent"),
        ("l0", "l4", "Never"),
        ("l1", "l3", "because &lt;it&gt; is &amp; will be"),
    ]
    assert 'reason="User"' in written(Workcell(manipulators=(chain("a", 3),)))[0]


def test_several_manipulators_are_named_as_in_the_urdf(tmp_path: Path):
    table = Manipulator(name="table", links=(Link(name="top", collisions=BALL),))
    peg = Manipulator(name="peg", links=(Link(name="peg", collisions=BALL),))
    cell = Workcell(
        name="lab",
        manipulators=(ROBOT, table, peg),
        mounts=(
            Mount(manipulator="robot", on="top"),
            Mount(manipulator="peg", on="top", bolted=False),
        ),
    )
    registry.save(cell, tmp_path / "lab.urdf")
    saved = registry.save(cell, tmp_path / "lab.srdf")
    lost = [d for d in saved.diagnostics if d.severity is Severity.WARNING]
    assert [str(d) for d in lost] == [
        "warning[not-kept]: how 'robot' is joined to the world, and the pose of its "
        "base in its postures, is not kept"
    ]
    again, report = registry.read(tmp_path / "lab.urdf", srdf=tmp_path / "lab.srdf")
    assert not [d for d in report.diagnostics if d.place.path.endswith("srdf")]
    assert len(again.manipulators[0].properties) == len(PROPERTIES) - 2
    (robot,) = again.manipulators
    assert [group.name for group in robot.groups] == [
        "robot/arm",
        "robot/wrist",
        "robot/all",
    ]
    assert robot.group_joints("robot/wrist") == ("robot/j3", "robot/j4")
    assert robot.posture("robot/up").q == (0.1, 1 / 3)
    # What stands on the table is fixed there in a URDF, so it is rigid.
    rigid = {("peg/peg", "robot/l0")}
    expected = {(f"lab/{a}", f"lab/{b}") for a, b in {*pairs(cell)} - rigid}
    assert set(pairs(again)) == expected


def test_a_bolted_base_has_a_virtual_joint():
    cell = Workcell(manipulators=(chain("a", 2),), mounts=(Mount(manipulator="a"),))
    text, _ = written(cell)
    again = read_onto(
        Workcell(manipulators=cell.manipulators), text.encode(), "a.srdf", Report()
    )
    assert again.mounts == cell.mounts
    free = Workcell(manipulators=cell.manipulators)
    assert "virtual_joint" not in written(free)[0]


def test_a_posture_in_no_group_gets_one():
    made = chain(
        "a",
        4,
        groups=(Group(name="few", joints=("j1",)), Group(name="up_joints")),
        postures=(Posture(name="up", joints=("j1", "j3"), q=(1.0, 2.0)),),
        home="up",
    )
    cell = Workcell(manipulators=(made,))
    text, report = written(cell)
    assert '<group name="up_joints_2">' in text
    assert [d.code for d in report.diagnostics] == [
        "companion",
        "group-added",
        "not-kept",
        "pairs-listed",
    ]
    start = Workcell(manipulators=(chain("a", 4),))
    again = read_onto(start, text.encode(), "a.srdf", Report())
    assert again.manipulators[0].postures == made.postures


def test_losses_are_reported():
    def lost(cell: Workcell) -> list[str]:
        return [line for line in told(cell) if "warning" in line]

    one = chain("a", 2)
    held = Rules().let_touch("l0", held_by="l1")
    assert lost(Workcell(manipulators=(one,), rules=held)) == [
        "warning[not-kept]: what may touch an attached part is not kept"
    ]
    for name, text in (("end_effector", "{}"), ("virtual_joint", "x"), ("sphere", "")):
        odd = Property(name=f"srdf.{name}", of="l1", text=text)
        (found,) = lost(Workcell(manipulators=(chain("a", 2, properties=(odd,)),)))
        assert f"the property 'srdf.{name}' of 'l1' does not say what" in found


def test_what_makes_no_srdf_is_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(FormatError, match=r"error\[no-robot\]"):
        written(Workcell())
    monkeypatch.setattr(collisions, "MOST_PAIRS", 5)
    with pytest.raises(FormatError, match=r"error\[too-many-pairs\]: 6 pairs"):
        written(Workcell(manipulators=(chain("a", 4),)))


def test_save_knows_the_ending(tmp_path: Path):
    cell = Workcell(name="robot", manipulators=(ROBOT,))
    report = registry.save(cell, tmp_path / "robot.srdf", lossless=True)
    assert [d.code for d in report.diagnostics] == ["companion", "pairs-listed"]
    data, _ = registry.write(cell, format="srdf")
    assert (tmp_path / "robot.srdf").read_bytes() == data
