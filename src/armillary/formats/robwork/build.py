"""Nodes to one manipulator: which of them are links, and which only named frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.names import FreeNames
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.node import Node
from armillary.formats.robwork.notes import TYPE
from armillary.model.axis import Z
from armillary.model.frame import Frame
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import UNLIMITED
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property

__all__ = ["BASE", "Builder", "manipulator"]

BASE: Final = "Base"
"""The name of a base that RobWork does not have."""


class Builder:
    """Makes the links of one manipulator from a tree of nodes.

    The first node, or a link of its own where that one moves, is the base. A node that
    only marks a place becomes a named frame of the link that it hangs on; every other
    one becomes a link, and a joint with several coordinates becomes several.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        loads: Mapping[str, int],
        desk: Desk,
        end: Node | None = None,
    ) -> None:
        """Hold the nodes.

        loads: How many frames hang on each, by its full name, here and elsewhere.
        end: Which node is the end of a device though its type does not say so.
        """
        self._end = end
        self._desk = desk
        self._nodes = nodes
        self._own = {node.full_name: node for node in nodes}
        self._merged = _pairs(nodes, loads)
        self._names = FreeNames({node.local_name for node in nodes})
        self.properties: list[Property] = []
        self.coordinates: dict[str, tuple[str, ...]] = {}
        self._links: list[Link] = []
        self._taken: set[str] = set()
        self._frames: dict[str, list[Frame]] = {}
        self._carriers = {n.parent for n in nodes if n.parent in self._own}

    def links(self, base: Link | None = None) -> tuple[Link, ...]:
        """Return the links.

        base: What nodes stand on whose parents are not among them; by default the first
            node is the base.
        """
        if base is None and self._nodes[0].moves:
            base = Link(name=self._names.derive(BASE))
            self._desk.report.note(
                self._nodes[0].place,
                "base-added",
                f"{self._nodes[0].element.label} is the first frame of its device and "
                f"moves; the base {quote(base.name)} is put in front of it",
            )
        if base is not None:
            self._links.append(base)
        fronts = {joint.full_name for joint in self._merged.values()}
        for node in self._nodes:
            if node.full_name not in fronts:
                self._add(node, base)
        return tuple(map(self._finished, self._links))

    def _finished(self, link: Link) -> Link:
        """Return a link with its frames, and with a name of its joint that is free."""
        changes: dict[str, Any] = {}
        if link.name in self._frames:
            changes["frames"] = tuple(self._frames[link.name])
        if not link.moves and link.name in self._taken:
            changes["joint_name"] = self._names.derive(f"{link.name}_fixed")
        return msgspec.structs.replace(link, **changes) if changes else link

    def _below(self, node: Node, base: Link | None) -> str | None:
        """Return the name of the link that a node hangs on."""
        parent = self._own.get(node.parent)
        if parent is not None:
            return parent.local_name
        return None if base is None else base.name

    def _add(self, node: Node, base: Link | None) -> None:
        front = self._merged.get(node.full_name)
        below = self._below(front or node, base)
        name = node.local_name
        self.properties.extend(
            msgspec.structs.replace(each, of=name) for each in node.notes.all
        )
        is_carrier = front is not None or node.full_name in self._carriers
        if below is not None and node.is_bare and not is_carrier:
            is_end = node.type == "EndEffector"
            frame = Frame(
                name=name, pose=node.pose, end_effector=is_end or node is self._end
            )
            self._frames.setdefault(below, []).append(frame)
            self._keep_type(node, is_told=is_end)
        elif front is not None:
            self._add_pair(front, node, below)
        elif node.moves:
            self._add_joint(node, below)
        else:
            joint = Fixed() if below is None else Fixed(precursor=node.pose)
            self._links.append(
                Link(
                    name=name,
                    parent=below,
                    joint=joint,
                    visuals=tuple(node.visuals),
                    collisions=tuple(node.collisions),
                )
            )
            self._keep_type(node, is_told=below is None)

    def _add_joint(self, node: Node, below: str | None) -> None:
        """Add a link for each coordinate; the last is the frame behind the joint."""
        last = len(node.steps) - 1
        names: list[str] = []
        for k, step in enumerate(node.steps):
            full = f"{node.local_name}{step.suffix}"
            name = node.local_name if k == last else self._names.derive(full)
            own = node.coordinate if last == 0 else name
            self._links.append(
                Link(
                    name=name,
                    parent=names[-1] if names else below,
                    joint=step.joint,
                    joint_name=own if own != name else "",
                    limits=node.limits if k == last else UNLIMITED,
                    coupling=node.coupling,
                    passive=node.passive,
                    visuals=tuple(node.visuals) if k == last else (),
                    collisions=tuple(node.collisions) if k == last else (),
                )
            )
            names.append(name)
        if last == 0:
            self._taken.add(node.coordinate)
        self.coordinates[node.full_name] = (
            (node.coordinate,) if last == 0 else tuple(names)
        )

    def _add_pair(self, joint: Node, frame: Node, below: str | None) -> None:
        """Add the one link that armillary wrote as a joint about z and a frame."""
        X_FM = joint.steps[0].joint.precursor
        turn = frame.pose.inverse()
        kind = Prismatic if joint.type == "Prismatic" else Revolute
        own = joint.coordinate
        self._links.append(
            Link(
                name=frame.local_name,
                parent=below,
                joint=kind(axis=turn.rotate(Z), precursor=X_FM @ frame.pose),
                joint_name=own if own != frame.local_name else "",
                limits=joint.limits,
                coupling=joint.coupling,
                passive=joint.passive,
                visuals=tuple(frame.visuals),
                collisions=tuple(frame.collisions),
            )
        )
        self._taken.add(own)
        self.coordinates[joint.full_name] = (own,)

    def _keep_type(self, node: Node, *, is_told: bool) -> None:
        """Keep the type of a frame that is not fixed, where the link does not tell."""
        if is_told or not (node.is_movable or node.type != "Fixed"):
            return
        name = node.local_name
        self.properties.append(Property(name=TYPE, of=name, text=node.type))
        if node.is_movable:
            self._desk.unsupported.add(
                "that a movable frame inside of a device can be moved", node.place
            )


def _pairs(nodes: Sequence[Node], loads: Mapping[str, int]) -> dict[str, Node]:
    """Return the joint in front of each frame that is one link with it.

    Armillary writes such pairs; nothing but the frame hangs on the joint.
    """
    own = {node.full_name: node for node in nodes}
    found: dict[str, Node] = {}
    for frame in nodes:
        joint = own.get(frame.parent)
        if (
            joint is not None
            and joint.notes.coordinate
            and len(joint.steps) == loads[joint.full_name] == 1
            and joint.is_untouched
            and type(joint.steps[0].joint) in {Revolute, Prismatic}
            and frame.type == "Fixed"
            and not frame.is_movable
            and frame.pose.position == (0.0, 0.0, 0.0)
        ):
            found[frame.full_name] = joint
    return found


def manipulator(
    name: str,
    links: tuple[Link, ...],
    properties: Sequence[Property],
    place: Place,
    desk: Desk,
) -> Manipulator | None:
    """Return a manipulator, or None after an error that tells which rules it breaks.

    Limits of followers that leave a joint nothing are left out: RobWork does not heed
    them.
    """
    try:
        made = Manipulator(name=name, links=links, properties=tuple(properties))
    except ModelError as error:
        message = str(error).removesuffix(".").replace("\n  ", " ")
        desk.report.error(place, "bad-device", message)
        return None
    try:
        _ = made.limits
    except ModelError as error:
        desk.report.warning(
            place,
            "limits-exclude",
            f"{str(error).removesuffix('.')}; the limits of joints that depend on "
            "others are left out",
        )
        free = tuple(
            link
            if link.coupling is None
            else msgspec.structs.replace(link, limits=UNLIMITED)
            for link in links
        )
        made = Manipulator(name=name, links=free, properties=tuple(properties))
    return made
