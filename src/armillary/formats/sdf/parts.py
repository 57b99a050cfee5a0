"""Parts of models to manipulators: links behind joints, what follows what, loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Final

import msgspec
from msgspec.structs import replace

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.mimics import check_mimics
from armillary.formats.names import FreeNames, depth_first
from armillary.formats.sdf.elements import NAME_IN_CELL
from armillary.formats.sdf.graph import FIXED, Edge, SdfPart
from armillary.formats.sdf.joints import (
    COORDINATE,
    GEARBOX,
    LEADER_AXES,
    SEVERAL,
    AxisElement,
    SdfJoint,
    motions,
)
from armillary.formats.sdf.rods import FoundRod
from armillary.formats.sdf.scopes import SEPARATOR, WORLD_FRAME, Frames, SdfNode
from armillary.formats.several_joints import SplitJoint, links_behind, placed
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.posture import Posture
from armillary.model.shapes.segment import facing
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Vector3, cross, dot, norm, scale, unit

__all__ = ["OPEN", "PIVOT", "PartBuilder"]

PIVOT: Final = "_offset"
"""The end of the name of the fixed joint behind one that turns beside its link."""

OFFSET: Final = 1e-12
COINCIDE: Final = 1e-6
LETTERS: Final = "xyz"
OPEN: Final = "the loop is left open"


@dataclass(frozen=True, slots=True)
class _Follower:
    """A coordinate, for what follows what."""

    name: str
    type: str
    limits: Limits
    mimic: Coupling | None
    places: dict[str, Place]


@dataclass(slots=True)
class _PartNames:
    """What the links and joints of a part are called.

    Attributes:
        links: Of links and frames.
        joints: Of joints.
        of_link: The name of each link; of the bare one that is the world, that of None.
        of_joint: The names of the coordinates of each joint.
    """

    links: FreeNames = field(default_factory=lambda: FreeNames(set()))
    joints: FreeNames = field(default_factory=lambda: FreeNames(set()))
    of_link: dict[SdfNode | None, str] = field(
        default_factory=dict[SdfNode | None, str]
    )
    of_joint: dict[SdfNode, list[str]] = field(default_factory=dict[SdfNode, list[str]])


class PartBuilder:
    """Makes the manipulator of a part."""

    def __init__(
        self, part: SdfPart, name: str, frames: Frames, report: Report
    ) -> None:
        self.part = part
        self.name = name
        self.names = _PartNames()
        self._frames = frames
        self._report = report
        tops = part.tops
        outer = tops[0].node.scope
        self._world = outer
        self._origin = tops[0].scope if len(tops) == 1 else outer
        self._loops: list[tuple[Place, Closure | Rod]] = []
        self._followers: list[_Follower] = []
        self._steps: dict[SdfNode, list[SplitJoint]] = {}
        self._at: dict[str, float] = {}
        self._extra: dict[str, list[Frame]] = {}
        self._ends: list[Link] = []
        self._frame_names: dict[SdfNode, str] = {}
        self._name_all()
        self._add_frames()

    @property
    def is_rigid(self) -> bool:
        """Return whether nothing in it moves."""
        edges = (edge for edge, _ in self.part.tree.values())
        return all(edge.is_fixed for edge in (*edges, *self.part.loops))

    def places(self) -> Iterator[tuple[SdfNode, str]]:
        """Yield the links and frames, each with its name."""
        for node, name in self.names.of_link.items():
            if node is not None:
                yield node, name
        yield from self._frame_names.items()

    # Names

    def _full(self, node: SdfNode) -> str:
        name = node.full_name
        if len(self.part.tops) > 1 and not node.scope.is_world:
            scope = node.scope
            while scope.outer is not None and not scope.outer.is_world:
                scope = scope.outer
            name = f"{scope.name}{SEPARATOR}{name}"
        return name

    def _derived(self, free: FreeNames, node: SdfNode) -> str:
        wanted = self._full(node)
        name = free.derive(wanted)
        if name != wanted:
            self._report.warning(
                node.place,
                "renamed",
                f"the name {quote(wanted)} is taken in {quote(self.name)}; this is "
                f"{quote(name)}",
            )
        return name

    def _name_all(self) -> None:
        names = self.names
        for link in self.part.links:
            names.of_link[link] = self._derived(names.links, link)
        if self.part.root is None:
            names.of_link[None] = names.links.derive(WORLD)
        for edge in self._edges():
            node, joint = edge.node, edge.joint
            if node is None or joint is None:
                continue
            own = self._derived(names.joints, node)
            ends = ["_1", "_2"] if joint.type in ("universal", "revolute2") else [""]
            if joint.type == "ball":
                ends = [f"_{end}" for end in ("yaw", "pitch", "roll")]
            if edge.is_fixed or ends == [""]:
                names.of_joint[node] = [own]
            else:
                derived = [names.joints.derive(f"{own}{end}") for end in ends]
                names.of_joint[node] = derived

    def _edges(self) -> list[Edge]:
        tree = (edge for edge, _ in self.part.tree.values())
        return [*tree, *self.part.loops, *self.part.outer]

    # Poses

    def in_world(self, node: SdfNode) -> Pose:
        """Return the pose of a node in the world."""
        pose, origin = self._frames.from_top(node, self._origin), self._origin
        if origin.outer is None:
            return pose
        return self._frames.in_scope(self._frames.node_of(origin)) @ pose

    def _pose(self, node: SdfNode, link: SdfNode | None) -> Pose:
        """Return the pose of a node in a link, or in the world."""
        if link is None:
            return self.in_world(node)
        top = self._world if node.scope.is_world else self._origin
        return self._frames.relative(node, link, top)

    # The manipulator

    def read_joints(self) -> None:
        """Read the joints, for what closes loops with other parts."""
        report = self._report
        for edge in self._edges():
            self._read_steps(edge)
        self._couple_gears()
        unlimited, free = check_mimics(self._followers, report, several=SEVERAL)
        self._set_followers(unlimited, free)

    def add_rod(self, found: FoundRod, a: str, b: str) -> None:
        """Add a rod between two frames of the part."""
        self._loops.append((found.place, self.rod(found, a, b)))

    def rod(self, found: FoundRod, a: str, b: str) -> Rod:
        """Return a rod, by whose joint one of the part adds to its length."""
        by = "" if found.by is None else self.names.of_joint[found.by][0]
        return Rod(a, b, length=found.length, by=by, name=found.name)

    def closure_with(self, edge: Edge, other: PartBuilder) -> Closure | None:
        """Return what closes a loop with another part, by the names in the cell."""
        closure = self._closure(edge, other)
        if closure is None:
            return None
        a, b = f"{self.name}/{closure.a}", f"{other.name}/{closure.b}"
        return msgspec.structs.replace(closure, a=a, b=b)

    def manipulator(self) -> Manipulator | None:
        """Return the manipulator, after its joints were read; None after an error."""
        part, report = self.part, self._report
        place = part.tops[0].node.place
        links = self._links()
        for edge in part.loops:
            if edge.node is not None and (closure := self._closure(edge)) is not None:
                self._loops.append((edge.node.place, closure))
        # Closures and rods come as in the file.
        self._loops.sort(key=lambda each: (each[0].line, each[0].column))
        loops = [loop for _, loop in self._loops]
        links = [self._with_frames(link) for link in (*links, *self._ends)]
        postures, home = self._posture()
        try:
            made = Manipulator(
                name=self.name, links=tuple(links), postures=postures, home=home
            )
        except ModelError as error:
            message = str(error).removesuffix(".").replace("\n  ", " ")
            report.error(place, "bad-manipulator", message)
            return None
        if not loops:
            return made
        try:
            return msgspec.structs.replace(made, loops=tuple(loops))
        except ModelError as error:
            message = f"model {quote(self.name)}: {error}".removesuffix(".")
            report.guessing(OPEN).error(place, "bad-loop", message)
            return made

    def _posture(self) -> tuple[list[Posture], str]:
        """Return the posture that the file shows, if it says one, and its name."""
        name = self.part.tops[0].scope.posture
        if not name:
            return [], ""
        edges = (edge for edge, _ in self.part.tree.values())
        steps = [s for edge in edges if edge.node for s in self._steps[edge.node]]
        placed = [step for step in steps if step.coupling is None]
        at = [self._at.get(step.name, 0.0) for step in placed]
        joints = [step.name for step in placed]
        return [Posture(name=name, joints=joints, q=at)], name

    def _links(self) -> list[Link]:
        part, of_link = self.part, self.names.of_link
        root = of_link[part.root]
        first = Link(name=root) if part.root is None else self._body(part.root)
        children: dict[str, list[str]] = {}
        carriers: dict[str, tuple[Edge, bool, SdfNode]] = {}
        tree = sorted(part.tree.items(), key=lambda item: item[1][0].number)
        for child, (edge, is_reversed) in tree:
            parent = edge.child if is_reversed else edge.parent
            children.setdefault(of_link[parent], []).append(of_link[child])
            carriers[of_link[child]] = edge, is_reversed, child
        links = [first]
        for name in depth_first(root, children)[1:]:
            edge, is_reversed, child = carriers[name]
            parent = of_link[edge.child if is_reversed else edge.parent]
            body = self._body(child)
            steps = self._placed_steps(edge, is_reversed)
            links += self._behind(steps, parent, body)
        return links

    def _behind(
        self, steps: Sequence[SplitJoint], parent: str, body: Link
    ) -> list[Link]:
        """Return the links behind joints.

        A joint that is called as its link has no name of its own.
        """
        links = links_behind(steps, parent=parent, body=body, names=self.names.links)
        return [
            msgspec.structs.replace(link, joint_name="")
            if link.joint_name == link.name
            else link
            for link in links
        ]

    def _body(self, node: SdfNode) -> Link:
        def pose(name: str, place: Place) -> Pose | None:
            path = node.scope.path(name, node.model_frame)
            if path is None:
                message = (
                    f"{node.scope.label} has no frame {quote(name)}, which a shape of "
                    f"{node.label} is relative to"
                )
                view = self._report.tolerating("the shape is left out")
                hint = view.hint(name, node.scope.nodes)
                view.error(place, "unknown-frame", message, hint=hint)
                return None
            if path:
                return self._pose(path[-1], node)
            return self._frames.in_scope(node).inverse()

        return node.body.body(self.names.of_link[node], pose, self._report)

    def _with_frames(self, link: Link) -> Link:
        frames = self._extra.get(link.name)
        if not frames:
            return link
        return msgspec.structs.replace(link, frames=(*link.frames, *frames))

    # Joints

    def _axes(self, edge: Edge) -> list[Vector3]:
        """Return the axes of a joint in its own frame, of length 1."""
        node, joint = edge.node, edge.joint
        assert node is not None and joint is not None, "it moves"
        axes: list[Vector3] = []
        for axis in joint.axes:
            vector = unit(axis.xyz)
            if axis.expressed_in:
                scope = node.scope
                path = scope.path(axis.expressed_in, node.model_frame)
                if path is None:
                    self._report.error(
                        axis.places["axis"],
                        "unknown-frame",
                        f"{scope.label} has no frame {quote(axis.expressed_in)}, in "
                        f"which an axis of {node.label} is",
                        hint=self._report.hint(axis.expressed_in, scope.nodes),
                    )
                elif path != [node]:
                    X_SE = self._frames.at_path(path)
                    X_SJ = self._frames.in_scope(node)
                    vector = X_SJ.inverse().rotate(X_SE.rotate(vector))
            axes.append(vector)
        return axes

    def _read_steps(self, edge: Edge) -> None:
        """Find the coordinates of a joint, and what is known of each."""
        node, joint = edge.node, edge.joint
        if node is None or joint is None:
            return
        names = self.names.of_joint[node]
        places = {"mimic": node.place}
        if edge.is_fixed:
            kind = _Follower(names[0], FIXED, UNLIMITED, None, places)
            self._followers.append(kind)
            self._steps[node] = []
            return
        steps: list[SplitJoint] = []
        for k, (_, own) in enumerate(motions(joint, self._axes(edge))):
            motion = own
            axis = joint.axes[k] if k < len(joint.axes) else None
            limits = UNLIMITED if axis is None else axis.limits
            dynamics = NO_DYNAMICS if axis is None else axis.dynamics
            mimic = None if axis is None else self._mimic(node, axis)
            if axis is not None:
                places = axis.places
            if axis is not None and axis.at:
                self._at[names[k]] = axis.at
                if joint.type != COORDINATE:
                    motion = own.replace(precursor=own.transform(-axis.at))
            steps.append(
                SplitJoint(
                    name=names[k],
                    joint=motion,
                    limits=limits,
                    dynamics=dynamics,
                    coupling=mimic,
                    passive=axis is not None and axis.passive,
                )
            )
            kind = "ball" if joint.type == "ball" else "revolute"
            self._followers.append(_Follower(names[k], kind, limits, mimic, places))
        if len(steps) > 1:
            self._report.note(
                node.place,
                "split-joint",
                f"{joint.type} {node.label} becomes {len(steps)} joints: "
                f"{', '.join(names)}",
            )
        self._steps[node] = steps

    def _mimic(self, node: SdfNode, follower: AxisElement) -> Coupling | None:
        """Return what an axis follows, by the name of the leading coordinate."""
        mimic = follower.mimic
        if mimic is None:
            return None
        of, axis = str(mimic["of"]), str(mimic["axis"])
        path = node.scope.path(of, node.model_frame)
        names = self.names.of_joint.get(path[-1], []) if path else []
        start = 0.0
        if path and names:
            number = min(LEADER_AXES[axis], len(names) - 1)
            of = names[number]
            leader = path[-1].body
            if isinstance(leader, SdfJoint) and number < len(leader.axes):
                start = leader.axes[number].at
        multiplier, offset = mimic["multiplier"], mimic["offset"]
        assert isinstance(multiplier, float) and isinstance(offset, float)
        if follower.at or start:
            # In the file, coordinates count from where they are there.
            offset += follower.at - multiplier * start
        return Coupling(of=of, multiplier=multiplier, offset=offset)

    def _couple_gears(self) -> None:
        """Couple the joints that gearboxes couple: theta_2 = -ratio theta_1.

        The angles are those from the reference body to the parent about `axis`, and to
        the child about `axis2`.
        """
        for top in self.part.tops:
            for node in top.joints:
                joint = node.body
                if isinstance(joint, SdfJoint) and joint.type == GEARBOX:
                    self._couple(node, joint)

    def _couple(self, node: SdfNode, gearbox: SdfJoint) -> None:
        ratio, reference = gearbox.gear
        ends: list[SdfNode | None] = []
        for name in (reference, gearbox.parent, gearbox.child):
            path = node.scope.path(name, node.model_frame)
            link = self._frames.link_of(path[-1]) if path else None
            ends.append(link if isinstance(link, SdfNode) else None)
        if not all(end in self.names.of_link for end in ends if end is not None):
            return
        found = [self._turning(ends[0], end) for end in ends[1:]]
        fake = Edge(node, gearbox, GEARBOX, ends[1], ends[2] or node)
        turns: list[tuple[SdfNode, float]] = []
        for hit, axis in zip(found, self._axes(fake), strict=True):
            if hit is None:
                break
            edge, sign = hit
            assert edge.node is not None, "it turns"
            turning = _axis_of(self._steps[edge.node][0].joint)
            own = self._in_origin(edge.node).rotate(turning)
            gear = self._in_origin(node).rotate(axis)
            along = float(dot(own, gear))
            if abs(along) < 1.0 - COINCIDE:
                break
            turns.append((edge.node, sign if along > 0.0 else -sign))
        if len(turns) < 2 or turns[0][0] is turns[1][0]:
            what = f"a gearbox whose links do not turn about its axes on {reference!r}"
            self._report.unsupported.add(what, node.place)
            return
        (leader, s1), (follower, s2) = turns
        (name,) = self.names.of_joint[leader]
        coupling = Coupling(of=name, multiplier=-ratio * s1 * s2)
        (step,) = self._steps[follower]
        self._steps[follower] = [replace(step, coupling=coupling)]
        self._followers = [
            replaced(f, mimic=coupling, places={"mimic": node.place})
            if f.name == step.name
            else f
            for f in self._followers
        ]

    def _in_origin(self, node: SdfNode) -> Pose:
        return self._frames.from_top(node, self._origin)

    def _turning(
        self, a: SdfNode | None, b: SdfNode | None
    ) -> tuple[Edge, float] | None:
        """Return the joint about which b turns on a, and 1, or -1 if a is its child."""
        for edge, _ in self.part.tree.values():
            ends = edge.parent, edge.child
            if edge.type in ("revolute", "continuous") and a and b:
                if ends == (a, b):
                    return edge, 1.0
                if ends == (b, a):
                    return edge, -1.0
        return None

    def _set_followers(self, unlimited: set[str], free: set[str]) -> None:
        """Take away limits that contradict, and couplings that cannot be."""
        for node, steps in self._steps.items():
            self._steps[node] = [
                replace(
                    step,
                    limits=replace(step.limits, lower=-INFINITE, upper=INFINITE)
                    if step.name in unlimited
                    else step.limits,
                    coupling=None if step.name in free else step.coupling,
                )
                for step in steps
            ]

    def _placed_steps(self, edge: Edge, is_reversed: bool) -> list[SplitJoint]:
        """Return the joints from the carrying to the carried link."""
        parent, child = edge.parent, edge.child
        if is_reversed:
            assert parent is not None, "the world is the root"
            total = self._pose(parent, child)
        else:
            total = self._pose(child, parent)
        node = edge.node
        if node is None:
            return [SplitJoint(name="", joint=Fixed(precursor=total))]
        if edge.type == COORDINATE:
            return self._steps[node]
        if edge.is_fixed:
            (name,) = self.names.of_joint[node]
            return [SplitJoint(name=name, joint=Fixed(precursor=total))]
        X_PJ, X_CJ = self._pose(node, parent), self._pose(node, child)
        steps = self._steps[node]
        before, after = X_PJ, X_CJ.inverse()
        if is_reversed:
            # X_CP = X_CJ R2(-q2) R1(-q1) X_JP: the axes are negated.
            steps = [replace(s, joint=_negated(s.joint)) for s in reversed(steps)]
            before, after = X_CJ, X_PJ.inverse()
        joints = [step.joint for step in steps]
        last = _behind(joints[-1], after)
        if last is None:
            joints = [*placed(before, joints), Fixed(precursor=after)]
            offset = self.names.joints.derive(f"{steps[-1].name}{PIVOT}")
            self._report.note(
                node.place,
                "offset-link",
                f"{node.label} turns about a line beside link "
                f"{quote(self.names.of_link[child])}; a link is put between",
            )
            steps = [*steps, SplitJoint(name=offset, joint=joints[-1])]
        elif len(joints) == 1:
            start = last.replace(precursor=IDENTITY)
            at = self._at.get(steps[-1].name)
            X_PC = total if at is None else total @ start.transform(-at)
            joints = [last.replace(precursor=X_PC)]
        else:
            joints = [*placed(before, joints)[:-1], last]
        return [replace(s, joint=j) for s, j in zip(steps, joints, strict=True)]

    # Loops

    def _closure(self, edge: Edge, other: PartBuilder | None = None) -> Closure | None:
        """Return what closes a loop in place of a joint.

        other: The part that its child is in, if that is another one.

        A joint whose coordinate has limits or dynamics, or that others follow, carries
        a bare link that is fixed to the other one; so does one of which no directions
        can say what it leaves free.
        """
        node, joint, parent, child = edge.node, edge.joint, edge.parent, edge.child
        if node is None or joint is None:
            return None
        steps, other = self._steps[node], other or self
        if joint.held is not None:
            ends = self._named(node, joint.parent), other._named(node, joint.child)
            if all(ends):
                position, rotation = joint.held
                name = joint.element.attributes.get(NAME_IN_CELL, self._full(node))
                return Closure(*ends, position=position, rotation=rotation, name=name)
        leaders = {f.mimic.of for f in self._followers if f.mimic is not None}
        is_plain = all(
            (step.dynamics, step.coupling) == (NO_DYNAMICS, None)
            and step.limits == UNLIMITED
            and step.name not in leaders
            for step in steps
        )
        kinds = ("revolute", "continuous", "prismatic", "ball", FIXED)
        if not is_plain or edge.type not in kinds:
            return self._welded(edge, steps, other)
        turn, letter = IDENTITY, ""
        if edge.type not in ("ball", FIXED):
            axis = _axis_of(steps[0].joint)
            aligned = [k for k in range(3) if abs(axis[k]) == 1.0]
            if aligned:
                letter = LETTERS[aligned[0]]
            else:
                turn, letter = facing(axis), "z"
        rest = LETTERS.replace(letter, "") if letter else ""
        position, rotation = {
            "ball": (LETTERS, ""),
            FIXED: (LETTERS, LETTERS),
            "prismatic": (rest, LETTERS),
        }.get(edge.type, (LETTERS, rest))
        a = self._loop_frame(node, joint.parent, parent, turn, "_parent")
        b = other._loop_frame(node, joint.child, child, turn, "_child")
        name = self._full(node)
        return Closure(a, b, position=position, rotation=rotation, name=name)

    def _named(self, node: SdfNode, name: str) -> str:
        """Return the name of the link or frame that a joint names; empty without."""
        path = node.scope.path(name, node.model_frame)
        if path is None and name == WORLD_FRAME and self.part.root is None:
            return self.names.of_link[None]
        last = path[-1] if path else None
        if last is None:
            return ""
        return self.names.of_link.get(last) or self._frame_names.get(last, "")

    def _loop_frame(
        self, node: SdfNode, named: str, link: SdfNode | None, turn: Pose, end: str
    ) -> str:
        """Return the name of a frame of a link at a joint: that which it names, or new.

        turn: Of the frame, in that of the joint.
        """
        path = node.scope.path(named, node.model_frame) or []
        name = self.names.of_link[link]
        X_LF = self._pose(node, link) @ turn
        if path and path[-1].kind == "frame":
            frame = self._frame_names.get(path[-1], "")
            X_LN = self._pose(path[-1], link)
            if frame and X_LN.approx_equal(X_LF, COINCIDE):
                return frame
        if X_LF.is_identity:
            return name
        frame = self.names.links.derive(f"{self._full(node)}{end}")
        self._extra.setdefault(name, []).append(Frame(name=frame, pose=X_LF))
        return frame

    def _welded(
        self, edge: Edge, steps: Sequence[SplitJoint], other: PartBuilder
    ) -> Closure:
        node, joint = edge.node, edge.joint
        assert node is not None and joint is not None, "it is a joint"
        X_PJ = self._pose(node, edge.parent)
        joints = placed(X_PJ, [step.joint for step in steps])
        end = Link(name=self.names.links.derive(f"{self._full(node)}_end"))
        placed_steps = [
            replace(step, joint=j) for step, j in zip(steps, joints, strict=True)
        ]
        parent = self.names.of_link[edge.parent]
        self._ends += self._behind(placed_steps, parent, end)
        b = other._loop_frame(node, joint.child, edge.child, IDENTITY, "_child")
        return Closure(end.name, b, rotation=LETTERS, name=self._full(node))

    # Frames

    def _add_frames(self) -> None:
        """Add the frames of the file that are attached to links of the part."""
        world = self.part.tops[0].node.scope
        own = [node for top in self.part.tops for node in top.frames]
        for node in (*own, *world.of_kind("frame")):
            link = self._frames.link_of(node)
            if isinstance(link, SdfNode) and link in self.names.of_link:
                self._add_frame(node, link)

    def _add_frame(self, node: SdfNode, link: SdfNode) -> None:
        name = self._derived(self.names.links, node)
        self._frame_names[node] = name
        origin = node.scope if node.scope.is_world else self._origin
        pose = self._frames.relative(node, link, origin)
        frame = Frame(name=name, pose=pose)
        self._extra.setdefault(self.names.of_link[link], []).append(frame)


def _negated(joint: Joint) -> Joint:
    """Return the joint that moves the other way, from the other end."""
    before = joint.precursor.inverse()
    return joint.replace(axis=scale(-1.0, _axis_of(joint)), precursor=before)


def _behind(joint: Joint, after: Pose) -> Joint | None:
    """Return the joint J' with `joint after` = `after J'`; None if it has no such axis.

    A line turns with the axes alone if it passes through the origin of both frames, or
    if the joint slides along it.
    """
    if after.is_identity:
        return joint
    axis = _axis_of(joint)
    beside = cross(after.position, axis)
    if not isinstance(joint, Prismatic) and norm(beside) > OFFSET:
        return None
    turned = after.inverse().rotate(axis)
    return joint.replace(axis=turned, precursor=joint.precursor @ after)


def _axis_of(joint: Joint) -> Vector3:
    """Return the axis of a joint that has one."""
    assert isinstance(joint, (Revolute, Prismatic, Screw)), "others are not read"
    return joint.axis
