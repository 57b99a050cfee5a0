"""A cell to MJCF."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import ALL, FEATURES, Held, fields_of, report_losses
from armillary.formats.format import WriteOptions
from armillary.formats.joint_axis import (
    HELD_BY_LINES,
    JointAxis,
    joint_axis_of,
    lost_joints,
)
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mesh.references import with_meshes_of, with_moved_meshes
from armillary.formats.mjcf.document import COMPILER
from armillary.formats.mjcf.inertias import LEAST_INERTIA, NO_MASS, NO_MOMENT
from armillary.formats.mjcf.joints import JOINT
from armillary.formats.mjcf.kept import PREFIX
from armillary.formats.mjcf.names import WrittenNames
from armillary.formats.mjcf.poses import pose_attributes
from armillary.formats.mjcf.rules import DefaultPairs, is_pivot
from armillary.formats.mjcf.trees import BASE, ENVIRONMENT
from armillary.formats.mjcf.write_sections import SectionWriter
from armillary.formats.mjcf.write_shapes import READ_BY_MUJOCO, TYPES, GeomWriter
from armillary.formats.planar_loops import with_pins
from armillary.formats.xml import Element, tag, to_text
from armillary.formats.xml.write import Value
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.display import plural
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.mount import WORLD, Mount
from armillary.model.primitive import Primitive
from armillary.model.shapes import SHAPES
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, Vector3, apply

__all__ = ["held_features", "write", "write_files"]

UNBOUNDED: Final = 1e9
"""The number that is written for an infinite limit where the other one is finite."""

MOST_PAIRS: Final = 1_000_000

DEFAULT_NAME: Final = Workcell().name


def held_features() -> Held:
    """Return what MJCF holds of a cell."""
    solids = [kind.__name__ for kind in SHAPES if issubclass(kind, Primitive)]
    return {
        **HELD_BY_LINES,
        "couplings": ALL,
        "passive joints": "of loops",
        "closed loops": "rods, and those that hold a point or a pose",
        "names of joints": ALL,
        **fields_of(Limits, ("lower", "upper", "effort")),
        **fields_of(JointDynamics, JointDynamics.__struct_fields__),
        "masses": ALL,
        "frames": ALL,
        "primary frames": "in the poses",
        "visuals": ALL,
        "collision shapes": ALL,
        **dict.fromkeys(solids, "as a mesh"),
        **dict.fromkeys((kind.__name__ for kind in TYPES), ALL),
        "HalfSpace": ALL,
        "ConvexPolyhedron": ALL,
        "Mesh": "others than OBJ and MSH as STL",
        "colours": ALL,
        "names of shapes": "that occur once",
        "several manipulators": ALL,
        "mounts": ALL,
        "movable bases": "in the world",
        "postures": ALL,
        "home": "called `home` or `start`",
        "collision rules": "pairs of links",
        "properties": "what is kept of MJCF",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the MJCF of a cell.

    Raises FormatError for a cell that MJCF cannot hold.
    """
    if not cell.manipulators:
        message = "the cell has no manipulator; a model needs a body"
        report.error(NOWHERE, "no-links", message)
        report.raise_if_errors()
    root = _MjcfExport(with_pins(cell, turns=False), report).root()
    report.raise_if_errors()
    return to_text(root).encode()


def write_files(
    cell: Workcell, name: str, options: WriteOptions, report: Report
) -> dict[str, bytes]:
    """Return the MJCF of a cell, and the meshes that MuJoCo cannot read as STL.

    It knows no packages: the files of meshes take the places of references to them.
    """
    files: dict[str, bytes] = {}
    if isinstance(options.meshes, MeshFiles):
        folder = f"{name.split('.', maxsplit=1)[0]}_meshes"
        cell, files = with_meshes_of(
            READ_BY_MUJOCO, cell, folder, options.meshes, report
        )
        cell = with_moved_meshes(
            cell,
            options.folder,
            options.meshes,
            report,
            has_packages=False,
            new=files,
        )
    return {**files, name: write(cell, report)}


class _MjcfExport:
    """The model that is being made."""

    def __init__(self, cell: Workcell, report: Report) -> None:
        self.cell, self.report = cell, report
        report_losses(cell, held_features(), report)
        for each in (cell, *cell.manipulators):
            for noted in each.properties:
                if each is not cell or not noted.name.startswith(PREFIX):
                    report.unsupported.add(FEATURES["properties"].what)
        self.names = WrittenNames(cell, report)
        self.pairs = CollisionPairs(cell, cell.rules).pairs(Tree.of(cell))
        self.tested = set(self.pairs)
        touching = {name for pair in self.tested for name in pair}
        self.geoms = GeomWriter(self.names, touching, report)
        self.unbounded: Counter[str] = Counter()
        self.balances = False
        self.lost: set[str] = set()
        """Joints that are written as fixed, as `manipulator/joint`."""
        self._rests = [lost_joints(each) for each in cell.manipulators]
        self.joint_order: list[tuple[int, str]] = []
        """Manipulator and coordinate of each joint that is written, in order; the
        coordinate of a free base is empty."""
        self.merged: set[tuple[int, int]] = set()
        self.mocap = {note.of for note in cell.properties if note.name == "mjcf.mocap"}
        self._mounted: dict[int, list[int]] = {}
        for number, at in enumerate(cell.base_frames):
            self._mounted.setdefault(at.link, []).append(number)
        self._busy = self._referred()

    def _referred(self) -> set[str]:
        """Return the links that mounts and properties name, which must have bodies."""
        named = {note.of for note in self.cell.properties if note.of}
        return named | {mount.on for mount in self.cell.mounts}

    def root(self) -> Element:
        """Return the root element."""
        world = self._world()
        sections = SectionWriter(
            self.cell,
            self.names,
            self.report,
            lost=self.lost,
            joint_order=self.joint_order,
            excludes=list(self.excludes()),
        )
        name = self.cell.manipulators[0].name
        if self.names.single is not None:
            name = self.cell.manipulators[self.names.single].name
            if self.cell.name not in (DEFAULT_NAME, name):
                what = f"the cell's name {quote(self.cell.name)}"
                self.report.unsupported.add(what)
        else:
            name = self.cell.name
        compiler = COMPILER.write(
            angle="radian",
            inertiafromgeom=False,
            balanceinertia=self.balances,
        )
        self._report_changes()
        return tag(
            "mujoco",
            {"model": name},
            compiler,
            *sections.settings(),
            *self._section("asset", [*self.geoms.assets(), *sections.assets()]),
            tag("worldbody", {}, *world),
            *sections.elements(),
        )

    @staticmethod
    def _section(name: str, children: Sequence[Element]) -> list[Element]:
        return [tag(name, {}, *children)] if children else []

    # Bodies

    def _world(self) -> list[Element]:
        """Return what is in the world."""
        parts: list[Element] = []
        for number, manipulator in enumerate(self.cell.manipulators):
            if manipulator.name == ENVIRONMENT and self.names.has_environment:
                link = manipulator.links[0]
                parts += self._contents(number, link, IDENTITY)
                parts += self._mounted_on(number, 0)
        return [*self.names.kept_parts(""), *parts, *self._standing(-1)]

    def _standing(self, carrier: int) -> list[Element]:
        """Return the bodies of manipulators on a link; -1 is the world."""
        parts: list[Element] = []
        for number in self._mounted.get(carrier, ()):
            manipulator = self.cell.manipulators[number]
            if manipulator.name == ENVIRONMENT and self.names.has_environment:
                continue
            parts += self._base(number)
        return parts

    def _mounted_on(self, number: int, link: int) -> list[Element]:
        return self._standing(self.cell.starts[number] + link)

    def _base(self, number: int) -> list[Element]:
        """Return the body of a base, or what is on it where it needs none."""
        manipulator = self.cell.manipulators[number]
        base = manipulator.links[manipulator.base]
        at = self.cell.base_frames[number]
        pose = at.pose @ base.joint.precursor
        mount = self.cell.mounted.get(manipulator.name)
        if self._is_bare_base(number, base, pose, mount):
            self.names.skip_base(number)
            return self._children(number, manipulator.base, IDENTITY)
        first: list[Element] = []
        attributes: dict[str, Value] = {}
        if mount is not None and not mount.bolted:
            name = self.cell.qualified(f"{manipulator.name}/{base.name}")
            if mount.on != WORLD:
                self.report.warning(
                    NOWHERE,
                    "not-kept",
                    f"{quote(manipulator.name)} is loose on {quote(mount.on)}; it is "
                    "written as fixed there",
                )
            elif name in self.mocap:
                attributes["mocap"] = "true"
            else:
                free = self.names.kept_attributes("freejoint", number, base.name)
                kind = "freejoint" if set(free) <= {"name"} else "joint"
                if kind == "joint":
                    free = {"type": "free", **free}
                first.append(tag(kind, free))
                self.joint_order.append((number, ""))
        moves = bool(first)
        return [self._body(number, manipulator.base, pose, first, moves, attributes)]

    def _is_bare_base(
        self, number: int, base: Link, pose: Pose, mount: Mount | None
    ) -> bool:
        """Return whether reading puts a base below its children by itself."""
        manipulator = self.cell.manipulators[number]
        children = manipulator.children[manipulator.base]
        if (
            base != Link(name=BASE)
            or mount is not None
            or not pose.is_identity
            or not children
            or f"{manipulator.name}/{base.name}" in self._busy
            or self._mounted.get(self.cell.starts[number] + manipulator.base)
        ):
            return False
        if len(children) > 1:
            return bool(self.names.prefix(number))
        return all(self._moves(number, child) for child in children)

    def _moves(self, number: int, child: int) -> bool:
        link = self.cell.manipulators[number].links[child]
        return link.moves and joint_axis_of(link.joint) is not None

    def _children(self, number: int, parent: int, primary: Pose) -> list[Element]:
        """Return the bodies of what a link carries, by its frame or primary frame."""
        manipulator = self.cell.manipulators[number]
        parts: list[Element] = []
        for child in manipulator.children[parent]:
            parts.append(self._carried(number, [child]))
        return parts

    def _carried(self, number: int, chain: list[int]) -> Element:
        """Return the body behind one joint, or behind several with bare links."""
        manipulator = self.cell.manipulators[number]
        while self._is_pivot(number, chain[-1]):
            (child,) = manipulator.children[chain[-1]]
            self.merged.add((number, chain[-1]))
            chain.append(child)
        body = chain[-1]
        axes: list[tuple[Link, JointAxis]] = []
        pose = IDENTITY  # of the last link in the parent
        befores: list[Pose] = []
        for k in chain:
            link = manipulator.links[k]
            axis = self._axis(number, link)
            if axis is None:
                pose = pose @ self._still(number, link)
                continue
            befores.append(pose @ axis.before)
            pose = befores[-1] @ axis.after
            axes.append((link, axis))
        joints: list[Element] = []
        X_BP = pose.inverse()
        for (link, axis), X_PF in zip(axes, befores, strict=True):
            is_plain = len(axes) == 1 and axis.after.is_identity and len(chain) == 1
            X_BF = IDENTITY if is_plain else X_BP @ X_PF
            joints.append(self._joint(number, link, axis, X_BF))
        return self._body(number, body, pose, joints, bool(joints), {})

    def _still(self, number: int, link: Link) -> Pose:
        """Return the pose of a joint that is written as fixed."""
        if not link.moves or link.inputs:
            return link.joint.precursor
        return link.joint.transform(self._rests[number][link.coordinate])

    def _is_pivot(self, number: int, k: int) -> bool:
        """Return whether a link needs no body, as another joint follows at once."""
        manipulator = self.cell.manipulators[number]
        link = manipulator.links[k]
        return (
            is_pivot(manipulator, link)
            and self._moves(number, k)
            and f"{manipulator.name}/{link.name}" not in self._busy
            and not self._mounted.get(self.cell.starts[number] + k)
        )

    def _axis(self, number: int, link: Link) -> JointAxis | None:
        """Return the axis of a joint, None where it is written as fixed."""
        if not link.moves:
            return None
        name = f"{self.cell.manipulators[number].name}/{link.coordinate}"
        rest = self._rests[number].get(link.coordinate)
        if rest is not None:
            self.lost.add(name)
            self.report.warning(
                NOWHERE,
                "lost-joint",
                f"joint {quote(name)} is a {type(link.joint).__name__}, or follows "
                f"one, which MJCF does not have; it is written as fixed at {rest:g}",
            )
            return None
        return joint_axis_of(link.joint)

    def _joint(self, number: int, link: Link, axis: JointAxis, X_BF: Pose) -> Element:
        """Return a joint whose frame is at a pose in its body."""
        name = self.names.joint(number, link.coordinate)
        self.joint_order.append((number, link.coordinate))
        direction: Vector3 = axis.axis
        position = ZERO
        if not X_BF.is_identity:
            direction = apply(X_BF.rotation, axis.axis)
            position = ZERO if axis.slides else X_BF.position
        dynamics = link.dynamics
        fields: dict[str, object] = {
            "type": "slide" if axis.slides else "hinge",
            "axis": tuple(x + 0.0 for x in direction),
            "pos": tuple(x + 0.0 for x in position),
            "armature": dynamics.armature,
            "damping": dynamics.damping,
            "friction": dynamics.friction,
            "stiffness": dynamics.stiffness,
            "rest": dynamics.rest,
            **self._limits(link),
        }
        made = JOINT.write(fields)
        other = self.names.kept_attributes("joint", number, link.coordinate)
        return tag("joint", {"name": name, **made.attributes, **other})

    def _limits(self, link: Link) -> dict[str, object]:
        limits = link.limits
        if limits == UNLIMITED:
            return {}
        found: dict[str, object] = {}
        ends = [limits.lower, limits.upper]
        if any(map(math.isfinite, ends)):
            for k, (end, name) in enumerate(zip(ends, ("lower", "upper"), strict=True)):
                if math.isinf(end):
                    self.unbounded[name] += 1
                    ends[k] = math.copysign(UNBOUNDED, end)
            if ends[0] == ends[1]:
                ends[1] = math.nextafter(ends[1], math.inf)
            found["range"] = tuple(ends)
            if ends == [0.0, 0.0]:
                found["limited"] = True
        if math.isfinite(limits.effort):
            if limits.effort > 0.0:
                found["actuatorfrcrange"] = -limits.effort, limits.effort
            else:
                self.report.unsupported.add("an effort limit of 0")
        return found

    def _body(
        self,
        number: int,
        k: int,
        pose: Pose,
        joints: list[Element],
        moves: bool,
        attributes: dict[str, Value],
    ) -> Element:
        """Return the body of a link with all that it carries."""
        manipulator = self.cell.manipulators[number]
        link = manipulator.links[k]
        name = self.names.body(number, link.name)
        other = self.names.kept_attributes("body", number, link.name)
        contents = self._contents(number, link, link.primary, moves=moves)
        return tag(
            "body",
            {"name": name, **pose_attributes(pose), **attributes, **other},
            *joints,
            *contents,
            *self._children(number, k, link.primary),
            *self._mounted_on(number, k),
        )

    def _contents(
        self, number: int, link: Link, primary: Pose, *, moves: bool = False
    ) -> list[Element]:
        """Return what a body holds beside joints and bodies."""
        manipulator = self.cell.manipulators[number]
        qualified = f"{manipulator.name}/{link.name}"
        if not link.primary.is_identity:
            self.report.note(
                NOWHERE,
                "primary-frame",
                f"what link {quote(qualified)} holds is written by its outer frame",
            )
        parts: list[Element] = []
        if manipulator.name != ENVIRONMENT or not self.names.has_environment:
            parts += self._inertial(link, qualified, moves)
        parts += self.geoms.of_link(link, qualified)
        parts += self.names.loop_sites(number, link)
        for frame in link.frames:
            site = self.names.site(number, frame.name)
            other = self.names.kept_attributes("site", number, frame.name)
            placed = pose_attributes(primary @ frame.pose)
            parts.append(tag("site", {"name": site, **placed, **other}))
        return [*parts, *self.names.kept_parts(qualified)]

    def _inertial(self, link: Link, name: str, moves: bool) -> list[Element]:
        """Return the `<inertial>` of a link; MuJoCo needs one where a body moves."""
        inertia = link.inertia
        if inertia is not None and not link.primary.is_identity:
            inertia = inertia.transformed(link.primary)
        if inertia is None or inertia.mass <= 0.0:
            if not moves:
                return []
            self.report.note(
                NOWHERE,
                "no-mass",
                f"link {quote(name)} moves and has no mass; {NO_MASS:g} kg is written, "
                "and read as none",
            )
            inertia = SpatialInertia.from_centre(
                NO_MASS, ZERO, np.diag([NO_MOMENT] * 3).tolist()
            )
        central = np.array(inertia.about_centre())
        low, axes = np.linalg.eigh(central)
        if moves and low[0] <= LEAST_INERTIA:
            central = central + NO_MOMENT * np.eye(3)
            low = low + NO_MOMENT
        if low[0] + low[1] < low[2]:
            if low[0] + low[1] < low[2] * (1.0 - LEAST_INERTIA):
                self.balances = True
                self.report.warning(
                    NOWHERE,
                    "bad-inertia",
                    f"the inertia of {quote(name)} is one that MuJoCo refuses; it is "
                    "balanced there",
                )
            else:  # a flat body, but for rounding
                low = low + low[2] * 1e-14
                central = (axes * low) @ axes.T
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = central.tolist()
        values: dict[str, Value] = {
            "pos": tuple(x + 0.0 for x in inertia.centre()),
            "mass": inertia.mass,
        }
        if xy == xz == yz == 0.0:
            values["diaginertia"] = xx, yy, zz
        else:
            values["fullinertia"] = xx, yy, zz, xy, xz, yz
        return [tag("inertial", values)]

    # Pairs that are not tested

    def excludes(self) -> Iterable[Element]:
        """Yield an element for each pair that MuJoCo would test, and the cell not."""
        links = [name for name in self.pairs.links if name in self.geoms.touching]
        lost = 0
        count = len(links) * (len(links) - 1) // 2
        if count > MOST_PAIRS:
            self.report.error(
                NOWHERE,
                "too-many-pairs",
                f"{count} pairs of links are to be looked at, more than {MOST_PAIRS}",
            )
            return
        by_default = DefaultPairs(self.cell).among(links)
        for (i, a), (j, b) in combinations(enumerate(links), 2):
            is_tested = (a, b) in self.tested or (b, a) in self.tested
            if by_default[i, j] and not is_tested:
                ends = [self.names.body_of(name) for name in (a, b)]
                if ends[0] != ends[1]:
                    yield tag("exclude", {"body1": ends[0], "body2": ends[1]})
            elif is_tested and not by_default[i, j]:
                lost += 1
        if lost:
            self.report.warning(
                NOWHERE,
                "not-kept",
                f"that {plural(lost, 'pair')} of links that share a joint may touch is "
                "not kept; MuJoCo does not test them",
            )

    def _report_changes(self) -> None:
        for kind, count in self.unbounded.items():
            joints = "joints have" if count > 1 else "joint has"
            self.report.warning(
                NOWHERE,
                "unbounded",
                f"{count} {joints} no limit {quote(kind)}, but MJCF needs one beside "
                f"the other: {-UNBOUNDED if kind == 'lower' else UNBOUNDED:g} is "
                "written",
            )
        if self.cell.rules.touches:
            self.report.warning(
                NOWHERE, "not-kept", "what may touch an attached part is not kept"
            )
