"""Trees of bodies, and the loops that the other joints close."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from armillary.formats.diagnostic import Severity
from armillary.formats.names import FreeNames
from armillary.formats.several_joints import SplitJoint, links_behind, placed
from armillary.formats.usd.joints import AXES, Freedom, StageJoint
from armillary.formats.usd.scene import StagePrims
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Vector3, dot, scale

__all__ = [
    "BodyTree",
    "TreeBuilder",
    "groups_of",
    "is_mount",
    "pivot_name",
    "with_couplings",
]

NEAR: Final = 2e-7
"""How far single precision puts a joint from a body's origin that is there [m]."""
LOOSE: Final = 1e-4
"""How far the two ends of a joint may be apart as a stage is placed [m and rad].

Up to that, poses of bodies, of double precision, count instead of those of joints.
"""
ENDS_OF_NAMES: Final = {True: "slide", False: "turn"}


def pivot_name(body: str) -> str:
    """Return the name of the link between a joint and a body beside its axis."""
    return f"{body}_pivot"


@dataclass(slots=True, kw_only=True)
class BodyTree:
    """A tree of bodies.

    Attributes:
        name: Of the manipulator.
        root: The path of the body that is the base; empty if that is the world.
        is_fixed: Whether the base stands still.
        mount: The joint that holds the base on a body of another tree, if there is one.
        links: Depth first.
        loops: What closes loops.
        link_of: The name of the link of each body, by its path.
        joint_of: The name of the coordinate of each joint of one, by its path.
        positions: Coordinates as the stage is placed, but for those at 0.
        gains: Of drives, by the names of links.
    """

    name: str
    root: str
    is_fixed: bool
    mount: StageJoint | None = None
    links: list[Link] = field(default_factory=list[Link])
    loops: list[Closure | Rod] = field(default_factory=list[Closure | Rod])
    link_of: dict[str, str] = field(default_factory=dict[str, str])
    joint_of: dict[str, str] = field(default_factory=dict[str, str])
    positions: dict[str, float] = field(default_factory=dict[str, float])
    gains: dict[str, StageJoint] = field(default_factory=dict[str, StageJoint])


def groups_of(
    scene: StagePrims, joints: Sequence[StageJoint]
) -> list[tuple[list[str], list[StageJoint]]]:
    """Return the bodies that joints join, and these joints, in the order of the stage.

    Two components that a fixed joint holds together are two groups.
    """
    owner = {path: path for path in scene.bodies}

    def top(path: str) -> str:
        while owner[path] != path:
            owner[path] = owner[owner[path]]
            path = owner[path]
        return path

    for joint in joints:
        if "" in joint.bodies or is_mount(scene, joint):
            continue
        one, other = map(top, joint.bodies)
        owner[other] = one
    bodies: dict[str, list[str]] = {}
    for path in scene.prims:
        if path in scene.bodies:
            bodies.setdefault(top(path), []).append(path)
    own: dict[str, list[StageJoint]] = {first: [] for first in bodies}
    for joint in joints:
        if not is_mount(scene, joint):
            own[top(joint.bodies[0] or joint.bodies[1])].append(joint)
    return [(bodies[first], own[first]) for first in bodies]


def is_mount(scene: StagePrims, joint: StageJoint) -> bool:
    """Return whether a joint fixes one component on another."""
    if "" in joint.bodies or joint.is_loop or joint.kind != "fixed":
        return False
    one, other = map(scene.component, joint.bodies)
    return bool(one and other and one != other)


class TreeBuilder:
    """Makes the links of one group of bodies."""

    def __init__(
        self,
        scene: StagePrims,
        tree: BodyTree,
        bodies: Sequence[str],
        joints: Sequence[StageJoint],
        body_of: Callable[[str, str, FreeNames], Link],
        frame_names: Mapping[str, str],
    ) -> None:
        """Take the bodies and joints of a tree.

        Args:
            scene: The prims.
            tree: With its base; links come here.
            bodies: Paths, in the order of the stage.
            joints: Between them, without the one that holds the base.
            body_of: Makes the link of a body, of its path and name, but for its joint.
            frame_names: Of the frames of bodies that were made, by their paths.
        """
        self._frame_names = frame_names
        self._scene = scene
        self._tree = tree
        self._joints = list(joints)
        self._body_of = body_of
        self._bodies = list(bodies)
        self._hung: set[str] = set()
        self._frames: dict[str, list[Frame]] = {}
        names = FreeNames(set())
        for path in bodies:
            tree.link_of[path] = names.derive(scene.name(path))
        self._names = names
        self._joint_names = FreeNames(set())

    def build(self) -> None:
        """Fill the tree."""
        tree = self._tree
        root = tree.root
        if root:
            base = self._body_of(root, tree.link_of[root], self._names)
        else:
            base = Link(name=self._names.derive("base"))
            tree.link_of[""] = base.name
        tree.links.append(base)
        self._hung.add(root)
        used = self._grow(root)
        for joint in self._joints:
            if joint.path not in used:
                self._close(joint)
        for path in self._bodies:  # those that only distance joints hold
            if path not in self._hung:
                self._scene.report.unsupported.add(
                    "that a body moves freely, which a loop holds", self._scene.at(path)
                )
                self._hang(path)
        tree.links[:] = self._ordered(tree.links)

    def _ordered(self, links: list[Link]) -> list[Link]:
        """Return links with their frames."""
        return [
            msgspec.structs.replace(
                link, frames=(*link.frames, *self._frames.get(link.name, ()))
            )
            if link.name in self._frames
            else link
            for link in links
        ]

    def _grow(self, root: str) -> set[str]:
        """Hang all bodies on the root, depth first; return the joints that are used.

        Joints that are marked as loops carry only what no others do.
        """
        at: dict[str, list[StageJoint]] = {}
        for joint in sorted(self._joints, key=lambda each: each.is_loop):
            for body in joint.bodies:
                at.setdefault(body, []).append(joint)
        used: set[str] = set()
        for may_loop in (False, True):
            waiting = [(path, iter(at.get(path, ()))) for path in tuple(self._hung)]
            while waiting:
                body, joints = waiting[-1]
                joint = next(joints, None)
                if joint is None:
                    waiting.pop()
                    continue
                other = joint.bodies[1] if joint.bodies[0] == body else joint.bodies[0]
                is_open = joint.kind == "distance" or (joint.is_loop and not may_loop)
                if joint.path in used or other in self._hung or is_open:
                    continue
                if not other:  # the world, where it is not the root
                    continue
                beside = [each for each in at[body] if _is_beside(each, joint)]
                used.update(each.path for each in beside)
                if len(beside) > 1:
                    self._carry_all(beside, body, other)
                else:
                    self._carry(joint, body, other)
                waiting.append((other, iter(at.get(other, ()))))
        return used

    def _hang(self, path: str) -> None:
        """Fix a body on the base where it stands."""
        tree = self._tree
        link = self._body_of(path, tree.link_of[path], self._names)
        root = self._scene.pose(tree.root)
        self._hung.add(path)
        tree.links.append(
            msgspec.structs.replace(
                link,
                parent=tree.links[0].name,
                joint=Fixed(precursor=root.inverse() @ self._scene.pose(path)),
            )
        )

    def _carry(self, joint: StageJoint, parent: str, child: str) -> None:
        """Add the links behind a joint, the last one that of a body."""
        scene, tree = self._scene, self._tree
        k = 0 if joint.bodies[0] == parent else 1
        is_turned = k == 1  # the joint is given from the child to the parent
        X_PJ, X_CJ = joint.points[k], joint.points[1 - k]
        X_PC = scene.pose(parent).inverse() @ scene.pose(child)
        body = self._body_of(child, tree.link_of[child], self._names)
        name = self._joint_names.derive(joint.name)
        p = X_CJ.position
        is_offset = dot(p, p) > NEAR * NEAR and bool(joint.freedoms)
        outer = Pose.translation(*p) if is_offset else IDENTITY  # in the child
        R_CJ = Pose(X_CJ.rotation, (0.0, 0.0, 0.0))
        self._hung.add(child)
        freedoms = joint.freedoms[::-1] if is_turned else joint.freedoms
        steps: list[Joint] = []
        for freedom in freedoms:
            axis = R_CJ.rotate(AXES[freedom.axis])
            axis = scale(-1.0, axis) if is_turned else axis
            kind = Prismatic if freedom.slides else Revolute
            steps.append(kind(axis=_plain(axis)))
        X_P_outer = X_PJ @ (R_CJ if steps else X_CJ).inverse()
        at = self._origin(joint, steps, X_P_outer, X_PC @ outer, name)
        fixed = None
        if is_offset:
            body, fixed = self._pivoted(body, outer.inverse())
        if not steps:
            tree.links.append(
                msgspec.structs.replace(
                    body,
                    parent=tree.link_of[parent],
                    joint=Fixed(precursor=at),
                    joint_name=_unless(body.name, name),
                )
            )
            return
        if len(steps) == 1:
            (freedom,) = freedoms
            tree.joint_of[joint.path] = name
            self._note_gains(joint, body.name)
            tree.links.append(
                msgspec.structs.replace(
                    body,
                    parent=tree.link_of[parent],
                    joint=steps[0].prepend(at),
                    joint_name=_unless(body.name, name),
                    limits=freedom.limits,
                    dynamics=freedom.dynamics,
                )
            )
        else:
            self._several(joint, freedoms, placed(at, steps), name, parent, body)
        if fixed is not None:
            tree.links.append(fixed)

    def _origin(
        self,
        joint: StageJoint,
        steps: Sequence[Joint],
        at: Pose,
        now: Pose,
        name: str,
    ) -> Pose:
        """Return the outer frame of a joint in the parent with its coordinates at zero.

        Args:
            joint: As the stage has it.
            steps: Its motions.
            at: What the joint itself says, in single precision.
            now: Where the frame is as the stage is placed, in double precision.
            name: Of the coordinate, whose position is kept if it is not zero.
        """
        if len(steps) > 1:
            if now.approx_equal(at, LOOSE * self._size(now)):
                return now
            what = "how a joint of several coordinates is placed, which starts at zero"
            self._scene.report.unsupported.add(what, self._scene.at(joint.path))
            return at
        position = self._position(joint, steps, at, now)
        stated = self._stated(joint, position)
        if steps and stated:
            self._tree.positions[name] = stated
        moved = steps[0].transform(position) if steps else IDENTITY
        exact = now @ moved.inverse()
        return exact if exact.approx_equal(at, LOOSE * self._size(exact)) else at

    def _pivoted(self, body: Link, pose: Pose) -> tuple[Link, Link]:
        """Return a bare link for a joint to carry, and the body that is fixed on it.

        pose: Of the body in the outer frame of the joint, beside which it begins.
        """
        pivot = Link(name=self._names.derive(pivot_name(body.name)))
        # A joint without a name has that of its link, which one of the file may have.
        is_taken = any(joint.name == body.name for joint in self._joints)
        name = self._joint_names.derive(f"{body.name}_fixed") if is_taken else ""
        joint = Fixed(precursor=pose)
        return pivot, msgspec.structs.replace(
            body, parent=pivot.name, joint=joint, joint_name=name
        )

    def _carry_all(self, joints: Sequence[StageJoint], parent: str, child: str) -> None:
        """Add the links behind several joints of the same two bodies.

        Converters of MJCF write a body with several hinges so. Each joint moves the
        body about its own axis, those before it first, from where the stage is placed.
        """
        scene, tree = self._scene, self._tree
        body = self._body_of(child, tree.link_of[child], self._names)
        self._hung.add(child)
        back = scene.pose(parent).inverse() @ scene.pose(child)
        steps: list[SplitJoint] = []
        for joint in joints:
            (freedom,) = joint.freedoms
            k = joint.bodies.index(child)
            X_CJ = joint.points[k]
            at = Pose.translation(*X_CJ.position)
            axis = Pose(X_CJ.rotation, (0.0, 0.0, 0.0)).rotate(AXES[freedom.axis])
            axis = scale(-1.0, axis) if k == 0 else axis
            kind = Prismatic if freedom.slides else Revolute
            name = self._joint_names.derive(joint.name)
            tree.joint_of[joint.path] = name
            moved = kind(axis=_plain(axis), precursor=back @ at)
            back = at.inverse()
            steps.append(
                SplitJoint(
                    name=name,
                    joint=moved,
                    limits=freedom.limits,
                    dynamics=freedom.dynamics,
                )
            )
        offset = back.position
        fixed = None
        if dot(offset, offset) > NEAR * NEAR:
            body, fixed = self._pivoted(body, back)
        made = links_behind(
            steps, parent=tree.link_of[parent], body=body, names=self._names
        )
        for joint, link in zip(joints, made, strict=True):
            self._note_gains(joint, link.name)
        tree.links += made if fixed is None else [*made, fixed]

    def _several(
        self,
        joint: StageJoint,
        freedoms: Sequence[Freedom],
        moves: Sequence[Joint],
        name: str,
        parent: str,
        body: Link,
    ) -> None:
        """Add the links of a joint with several coordinates."""
        named = [
            SplitJoint(
                name=self._joint_names.derive(
                    f"{name}_{ENDS_OF_NAMES[each.slides]}_{each.axis.lower()}"
                ),
                joint=moved,
                limits=each.limits,
                dynamics=each.dynamics,
            )
            for each, moved in zip(freedoms, moves, strict=True)
        ]
        self._scene.report.note(
            self._scene.at(joint.path),
            "split-joint",
            f"joint <{joint.path}> becomes {len(named)} joints: "
            f"{', '.join(step.name for step in named)}",
        )
        self._tree.links += links_behind(
            named, parent=self._tree.link_of[parent], body=body, names=self._names
        )

    def _note_gains(self, joint: StageJoint, link: str) -> None:
        if joint.gains is not None:
            self._tree.gains[link] = joint

    def _position(
        self, joint: StageJoint, steps: Sequence[Joint], at: Pose, now: Pose
    ) -> float:
        """Return the coordinate of a joint as the stage is placed, 0 if that is near.

        It is the one that leaves the least between the two ends of the joint.
        """
        between = at.inverse() @ now
        position = 0.0
        if steps:
            (step,) = steps
            if isinstance(step, Prismatic):
                position = float(dot(step.axis, between.position))
            else:
                position = _angle(between, step.axis)  # type: ignore[attr-defined]
            rest = step.transform(position).inverse() @ between
        else:
            rest = between
        if not rest.approx_equal(IDENTITY, LOOSE * self._size(now)):
            self._scene.report.warning(
                self._scene.at(joint.path),
                "loose-joint",
                f"the two ends of joint <{joint.path}> are apart as the stage is "
                "placed; what the joint says counts",
                hint="Place its bodies where the joint allows them to be.",
            )
            position = 0.0
        return position if abs(position) > 1e-6 else 0.0

    @staticmethod
    def _size(X: Pose) -> float:
        """Return the size by which the errors of a pose count."""
        return 1.0 + float(max(abs(each) for each in X.position))

    def _stated(self, joint: StageJoint, position: float) -> float:
        """Return the coordinate that a stage says, by its state or how it is placed."""
        if joint.state is None or abs(joint.state - position) < 1e-6:
            return position
        if abs(joint.state - position) > LOOSE:
            self._scene.report.note(
                self._scene.at(joint.path),
                "joint-state",
                f"the state of joint <{joint.path}> is {joint.state:g}, but its bodies "
                f"are placed at {position:g}; the state counts",
            )
        return joint.state

    # Loops

    def _close(self, joint: StageJoint) -> None:
        """Add what closes a loop, with a frame on each of the two links."""
        tree, scene = self._tree, self._scene
        ends: list[str] = []
        for k, body in enumerate(joint.bodies):
            on, pose = body, joint.points[k]
            if body not in tree.link_of:
                if body:
                    return
                if not tree.is_fixed:
                    scene.report.unsupported.add(
                        "a joint between the world and a tree that it does not carry",
                        scene.at(joint.path),
                    )
                    return
                # The base stands still, and so a frame on it is one of the world.
                on = tree.root
                pose = scene.pose(on).inverse() @ joint.frames[k]
            ends.append(self._end(joint, k, tree.link_of[on], pose))
        if joint.length > 0.0:
            tree.loops.append(
                Rod(ends[0], ends[1], length=joint.length, name=joint.name)
            )
            return
        slides = {each.axis.lower() for each in joint.freedoms if each.slides}
        turns = {each.axis.lower() for each in joint.freedoms if not each.slides}
        tree.loops.append(
            Closure(
                ends[0],
                ends[1],
                "".join(each for each in "xyz" if each not in slides),
                "".join(each for each in "xyz" if each not in turns),
                name=joint.name,
            )
        )
        for freedom in joint.freedoms:
            if math.isfinite(freedom.limits.lower) or math.isfinite(
                freedom.limits.upper
            ):
                what = "the limits of a joint that closes a loop"
                scene.report.unsupported.add(
                    what, scene.at(joint.path), Severity.WARNING
                )

    def _end(self, joint: StageJoint, k: int, link: str, pose: Pose) -> str:
        """Return the frame at one end of a loop, a new one unless the file has it."""
        target = joint.targets[k]
        known = self._frame_names.get(target)
        if known is not None:
            at = self._scene.pose(target).inverse() @ joint.frames[k]
            if at.approx_equal(IDENTITY, 1e-9):
                return known
        name = self._names.derive(f"{joint.name}_{k}")
        self._frames.setdefault(link, []).append(Frame(name=name, pose=pose))
        return name


def _is_beside(one: StageJoint, other: StageJoint) -> bool:
    """Return whether a joint is another one, or one beside it of the same bodies."""
    if one is other:
        return True
    are_alike = len(one.freedoms) == len(other.freedoms) == 1
    same = set(one.bodies) == set(other.bodies)
    return are_alike and same and not one.is_loop and not other.is_loop


def with_couplings(
    links: Iterable[Link], joints: Iterable[StageJoint], names: Mapping[str, str]
) -> list[Link]:
    """Return links whose joints follow others.

    names: Of the coordinate of each joint, by its path.
    """
    follows = {
        names[joint.path]: Coupling(
            of=names[joint.mimic.of],
            multiplier=joint.mimic.multiplier,
            offset=joint.mimic.offset,
        )
        for joint in joints
        if joint.mimic is not None and joint.path in names and joint.mimic.of in names
    }
    return [
        msgspec.structs.replace(link, coupling=follows[link.coordinate])
        if link.moves and link.coordinate in follows
        else link
        for link in links
    ]


def _unless(link: str, joint: str) -> str:
    """Return the name of a joint, empty where it is that of its link."""
    return "" if joint == link else joint


def _angle(X: Pose, axis: Vector3) -> float:
    """Return the angle by which a pose turns most nearly about an axis [rad]."""
    w, x, y, z = X.quaternion()
    angle = 2.0 * math.atan2(float(dot((x, y, z), axis)), float(w))
    return math.remainder(angle, 2.0 * math.pi)


def _plain(axis: Vector3) -> Vector3:
    x, y, z = axis
    return x + 0.0, y + 0.0, z + 0.0
