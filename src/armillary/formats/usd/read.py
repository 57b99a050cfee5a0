"""Stages of USD to cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.names import FreeNames
from armillary.formats.usd.bodies import inertia_of
from armillary.formats.usd.joints import StageJoint, read_joints
from armillary.formats.usd.process import stage_record
from armillary.formats.usd.rules import read_rules
from armillary.formats.usd.scene import ROOT, StagePrims, parent_of
from armillary.formats.usd.shapes import PrimShapes, is_collider
from armillary.formats.usd.trees import (
    BodyTree,
    TreeBuilder,
    groups_of,
    is_mount,
    with_couplings,
)
from armillary.model.frame import Frame
from armillary.model.joints.fixed import Fixed
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.parents import cycles
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.workcell import Workcell

__all__ = ["DRIVE", "END", "ENVIRONMENT", "STAGE", "read"]

ENVIRONMENT: Final = "environment"
"""The manipulator of all that stands still outside of components."""
STAGE: Final = "stage"
"""The posture in which a stage is placed."""
PLACED: Final = 1e-6
"""How exactly a stage says where a joint is [m or rad]: limits are single numbers."""
END: Final = "armillary:endEffector"
DRIVE: Final = "usd.drive"
"""The property that keeps the stiffness, damping and target of a drive, in SI units."""
NO_FRAMES: Final = ("visuals", "collisions", "visual", "collision")
OPEN: Final = "it is read as an open tree"


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the robots and fixtures of a stage.

    Raises:
        FormatError: With all diagnostics, if the stage is faulty.
    """
    # The library reads the file itself, in a process of its own.
    stage = stage_record(data, path, options.roots, options.arguments, report)
    scene = StagePrims(stage, path, report, data)
    cell = _StageReader(scene, path).cell()
    report.raise_if_errors()
    return cell


class _StageReader:
    """Makes a cell of the prims of a stage."""

    def __init__(self, scene: StagePrims, path: str) -> None:
        self._scene = scene
        self._report = scene.report
        self._shapes = PrimShapes(scene, path)
        stem = os.path.basename(path).partition(".")[0]
        self._name = scene.name(scene.default) if scene.default else stem
        self._parts: dict[str, list[str]] = {}
        self._still: list[str] = []
        for each, prim in scene.prims.items():
            if prim.drawn:
                body = scene.body_of(each)
                (self._parts.setdefault(body, []) if body else self._still).append(each)
        self._free = FreeNames({WORLD})
        self._owners: dict[str, str] = {}
        self._made: list[Manipulator] = []
        self._mounts: list[Mount] = []
        self._frames: dict[str, str] = {}

    def cell(self) -> Workcell:
        """Return the cell."""
        joints = read_joints(self._scene)
        trees = self._trees(joints)
        robots: dict[str, Sequence[str]] = {}
        for tree, own in trees:
            made = self._manipulator(tree, own)
            if made is None:
                continue
            self._made.append(made)
            for path, link in tree.link_of.items():
                if path:
                    self._owners[path] = f"{tree.name}/{link}"
            if sum(bool(link.collision_shapes) for link in made.links) > 1:
                robots[tree.name] = [path for path in tree.link_of if path]
        for (tree, _), made in zip(trees, list(self._made), strict=False):
            self._mount(tree, made)
        self._add_still()
        self._report.raise_if_errors()
        if not self._made:
            self._report.error(
                self._scene.place,
                "no-links",
                "the stage has neither a body nor anything to see",
                hint="Is it a layer that another one refers to?",
            )
            self._report.raise_if_errors()
        cell = Workcell(
            name=self._name.replace("/", "_") or "cell",
            manipulators=tuple(self._made),
            mounts=tuple(self._mounts),
            rules=read_rules(self._scene, self._owners, robots, joints),
        )
        self._scene.report_unread()
        return cell

    # Trees of bodies

    def _trees(
        self, joints: Sequence[StageJoint]
    ) -> list[tuple[BodyTree, list[StageJoint]]]:
        """Return the trees, with their links."""
        scene = self._scene
        groups = groups_of(scene, joints)
        mounts = [joint for joint in joints if is_mount(scene, joint)]
        taken: dict[str, int] = {}
        for bodies, _ in groups:
            for body in bodies:
                for each in scene.above(body):
                    taken[each] = taken.get(each, 0) + 1
        group_of = {b: k for k, (bodies, _) in enumerate(groups) for b in bodies}
        standing: set[tuple[int, int]] = set()
        trees: list[tuple[BodyTree, list[StageJoint]]] = []
        for k, (bodies, own) in enumerate(groups):
            held = [
                joint
                for joint in mounts
                if group_of[joint.bodies[1]] == k
                and (group_of[joint.bodies[0]], k) not in standing
            ]
            mount = held[0] if held else None
            root, is_fixed = self._root(bodies, own, mount)
            if mount is not None:
                standing.add((k, group_of[mount.bodies[0]]))
            used = [joint for joint in own if not _holds(joint, root, is_fixed)]
            name = self._free.derive(self._tree_name(bodies, root, taken))
            tree = BodyTree(name=name, root=root, is_fixed=is_fixed, mount=mount)
            TreeBuilder(scene, tree, bodies, used, self._body, self._frames).build()
            trees.append((tree, used))
        return trees

    def _root(
        self,
        bodies: Sequence[str],
        joints: Sequence[StageJoint],
        mount: StageJoint | None,
    ) -> tuple[str, bool]:
        """Return the body that is the base, empty for the world; and if it is fixed."""
        scene = self._scene
        if mount is not None:
            return mount.bodies[1], True
        to_world = [joint for joint in joints if "" in joint.bodies]
        in_tree = [j for j in to_world if not j.is_loop and j.kind != "distance"]
        fixed = [joint for joint in in_tree if joint.kind == "fixed"]
        if len(in_tree) == len(fixed) == 1:
            return fixed[0].bodies[0] or fixed[0].bodies[1], True
        if in_tree:
            return "", True
        carried = {j.bodies[1] for j in joints if not j.is_loop}
        marked = [body for body in bodies if ROOT in scene.prims[body].schemas]
        roots = [body for body in bodies if body not in carried]
        return (marked or roots or list(bodies))[0], False

    def _tree_name(
        self, bodies: Sequence[str], root: str, taken: dict[str, int]
    ) -> str:
        """Return what a tree is called: its component, what all its bodies are in."""
        scene = self._scene
        component = scene.component(bodies[0])
        marked = [e for e in scene.above(bodies[0]) if e in scene.roots]
        common = os.path.commonpath(bodies) if len(bodies) > 1 else ""
        for each in (component, common.rstrip("/")):
            if each and taken.get(each, 0) == len(bodies):
                return scene.name(each).replace("/", "_") or "robot"
        for each in marked:
            if each not in scene.bodies:
                return scene.name(each).replace("/", "_") or "robot"
        return scene.name(root or bodies[0]).replace("/", "_") or "robot"

    def _body(self, path: str, name: str, names: FreeNames) -> Link:
        """Return the link of a body, without its joint."""
        link = self._link(path, name, self._parts.get(path, ()))
        frames = tuple(self._frames_of(path, names))
        link = msgspec.structs.replace(link, frames=frames)
        inertia = inertia_of(self._scene, path, link)
        return (
            link if inertia is None else msgspec.structs.replace(link, inertia=inertia)
        )

    def _link(self, path: str, name: str, prims: Iterable[str]) -> Link:
        """Return a link with the shapes of prims."""
        visuals: list[Shape] = []
        collisions: list[Shape] = []
        for each in self._report.bounded(prims):
            drawn, touching = self._shapes.read(each, path)
            visuals += [drawn] if drawn is not None else []
            collisions += [touching] if touching is not None else []
        return Link(name=name, visuals=tuple(visuals), collisions=tuple(collisions))

    def _frames_of(self, path: str, names: FreeNames) -> Iterable[Frame]:
        """Yield the frames of a link: prims with a pose and nothing in them."""
        scene = self._scene
        waiting = list(reversed(scene.children.get(path, ())))
        back = scene.pose(path).inverse()
        while waiting:
            each = waiting.pop()
            if each in scene.bodies:
                continue
            below = scene.children.get(each, ())
            waiting.extend(reversed(below))
            prim = scene.prims[each]
            name = scene.name(each)
            if prim.type == "Xform" and not below and name not in NO_FRAMES:
                name = names.derive(name)
                self._frames[each] = name
                yield Frame(
                    name=name,
                    pose=back @ scene.pose(each),
                    end_effector=prim.values.get(END) is True,
                )

    def _manipulator(
        self, tree: BodyTree, joints: Sequence[StageJoint]
    ) -> Manipulator | None:
        links = self._coupled(tree, joints)
        place = self._scene.at(tree.root)
        properties: list[Property] = []
        for link, joint in tree.gains.items():
            gains = joint.gains
            assert gains is not None
            numbers = (gains.stiffness, gains.damping, gains.target)
            if any(numbers):
                properties.append(Property(name=DRIVE, of=link, numbers=numbers))
        plain: dict[str, Any] = {
            "name": tree.name,
            "links": tuple(links),
            "properties": tuple(properties),
        }
        try:
            made = Manipulator(**plain)
            _ = made.limits
        except ModelError as error:
            message = str(error).removesuffix(".").replace("\n  ", " ")
            self._report.error(place, "bad-device", message)
            return None
        if not tree.loops:
            return made.replace(**self._at_home(tree, made))
        try:
            return made.replace(
                links=_with_passive(tree, made.links),
                loops=tuple(tree.loops),
                **self._at_home(tree, made),
            )
        except ModelError as error:
            message = f"{tree.name}: {error}".removesuffix(".")
            view = self._report.guessing(OPEN)
            view.error(place, "bad-loop", message)
            return made

    def _coupled(self, tree: BodyTree, joints: Sequence[StageJoint]) -> list[Link]:
        """Return the links of a tree, whose joints follow others without cycles."""
        leaders = {
            joint.path: joint.mimic.of
            for joint in joints
            if joint.mimic is not None and joint.path in tree.joint_of
        }
        kept = list(joints)
        for cycle in cycles(leaders):
            self._report.guessing("it is taken to move by itself").error(
                self._scene.at(cycle[0]),
                "mimic-cycle",
                f"joint <{cycle[0]}> mimics itself over {len(cycle)} joints",
                hint="Let one of them move by itself.",
            )
            kept = [joint for joint in kept if joint.path != cycle[0]]
        for joint in kept:
            if joint.mimic is not None and joint.mimic.of not in tree.joint_of:
                message = f"joint <{joint.path}> follows one that is not in its tree"
                view = self._report.guessing("it is taken to move by itself")
                view.error(self._scene.at(joint.path), "unknown-joint", message)
        return with_couplings(tree.links, kept, tree.joint_of)

    def _mount(self, tree: BodyTree, made: Manipulator) -> None:
        """Mount a manipulator where its base stands."""
        scene = self._scene
        pose = scene.pose(tree.root)
        if tree.mount is not None:
            body, target = tree.mount.bodies[0], tree.mount.targets[0]
            on = self._owners[body]
            if target in self._frames:
                on = f"{on.partition('/')[0]}/{self._frames[target]}"
                body = target
            pose = scene.pose(body).inverse() @ pose
            self._mounts.append(Mount(manipulator=tree.name, on=on, pose=pose))
            return
        moves = any(link.moves for link in made.links)
        if pose.is_identity and tree.is_fixed == moves:
            return  # as a manipulator without a mount stands
        self._mounts.append(
            Mount(manipulator=tree.name, pose=pose, bolted=tree.is_fixed)
        )

    # What stands still

    def _add_still(self) -> None:
        """Add what stands still: components, and the environment."""
        scene = self._scene
        if not self._still:
            return
        colliders = [p for p in scene.prims.values() if is_collider(p)]
        if not colliders:
            self._shapes.collide_all = True
            self._report.note(
                scene.place,
                "no-colliders",
                "nothing in the stage is marked as a collider, so that all that stands "
                "still and is drawn may be touched",
            )
        groups: dict[str, list[str]] = {}
        for each in self._still:
            groups.setdefault(self._part_of(each), []).append(each)
        rest: dict[str, list[str]] = {}
        for first, prims in groups.items():
            if first == scene.component(first):
                self._add_component(first, prims)
            else:
                rest[first] = prims
        if rest:
            self._add_environment(rest)

    def _part_of(self, path: str) -> str:
        """Return the prim that is one with a shape that stands still."""
        scene = self._scene
        component = scene.component(path)
        if component and not any(
            body.startswith(f"{component}/") for body in self._owners
        ):
            return component
        above = parent_of(path)
        is_top = above in {"", scene.default} or "/" not in above[1:]
        if (is_top and scene.prims[path].type != "Mesh") or not above:
            return path
        is_group = scene.prims[above].type in {"Scope", ""}
        return path if is_group or is_top else above

    def _at_home(self, tree: BodyTree, made: Manipulator) -> dict[str, Any]:
        """Return the fields of a manipulator that starts where the stage is placed.

        Without a posture joints start at zero, or at the limit nearest to it.
        """
        named: dict[str, float] = {}
        lower, upper = made.limits
        for joint, low, high in zip(made.joint_names, lower, upper, strict=True):
            q = tree.positions.get(joint)
            nearest = 0.0 if tree.loops else min(max(0.0, low), high)
            if q is None and nearest:
                self._report.note(
                    self._scene.at(tree.root),
                    "home",
                    f"joint {quote(joint)} is placed at 0, outside of its limits from "
                    f"{low:.6g} to {high:.6g}; it starts at the nearest one, to which "
                    "simulators push it",
                )
            elif q is not None and abs(q - nearest) > PLACED:
                named[joint] = q
        if not named:
            return {}
        posture = Posture(name=STAGE, joints=tuple(named), q=tuple(named.values()))
        return {"postures": (posture,), "home": STAGE}

    def _add_component(self, path: str, prims: Sequence[str]) -> None:
        """Add a component that stands still as a manipulator of one link."""
        scene = self._scene
        at = os.path.commonpath(prims)
        at = parent_of(at) if at in prims else at
        name = self._free.derive(scene.name(path).replace("/", "_"))
        link = self._link(at, scene.name(at), prims)
        if not (link.visuals or link.collisions):
            return
        names = FreeNames({link.name})
        frames = tuple(self._frames_of(at, names))
        link = msgspec.structs.replace(link, frames=frames)
        self._made.append(Manipulator(name=name, links=(link,)))
        self._mounts.append(Mount(manipulator=name, pose=scene.pose(at)))
        self._owners[at] = f"{name}/{link.name}"

    def _add_environment(self, groups: dict[str, list[str]]) -> None:
        scene = self._scene
        name = self._free.derive(ENVIRONMENT)
        names = FreeNames({WORLD})
        links = [Link(name=WORLD)]
        for at, prims in groups.items():
            link = self._link(at, names.derive(scene.name(at)), prims)
            if link.visuals or link.collisions:
                joint = Fixed(precursor=scene.pose(at))
                link = msgspec.structs.replace(link, parent=WORLD, joint=joint)
                links.append(link)
                self._owners[at] = f"{name}/{link.name}"
        if len(links) > 1:
            self._made.append(Manipulator(name=name, links=tuple(links)))
            self._mounts.append(Mount(manipulator=name))


def _with_passive(tree: BodyTree, links: Sequence[Link]) -> tuple[Link, ...]:
    """Return links of which those without a drive follow, if any has one."""
    if not tree.gains:
        return tuple(links)
    return tuple(
        msgspec.structs.replace(link, passive=True)
        if link.moves and link.name not in tree.gains and link.coupling is None
        else link
        for link in links
    )


def _holds(joint: StageJoint, root: str, is_fixed: bool) -> bool:
    """Return whether a joint is the one that fixes a base to the world."""
    return (
        is_fixed
        and bool(root)
        and joint.kind == "fixed"
        and "" in joint.bodies
        and root in joint.bodies
        and not joint.is_loop
    )
