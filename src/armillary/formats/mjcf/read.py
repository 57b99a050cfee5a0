"""MJCF to a cell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.mjcf.bodies import SOFT, read_bodies
from armillary.formats.mjcf.body import Body, PlacedElement
from armillary.formats.mjcf.document import (
    MAIN,
    TURNS,
    MjcfDocument,
    read_document,
    with_attributes,
    with_file,
)
from armillary.formats.mjcf.drives import drive_joints
from armillary.formats.mjcf.equality import (
    LoopFound,
    add_couplings,
    couples,
    find_loops,
)
from armillary.formats.mjcf.inertias import LEAST_INERTIA, NO_MASS, Inertias
from armillary.formats.mjcf.joints import FREE, JOINT
from armillary.formats.mjcf.kept import SETTINGS, kept, renamed_references, rest
from armillary.formats.mjcf.keys import HOME, START, as_in_the_file, read_keys
from armillary.formats.mjcf.poses import pose_attributes
from armillary.formats.mjcf.rods import rods_of
from armillary.formats.mjcf.rules import read_rules
from armillary.formats.mjcf.shapes import Shapes
from armillary.formats.mjcf.trees import BodyGroup, Trees, read_trees
from armillary.formats.xml import Element, tag
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY

__all__ = ["GEOM", "read"]

POSE: Final = ("pos", "quat", *TURNS)
GEOM: Final = frozenset(
    {
        *POSE,
        *("name", "type", "size", "fromto", "rgba", "mesh", "material", "class"),
        *("contype", "conaffinity", "group", "mass", "density", "shellinertia"),
        *("hfield", "fitscale"),
    }
)
"""The attributes of a geom that are read; a group only says what is drawn."""

OF_JOINT: Final = frozenset(
    {"name", "class", *(key for row in JOINT.rows for key in row.attributes)}
)
OF_BODY: Final = frozenset({"name", "childclass", "mocap", *POSE})
OF_SITE: Final = frozenset({"name", "class", *POSE, "fromto"})

DRAWN: Final = 2
"""The last group of geoms that MuJoCo draws by default."""

DRAWN_ONLY: Final = ("camera", "light")
LISTED: Final = ("tendon", "sensor", "deformable")
"""Sections whose elements are kept one by one."""

DYNAMIC: Final = ("armature", "damping", "frictionloss", "stiffness")
ASSETS: Final = ("hfield", "skin")


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell of a model; what is not read is kept in its properties.

    Raises FormatError with all diagnostics, if the file is faulty.
    """
    document = read_document(data, path, options.roots, report)
    bodies = read_bodies(document)
    report.raise_if_errors()
    shapes = Shapes(document, options.roots)
    inertias = Inertias(document, shapes, options.roots).of_bodies(bodies)
    rods = list(rods_of(document))
    couplings, left = couples(document, rods)
    pairs = [(each.follower, each.leader) for each in couplings]
    trees = read_trees(document, bodies, inertias, pairs)
    report.raise_if_errors()
    reader = _Reader(document, bodies, trees, shapes)
    reader.warn_of_massless(inertias)
    reader.add_shapes()
    left += add_couplings(couplings, trees, report)
    actuators, driven = drive_joints(document, trees)
    loops, open_ = find_loops(document, bodies, trees, rods)
    report.raise_if_errors()
    closed = {id(found.element) for found in loops}
    held = {id(e) for rod in rods if id(rod.element) in closed for e in rod.used}
    reader.keep_sections(left + open_, actuators, held)
    cell = reader.cell(loops, driven)
    report.raise_if_errors()
    return cell


class _Reader:
    """What is made of the bodies."""

    def __init__(
        self,
        document: MjcfDocument,
        bodies: Sequence[Body],
        trees: Trees,
        shapes: Shapes,
    ) -> None:
        self._document, self._bodies = document, bodies
        self._trees, self._shapes = trees, shapes
        self._report = document.report
        self._notes: list[Property] = []
        self._bodies_by_name = {b.name: k for k, b in enumerate(bodies) if b.name}
        self._bodies_by_name[WORLD] = 0
        self._geoms = {
            geom.element.attributes["name"]
            for body in bodies
            for geom in body.of("geom")
            if "name" in geom.element.attributes
        }

    def warn_of_massless(self, inertias: Sequence[Any]) -> None:
        """Warn of bodies that move and have no mass, which MuJoCo refuses."""
        carried = [0.0 if each is None else each.mass for each in inertias]
        for k, body in enumerate(self._bodies):
            masses = [
                each.element.attributes.get("mass") for each in body.of("inertial")
            ]
            if inertias[k] is None and masses == [str(NO_MASS)]:
                carried[k] = NO_MASS  # as `write` has it where none is known
        moves = [bool(own) for own in self._trees.joints]
        for k in range(len(self._bodies) - 1, 0, -1):
            parent = self._bodies[k].parent
            if not moves[k] and parent > 0:
                carried[parent] += carried[k]
        for k, body in enumerate(self._bodies):
            if moves[k] and carried[k] < LEAST_INERTIA:
                self._report.tolerating("it is read without mass").error(
                    body.element.place,
                    "no-mass",
                    f"{body.element.label} moves but has no mass, which MuJoCo refuses",
                )

    # Links

    def add_shapes(self) -> None:
        """Put the geoms into the links, and keep what else bodies have."""
        added: dict[str, tuple[list[Shape], list[Shape]]] = {}
        for k, body in enumerate(self._bodies):
            at = self._trees.bodies[k]
            if at is None:
                for kind in (*DRAWN_ONLY, *SOFT):
                    for part in body.of(kind):
                        self._keep_part(kind, part, "")
                continue
            name = at.qualified
            visuals, collisions = added.setdefault(name, ([], []))
            for geom in body.of("geom"):
                self._add_geom(geom, name, visuals, collisions)
            self._keep_body(body, k, name)
        for group in self._trees.groups:
            group.links = [
                msgspec.structs.replace(
                    link, visuals=tuple(found[0]), collisions=tuple(found[1])
                )
                if (found := added.get(f"{group.name}/{link.name}"))
                else link
                for link in group.links
            ]

    def _add_geom(
        self,
        geom: PlacedElement,
        link: str,
        visuals: list[Shape],
        collisions: list[Shape],
    ) -> None:
        element, report = geom.element, self._report
        masks = [
            element.number(key, report, default=1.0)
            for key in ("contype", "conaffinity")
        ]
        group = element.number("group", report, default=0.0)
        touches = any(masks)
        if not touches and self._document.settings["discardvisual"]:
            return
        shape = self._shapes.of(geom)
        if shape is None:
            if self._shapes.type_of(element) == "hfield":
                self._keep_part("geom", geom, link)
            return
        is_drawn = not touches or group <= DRAWN
        if touches:
            where = f"collisions {len(collisions)}"
            collisions.append(shape)
        else:
            where = f"visuals {len(visuals)}"
        if is_drawn:
            visuals.append(shape)
        other = rest(element, GEOM)
        if other is not None:
            for key in other.attributes:
                report.unsupported.add(
                    f"{quote(key)} of a <geom>", element.place, Severity.NOTE
                )
            self._notes.append(kept("geom", other, of=link, description=where))

    def _keep_body(self, body: Body, number: int, link: str) -> None:
        """Keep what of a body has no counterpart."""
        report = self._report
        if number > 0:
            other = rest(body.element, OF_BODY)
            if other is not None:
                report.unsupported.add("some attributes of a <body>", other.place)
                self._notes.append(kept("body", other, of=link))
            if body.is_mocap:
                self._notes.append(Property(name="mjcf.mocap", of=link))
        for joint, names in self._trees.joints[number]:
            if joint.type == FREE:
                self._keep_free_joint(joint.element, link)
                continue
            other = rest(joint.element, OF_JOINT)
            if other is not None:
                for key in other.attributes:
                    report.unsupported.add(
                        f"{quote(key)} of a <joint>", other.place, Severity.NOTE
                    )
                self._notes.append(kept("joint", other, of=link, description=names[0]))
        for site in body.of("site"):
            name = site.element.attributes.get("name", "")
            if not name:
                self._keep_part("site", site, link)
            elif (other := rest(site.element, OF_SITE)) is not None:
                frame = self._trees.sites[name][1]
                self._notes.append(kept("site", other, of=link, description=frame))
        for kind in (*DRAWN_ONLY, *SOFT):
            for part in body.of(kind):
                self._keep_part(kind, part, link)

    def _keep_free_joint(self, element: Element, link: str) -> None:
        """Keep the name of a free joint, and what it has beside its freedom."""
        other = rest(element, ("class", "type"))
        if other is None:
            return
        for key in other.attributes:
            if key in DYNAMIC and _is_not_zero(other.attributes[key]):
                self._report.unsupported.add(
                    f"{quote(key)} of a free joint", other.place
                )
        self._notes.append(kept("freejoint", other, of=link))

    def _keep_part(self, kind: str, part: PlacedElement, link: str) -> None:
        """Keep an element of a body with its pose there."""
        severity = Severity.WARNING if kind in SOFT else Severity.NOTE
        self._report.unsupported.add(f"<{kind}>", part.element.place, severity)
        named = with_file(part.element, part.document.settings)
        attributes = dict(named.attributes)
        if kind == "composite":
            # Its place is an offset, and its rotation a quaternion.
            attributes["pos"] = attributes.pop("offset", "0 0 0")
            placed = part._replace(element=with_attributes(named, attributes))
            attributes |= tag("x", pose_attributes(placed.own_pose)).attributes
            attributes["offset"] = attributes.pop("pos")
        is_free = kind in ("light", "composite") or "fromto" in attributes
        has_angles = bool({"euler", "axisangle"} & attributes.keys())
        if kind == "flexcomp":  # MuJoCo leaves it out of the frames around it
            part = part._replace(pose=IDENTITY)
        if not is_free and (has_angles or not part.pose.is_identity):
            for key in POSE:
                attributes.pop(key, None)
            attributes |= tag("x", pose_attributes(part.own_pose)).attributes
        element = renamed_references(
            with_attributes(part.element, attributes), self._new_name
        )
        if element is not None:
            self._notes.append(kept(kind, element, of=link))

    # What is kept of the model

    def keep_sections(
        self,
        equalities: Sequence[Element],
        actuators: Sequence[Element],
        held: Collection[int],
    ) -> None:
        """Keep the sections that have no counterpart.

        held: The identities of elements that loops stand for.
        """
        report = self._report
        order = {name: k for k, name in enumerate(SETTINGS)}
        for section in sorted(
            self._document.root.children, key=lambda each: order.get(each.name, -1)
        ):
            if section.name in SETTINGS and (section.attributes or section.children):
                report.unsupported.add(
                    f"<{section.name}>", section.place, Severity.NOTE
                )
                self._notes.append(kept(section.name, section))
        for asset in self._document.sections.get("asset", []):
            if asset.name in ASSETS:
                element = self._document.effective(asset, "asset", MAIN)
                report.unsupported.add(f"<{element.name}>", element.place)
                self._keep_renamed("asset", element)
        for name in LISTED:
            for element in self._document.sections.get(name, []):
                if id(element) in held:
                    continue
                severity = Severity.NOTE if name == "sensor" else Severity.WARNING
                report.unsupported.add(
                    f"<{element.name}> of <{name}>", element.place, severity
                )
                effective = self._document.effective(element, name, MAIN)
                self._keep_renamed(name, effective)
        for element in self._document.sections.get("contact", []):
            if element.name == "pair":
                effective = self._document.effective(element, "contact", MAIN)
                self._keep_renamed("contact", effective)
        for element in equalities:
            self._keep_renamed("equality", element)
        for element in actuators:
            report.unsupported.add(
                f"the control of a <{element.name}> of <actuator>",
                element.place,
                Severity.NOTE,
            )
            self._keep_renamed("actuator", element)

    def _keep_renamed(self, name: str, element: Element) -> None:
        renamed = renamed_references(element, self._new_name)
        if renamed is not None:
            self._notes.append(kept(name, renamed))

    def _new_name(self, kind: str, name: str, element: Element) -> str | None:
        """Return the name that something of the file has in the cell."""
        found: str | None = None
        if kind == "body" and name in self._bodies_by_name:
            at = self._trees.bodies[self._bodies_by_name[name]]
            found = WORLD if at is None else at.qualified
        elif kind == "joint":
            known = self._trees.coordinates().get(name)
            if known is not None:
                found = f"{known[0].name}/{(known[1] or (name,))[0]}"
        elif kind == "site" and name in self._trees.sites:
            at, frame = self._trees.sites[name]
            found = f"{at.group.name}/{frame}"
        elif kind == "geom" and name in self._geoms:
            found = name
        if found is None:
            self._report.tolerating("it is left out").error(
                element.place,
                f"unknown-{ {'body': 'link', 'site': 'frame'}.get(kind, kind) }",
                f"{element.label} names the {kind} {quote(name)}, which does not exist",
            )
        return found

    # The cell

    def cell(self, loops: Sequence[LoopFound], driven: set[str]) -> Workcell:
        """Return the cell of all manipulators."""
        document, groups = self._document, self._trees.groups
        if not groups:
            message = "the model has no body, and the world is empty"
            self._report.error(document.root.place, "no-links", message)
            self._report.raise_if_errors()
        if loops and document.sections.get("actuator"):
            self._mark_passive(loops, driven)
        coupled = {
            f"{group.name}/{link.coordinate}"
            for group in groups
            for link in group.links
            if link.coupling is not None
        }
        postures, notes = read_keys(document, self._bodies, self._trees, coupled)
        manipulators = [self._manipulator(g, postures[g.name]) for g in groups]
        starts = as_in_the_file(self._trees, coupled)
        manipulators, between = self._closed(manipulators, loops, starts)
        name = manipulators[-1].name
        if len(manipulators) > 1:
            name = document.root.attributes.get("model", "") or name
        cell = Workcell(
            name=name,
            manipulators=tuple(manipulators),
            mounts=tuple(g.mount for g in groups if g.mount is not None),
            loops=tuple(between),
            properties=tuple(sorted([*self._notes, *notes], key=_kind_and_place)),
        )
        rules = read_rules(document, self._bodies, self._trees, cell)
        return cell.replace(rules=rules)

    def _mark_passive(self, loops: Sequence[LoopFound], driven: set[str]) -> None:
        """Mark the joints without actuators and springs; loops determine some of them.

        A spring holds its joint, so that the joint may be chosen freely.
        """
        inside = {
            end.partition("/")[0]
            for each in loops
            for end in (each.loop.a, each.loop.b)
        }
        active = {
            f"{group.name}/{name}"
            for joint, (group, names, _) in self._trees.coordinates().items()
            if joint in driven
            for name in names
        }
        for group in self._trees.groups:
            if group.name in inside:
                group.links = [
                    msgspec.structs.replace(link, passive=True)
                    if link.moves
                    and link.coupling is None
                    and link.dynamics.stiffness == 0.0
                    and f"{group.name}/{link.coordinate}" not in active
                    else link
                    for link in group.links
                ]

    def _manipulator(
        self, group: BodyGroup, postures: Sequence[Posture]
    ) -> Manipulator:
        names = {each.name for each in postures}
        home = next((name for name in (HOME, START) if name in names), "")
        return Manipulator(
            name=group.name,
            links=tuple(group.links),
            postures=tuple(postures),
            home=home,
        )

    def _closed(
        self,
        manipulators: list[Manipulator],
        loops: Sequence[LoopFound],
        starts: Mapping[str, Posture],
    ) -> tuple[list[Manipulator], list[Closure | Rod]]:
        """Return manipulators with their loops closed, and the loops between them.

        starts: The postures in which the file has the bodies.
        """
        between: list[Closure | Rod] = []
        own: dict[str, list[tuple[LoopFound, Closure | Rod]]] = {}
        for found in loops:
            named = (found.loop.a, found.loop.b, found.loop.joint)
            owners = {each.partition("/")[0] for each in named if each}
            if len(owners) > 1:
                between.append(found.loop)
                continue
            (owner,) = owners
            a, b = (end.partition("/")[2] for end in (found.loop.a, found.loop.b))
            bare = msgspec.structs.replace(found.loop, a=a, b=b)
            if isinstance(bare, Rod):
                by = bare.by.removeprefix(f"{owner}/")
                bare = msgspec.structs.replace(bare, by=by)
            own.setdefault(owner, []).append((found, bare))
        closed: list[Manipulator] = []
        for each in manipulators:
            mine = own.get(each.name, [])
            bare_loops = tuple(loop for _, loop in mine)
            made, why = _assembled(each, bare_loops)
            if why and each.home:
                # A keyframe of a simulation leaves gaps; that called `start`, or the
                # bodies as the file has them, may have none.
                others = [p for p in each.postures if p.name != START]
                further = {
                    "home is where the file has them": (*others, starts[each.name])
                }
                if len(others) < len(each.postures) and each.home != START:
                    further = {"home is its posture 'start'": each.postures, **further}
                for what, postures in further.items():
                    at_start = each.replace(postures=postures, home=START)
                    again, still = _assembled(at_start, bare_loops)
                    if not still:
                        self._report.tolerating(what).error(
                            mine[0][0].element.place,
                            "bad-loop",
                            f"the loops of {quote(each.name)} cannot be closed in "
                            f"{quote(each.home)}: {why}",
                        )
                        made, why = again, ""
                        break
            if why:
                self._report.guessing("it is read as an open tree").error(
                    mine[0][0].element.place,
                    "bad-loop",
                    f"the loops of {quote(each.name)} cannot be closed: {why}",
                )
            closed.append(made)
        return closed, between


def _assembled(
    manipulator: Manipulator, loops: tuple[Closure | Rod, ...]
) -> tuple[Manipulator, str]:
    """Return a manipulator with loops; else without, and why they cannot be closed."""
    try:
        return manipulator.replace(loops=loops), ""
    except ModelError as error:
        return manipulator, str(error).removesuffix(".")


def _kind_and_place(note: Property) -> tuple[str, str, str]:
    return note.name, note.of, note.description


def _is_not_zero(text: str) -> bool:
    return any(word.strip("0.+-") for word in text.split())
