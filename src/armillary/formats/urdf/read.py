"""URDF to a cell of one manipulator."""

from __future__ import annotations

import os
import re
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.names import FreeNames, Guesses
from armillary.formats.unsupported import Unsupported
from armillary.formats.urdf.bodies import Body, read_body
from armillary.formats.urdf.freedom import free_base, split
from armillary.formats.urdf.hinges import DYNAMICS, SEVERAL, Hinge, read_hinge
from armillary.formats.urdf.materials import Materials
from armillary.formats.urdf.mimics import check_mimics
from armillary.formats.urdf.shapes import Meshes, ShapeReader
from armillary.formats.urdf.tree import check_names, depth_first, root_of
from armillary.formats.xml import Element, Limits, parse, report_unused
from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property
from armillary.model.workcell import WORLD, Mount, Workcell

__all__ = ["read", "sniff"]

# Of simulators and controllers, beside the robot itself.
FOREIGN: Final = ("transmission", "gazebo", "ros2_control", "sensor", "mujoco")
# From these no link or joint comes, expanded or not.
DEFINITIONS: Final = ("xacro:property", "xacro:arg", "xacro:macro")
# No pose of a link is computed from what stands in these.
ASIDE: Final = (*FOREIGN, "material", "visual", "collision", "inertial")
# Reading takes far longer than parsing; no robot has so many.
LIMITS: Final = Limits(elements=150_000)
VERSIONS: Final = ("1.0", "1.1", "1.2")
OF_SRDF: Final = {"group", "disable_collisions", "end_effector", "virtual_joint"}

# What may stand before the root element, and how it ends.
_TAG: Final = re.compile(rb"\s*(<\?|<!--|<!DOCTYPE|<robot(?=[\s/>]))")
_ENDS: Final = {b"<?": b"?>", b"<!--": b"-->", b"<!DOCTYPE": b">"}
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def sniff(data: bytes) -> bool:
    """Return whether the first element of a document is `<robot>`."""
    if data.startswith(_UTF_16):
        data = data[: 1 << 16].decode("utf-16", errors="replace").encode()
    place = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    while True:
        start = _TAG.match(data, place)
        if start is None:
            return False
        end = _ENDS.get(start[1])
        if end is None:
            return True
        found = data.find(end, start.end())
        if found < 0:
            return False
        place = found + len(end)


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the robot of a URDF as a cell with one manipulator.

    Raises FormatError with all that was found, if the file is faulty.
    """
    robot = parse(data, path, LIMITS, report=report)
    _refuse_other_kinds(robot, report)
    report.raise_if_errors()
    unsupported, guesses = Unsupported(report), Guesses()
    shapes = ShapeReader(
        materials=Materials(robot, report, unsupported, guesses),
        meshes=Meshes(path, options.roots, report),
        report=report,
        unsupported=unsupported,
        guesses=guesses,
    )
    name = _name(robot, path, report)
    bodies: list[Body] = []
    for link in robot.children_named("link"):
        report.raise_if_many()
        bodies.append(read_body(link, shapes, unsupported, report))
    hinges: list[Hinge] = []
    for joint in robot.children_named("joint"):
        report.raise_if_many()
        hinges.append(read_hinge(joint, unsupported, guesses, report))
    unsupported.add_children(robot, FOREIGN)
    unsupported.add_prefixed(robot)
    report_unused(robot, report)
    unsupported.report_all()
    are_named = check_names(bodies, hinges, guesses, report)
    unlimited, free = check_mimics(hinges, guesses, report)
    # With wrong names, links would seem to be loose that are not.
    root = root_of(bodies, hinges, report) if are_named else None
    report.raise_if_errors()
    assert root is not None, "a tree without a root was let pass"
    hinges = [h.without_range() if h.name in unlimited else h for h in hinges]
    hinges = [h.moving_itself() if h.name in free else h for h in hinges]
    return _cell(name, root, bodies, hinges, report)


def _refuse_other_kinds(robot: Element, report: Report) -> None:
    """Report a document that is no URDF, or not yet one."""
    if robot.name != "robot":
        report.error(
            robot.place,
            "not-urdf",
            f"the root element is {robot.label}, not <robot>",
        )
        return
    if _refuse_xacro(robot, report):
        return
    if not any(child.name == "link" for child in robot.children):
        names = {child.name for child in robot.children}
        hint = ""
        if not names:
            hint = "The file may be an output of xacro for a file that only has macros."
        elif names & OF_SRDF:
            hint = "This looks like an SRDF, the companion of a URDF."
        report.error(robot.place, "no-links", "the robot has no link", hint=hint)


def _refuse_xacro(robot: Element, report: Report) -> bool:
    """Report, once, what xacro has not expanded; return whether that is an error."""
    ignored = report.tolerating("no motion depends on it")
    is_told = False
    pending = [(child, False) for child in reversed(robot.children)]
    while pending:
        element, is_aside = pending.pop()
        is_aside |= element.name in ASIDE
        is_harmless = is_aside or element.name in DEFINITIONS
        what = "" if element.name in FOREIGN else _macro(element)
        if what and not (is_harmless and is_told):
            before = report.count(Severity.ERROR)
            (ignored if is_harmless else report).error(
                element.place,
                "xacro",
                f"{what} is not expanded",
                hint="Run xacro over the file and load the result.",
            )
            is_told = True
            if report.count(Severity.ERROR) > before:
                return True
        if element.name not in (*FOREIGN, *DEFINITIONS):
            pending.extend((child, is_aside) for child in reversed(element.children))
    return False


def _macro(element: Element) -> str:
    """Return what of an element is for xacro to expand, empty without such a thing."""
    if element.name.startswith("xacro:"):
        return element.label
    for key, value in element.attributes.items():
        if "${" in value or "$(" in value:
            return f"attribute {quote(key)} of {element.label}"
    return ""


def _name(robot: Element, path: str, report: Report) -> str:
    """Return the robot's name as a manipulator may have it."""
    version = robot.attribute("version")
    if version is not None and version not in VERSIONS:
        report.note(
            robot.place,
            "unknown-version",
            f"the version {quote(version)} is not one of {', '.join(VERSIONS)}",
        )
    given = robot.attribute("name")
    name = given or os.path.basename(path).split(".")[0] or "robot"
    name = name.replace("/", "_")
    if name == WORLD:
        name = f"{WORLD}_robot"
    if not given:
        message = f"<robot> has no name; it is called {quote(name)}"
        report.warning(robot.place, "missing-name", message)
    elif name != given:
        message = f"the name {quote(given)} cannot be kept; it becomes {quote(name)}"
        report.warning(robot.place, "renamed", message)
    return name


def _cell(
    name: str,
    root: str,
    bodies: list[Body],
    hinges: list[Hinge],
    report: Report,
) -> Workcell:
    """Return the cell of a faultless tree, its links depth first."""
    by_name = {body.name: body for body in bodies}
    carrier = {hinge.child: hinge for hinge in hinges}
    on: dict[str, list[Hinge]] = {}
    for hinge in hinges:
        on.setdefault(hinge.parent, []).append(hinge)
    free = free_base(by_name[root], on.get(root, []), report)
    mounts: tuple[Mount, ...] = ()
    if free is not None:
        root = free.child
        if not free.origin.is_identity:
            mounts = (Mount(manipulator=name, pose=free.origin),)
    children = {
        parent: [hinge.child for hinge in found] for parent, found in on.items()
    }
    link_names = FreeNames(set(by_name))
    joint_names = FreeNames({hinge.name for hinge in hinges})
    properties: list[Property] = []
    links: list[Link] = [_with_body(Link(name=root), by_name[root])]
    for child in depth_first(root, children)[1:]:
        hinge = carrier[child]
        if hinge.type in SEVERAL:
            links.extend(split(hinge, link_names, joint_names, report))
        else:
            links.append(_link(hinge))
        links[-1] = _with_body(links[-1], by_name[child])
        if hinge.dynamics and hinge.type != "fixed":
            properties.append(Property(name=DYNAMICS, of=child, numbers=hinge.dynamics))
    return Workcell(
        name=name,
        manipulators=(
            Manipulator(name=name, links=tuple(links), properties=tuple(properties)),
        ),
        mounts=mounts,
    )


def _link(hinge: Hinge) -> Link:
    """Return the link behind a joint with at most one coordinate, without its body."""
    return Link(
        name=hinge.child,
        parent=hinge.parent,
        joint=_joint(hinge),
        joint_name=hinge.name,
        limits=hinge.limits,
        coupling=hinge.mimic,
    )


def _joint(hinge: Hinge) -> Joint:
    if hinge.type == "fixed":
        return Fixed(precursor=hinge.origin)
    kind = Prismatic if hinge.type == "prismatic" else Revolute
    return kind(axis=hinge.axis, precursor=hinge.origin)


def _with_body(link: Link, body: Body) -> Link:
    return msgspec.structs.replace(
        link,
        inertia=body.inertia,
        visuals=body.visuals,
        collisions=body.collisions,
    )
