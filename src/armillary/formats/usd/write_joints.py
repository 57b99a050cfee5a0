"""Joints of links as prims of a stage."""

from __future__ import annotations

import math
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.joint_axis import JointAxis, joint_axis_of
from armillary.formats.usd.joints import DEGREE
from armillary.formats.usd.write_shapes import pxr
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.shapes.segment import facing
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Vector3

__all__ = ["JointWriter", "axis_turn", "can_close"]

LETTERS: Final = "xyz"
STRAIGHT: Final = {
    (1.0, 0.0, 0.0): ("X", IDENTITY),
    (0.0, 1.0, 0.0): ("Y", IDENTITY),
    (0.0, 0.0, 1.0): ("Z", IDENTITY),
    (-1.0, 0.0, 0.0): (
        "X",
        Pose.from_matrix([[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]),
    ),
    (0.0, -1.0, 0.0): (
        "Y",
        Pose.from_matrix([[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]),
    ),
    (0.0, 0.0, -1.0): (
        "Z",
        Pose.from_matrix([[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0]]),
    ),
}
"""For directions along an axis its letter, and a turn that takes that axis there."""
NEAR: Final = 1e-7
"""How far a direction of single precision may be from an axis."""


def axis_turn(axis: Vector3) -> tuple[str, Pose]:
    """Return the letter of an axis and a turn that takes it to a direction."""
    near = tuple(round(each) + 0.0 for each in axis)
    is_near = all(abs(a - b) < NEAR for a, b in zip(axis, near, strict=True))
    if is_near and near in STRAIGHT:
        return STRAIGHT[near]
    return "Z", facing(axis)


def can_close(loop: Closure | Rod) -> bool:
    """Return whether a joint of USD closes a loop: all but rods that telescope."""
    return not (isinstance(loop, Rod) and loop.by)


class JointWriter:
    """Writes joints into a stage."""

    def __init__(self, stage: Any, report: Report) -> None:
        self._stage = stage
        self._report = report
        self._physics = pxr("UsdPhysics")
        self._types = pxr("Sdf").ValueTypeNames
        self._gf = pxr("Gf")

    def define(
        self, kind: str, path: str, ends: tuple[str, str], frames: tuple[Pose, Pose]
    ) -> Any:
        """Return a new joint between two prims.

        Args:
            kind: Of the schema: `RevoluteJoint`.
            path: Of its prim.
            ends: Paths of what it joins, empty for the world.
            frames: Poses of the joint in either.
        """
        Gf = self._gf
        joint = getattr(self._physics, kind).Define(self._stage, path)
        relations = (joint.CreateBody0Rel(), joint.CreateBody1Rel())
        for relation, end in zip(relations, ends, strict=True):
            if end:
                relation.SetTargets([end])
        (X0, X1), (p0, p1) = frames, (Gf.Vec3f, Gf.Vec3f)
        joint.CreateLocalPos0Attr(p0(*map(float, X0.position)))
        joint.CreateLocalPos1Attr(p1(*map(float, X1.position)))
        joint.CreateLocalRot0Attr(self._quaternion(X0))
        joint.CreateLocalRot1Attr(self._quaternion(X1))
        return joint

    def _quaternion(self, X: Pose) -> Any:
        return self._gf.Quatf(*map(float, X.quaternion()))

    def moving(
        self, link: Link, path: str, ends: tuple[str, str], frames: tuple[Pose, Pose]
    ) -> Any | None:
        """Return the joint of a link that moves, None if USD has no such joint.

        Args:
            link: That the joint carries.
            path: Of the joint's prim.
            ends: Paths of what it joins.
            frames: Poses of these in the outer frames of the parent and of the link.
        """
        axis = None if link.inputs else joint_axis_of(link.joint)
        if axis is None:
            return None
        letter, turn = axis_turn(axis.axis)
        kind = "PrismaticJoint" if axis.slides else "RevoluteJoint"
        before = frames[0].inverse() @ axis.before @ turn
        after = (axis.after @ frames[1]).inverse() @ turn
        joint = self.define(kind, path, ends, (before, after))
        joint.CreateAxisAttr(letter)
        self._limit(joint, link, axis)
        self._keep_dynamics(joint.GetPrim(), link, axis)
        return joint

    def _limit(self, joint: Any, link: Link, axis: JointAxis) -> None:
        limits = link.limits
        unit = 1.0 if axis.slides else DEGREE
        if math.isfinite(limits.lower):
            joint.CreateLowerLimitAttr(limits.lower / unit)
        if math.isfinite(limits.upper):
            joint.CreateUpperLimitAttr(limits.upper / unit)
        prim = joint.GetPrim()
        if math.isfinite(limits.velocity):
            self._apply(prim, "NewtonJointAPI", "PhysxJointAPI")
            for name in ("newton:velocityLimit", "physxJoint:maxJointVelocity"):
                self._number(prim, name, limits.velocity / unit)

    def drive(
        self, prim: Any, link: Link, gains: tuple[float, ...], *, always: bool
    ) -> None:
        """Add the drive of a joint, for its greatest effort and what was kept of it.

        Args:
            prim: Of the joint.
            link: That it carries.
            gains: Stiffness, damping and target in SI units; zero where nothing is
                kept.
            always: Whether it has one without any, as a sign that it is not passive.
        """
        effort = link.limits.effort
        if not (always or math.isfinite(effort) or any(gains)):
            return
        slides = prim.GetTypeName() == "PhysicsPrismaticJoint"
        unit = 1.0 if slides else DEGREE
        kind = "linear" if slides else "angular"
        drive = self._physics.DriveAPI.Apply(prim, kind)
        drive.CreateTypeAttr("force")
        if math.isfinite(effort):
            drive.CreateMaxForceAttr(effort)
        stiffness, damping, target = gains
        drive.CreateStiffnessAttr(stiffness * unit)
        drive.CreateDampingAttr(damping * unit)
        if target:
            drive.CreateTargetPositionAttr(target / unit)

    def _keep_dynamics(self, prim: Any, link: Link, axis: JointAxis) -> None:
        dynamics: JointDynamics = link.dynamics
        unit = 1.0 if axis.slides else DEGREE
        values = {
            "newton:armature": dynamics.armature,
            "newton:damping": dynamics.damping * unit,
            "newton:friction": dynamics.friction,
        }
        if any(values.values()):
            self._apply(prim, "NewtonJointAPI")
        for name, value in values.items():
            if value:
                self._number(prim, name, value)
        if dynamics.armature:
            self._apply(prim, "PhysxJointAPI")
            self._number(prim, "physxJoint:armature", dynamics.armature)
        if dynamics.gear_ratio != 1.0 and dynamics.motor_inertia:
            self._report.note(
                NOWHERE,
                "armature",
                f"of the motor of {quote(link.coordinate)} the inertia behind its gear "
                "is written",
            )

    def follow(self, prim: Any, leader: Any, link: Link) -> None:
        """Let a joint follow another one, for Newton and for PhysX."""
        coupling = link.coupling
        assert coupling is not None
        units = [
            1.0 if each.GetTypeName() == "PhysicsPrismaticJoint" else DEGREE
            for each in (prim, leader)
        ]
        factor = coupling.multiplier * units[1] / units[0]
        offset = coupling.offset / units[0]
        self._apply(prim, "NewtonMimicAPI")
        prim.CreateRelationship("newton:mimicJoint", False).SetTargets(
            [leader.GetPath()]
        )
        self._number(prim, "newton:mimicCoef0", offset)
        self._number(prim, "newton:mimicCoef1", factor)
        axes = [str(each.GetAttribute("physics:axis").Get()) for each in (prim, leader)]
        instance, other = (f"rot{axis}" for axis in axes)
        self._apply(prim, f"PhysxMimicJointAPI:{instance}")
        start = f"physxMimicJoint:{instance}:"
        self._number(prim, f"{start}gearing", -factor)
        self._number(prim, f"{start}offset", -offset)
        self._token(prim, f"{start}referenceJointAxis", other)
        prim.CreateRelationship(f"{start}referenceJoint", False).SetTargets(
            [leader.GetPath()]
        )

    def close(
        self,
        loop: Closure | Rod,
        path: str,
        ends: tuple[str, str],
        frames: tuple[Pose, Pose],
    ) -> None:
        """Add the joint that closes a loop, which `can_close`."""
        if isinstance(loop, Rod):
            joint = self.define("DistanceJoint", path, ends, frames)
            joint.CreateMinDistanceAttr(loop.length)
            joint.CreateMaxDistanceAttr(loop.length)
        else:
            joint = self._closing(loop, path, ends, frames)
        joint.CreateExcludeFromArticulationAttr(True)

    def _closing(
        self, loop: Closure, path: str, ends: tuple[str, str], frames: tuple[Pose, Pose]
    ) -> Any:
        slides = [each for each in LETTERS if each not in loop.position]
        turns = [each for each in LETTERS if each not in loop.rotation]
        kinds = {(0, 0): "FixedJoint", (0, 3): "SphericalJoint"}
        kinds |= {(0, 1): "RevoluteJoint", (1, 0): "PrismaticJoint"}
        kind = kinds.get((len(slides), len(turns)), "Joint")
        joint = self.define(kind, path, ends, frames)
        if kind in {"RevoluteJoint", "PrismaticJoint"}:
            joint.CreateAxisAttr((*slides, *turns)[0].upper())
        if kind == "Joint":
            locked = [f"trans{e.upper()}" for e in LETTERS if e not in slides]
            locked += [f"rot{e.upper()}" for e in LETTERS if e not in turns]
            for instance in locked:  # low above high
                limit = self._physics.LimitAPI.Apply(joint.GetPrim(), instance)
                limit.CreateLowAttr(1.0)
                limit.CreateHighAttr(-1.0)
        return joint

    def _apply(self, prim: Any, *schemas: str) -> None:
        """Apply schemas that the library does not have itself, by their names."""
        known = set(prim.GetPrimTypeInfo().GetAppliedAPISchemas())
        for schema in schemas:
            if schema not in known:
                prim.AddAppliedSchema(schema)

    def _number(self, prim: Any, name: str, value: float) -> None:
        prim.CreateAttribute(name, self._types.Float, False).Set(value)

    def _token(self, prim: Any, name: str, value: str) -> None:
        prim.CreateAttribute(name, self._types.Token, False).Set(value)
