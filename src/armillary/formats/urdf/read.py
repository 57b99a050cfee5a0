"""URDF to a cell of one manipulator."""

from __future__ import annotations

import os
from typing import Final

import msgspec
from msgspec.structs import replace

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.mimics import check_mimics
from armillary.formats.urdf.joints import (
    SEVERAL,
    JointElement,
    read_joint,
    with_motors,
)
from armillary.formats.urdf.links import ShapeReader, read_links
from armillary.formats.urdf.tree import cell_of, check_names, root_of
from armillary.formats.xml import (
    Element,
    parse,
    report_unused,
)
from armillary.limits import URDF_ELEMENTS
from armillary.model.limits import INFINITE
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell

__all__ = ["read"]

# What simulators, planners and controllers add to elements: attributes and children.
FOREIGN: Final = {
    "robot": ("transmission", "gazebo", "ros2_control", "sensor", "mujoco"),
    "link": (
        *("type", "contact", "sensor", "surface"),
        *("self_filter", "collision_checking"),
    ),
    "joint": (
        *("calibration", "safety_controller", "joint_properties"),
        "hardwareInterface",  # in a transmission
    ),
    "limit": ("deceleration", "jerk"),
    "dynamics": (
        *("D", "K", "mu_coulomb", "mu_viscous", "armature", "rotor_inertia"),
        *("spring_reference", "spring_stiffness", "stiffness"),
    ),
    "actuator": ("hardwareInterface", "motorTorqueConstant"),
    "collision": ("verbose",),
    "material": ("texture",),
}
# These give no link or joint, expanded or not.
XACRO: Final = "xacro:"
MARKS: Final = (b"xacro:", b"${", b"$(", b"&", b"\0")
"""What a file without xacro has none of: also references, and zeros of UTF-16."""
DEFINITIONS: Final = ("xacro:property", "xacro:arg", "xacro:macro")
XACRO_WORDS: Final = frozenset(
    (
        *("arg", "attribute", "call", "element", "if", "include", "insert_block"),
        *("macro", "property", "unless"),
    )
)
"""Elements of xacro that are not calls of macros."""
# No pose of a link depends on what is inside these.
ASIDE: Final = (*FOREIGN["robot"], "material", "visual", "collision", "inertial")
# Reading takes far longer than parsing, and no robot has so many.
VERSIONS: Final = ("1.0", "1.1", "1.2")
OF_SRDF: Final = {"group", "disable_collisions", "end_effector", "virtual_joint"}


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the robot of a URDF as a cell with one manipulator.

    Raises FormatError with all diagnostics, if the file is faulty.
    """
    robot = parse(data, path, elements=URDF_ELEMENTS, report=report)
    _refuse_other_kinds(robot, report, may_be_xacro=any(map(data.__contains__, MARKS)))
    report.raise_if_errors()
    shapes = ShapeReader(robot, path, options.roots, report)
    name = _name(robot, path, report)
    elements = robot.children_named("link")
    links = read_links(elements, shapes, report)
    elements = robot.children_named("joint")
    joints = [read_joint(each, report) for each in report.bounded(elements)]
    joints = with_motors(robot, joints, report)
    asides = ("link", "material", "dynamics", "transmission", "actuator")
    report_unused(robot, report, foreign=FOREIGN, asides=asides)
    are_named = check_names(links, joints, report)
    unlimited, free = check_mimics(joints, report, several=SEVERAL)
    # With wrong names, links would seem to be loose that are not.
    root = root_of(links, joints, report) if are_named else None
    report.raise_if_errors()
    assert root is not None, "without a root there is an error"
    joints = [_without_range(j) if j.name in unlimited else j for j in joints]
    joints = [replace(j, mimic=None) if j.name in free else j for j in joints]
    return cell_of(name, root, links, joints, report)


def _without_range(joint: JointElement) -> JointElement:
    limits = msgspec.structs.replace(joint.limits, lower=-INFINITE, upper=INFINITE)
    return replace(joint, limits=limits)


def _refuse_other_kinds(robot: Element, report: Report, *, may_be_xacro: bool) -> None:
    """Report a document that is not a URDF, or not yet one."""
    if robot.name != "robot":
        report.error(
            robot.place,
            "not-urdf",
            f"the root element is {robot.label}, not <robot>",
        )
        return
    if may_be_xacro and _refuse_xacro(robot, report):
        return
    if not any(child.name == "link" for child in robot.children):
        names = {child.name for child in robot.children}
        hint = ""
        if not names:
            hint = "The file may be the output of xacro for a file with macros only."
        elif names & OF_SRDF:
            hint = "This looks like an SRDF, the companion of a URDF."
        report.error(robot.place, "no-links", "the robot has no link", hint=hint)


def _refuse_xacro(robot: Element, report: Report) -> bool:
    """Report, once, what xacro has not expanded; return whether that is an error."""
    ignored = report.tolerating("no motion depends on it")
    # Where nothing else is left of a xacro file, a call of a macro remains of what was
    # expanded without it, and every reader leaves it out.
    is_source = any(map(_is_source, robot.walk()))
    guessed = (
        report.guessing("it is left out")
        if is_source
        else report.tolerating("it is left out, as by other readers")
    )
    is_reported = False
    pending = [(child, False) for child in reversed(robot.children)]
    while pending:
        element, is_aside = pending.pop()
        is_aside |= element.name in ASIDE
        is_harmless = is_aside or element.name in DEFINITIONS
        what = "" if element.name in FOREIGN["robot"] else _macro(element)
        if what and not (is_harmless and is_reported):
            before = report.count(Severity.ERROR)
            left_out = guessed if element.name.startswith(XACRO) else report
            (ignored if is_harmless else left_out).error(
                element.place,
                "xacro",
                f"{what} is not expanded",
                hint="Run xacro over the file and load the result.",
            )
            is_reported = True
            if report.count(Severity.ERROR) > before:
                return True
        name = element.name
        if name not in FOREIGN["robot"] and not name.startswith(XACRO):
            pending.extend((child, is_aside) for child in reversed(element.children))
    return False


def _is_source(element: Element) -> bool:
    """Return whether an element is one that xacro itself knows, or uses its values."""
    name = element.name.removeprefix(XACRO)
    values = element.attributes.values()
    is_known = name != element.name and name in XACRO_WORDS
    return is_known or any("${" in value or "$(" in value for value in values)


def _macro(element: Element) -> str:
    """Return which part of an element xacro would expand, or nothing."""
    if element.name.startswith(XACRO):
        return element.label
    for key, value in element.attributes.items():
        if "${" in value or "$(" in value:
            return f"attribute {quote(key)} of {element.label}"
    return ""


def _name(robot: Element, path: str, report: Report) -> str:
    """Return the robot's name, changed where a manipulator cannot have it."""
    version = robot.attribute("version")
    if version is not None and version not in VERSIONS:
        report.note(
            robot.place,
            "unknown-version",
            f"the version {quote(version)} is not one of {', '.join(VERSIONS)}",
        )
    written = robot.attribute("name")
    name = written or os.path.basename(path).split(".")[0] or "robot"
    name = name.replace("/", "_")
    if name == WORLD:
        name = f"{WORLD}_robot"
    if not written:
        message = f"<robot> has no name; it is called {quote(name)}"
        report.warning(robot.place, "missing-name", message)
    elif name != written:
        message = f"the name {quote(written)} cannot be kept; it becomes {quote(name)}"
        report.warning(robot.place, "renamed", message)
    return name
