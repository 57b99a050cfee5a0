from __future__ import annotations

import pytest

from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, Leftover, parse, report_unused, unused

SOURCE = b"""<robot name='arm' xmlns:x='u' xmlns='v'>
  <joint name='elbow' type='revolute'>
    <origin xyz='0 0 1' rpy='0 0'/>
    <limit lower='-1' upper='1,5'/>
    <limit/>
    <Pos>1 2 3</Pos>
  </joint>
  stray
</robot>"""


@pytest.fixture
def robot() -> Element:
    return parse(SOURCE, "arm.urdf")


@pytest.fixture
def joint(robot) -> Element:
    return robot.children[0]


@pytest.fixture
def report() -> Report:
    return Report()


def texts(report: Report) -> list[str]:
    return [str(diagnostic) for diagnostic in report.diagnostics]


def test_elements_show_what_and_where_they_are(joint):
    assert joint.label == "<joint name='elbow'>"
    assert repr(joint) == "<Element <joint name='elbow'> at arm.urdf:2:3>"


def test_labels_stay_short_and_printable():
    label = Element("a\n", {"name": "\x1b" * 10_000}).label
    assert label.isprintable()
    assert len(label) < 300


def test_walk_visits_parents_before_children_in_document_order(robot):
    names = [element.name for element in robot.walk()]
    assert names == ["robot", "joint", "origin", "limit", "limit", "Pos"]


def test_attributes_are_optional_or_required(joint, report):
    assert joint.attribute("type") == "revolute"
    assert joint.attribute("absent") is None
    assert joint.required_attribute("type", report) == "revolute"
    assert report.diagnostics == ()
    assert joint.required_attribute("absent", report) is None
    assert texts(report) == [
        "arm.urdf:2:3: error[missing-attribute]: "
        "<joint name='elbow'> has no attribute 'absent'"
    ]


def test_numbers_come_from_attributes(joint, report):
    origin = joint.only_child("origin", report)
    assert origin.numbers("xyz", 3, report) == (0, 0, 1)
    assert origin.numbers("xyz", None, report, default=()) == (0, 0, 1)
    assert origin.numbers("absent", 3, report) is None
    assert origin.numbers("absent", 3, report, default=(1, 2, 3)) == (1, 2, 3)
    assert report.diagnostics == ()


def test_bad_numbers_are_reported_and_the_default_stands_in(joint, report):
    origin = joint.only_child("origin", report)
    assert origin.numbers("rpy", 3, report, default=(0, 0, 0)) == (0, 0, 0)
    assert texts(report) == [
        "arm.urdf:3:5: error[wrong-count]: "
        "attribute 'rpy' of <origin> must hold 3 numbers, not 2: '0 0'"
    ]


def test_required_numbers_are_reported_when_they_are_missing(joint, report):
    assert joint.numbers("mass", 1, report, required=True) is None
    assert joint.number("mass", report, required=True) is None
    assert [d.code for d in report.diagnostics] == ["missing-attribute"] * 2


def test_one_number_comes_as_a_float(joint, report):
    limit = joint.children_named("limit")[0]
    assert limit.number("lower", report) == -1.0
    assert limit.number("absent", report) is None
    assert limit.number("absent", report, default=7.0) == 7.0
    assert report.diagnostics == ()
    assert limit.number("upper", report, default=9.0) == 9.0
    assert texts(report)[0].startswith(
        "arm.urdf:4:5: error[bad-number]: "
        "attribute 'upper' of <limit>: '1,5' is not a number. Write a decimal point"
    )


def test_numbers_come_from_text(joint, report):
    pos = joint.only_child("Pos", report)
    assert pos.text_numbers(3, report) == (1, 2, 3)
    assert pos.text_numbers(6, report) is None
    assert "the text of <Pos> must hold 6 numbers, not 3" in texts(report)[0]


def test_children_are_found_by_name(robot, joint, report):
    assert robot.only_child("joint", report) is joint
    assert robot.required_child("joint", report) is joint
    assert robot.only_child("link", report) is None
    assert [e.place.line for e in joint.children_named("limit")] == [4, 5]
    assert joint.children_named("absent") == ()
    assert report.diagnostics == ()


def test_a_second_child_is_reported_where_it_stands(joint, report):
    assert joint.only_child("limit", report) is joint.children[1]
    assert texts(report) == [
        "arm.urdf:5:5: error[repeated-element]: <joint name='elbow'> has more than "
        "one <limit>. Keep one; the first is at line 4."
    ]


def test_a_missing_child_is_reported_where_it_should_be(joint, report):
    assert joint.required_child("axis", report) is None
    assert texts(report) == [
        "arm.urdf:2:3: error[missing-element]: <joint name='elbow'> has no <axis>"
    ]


def test_what_nobody_asked_for_is_listed(robot, joint):
    assert list(unused(robot)) == [
        Leftover("attribute", "name", robot.place),
        Leftover("element", "joint", joint.place),
        Leftover("text", "stray", robot.place),
    ]


def test_looking_is_not_asking(robot):
    before = list(unused(robot))
    assert robot.attributes["name"] == "arm"
    assert robot.text.strip() == "stray"
    assert [child.name for child in robot.children] == ["joint"]
    assert list(unused(robot)) == before


def test_what_was_asked_for_is_not_listed(robot, report):
    robot.attribute("name")
    robot.children_named("joint")
    robot.read_text()
    assert list(unused(robot)) == []


def test_leftovers_are_reported_with_the_likely_name(report):
    root = parse(b"<origin xzy='1'>\n<vusual/>x</origin>", "a.urdf")
    root.attribute("xyz")
    root.children_named("visual")
    report_unused(root, report)
    assert texts(report) == [
        "a.urdf:1:1: warning[unknown-attribute]: "
        "the attribute 'xzy' of <origin> was not understood. Did you mean 'xyz'?",
        "a.urdf:2:1: warning[unknown-element]: "
        "the element 'vusual' of <origin> was not understood. Did you mean 'visual'?",
        "a.urdf:1:1: warning[unknown-text]: "
        "the text 'x' in <origin> was not understood",
    ]


def test_leftovers_like_no_known_name_can_be_notes():
    report = Report()
    element = Element("origin", {"xzy": "0", "concave": "1"})
    element.attribute("xyz")
    report_unused(element, report, asides=("origin",))
    assert [(d.severity.value, d.hint) for d in report.diagnostics] == [
        ("warning", "Did you mean 'xyz'?"),
        ("note", ""),
    ]


def test_leftovers_are_reported_in_all_that_was_read_and_nowhere_else(report):
    lines = (b"<robot>", b"<joint a='1' jerk='2'/>", b"<gazebo b='1'/>", b"<x:y/>")
    root = parse(b"\n".join((*lines, b"<link c='1'/></robot>")), "a.urdf")
    (joint,) = root.children_named("joint")
    joint.attribute("name")
    root.children_named("link")
    foreign = {"robot": ("gazebo",), "joint": ("jerk",)}
    report_unused(root, report, foreign=foreign)
    assert texts(report) == [
        "a.urdf:2:1: warning[unknown-attribute]: "
        "the attribute 'a' of <joint> was not understood",
        "a.urdf:3:1: note[not-kept]: <gazebo> is not kept",
        "a.urdf:4:1: note[not-kept]: <x:y> is not kept",
        "a.urdf:2:1: note[not-kept]: attribute 'jerk' of <joint> is not kept",
    ]
