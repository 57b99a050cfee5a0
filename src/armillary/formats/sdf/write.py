"""Cells to SDF 1.11: worlds, or one model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import ALL, FEATURES, Held, fields_of, report_losses
from armillary.formats.inertia import central_inertia
from armillary.formats.joint_axis import HELD_BY_LINES
from armillary.formats.mesh.words import PARTED, split_part, split_reference
from armillary.formats.names import FreeNames
from armillary.formats.open_loops import report_open_loops
from armillary.formats.sdf.elements import (
    BARE,
    BARE_MOMENT,
    ELEMENTS,
    NAMESPACE,
    SHAPES,
    pose_element,
)
from armillary.formats.sdf.joint_export import (
    LEG,
    ExportedJoint,
    exported_joints,
)
from armillary.formats.sdf.scopes import SEPARATOR, WORLD_FRAME
from armillary.formats.sdf.write_loops import (
    ClosedLoop,
    closure_element,
    loop_plan,
    rod_elements,
)
from armillary.formats.xml import Element, tag, to_text
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.link_pattern import links_of
from armillary.model.loops.loop import Closure
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.shape import Shape
from armillary.model.shapes import Cone, HalfSpace, Mesh
from armillary.model.workcell import DEFAULT_RULES, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import norm

__all__ = ["held_features", "write"]

VERSION: Final = "1.11"
"""The first version with cones and with joints that follow others."""

TURN: Final = 2.0 * math.pi
DEFAULT_NAME: Final = Workcell().name
LIMITS: Final = ("lower", "upper", "effort", "velocity")
NO_PRODUCTS: Final = dict.fromkeys(("ixy", "ixz", "iyz"), 0.0)


def held_features() -> Held:
    """Return what SDF holds of a cell."""
    shapes = (kind.__name__ for kind in SHAPES.values())
    return {
        **HELD_BY_LINES,
        "Screw": ALL,
        "couplings": ALL,
        "passive joints": ALL,
        "closed loops": "rods, and those of joints of SDF",
        "names of joints": ALL,
        **fields_of(Limits, LIMITS),
        **fields_of(JointDynamics, JointDynamics.__struct_fields__),
        "masses": ALL,
        "frames": ALL,
        "primary frames": "in the poses",
        "visuals": ALL,
        "collision shapes": ALL,
        **dict.fromkeys(shapes, ALL),
        "Cone": "with a point",
        "HalfSpace": "for collisions",
        "colours": "of visuals",
        "names of shapes": ALL,
        "several manipulators": ALL,
        "mounts": ALL,
        "movable bases": "on what stands still",
        "postures": "in which loops are closed",
        "home": "in which loops are closed",
        "collision rules": "that a robot or a link is tested against itself",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the SDF of a cell: a model of a cell that is called as its manipulator.

    A cell without manipulators is an empty world. Raises FormatError for a cell with a
    joint that SDF cannot hold.
    """
    writer = _SdfWriter(cell, report)
    text = to_text(writer.document())
    report.raise_if_errors()
    return text.encode()


class _SceneNames:
    """Names that SDF takes in one scope, and those in the cell where they differ."""

    def __init__(self) -> None:
        self._free = FreeNames({WORLD_FRAME})
        self._of: dict[tuple[str, str], str] = {}

    def new(self, kind: str, name: str, wanted: str = "") -> str:
        """Return a free name for something of a kind that is called so in the cell.

        wanted: What it is called in the file, if that is free.
        """
        plain = (wanted or name).replace(SEPARATOR, "__") or kind
        if plain.startswith("__") and plain.endswith("__"):
            plain = f"_{plain.strip('_') or kind}_"
        free = self._free.derive(plain)
        self._of[kind, name] = free
        return free

    def derive(self, name: str) -> str:
        """Return a free name for something that the cell does not name."""
        return self._free.derive(name)

    def of(self, kind: str, name: str) -> str:
        """Return the name that was made."""
        return self._of[kind, name]

    def known(self, name: str) -> str:
        """Return the name of a link or frame."""
        return self._of.get(("link", name)) or self._of["frame", name]


def _named(name: str, written: str) -> dict[str, str | None]:
    """Return the fields of a name, and of that in the cell if it is another one."""
    return {"name": written, "as_": None if name == written else name}


class _SdfWriter:
    """Makes the elements of a cell."""

    def __init__(self, cell: Workcell, report: Report) -> None:
        self._cell = cell
        self._report = report
        self._unsupported = report.unsupported
        self._names = _SceneNames()
        self._tested = self._tested_with_themselves()
        self._bare = 0
        self._is_single = len(cell.manipulators) == 1 and cell.name in (
            DEFAULT_NAME,
            cell.manipulators[0].name,
        )
        self._scopes: dict[str, _SceneNames] = {}
        self._joints: dict[str, list[ExportedJoint]] = {}
        self._outer: list[Element] = []
        report_losses(cell, held_features(), report)
        self._plan = loop_plan(cell)
        own, between = self._plan.own, bool(self._plan.between)
        report_open_loops(
            cell,
            report,
            is_written=lambda owner, _: owner in own if owner else between,
        )
        self._report_postures()

    def document(self) -> Element:
        """Return the root element."""
        cell = self._cell
        needed: dict[str, set[str]] = {m.name: set() for m in cell.manipulators}
        for mount in cell.mounts:
            owner, _, frame = mount.on.partition("/")
            needed.setdefault(owner, set()).add(frame)
        for loop in cell.loops:
            for end in (loop.a, loop.b):
                owner, _, frame = end.partition("/")
                needed[owner].add(frame)
        for m in cell.manipulators:
            self._names.new("model", m.name)
            self._joints[m.name] = exported_joints(
                m,
                self._report,
                needed=needed[m.name],
                at=self._plan.positions.get(m.name, {}),
                legs=self._legs(m),
            )
            self._scopes[m.name] = _scope_names(m, self._joints[m.name])
        models = [self._model(m) for m in cell.manipulators]
        fixed = [j for m in cell.manipulators if (j := self._mount_joint(m))]
        fixed += self._outer
        contents = models
        if not self._is_single:
            written = cell.name or WORLD_FRAME
            contents = [tag("world", {"name": written}, *models, *fixed)]
        self._report_bare()
        attributes = {"version": VERSION, "xmlns:armillary": NAMESPACE}
        return tag("sdf", attributes, *contents)

    def _report_bare(self) -> None:
        if self._bare:
            links = "links have" if self._bare > 1 else "link has"
            self._report.note(
                NOWHERE,
                "no-inertia",
                f"{self._bare} {links} no inertia; beside others that have one it is "
                f"{BARE['mass']:g} kg, else simulators take 1 kg for each",
            )

    def _tested_with_themselves(self) -> set[str]:
        """Return the manipulators, and the links, that are tested with their own."""
        rules, expected = self._cell.rules, DEFAULT_RULES
        own: set[str] = set()
        for m in self._cell.manipulators:
            whole = links_of(m.name)
            of_links = [f"{m.name}/{link.name}" for link in m.links]
            for rule in rules.rules:
                if rule.tested and rule.where == "apart" and rule.b == whole:
                    own |= {rule.a} & {whole, *of_links}
            if whole in own:
                expected = expected.include_self(m.name)
            for link in of_links if whole not in own else ():
                if link in own:
                    expected = expected.include(link, whole, where="apart")
        if rules != expected:
            self._unsupported.add(FEATURES["collision rules"].what)
        return own

    # Models

    def _model(self, m: Manipulator) -> Element:
        names = self._scopes[m.name]
        base = m.links[m.base]
        mount = self._cell.mounted.get(m.name, Mount(manipulator=m.name, bolted=False))
        pose = mount.pose @ base.joint.precursor
        relative_to = "" if mount.on == WORLD else self._frame(mount.on)
        is_world = _is_world(m, mount)
        joints = self._joints[m.name]
        joint_names = {j.name: names.of("joint", j.name) for j in joints}
        parts: list[Element] = []
        moves = any(j.type != "fixed" for j in joints)
        is_held = mount.bolted and mount.on == WORLD and not is_world
        is_static = is_held and not moves and not m.loops
        rods = self._leg_rods(m, names)
        if mount.on != WORLD and not mount.bolted:
            self._check_standing(m, mount)
        if not is_world:
            parts.append(self._link(m, base, names, IDENTITY, ""))
        for joint in joints:
            parent = joint.parent
            at = "" if is_world and parent == base.name else names.known(parent)
            X_PC = joint.in_parent
            if joint.type == LEG:
                # It slides out of the link of its rod.
                at = rods[joint.link.name]
            on = names.known(parent) if joint.type == LEG else ""
            parts.append(self._link(m, joint.link, names, X_PC, at, on))
        parts += _frames(m, names)
        if is_held and not is_static:
            ends = {"parent": WORLD_FRAME, "child": names.known(base.name)}
            name = names.new("mount", f"{base.name}_mount")
            parts.append(
                ELEMENTS.write("joint", {"name": name, "type": "fixed", **ends})
            )
        leaders = _leaders(joints, joint_names)
        for joint in joints:
            at = WORLD_FRAME if is_world and joint.parent == base.name else None
            parent = at or names.known(joint.parent)
            if joint.type == LEG:
                parent = rods[joint.link.name]
            child = names.known(joint.link.name)
            ends = {"parent": parent, "child": child}
            parts.append(self._joint(joint, joint_names, leaders, ends))
        parts += self._loops(m, names, base.name if is_world else None)
        fields = {
            **_named(m.name, self._names.of("model", m.name)),
            "posture": m.home if m.name in self._plan.positions else "",
            "static": True if is_static else None,
            "self_collide": links_of(m.name) in self._tested,
        }
        return ELEMENTS.write("model", fields, *pose_element(pose, relative_to), *parts)

    def _loops(
        self, m: Manipulator, names: _SceneNames, world: str | None
    ) -> Iterator[Element]:
        """Yield what closes the loops of a manipulator, and those to others.

        world: The name of its base, if that is the world.
        """
        for number, loop in enumerate(self._plan.own.get(m.name, ())):
            ends = tuple(
                WORLD_FRAME if end == world else names.known(end)
                for end in (loop.loop.a, loop.loop.b)
            )
            name = names.of("loop", str(number))
            leg = names.known(loop.leg.name) if loop.leg else ""
            yield from self._closing(m, loop, name, ends, names, leg)
        for number, loop in enumerate(self._plan.between):
            if loop.loop.a.partition("/")[0] == m.name:
                yield from self._closing_between(m, loop, number, names)

    def _frame(self, qualified: str) -> str:
        """Return a frame of a manipulator by its name in the world."""
        owner, _, frame = qualified.partition("/")
        model = self._names.of("model", owner)
        return f"{model}{SEPARATOR}{self._scopes[owner].known(frame)}"

    def _mount_joint(self, m: Manipulator) -> Element | None:
        """Return the joint that holds a manipulator on another one."""
        mount = self._cell.mounted.get(m.name)
        if mount is None or mount.on == WORLD or not mount.bolted:
            return None
        base = self._scopes[m.name].known(m.links[m.base].name)
        child = f"{self._names.of('model', m.name)}{SEPARATOR}{base}"
        name = self._names.new("joint", f"{m.name}_mount")
        fields = {"name": name, "type": "fixed"}
        ends = {"parent": self._frame(mount.on), "child": child}
        return ELEMENTS.write("joint", fields | ends)

    def _check_standing(self, m: Manipulator, mount: Mount) -> None:
        """Warn of a free part on something that moves, along with it."""
        owner = self._cell.manipulators[self._cell.number(mount.on.partition("/")[0])]
        below = self._cell.mounted.get(owner.name)
        is_fixture = not any(link.moves for link in owner.links)
        if not (is_fixture and below is not None and below.bolted):
            what = f"that {quote(m.name)} moves with {quote(mount.on)} below it"
            self._unsupported.add(what)

    # Links

    def _link(
        self,
        m: Manipulator,
        link: Link,
        names: _SceneNames,
        pose: Pose,
        at: str,
        on: str = "",
    ) -> Element:
        name, link_name = names.known(link.name), f"{m.name}/{link.name}"
        shapes = [
            *self._shapes("visual", link.visuals, link.primary),
            *self._shapes("collision", link.collisions, link.primary),
        ]
        if not link.primary.is_identity:
            self._report.note(
                NOWHERE,
                "primary-frame",
                f"the poses in link {quote(name)} hold its primary frame too",
            )
        parts = [*pose_element(pose, at), *self._inertial(m, link, name), *shapes]
        fields: dict[str, Any] = _named(link.name, name)
        fields["self_collide"] = True if link_name in self._tested else None
        fields["on"] = on
        return ELEMENTS.write("link", fields, *parts)

    @staticmethod
    def _bare_inertial(m: Manipulator) -> list[Element]:
        """Return the inertia of a link without one: none if no link has any."""
        if all(link.inertia is None for link in m.links):
            return []
        moments = dict.fromkeys(("ixx", "iyy", "izz"), BARE_MOMENT)
        inertia = ELEMENTS.write("inertia", {**NO_PRODUCTS, **moments})
        return [ELEMENTS.write("inertial", BARE, inertia)]

    def _inertial(self, m: Manipulator, link: Link, name: str) -> list[Element]:
        inertia = central_inertia(link, name, self._report)
        if inertia is None:
            self._bare += 1
            return self._bare_inertial(m)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.moments
        moments = {"ixx": xx, "iyy": yy, "izz": zz, "ixy": xy, "ixz": xz, "iyz": yz}
        return [
            ELEMENTS.write(
                "inertial",
                {"mass": inertia.mass},
                *pose_element(Pose.translation(*inertia.centre)),
                ELEMENTS.write("inertia", moments),
            )
        ]

    def _shapes(
        self, kind: str, shapes: tuple[Shape, ...], primary: Pose
    ) -> list[Element]:
        free = FreeNames(set())
        elements: list[Element] = []
        for shape in shapes:
            geometry = self._geometry(kind, shape)
            if geometry is None:
                what = f"a {kind} of type {type(shape).__name__}"
                self._unsupported.add(what)
                continue
            material: list[Element] = []
            if shape.colour is not None and kind == "visual":
                colours = {"diffuse": shape.colour, "ambient": shape.colour}
                material = [ELEMENTS.write("material", colours)]
            elif shape.colour is not None:
                self._unsupported.add("the colour of a collision")
            elements.append(
                ELEMENTS.write(
                    kind,
                    _named(shape.name, free.derive(shape.name or kind)),
                    *pose_element(primary @ shape.pose),
                    ELEMENTS.write("geometry", None, geometry),
                    *material,
                )
            )
        return elements

    @staticmethod
    def _geometry(kind: str, shape: Shape) -> Element | None:
        """Return the element of a shape; None if SDF has no such one."""
        if isinstance(shape, HalfSpace) and kind == "collision":
            return ELEMENTS.write("plane")
        if isinstance(shape, Mesh):
            file, inside = split_reference(shape.file)
            if file.lower().endswith(PARTED) and inside:
                name, center = split_part(inside)
                part = ELEMENTS.write("submesh", name=name, center=center)
                return ELEMENTS.write("mesh", shape, part, file=file)
        if isinstance(shape, Cone) and shape.top != 0.0:
            return None
        return ELEMENTS.of(shape) if type(shape) in SHAPES.values() else None

    # Joints

    def _joint(
        self,
        joint: ExportedJoint,
        names: Mapping[str, str],
        leaders: Mapping[str, tuple[str, str, float]],
        ends: dict[str, str],
    ) -> Element:
        fields: dict[str, Any] = {
            **_named(joint.name, names[joint.name]),
            "type": "prismatic" if joint.type == LEG else joint.type,
            **ends,
        }
        if joint.type == "screw":
            fields["screw_thread_pitch"] = joint.pitch * TURN
        parts: list[Element] = []
        if joint.axis is not None and not joint.axis.after.is_identity:
            parts += pose_element(joint.axis.after.inverse())
        for kind, step in zip(("axis", "axis2"), joint.steps, strict=False):
            fields["motor_inertia"] = step.dynamics.motor_inertia
            fields["gear_ratio"] = step.dynamics.gear_ratio
            limits = {name: getattr(step.limits, name) for name in LIMITS}
            limits["lower"] -= step.at
            limits["upper"] -= step.at
            inside = [
                ELEMENTS.write("xyz", text=_numbers(step.axis)),
                ELEMENTS.write("limit", limits),
            ]
            rest = step.dynamics.rest - step.at if step.dynamics.stiffness else 0.0
            dynamics = ELEMENTS.write("dynamics", step.dynamics, rest=rest)
            if dynamics.children:
                inside.append(dynamics)
            if step.coupling is not None:
                coupling = step.coupling
                of, axis, start = leaders[coupling.of]
                # q + at = m (q_of + at_of) + b of coordinates that count from the file.
                offset = coupling.multiplier * start + coupling.offset - step.at
                followed = {"of": of, "axis": axis, "offset": offset}
                inside.append(ELEMENTS.write("mimic", coupling, **followed))
            marks = {"at": step.at, "passive": step.passive}
            parts.append(ELEMENTS.write(kind, marks, *inside))
        if len(joint.steps) > 1 and any(s.dynamics.motor_inertia for s in joint.steps):
            self._unsupported.add("the motors of a joint of two axes")
        return ELEMENTS.write("joint", fields, *parts)

    # Loops

    def _legs(self, m: Manipulator) -> dict[str, float]:
        """Return how long the rods are that coordinates make longer, in the file."""
        return {
            loop.leg.coordinate: float(norm(loop.X_AB.position))
            for loop in self._plan.own.get(m.name, ())
            if loop.leg is not None
        }

    def _leg_rods(self, m: Manipulator, names: _SceneNames) -> dict[str, str]:
        """Return the links of rods out of which others slide, by the names of those."""
        rods: dict[str, str] = {}
        for number, loop in enumerate(self._plan.own.get(m.name, ())):
            wanted = loop.loop.name or f"{loop.loop.a}_{loop.loop.b}"
            name = names.new("loop", str(number), wanted)
            if loop.leg is not None:
                rods[loop.leg.name] = name
        return rods

    def _closing(
        self,
        m: Manipulator,
        loop: ClosedLoop,
        name: str,
        ends: tuple[str, ...],
        names: _SceneNames,
        leg: str = "",
    ) -> list[Element]:
        """Return the elements that close a loop in a model."""
        if isinstance(loop.loop, Closure):
            return [closure_element(loop, name, ends)]
        self._bare += 1
        inside = self._bare_inertial(m)
        return rod_elements(loop, name, ends, names.derive, leg=leg, inside=inside)

    def _closing_between(
        self, m: Manipulator, loop: ClosedLoop, number: int, names: _SceneNames
    ) -> list[Element]:
        """Return the elements of a loop of the cell in the model of its first frame.

        What is between models is put beside these.
        """
        a, b = loop.loop.a, loop.loop.b
        wanted = loop.loop.name or f"{a}_{b}".replace("/", "_")
        ends = self._frame(a), self._frame(b)
        if isinstance(loop.loop, Closure):
            name = self._names.new("loop", str(number), wanted)
            self._outer.append(closure_element(loop, name, ends))
            return []
        name = names.new("between", str(number), wanted)
        own = names.known(a.partition("/")[2])
        link, inner, _ = rod_elements(
            loop, name, (own, ends[1]), names.derive, inside=self._bare_inertial(m)
        )
        model = self._names.of("model", a.partition("/")[0])
        outer = f"{model}{SEPARATOR}{name}"
        *_, far = rod_elements(loop, outer, ends, self._names.derive)
        self._outer.append(far)
        self._bare += 1
        return [link, inner]

    def _report_postures(self) -> None:
        """Warn of postures, and of homes, that the file does not show."""
        for m in self._cell.manipulators:
            shown = m.home if m.name in self._plan.positions else ""
            others = sum(posture.name != shown for posture in m.postures)
            self._unsupported.add(FEATURES["postures"].what, count=others)
            if m.home != shown:
                self._unsupported.add(FEATURES["home"].what)


def _numbers(values: tuple[float, ...]) -> str:
    return tag("v", {"v": [value + 0.0 for value in values]}).attributes["v"]


def _scope_names(m: Manipulator, joints: list[ExportedJoint]) -> _SceneNames:
    """Return the names of a model, in which joints, links and frames are together."""
    names = _SceneNames()
    written = {m.links[m.base].name, *(joint.link.name for joint in joints)}
    # Bare links that are part of a joint are not there: it may have their name.
    for link in m.links:
        if link.name in written:
            names.new("link", link.name)
    for link in m.links:
        for frame in link.frames:
            names.new("frame", frame.name)
    for joint in joints:
        names.new("joint", joint.name)
    return names


def _is_world(m: Manipulator, mount: Mount) -> bool:
    """Return whether the base is a bare link that stands for the world."""
    base = m.links[m.base]
    is_bare = base == Link(name=WORLD)
    return is_bare and mount == Mount(manipulator=m.name)


def _frames(m: Manipulator, names: _SceneNames) -> Iterator[Element]:
    """Yield the named frames of the links of a manipulator."""
    for link in m.links:
        for frame in link.frames:
            name = _named(frame.name, names.known(frame.name))
            fields = {**name, "attached_to": names.known(link.name)}
            pose = pose_element(link.primary @ frame.pose)
            yield ELEMENTS.write("frame", fields, *pose)


def _leaders(
    joints: list[ExportedJoint], names: Mapping[str, str]
) -> dict[str, tuple[str, str, float]]:
    """Return the joint and the axis of each coordinate, and where that is."""
    return {
        step.name: (names[joint.name], axis, step.at)
        for joint in joints
        for axis, step in zip(("axis", "axis2"), joint.steps, strict=False)
    }
