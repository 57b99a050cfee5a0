"""Arms of capsules among obstacles, as ours, MuJoCo's and Pinocchio's."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.model.rules import Rule
from armillary.shapes import Capsule
from benchmarks.robots import ROBOTS

Array = npt.NDArray[np.float64]
Rod = tuple[str, tuple[float, float, float], tuple[float, float, float], float]

CLEAR = 0.08
"""How far from the arm obstacles are where it begins [m]."""


@dataclass(frozen=True)
class Scene:
    """An arm of capsules, and what its step is to cost.

    Attributes:
        name: What figures call it.
        urdf: Below `ROBOTS`.
        without: Parts of the names of links that are left out.
        rods: Link, both ends and radius of each capsule [m].
        pairs: Links that are kept apart. Each link is in one, since obstacles are
            avoided by those alone.
        tip: The link that follows targets.
        home: Where it begins.
        count: How many obstacles there are.
        single: Most time of a step of one row among obstacles [s].
        batch: The same of a row of a batch.
    """

    name: str
    urdf: str
    without: str
    rods: tuple[Rod, ...]
    pairs: tuple[tuple[str, str], ...]
    tip: str
    home: Array
    count: int
    single: float
    batch: float

    def write(self, folder: Path) -> Path:
        """Write its URDF without shapes and return where."""
        tree = ET.parse(ROBOTS / self.urdf)
        root = tree.getroot()
        for link in root.findall("link"):
            for name in ("visual", "collision"):
                for shape in link.findall(name):
                    link.remove(shape)
            if link.find("inertial") is None:
                link.append(
                    ET.fromstring(
                        '<inertial><mass value="0.1"/><inertia ixx="0.001" ixy="0" '
                        'ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>'
                    )
                )
            if self.without in link.get("name", ""):
                root.remove(link)
        for joint in root.findall("joint"):
            child = joint.find("child")
            if child is not None and self.without in child.get("link", ""):
                root.remove(joint)
        for name in ("transmission", "gazebo"):
            for part in root.findall(name):
                root.remove(part)
        path = folder / f"{self.name}.urdf"
        tree.write(path)
        return path

    @property
    def capsule_pairs(self) -> list[tuple[int, int]]:
        """Return the capsules that are kept apart, by their places in `rods`."""
        of: dict[str, list[int]] = {}
        for k, (link, *_) in enumerate(self.rods):
            of.setdefault(link, []).append(k)
        return [each for a, b in self.pairs for each in product(of[a], of[b])]

    def cell(self, path: Path) -> arm.Cell:
        """Return ours."""
        (manipulator,) = arm.load(path).manipulators
        return arm.Cell(manipulators=[self.clothed(manipulator)])

    def clothed(self, manipulator: arm.Manipulator) -> arm.Manipulator:
        """Return a manipulator whose links have the capsules."""
        links = [
            link.replace(
                collisions=[
                    Capsule(pose=pose, radius=r, length=length)
                    for name, a, b, r in self.rods
                    if name == link.name
                    for pose, length in [_along(a, b)]
                ]
            )
            for link in manipulator.links
        ]
        return manipulator.replace(links=links)

    def obstacles(self, path: Path, seed: int) -> Array:
        """Return spheres and capsules: both ends and the radius, shape (count, 7)."""
        rng = np.random.default_rng(seed)
        cell = self.cell(path)
        frames = [link for link, *_ in self.rods]
        poses = [cell.fk(link)(self.home) for link in frames]
        own = [
            (X[:3, :3] @ a + X[:3, 3], X[:3, :3] @ b + X[:3, 3], r)
            for X, (_, a, b, r) in zip(poses, self.rods, strict=True)
        ]
        found: list[Array] = []
        while len(found) < self.count:
            turn, out = rng.uniform(-1.8, 1.8), rng.uniform(0.35, 0.8)
            centre = out * np.array([np.cos(turn), np.sin(turn), 0.0])
            centre[2] = rng.uniform(0.05, 0.95)
            half = rng.normal(size=3) * (len(found) % 3 > 0)
            half *= rng.uniform(0.05, 0.15) / max(np.linalg.norm(half), 1e-9)
            one = np.array(
                [*(centre - half), *(centre + half), rng.uniform(0.03, 0.07)]
            )
            if min(_between(one, *rod) for rod in own) > CLEAR:
                found.append(one)
        return np.array(found)

    def pinocchio(self, path: Path, obstacles: Array | None) -> tuple[Any, Any]:
        """Return Pinocchio's model, and the geometry with what is kept apart."""
        import coal
        import pinocchio as pin

        model = pin.buildModelFromUrdf(str(path))
        geometry = pin.GeometryModel()
        own: list[int] = []
        for k, (link, a, b, r) in enumerate(self.rods):
            frame = model.getFrameId(link)
            at = model.frames[frame]
            pose, length = _along(a, b)
            where = at.placement * pin.SE3(pose.matrix())
            shape = coal.Capsule(r, length)
            each = pin.GeometryObject(f"c{k}", at.parentJoint, frame, where, shape)
            own.append(geometry.addGeometryObject(each))
        if obstacles is None:
            return model, geometry
        for a, b in self.capsule_pairs:
            geometry.addCollisionPair(pin.CollisionPair(own[a], own[b]))
        for k, one in enumerate(obstacles):
            pose, length = _along(one[:3], one[3:6])
            shape = coal.Capsule(one[6], length) if length else coal.Sphere(one[6])
            where = pin.SE3(pose.matrix())
            each = pin.GeometryObject(f"o{k}", 0, 0, where, shape)
            number = geometry.addGeometryObject(each)
            for mine in own:
                if geometry.geometryObjects[mine].parentJoint:
                    geometry.addCollisionPair(pin.CollisionPair(mine, number))
        return model, geometry

    def mujoco(self, path: Path, obstacles: Array | None) -> Any:
        """Return MuJoCo's model, with capsules `c0` and so on, and obstacles `o0`."""
        import mujoco

        spec: Any = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False
        capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
        bodies = {body.name for body in spec.bodies}
        for k, (link, a, b, r) in enumerate(self.rods):
            body = spec.body(link) if link in bodies else spec.worldbody
            ends, size = [*a, *b], [r, 0, 0]
            body.add_geom(type=capsule, fromto=ends, size=size, name=f"c{k}")
        for k, one in enumerate(() if obstacles is None else obstacles):
            size = [one[6], 0, 0]
            if (one[:3] == one[3:6]).all():
                ball = mujoco.mjtGeom.mjGEOM_SPHERE
                spec.worldbody.add_geom(type=ball, pos=one[:3], size=size, name=f"o{k}")
            else:
                spec.worldbody.add_geom(
                    type=capsule, fromto=list(one[:6]), size=size, name=f"o{k}"
                )
        return spec.compile()


def two_arms(path: Path) -> tuple[arm.Cell, Array]:
    """Return two UR5 that face each other, and where they begin."""
    (manipulator,) = arm.load(path).manipulators
    one = UR5.clothed(manipulator)
    cell = arm.Cell(
        manipulators=[one.replace(name="left"), one.replace(name="right")],
        mounts=[arm.Mount(manipulator="right", pose=arm.Pose.translation(0, 1.1, 0))],
        rules=arm.Rules(
            between=True,
            rules=[
                Rule(a=f"{side}/{a}", b=f"{side}/{b}", tested=True)
                for side in ("left", "right")
                for a, b in UR5.pairs
            ],
        ),
    )
    return cell, np.tile(UR5.home, 2)


def _along(a: Any, b: Any) -> tuple[arm.Pose, float]:
    """Return the middle of a segment with z along it, and its length [m]."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    length = float(np.linalg.norm(b - a))
    matrix = np.eye(4)
    matrix[:3, 3] = 0.5 * (a + b)
    if length:
        z = (b - a) / length
        x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
        x /= np.linalg.norm(x)
        matrix[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return arm.Pose.from_matrix(matrix.tolist()), length


def _between(one: Array, a: Array, b: Array, radius: float) -> float:
    """Return about how far two capsules are apart, by points on both [m]."""
    s = np.linspace(0.0, 1.0, 9)[:, None]
    p, q = one[:3] + s * (one[3:6] - one[:3]), a + s * (b - a)
    gaps = np.linalg.norm(p[:, None] - q[None], axis=2)
    return float(gaps.min()) - radius - float(one[6])


def _z(link: str, low: float, high: float, radius: float) -> Rod:
    return link, (0.0, 0.0, low), (0.0, 0.0, high), radius


PANDA = Scene(
    name="Panda",
    urdf="panda_description/urdf/panda.urdf",
    without="finger",
    rods=(
        ("panda_link0", (-0.075, 0.0, 0.06), (0.0, 0.0, 0.06), 0.09),
        _z("panda_link1", -0.333, -0.05, 0.06),
        _z("panda_link2", -0.06, 0.06, 0.06),
        _z("panda_link3", -0.22, -0.07, 0.06),
        _z("panda_link4", -0.06, 0.06, 0.06),
        _z("panda_link5", -0.31, -0.21, 0.06),
        ("panda_link5", (0.0, 0.08, -0.13), (0.0, 0.08, -0.06), 0.035),
        _z("panda_link6", -0.07, 0.01, 0.05),
        _z("panda_link7", -0.06, 0.08, 0.04),
        ("panda_hand", (0.0, -0.05, 0.04), (0.0, 0.05, 0.04), 0.04),
        ("panda_hand", (0.0, -0.05, 0.1), (0.0, 0.05, 0.1), 0.02),
    ),
    pairs=(
        *product(
            ("panda_link0", "panda_link1", "panda_link2"),
            ("panda_link5", "panda_link6", "panda_link7", "panda_hand"),
        ),
        ("panda_link0", "panda_link4"),
        ("panda_link3", "panda_link7"),
        ("panda_link3", "panda_hand"),
    ),
    tip="panda_link7",
    home=np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]),
    count=15,
    single=30e-6,
    batch=7e-6,
)

UR5 = Scene(
    name="UR5",
    urdf="ur_description/urdf/ur5_robot.urdf",
    without="(none)",
    rods=(
        _z("shoulder_link", -0.05, 0.05, 0.065),
        _z("upper_arm_link", 0.0, 0.425, 0.06),
        _z("forearm_link", 0.0, 0.392, 0.05),
        ("wrist_1_link", (0.0, 0.0, 0.0), (0.0, 0.093, 0.0), 0.045),
        _z("wrist_2_link", 0.0, 0.0946, 0.045),
        ("wrist_3_link", (0.0, 0.0, 0.0), (0.0, 0.0823, 0.0), 0.045),
    ),
    pairs=(
        *product(
            ("shoulder_link",),
            ("forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link"),
        ),
        *product(("upper_arm_link",), ("wrist_1_link", "wrist_2_link", "wrist_3_link")),
    ),
    tip="wrist_3_link",
    home=np.array([0.0, -1.2, 1.5, -1.0, -1.4, 0.3]),
    count=12,
    single=18e-6,
    batch=7e-6,
)
