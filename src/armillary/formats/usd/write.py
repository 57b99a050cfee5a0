"""Cells to stages of USD."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report, fault
from armillary.formats.features import (
    ALL,
    FEATURES,
    SAMPLED,
    Held,
    fields_of,
    report_losses,
)
from armillary.formats.format import WriteOptions
from armillary.formats.joint_axis import HELD_BY_LINES
from armillary.formats.names import FreeNames
from armillary.formats.open_loops import report_open_loops
from armillary.formats.usd.animation import animate, motion_states
from armillary.formats.usd.read import DRIVE, END, ENVIRONMENT, STAGE
from armillary.formats.usd.rules import SELF
from armillary.formats.usd.trees import pivot_name
from armillary.formats.usd.write_joints import JointWriter, can_close
from armillary.formats.usd.write_rules import stage_rules
from armillary.formats.usd.write_shapes import DRAWN, ShapeWriter, pxr, set_pose
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import home
from armillary.model.frame import Frame
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints.fixed import Fixed
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import SHAPES
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["held_features", "write", "write_files"]

TEXT: Final = ".usda"
PACKAGE: Final = ".usdz"
EPOCH: Final = 315_619_200
"""The time of files in packages, so that equal cells give equal bytes: 2 Jan 1980."""


def held_features() -> Held:
    """Return what a stage of USD holds of a cell."""
    solids = [kind.__name__ for kind in SHAPES if issubclass(kind, Primitive)]
    return {
        **HELD_BY_LINES,
        "couplings": ALL,
        "passive joints": "of loops",
        "closed loops": "those of a manipulator, without telescopes",
        "names of joints": ALL,
        **fields_of(Limits, ("lower", "upper", "velocity", "effort")),
        "motors and gears": "the inertia behind the gear",
        **fields_of(JointDynamics, ("damping", "friction")),
        "masses": ALL,
        **fields_of(Link, ("frames", "visuals", "collisions")),
        **fields_of(Frame, Frame.__struct_fields__),
        "primary frames": "in the poses",
        **dict.fromkeys(solids, "as a mesh"),
        **dict.fromkeys((kind.__name__ for kind in DRAWN), ALL),
        "HalfSpace": "as a plane",
        "Mesh": "in the stage",
        **fields_of(Shape, ("name", "colour")),
        "several manipulators": ALL,
        "mounts": ALL,
        "movable bases": "in the world",
        "postures": "in which it is placed",
        "home": "in which it is placed",
        "collision rules": "pairs of links",
        "properties": "gains of drives",
        "motions": SAMPLED,
    }


def write(cell: Workcell, report: Report, options: WriteOptions) -> bytes:
    """Return the text of the stage of a cell."""
    return _encoded(_stage(cell, report, options), TEXT)


def write_files(
    cell: Workcell, name: str, options: WriteOptions, report: Report
) -> dict[str, bytes]:
    """Return the stage of a cell: text, binary, or a package, as its name says."""
    ending = os.path.splitext(name)[1].lower()
    return {name: _encoded(_stage(cell, report, options), ending)}


def _encoded(stage: Any, ending: str) -> bytes:
    """Return the bytes of a stage."""
    layer = stage.GetRootLayer()
    if ending == TEXT:
        return layer.ExportToString().encode()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stage.usdc")
        layer.Export(path)
        if ending == PACKAGE:
            os.utime(path, (EPOCH, EPOCH))  # which the archive holds
            package = os.path.join(folder, "stage.usdz")
            pxr("UsdUtils").CreateNewUsdzPackage(pxr("Sdf").AssetPath(path), package)
            path = package
        with open(path, "rb") as file:
            return file.read()


def _stage(cell: Workcell, report: Report, options: WriteOptions) -> Any:
    """Return the stage of a cell.

    Raises:
        FormatError: The library is not installed, or the cell is empty.
    """
    if importlib.util.find_spec("pxr") is None:
        raise fault(
            "",
            "missing-library",
            "USD is written with the library usd-core, which is not installed",
            hint="Install it: pip install armillary[usd].",
        )
    if not cell.manipulators:
        message = "the cell has no manipulator; a stage needs something to hold"
        report.error(NOWHERE, "no-links", message)
        report.raise_if_errors()
    return _StageWriter(cell, report, options).stage()


class _StageWriter:
    """Makes the stage of a cell."""

    def __init__(self, cell: Workcell, report: Report, options: WriteOptions) -> None:
        self._cell = cell
        self._report = report
        self._options = options
        self._state = home(cell)
        self._poses: Mapping[str, Any] = poses(cell, self._state)
        self._stage = pxr("Usd").Stage.CreateInMemory()
        self._geom = pxr("UsdGeom")
        self._physics = pxr("UsdPhysics")
        self._tf = pxr("Tf")
        self._identifiers = FreeNames(set())
        self._paths: dict[str, str] = {}
        self._components: dict[str, str] = {}
        self._joints: dict[str, Any] = {}
        self._between: dict[frozenset[str], Any] = {}
        """The joint between two links, by their full names."""
        self._joint_writer = JointWriter(self._stage, report)
        self._pivots: dict[str, dict[str, Link]] = {}
        self._mounts = {mount.manipulator: mount for mount in cell.mounts}
        root = self._identifier(cell.name or "cell")
        self._root = f"/{root}"
        looks = f"{self._root}/Looks"
        self._shapes = ShapeWriter(self._stage, looks, options.meshes, report)
        self._names: dict[str, FreeNames] = {
            self._root: FreeNames({"Looks", "PhysicsScene"})
        }

    def stage(self) -> Any:
        """Return the stage."""
        stage, cell = self._stage, self._cell
        self._geom.SetStageMetersPerUnit(stage, 1.0)
        self._geom.SetStageUpAxis(stage, "Z")
        self._physics.SetStageKilogramsPerUnit(stage, 1.0)
        root = self._geom.Xform.Define(stage, self._root).GetPrim()
        self._keep_name(root, cell.name)
        pxr("Usd").ModelAPI(root).SetKind("assembly")
        stage.SetDefaultPrim(root)
        scene = self._physics.Scene.Define(stage, f"{self._root}/PhysicsScene")
        scene.CreateGravityDirectionAttr((0.0, 0.0, -1.0))
        scene.CreateGravityMagnitudeAttr(9.81)
        self._list_lost()
        for manipulator in cell.manipulators:
            self._add(manipulator)
        for manipulator in cell.manipulators:
            if not self._stands_still(manipulator):
                self._join(manipulator)
        self._filter()
        for motion in self._options.motions.values():  # one, see `SAMPLED`
            states = motion_states(self._state, motion, self._options.rate)
            paths = {**self._paths, **self._components}
            animate(stage, paths, cell, states, self._options.rate)
        return stage

    def _list_lost(self) -> None:
        """List what a stage does not hold."""
        cell, report = self._cell, self._report
        report_losses(cell, held_features(), report)
        report.unsupported.add(FEATURES["properties"].what, count=len(cell.properties))
        for each in cell.manipulators:
            for posture in each.postures:
                if posture.name != each.home or posture.name != STAGE:
                    report.unsupported.add("a posture")
            for noted in each.properties:
                if noted.name != DRIVE:
                    report.unsupported.add("a property")
        report_open_loops(
            cell,
            report,
            is_written=lambda owner, place: (
                bool(owner)
                and can_close(cell.manipulators[cell.index[owner]].loops[place])
            ),
        )

    # Names

    def _identifier(self, name: str) -> str:
        return str(self._tf.MakeValidIdentifier(name))

    def _path(self, above: str, name: str) -> str:
        names = self._names.setdefault(above, FreeNames(set()))
        return f"{above}/{names.derive(self._identifier(name))}"

    def _keep_name(self, prim: Any, name: str) -> None:
        """Keep a name that is not an identifier."""
        if name and prim.GetName() != name:
            prim.SetDisplayName(name)

    def _define(self, above: str, name: str, kind: str = "Xform") -> tuple[str, Any]:
        path = self._path(above, name)
        prim = getattr(self._geom, kind).Define(self._stage, path).GetPrim()
        self._keep_name(prim, name)
        return path, prim

    # Links

    def _stands_still(self, manipulator: Manipulator) -> bool:
        """Return whether a manipulator is written without bodies."""
        return self._is_environment(manipulator) or self._is_fixture(manipulator)

    def _is_fixture(self, manipulator: Manipulator) -> bool:
        """Return whether this is one link with shapes that stands in the world."""
        mount = self._mounts.get(manipulator.name)
        if len(manipulator.links) > 1 or mount is None or mount.on != WORLD:
            return False
        return mount.bolted and all(map(_is_still, manipulator.links))

    def _is_environment(self, manipulator: Manipulator) -> bool:
        base, *others = manipulator.links
        return (
            manipulator.name == ENVIRONMENT
            and self._mounts.get(ENVIRONMENT) == Mount(manipulator=ENVIRONMENT)
            and base == Link(name=WORLD)
            and bool(others)
            and all(
                type(link.joint) is Fixed and link.parent == WORLD and _is_still(link)
                for link in others
            )
            and not any(link.frames for link in others)
        )

    def _add(self, manipulator: Manipulator) -> None:
        """Add the links of a manipulator."""
        above = self._root
        if not self._is_environment(manipulator):
            above, prim = self._define(self._root, manipulator.name)
            pxr("Usd").ModelAPI(prim).SetKind("component")
            self._components[manipulator.name] = above
            if len(manipulator.links) > 1:
                self._physics.ArticulationRootAPI.Apply(prim)
        still = self._stands_still(manipulator)
        self._pivots[manipulator.name] = pivots = self._pivots_of(manipulator)
        lost = [
            name
            for name, body in pivots.items()
            if not name.startswith(pivot_name(body.name))
        ]
        if lost:
            self._report.unsupported.add(
                "the name of a link that is nothing but the end of a joint",
                count=len(lost),
            )
        for k in manipulator.order:
            link = manipulator.links[k]
            if link.name in pivots:
                self._paths[f"{manipulator.name}/{link.name}"] = ""
                continue
            if still and link.name == WORLD and len(manipulator.links) > 1:
                continue
            full = f"{manipulator.name}/{link.name}"
            path, prim = self._define(above, link.name)
            self._paths[full] = path
            set_pose(prim, self._pose(full) @ link.primary)
            if not still:
                self._physics.RigidBodyAPI.Apply(prim)
                self._shapes.add_mass(prim, link, full)
            names = self._names.setdefault(path, FreeNames(set()))
            self._shapes.add(path, link, names)
            for frame in link.frames:
                at, made = self._define(path, frame.name)
                self._paths[f"{manipulator.name}/{frame.name}"] = at
                set_pose(made, frame.pose)
                if frame.end_effector:
                    kind = pxr("Sdf").ValueTypeNames.Bool
                    made.CreateAttribute(END, kind, True).Set(True)

    def _pivots_of(self, manipulator: Manipulator) -> dict[str, Link]:
        """Return bare links, and the link that each carries, with which it is one body.

        Readers put them between a joint and a link whose origin is beside its axis.
        """
        children: dict[str, list[Link]] = {}
        for link in manipulator.links:
            if link.parent is not None:
                children.setdefault(link.parent, []).append(link)
        named = {loop.a for loop in manipulator.loops}
        named |= {loop.b for loop in manipulator.loops}
        named |= {mount.on.partition("/")[2] for mount in self._cell.mounts}
        return {
            link.name: children[link.name][0]
            for link in manipulator.links
            if link.moves
            and not link.inputs
            and link.inertia is None
            and not (link.visuals or link.collisions or link.frames)
            and link.name not in named
            and link.primary.is_identity
            and len(children.get(link.name, ())) == 1
            and not children[link.name][0].moves
        }

    def _pose(self, full: str) -> Pose:
        X: Any = self._poses[full]
        return Pose.from_matrix(X)

    # Joints

    def _join(self, manipulator: Manipulator) -> None:
        """Add the joints of a manipulator."""
        base = manipulator.links[manipulator.base]
        above = self._link(manipulator, base.name).rpartition("/")[0]
        links = {link.name: link for link in manipulator.links}
        pivots = self._pivots[manipulator.name]
        gains = {
            each.of: each.numbers
            for each in manipulator.properties
            if each.name == DRIVE and len(each.numbers) == 3
        }
        self._mount(manipulator, base, above)
        moved: list[Link] = []
        for k in manipulator.order:
            link = manipulator.links[k]
            if link.parent is None:
                continue
            parent = links[link.parent]
            if parent.name in pivots:
                continue
            body, primary = link, link.primary
            if link.name in pivots:
                body = pivots[link.name]
                primary = body.joint.precursor @ body.primary
            ends = (
                self._link(manipulator, parent.name),
                self._link(manipulator, body.name),
            )
            path = self._path(above, link.coordinate)
            made = None
            if link.moves:
                at = (parent.primary, primary)
                made = self._joint_writer.moving(link, path, ends, at)
            if made is None:
                if link.moves:
                    self._report.warning(
                        NOWHERE,
                        "joint-type",
                        f"joint {quote(link.coordinate)} is a "
                        f"{type(link.joint).__name__}, which USD cannot hold; it is "
                        "fixed where it is at home",
                    )
                self._fix(manipulator, parent.name, body.name, path)
            else:
                names = (f"{manipulator.name}/{k}" for k in (parent.name, body.name))
                self._between[frozenset(names)] = made
                prim = made.GetPrim()
                self._keep_name(prim, link.coordinate)
                self._joints[f"{manipulator.name}/{link.coordinate}"] = prim
                numbers = gains.get(link.name, (0.0, 0.0, 0.0))
                if not link.passive:
                    has_loops = bool(manipulator.loops) and link.coupling is None
                    self._joint_writer.drive(prim, link, numbers, always=has_loops)
                moved.append(link)
                continue
            self._keep_name(self._stage.GetPrimAtPath(path), link.coordinate)
        for link in moved:
            if link.coupling is not None:
                self._follow(manipulator, link)
        for loop in filter(can_close, manipulator.loops):
            self._close(manipulator, loop, above)

    def _link(self, manipulator: Manipulator, name: str) -> str:
        return self._paths[f"{manipulator.name}/{name}"]

    def _fix(
        self, manipulator: Manipulator, parent: str, child: str, path: str
    ) -> None:
        """Fix a link on another one, where the stage is placed."""
        links = {link.name: link for link in manipulator.links}
        X_WP, X_WC = (
            self._pose(f"{manipulator.name}/{name}") @ links[name].primary
            for name in (parent, child)
        )
        ends = (self._link(manipulator, parent), self._link(manipulator, child))
        frames = (X_WP.inverse() @ X_WC, IDENTITY)
        self._joint_writer.define("FixedJoint", path, ends, frames)

    def _mount(self, manipulator: Manipulator, base: Link, above: str) -> None:
        """Fix a base to the world or to what it is mounted on, unless it is free."""
        moves = any(link.moves for link in manipulator.links)
        default = Mount(manipulator=manipulator.name, bolted=moves)
        mount = self._mounts.get(manipulator.name, default)
        path, end = self._link(manipulator, base.name), ""
        full = f"{manipulator.name}/{base.name}"
        X_WB = self._pose(full) @ base.primary
        if not mount.bolted and mount.on == WORLD:
            return
        if not mount.bolted:
            self._report.unsupported.add("that a part on another one may be moved")
        if mount.on != WORLD:
            end = self._paths.get(mount.on, "")
        X_SB = self._world_pose(end).inverse() @ X_WB if end else X_WB
        joint = self._path(above, f"{base.name}_mount")
        self._joint_writer.define("FixedJoint", joint, (end, path), (X_SB, IDENTITY))

    def _world_pose(self, path: str) -> Pose:
        default = pxr("Usd").TimeCode.Default()
        cache = self._geom.XformCache(default)
        matrix = np.array(
            cache.GetLocalToWorldTransform(self._stage.GetPrimAtPath(path))
        )
        return Pose.from_matrix(matrix.T)

    def _follow(self, manipulator: Manipulator, link: Link) -> None:
        coupling = link.coupling
        assert coupling is not None
        prim = self._joints[f"{manipulator.name}/{link.coordinate}"]
        leader = self._joints.get(f"{manipulator.name}/{coupling.of}")
        if leader is None:
            self._report.unsupported.add("a coupling to a joint that is not written")
            return
        self._joint_writer.follow(prim, leader, link)

    def _close(self, manipulator: Manipulator, loop: Any, above: str) -> None:
        frames: list[Pose] = []
        ends: list[str] = []
        for name in (loop.a, loop.b):
            at = manipulator.frame_refs[name]
            link = manipulator.links[at.link]
            end = self._paths.get(f"{manipulator.name}/{name}", "")
            is_frame = bool(end) and name != link.name
            ends.append(end if is_frame else self._link(manipulator, link.name))
            pose = link.primary.inverse() @ at.pose
            frames.append(IDENTITY if is_frame else pose)
        path = self._path(above, loop.name or f"{loop.a}_{loop.b}")
        self._joint_writer.close(loop, path, (ends[0], ends[1]), (frames[0], frames[1]))
        self._keep_name(self._stage.GetPrimAtPath(path), loop.name)

    # Collisions

    def _filter(self) -> None:
        """Write which pairs of links are not tested."""
        rules = stage_rules(self._cell, self._options.meshes, self._report)
        kind = pxr("Sdf").ValueTypeNames.Bool
        for one, other in rules.joined:
            joint = self._between.get(frozenset({one, other}))
            if joint is None:
                self._report.unsupported.add(
                    "that two links are tested which a joint joins"
                )
            else:
                joint.CreateCollisionEnabledAttr(True)
        for name in rules.alone:
            manipulator = self._cell.manipulators[self._cell.index[name]]
            base = manipulator.links[manipulator.base]
            above = self._link(manipulator, base.name).rpartition("/")[0]
            prim = self._stage.GetPrimAtPath(above)
            prim.CreateAttribute(SELF, kind, False).Set(False)
        for one, others in rules.filtered.items():
            if self._paths.get(one):
                prim = self._stage.GetPrimAtPath(self._paths[one])
                api = self._physics.FilteredPairsAPI.Apply(prim)
                targets = [
                    self._paths[each] for each in others if self._paths.get(each)
                ]
                api.CreateFilteredPairsRel().SetTargets(targets)


def _is_still(link: Link) -> bool:
    """Return whether a link is what no simulation moves: shapes alone."""
    return (
        link.inertia is None
        and link.primary.is_identity
        and bool(link.visuals or link.collisions)
    )
