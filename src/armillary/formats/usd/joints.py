"""Joints of UsdPhysics: what they join, how they move, how far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import SWAPPED_LIMITS
from armillary.formats.usd.process import PrimRecord
from armillary.formats.usd.scene import StagePrims, snapped
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.limits import INFINITE, Limits
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import rows

__all__ = ["AXES", "Freedom", "Gains", "Mimic", "StageJoint", "read_joints"]

AXES: Final = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
ENDS: Final = ("physics:body0", "physics:body1")
KINDS: Final = {
    "PhysicsFixedJoint": "fixed",
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsDistanceJoint": "distance",
    "PhysicsJoint": "free",
}
DEGREE: Final = math.pi / 180.0
BOUNDLESS: Final = 1e30
"""Numbers of single precision from here on stand for infinity."""
FASTEST: Final = 1e6
"""The default of PhysX for the greatest rate [degrees/s or units/s]: no limit."""
SINGLE: Final = ("revolute", "prismatic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """One way in which a joint moves.

    Attributes:
        axis: `X`, `Y` or `Z` of the joint's frame.
        slides: Whether it slides along it, rather than turns about it.
        limits: Of the coordinate.
        dynamics: About it.
    """

    axis: str
    slides: bool
    limits: Limits
    dynamics: JointDynamics


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What drives a coordinate towards a target: a controller.

    Attributes:
        stiffness: [N m/rad or N/m].
        damping: [N m s/rad or N s/m].
        target: [rad or m].
    """

    stiffness: float
    damping: float
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mimic:
    """What a joint follows: q = multiplier q_of + offset, `of` the path of a joint."""

    of: str
    multiplier: float
    offset: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageJoint:
    """A joint as the stage gives it.

    Attributes:
        path: Of its prim.
        name: Of the joint.
        kind: One of `KINDS`.
        bodies: Paths of the two bodies; empty for the world.
        targets: Paths of the prims that it names, which are these or in them.
        frames: Poses of the joint in the world, as either body has it.
        freedoms: How it moves.
        is_loop: Whether it closes a loop, outside of the tree.
        gains: Of its drive, if it has one.
        mimic: What it follows, if anything.
        state: The coordinate that is authored for it, if any.
        collides: Whether the two bodies may touch.
        length: Of a distance joint that keeps one [m]; 0 for others.
        points: Poses of the joint in either body.
    """

    path: str
    name: str
    kind: str
    bodies: tuple[str, str]
    targets: tuple[str, str]
    frames: tuple[Pose, Pose]
    freedoms: tuple[Freedom, ...] = ()
    is_loop: bool = False
    gains: Gains | None = None
    mimic: Mimic | None = None
    state: float | None = None
    collides: bool = False
    length: float = 0.0
    points: tuple[Pose, Pose] = (IDENTITY, IDENTITY)

    @property
    def is_rigid(self) -> bool:
        """Return whether it does not move."""
        return self.kind != "distance" and not self.freedoms


def read_joints(scene: StagePrims) -> list[StageJoint]:
    """Return the joints of a stage; each that cannot be read is in the report."""
    joints: list[StageJoint] = []
    prims = [prim for prim in scene.prims.values() if prim.type.endswith("Joint")]
    for prim in scene.report.bounded(prims):
        if prim.type not in KINDS:
            if prim.type.startswith("Phys"):
                scene.report.unsupported.add(f"a {prim.type}", scene.at(prim.path))
            continue
        if prim.values.get("physics:jointEnabled") is False:
            scene.report.unsupported.add(
                "a joint that is not enabled", scene.at(prim.path)
            )
            continue
        joint = _JointReader(scene, prim).joint()
        if joint is not None:
            joints.append(joint)
    return joints


class _JointReader:
    """Reads one joint."""

    def __init__(self, scene: StagePrims, prim: PrimRecord) -> None:
        self._scene = scene
        self._prim = prim
        self._kind = KINDS[prim.type]
        # Efforts are in units of mass and length.
        self._force = scene.kilograms * scene.metres
        self._torque = scene.kilograms * scene.metres**2

    def joint(self) -> StageJoint | None:
        """Return the joint, None after an error."""
        scene, prim = self._scene, self._prim
        targets: list[str] = []
        for end in ENDS:
            found = prim.targets.get(end, ())
            target = found[0] if found else ""
            if target and target not in scene.prims:
                scene.report.tolerating("the joint is left out").error(
                    scene.at(prim.path),
                    "unknown-body",
                    f"{end} of joint {prim.label} is <{target}>, which is not there",
                    hint=scene.report.hint(target, scene.prims),
                )
                return None
            targets.append(target)
        bodies = tuple(map(scene.body_of, targets))
        if bodies[0] == bodies[1]:
            what = f"on one body, <{bodies[0]}>" if bodies[0] else "on no body"
            scene.report.tolerating("it is left out").error(
                scene.at(prim.path),
                "same-body",
                f"both ends of joint {prim.label} are {what}",
                hint="Apply PhysicsRigidBodyAPI to the bodies that it joins.",
            )
            return None
        frames = [self._frame(k, target) for k, target in enumerate(targets)]
        points = [
            scene.pose(body).inverse() @ frame
            for body, frame in zip(bodies, frames, strict=True)
        ]
        joint = StageJoint(
            path=prim.path,
            name=scene.name(prim.path),
            kind=self._kind,
            bodies=(bodies[0], bodies[1]),
            targets=(targets[0], targets[1]),
            frames=(frames[0], frames[1]),
            points=(_cleaned(points[0]), _cleaned(points[1])),
            is_loop=prim.values.get("physics:excludeFromArticulation") is True,
            collides=prim.values.get("physics:collisionEnabled") is True,
        )
        return self._with_motion(joint)

    def _frame(self, end: int, target: str) -> Pose:
        """Return the pose of the joint in the world, by one of its ends."""
        scene, prim = self._scene, self._prim
        at = scene.numbers(prim, f"physics:localPos{end}", 3) or (0.0, 0.0, 0.0)
        turn = scene.turn(prim, f"physics:localRot{end}")
        local = (at[0], at[1], at[2])
        if target:
            # The position is in the scaled axes of the prim, the rotation is not.
            affine = scene.affine(target)
            x, y, z = (affine.matrix @ np.array(local) + affine.origin).tolist()
            return Pose((scene.pose(target) @ turn).rotation, (x, y, z))
        world = scene.up_pose @ turn
        x, y, z = (scene.metres * each for each in scene.up_pose.rotate(local))
        return Pose(world.rotation, (x, y, z))

    def _with_motion(self, joint: StageJoint) -> StageJoint | None:
        scene, prim = self._scene, self._prim
        match self._kind:
            case "revolute" | "prismatic":
                slides = self._kind == "prismatic"
                freedom = self._single(slides=slides)
                return replace(
                    joint,
                    freedoms=() if freedom is None else (freedom,),
                    gains=self._gains(slides=slides),
                    mimic=self._mimic(slides=slides),
                    state=self._state(slides=slides),
                )
            case "spherical":
                self._list_cone()
                free = [self._freedom("", axis, False, ()) for axis in AXES]
                return replace(joint, freedoms=tuple(free))
            case "distance":
                low = scene.number(prim, "physics:minDistance", -1.0)
                high = scene.number(prim, "physics:maxDistance", -1.0)
                if low == high and low > 0.0:
                    return replace(joint, length=low * scene.metres, is_loop=True)
                what = "a distance joint whose least and greatest distance differ"
                scene.report.unsupported.add(what, scene.at(prim.path))
                return None
            case "free":
                return self._generic(joint)
            case _:
                return joint

    def _list_cone(self) -> None:
        """List the limits of a ball."""
        for name in ("physics:coneAngle0Limit", "physics:coneAngle1Limit"):
            if self._scene.number(self._prim, name, -1.0) >= 0.0:
                what = "the cone that limits a spherical joint"
                self._scene.report.unsupported.add(
                    what, self._scene.at(self._prim.path)
                )
                return

    def _single(self, *, slides: bool) -> Freedom | None:
        """Return the freedom of a joint of one coordinate, None after an error."""
        axis = self._scene.text(self._prim, "physics:axis", "X")
        if axis not in AXES:
            self._scene.report.error(
                self._scene.at(self._prim.path),
                "zero-axis",
                f"the axis of joint {self._prim.label} is {quote(axis)}, not X, Y or Z",
            )
            return None
        names = ("physics:lowerLimit", "physics:upperLimit")
        return self._freedom("linear" if slides else "angular", axis, slides, names)

    def _freedom(
        self, instance: str, axis: str, slides: bool, names: Sequence[str]
    ) -> Freedom:
        """Return one freedom.

        instance: Of the drive about it.
        names: Of the attributes of its limits; none if it has none.
        """
        unit = self._scene.metres if slides else DEGREE
        ends = [INFINITE, -INFINITE][::-1]
        for k, name in enumerate(names):
            default = (-INFINITE, INFINITE)[k]
            value = self._scene.number(self._prim, name, default)
            ends[k] = _bounded(value, default) * unit
        lower, upper = self._in_order(ends[0], ends[1])
        try:
            limits = Limits(
                lower=lower,
                upper=upper,
                velocity=self._velocity(instance, unit),
                effort=self._effort(instance, slides=slides),
            )
            return Freedom(
                axis=axis,
                slides=slides,
                limits=limits,
                dynamics=self._dynamics(slides=slides),
            )
        except ModelError as error:
            message = f"joint {self._prim.label}: {str(error).removesuffix('.')}"
            view = self._scene.report.tolerating("its limits and losses are left out")
            view.error(self._scene.at(self._prim.path), "bad-drive", message)
            limits = Limits(lower=lower, upper=upper)
            return Freedom(
                axis=axis, slides=slides, limits=limits, dynamics=NO_DYNAMICS
            )

    def _in_order(self, lower: float, upper: float) -> tuple[float, float]:
        if lower <= upper:
            return lower, upper
        report = self._scene.report
        chosen = report.swapped_limits
        view = report.guessing(SWAPPED_LIMITS["swap"])
        if chosen:
            view = report.tolerating(SWAPPED_LIMITS[chosen])
        view.error(
            self._scene.at(self._prim.path),
            "swapped-limits",
            f"joint {self._prim.label} has its lower limit above the upper one",
            hint="Swap them if that is meant.",
        )
        return (-INFINITE, INFINITE) if chosen == "unlimited" else (upper, lower)

    def _velocity(self, instance: str, unit: float) -> float:
        scene, prim = self._scene, self._prim
        names = ("newton:velocityLimit", "physxJoint:maxJointVelocity")
        if instance:
            names = (*names, f"physxJoint:{instance}:maxJointVelocity")
        found = [
            _bounded(scene.number(prim, name, INFINITE), INFINITE) for name in names
        ]
        least = min(map(abs, found))
        return INFINITE if least >= FASTEST else least * unit

    def _effort(self, instance: str, *, slides: bool) -> float:
        scene, prim = self._scene, self._prim
        unit = self._force if slides else self._torque
        name = f"drive:{instance}:physics:maxForce"
        effort = _bounded(scene.number(prim, name, INFINITE), INFINITE)
        if instance and effort < INFINITE:
            return abs(effort) * unit
        # What converters of URDF keep, in SI units.
        return abs(
            _bounded(scene.number(prim, "urdf:limit:effort", INFINITE), INFINITE)
        )

    def _dynamics(self, *, slides: bool) -> JointDynamics:
        """Return the losses of a joint; drives are controllers, and none of them."""
        scene, prim = self._scene, self._prim
        effort = self._force if slides else self._torque
        unit = scene.metres if slides else DEGREE
        armature = scene.number(prim, "newton:armature", 0.0)
        armature = armature or scene.number(prim, "physxJoint:armature", 0.0)
        if scene.number(prim, "physxJoint:jointFriction", 0.0):
            what = "physxJoint:jointFriction, which has no unit of effort"
            scene.report.unsupported.add(what, scene.at(prim.path))
        values = {
            "motor_inertia": armature * (scene.kilograms if slides else self._torque),
            "damping": scene.number(prim, "newton:damping", 0.0) * effort / unit,
            "friction": scene.number(prim, "newton:friction", 0.0) * effort,
        }
        return JointDynamics(**values) if any(values.values()) else NO_DYNAMICS

    def _gains(self, *, slides: bool) -> Gains | None:
        scene, prim = self._scene, self._prim
        instance = "linear" if slides else "angular"
        if f"PhysicsDriveAPI:{instance}" not in prim.schemas:
            return None
        unit = scene.metres if slides else DEGREE
        effort = self._force if slides else self._torque
        start = f"drive:{instance}:physics:"
        if scene.text(prim, f"{start}type") == "acceleration":
            scene.report.unsupported.add("the type of a drive", scene.at(prim.path))
        return Gains(
            stiffness=scene.number(prim, f"{start}stiffness", 0.0) * effort / unit,
            damping=scene.number(prim, f"{start}damping", 0.0) * effort / unit,
            target=scene.number(prim, f"{start}targetPosition", 0.0) * unit,
        )

    def _state(self, *, slides: bool) -> float | None:
        scene, prim = self._scene, self._prim
        instance = "linear" if slides else "angular"
        name = f"state:{instance}:physics:position"
        if prim.values.get(name) is None:
            return None
        value = scene.number(prim, name, 0.0)
        unit = scene.metres if slides else DEGREE
        return value * unit if math.isfinite(value) else None

    def _mimic(self, *, slides: bool) -> Mimic | None:
        """Return what the joint follows: by PhysX, or by Newton's schema."""
        scene, prim = self._scene, self._prim
        of = prim.targets.get("newton:mimicJoint", ())
        if of and prim.values.get("newton:mimicEnabled") is not False:
            # q = coef0 + coef1 q_of
            return self._following(
                of[0],
                scene.number(prim, "newton:mimicCoef1", 1.0),
                scene.number(prim, "newton:mimicCoef0", 0.0),
                slides=slides,
            )
        for schema in prim.schemas:
            name, _, instance = schema.partition(":")
            if name != "PhysxMimicJointAPI" or not instance:
                continue
            start = f"physxMimicJoint:{instance}:"
            of = prim.targets.get(f"{start}referenceJoint", ())
            if of:
                # q + gearing q_of + offset = 0
                return self._following(
                    of[0],
                    -scene.number(prim, f"{start}gearing", 1.0),
                    -scene.number(prim, f"{start}offset", 0.0),
                    slides=slides,
                )
        return None

    def _following(
        self, of: str, multiplier: float, offset: float, *, slides: bool
    ) -> Mimic | None:
        scene, prim = self._scene, self._prim
        leader = scene.prims.get(of)
        kind = "" if leader is None else KINDS.get(leader.type, "")
        if kind not in SINGLE or not all(map(math.isfinite, (multiplier, offset))):
            scene.report.guessing("it is taken to move by itself").error(
                scene.at(prim.path),
                "unknown-joint" if leader is None else "free-mimic",
                f"joint {prim.label} follows <{of}>, no joint of one coordinate",
                hint=scene.report.hint(of, scene.prims),
            )
            return None
        own = scene.metres if slides else DEGREE
        other = scene.metres if kind == "prismatic" else DEGREE
        return Mimic(of=of, multiplier=multiplier * (own / other), offset=offset * own)

    def _generic(self, joint: StageJoint) -> StageJoint | None:
        """Return a joint with six freedoms, less those that limits lock."""
        freedoms: list[Freedom] = []
        for instance in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ"):
            names: tuple[str, ...] = ()
            if f"PhysicsLimitAPI:{instance}" in self._prim.schemas:
                names = (
                    f"limit:{instance}:physics:low",
                    f"limit:{instance}:physics:high",
                )
                low, high = (
                    self._scene.number(self._prim, name, (-INFINITE, INFINITE)[k])
                    for k, name in enumerate(names)
                )
                if low > high:
                    continue  # locked
            slides = instance.startswith("trans")
            freedoms.append(self._freedom(instance, instance[-1], slides, names))
        if len(freedoms) == 6:
            what = "a joint that leaves all six directions free"
            self._scene.report.unsupported.add(what, self._scene.at(self._prim.path))
            return None
        gains = None
        if len(freedoms) == 1:
            gains = self._gains(slides=freedoms[0].slides)
        return replace(joint, freedoms=tuple(freedoms), gains=gains)


def _bounded(value: float, infinite: float) -> float:
    """Return a number, or infinity where it stands for that."""
    return math.copysign(math.inf, infinite) if abs(value) >= BOUNDLESS else value


def _cleaned(X: Pose) -> Pose:
    """Return a pose whose entries are exactly 0 and 1 where only rounding differs."""
    entries = snapped([each for row in X.rotation for each in row])
    turn = rows(np.array(entries).reshape(3, 3))
    x, y, z = (0.0 if abs(each) < 1e-12 else each for each in X.position)
    return Pose(turn, (x, y, z))
