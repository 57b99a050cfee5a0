"""Links: a joint and the body behind it."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final, Self

import msgspec

from armillary.errors import ModelError, quote
from armillary.model.check_pose import rigid
from armillary.model.cloud import Cloud
from armillary.model.coupling import Coupling
from armillary.model.fields import (
    EMPTY,
    TupleOf,
    reduced,
    replaced,
    store_tuples,
)
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints.fixed import Fixed
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.parameters import approx_equal
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes.mesh import Mesh, MeshSource
from armillary.model.unit import Unit
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

TWO_TURNS: Final = 4.0 * math.pi
DEGREES: Final = 720.0
"""Limits of angles between these [rad] are likely to be degrees."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A body and the joint that carries it.

    The link's name also names the outer frame of its joint.

    Attributes:
        name: Unique in its manipulator.
        parent: Name of the link that carries it; None for the base.
        joint: How it moves in its parent's outer frame.
        joint_name: Name of the coordinate; that of the link if empty.
        limits: Of the coordinate.
        dynamics: Of its drive, friction and spring, about the coordinate.
        coupling: Where the coordinate follows that of another joint.
        inputs: Names of the joints whose coordinates the joint takes, in its order,
            where that is a `Mechanism`; it has no coordinate of its own then.
        passive: Whether no motor drives the joint. Where closed loops determine it, it
            has no place in q; elsewhere it has one, as its position counts.
        primary: The primary frame in the joint's outer frame; what follows is in it.
        inertia: Mass properties about the primary frame's origin; None if unknown.
        frames: Named frames, end effectors among them.
        visuals: What is drawn.
        collisions: What may touch; where there is none, see `collision_shapes`.
    """

    name: str
    parent: str | None = None
    joint: Joint = Fixed()
    joint_name: str = ""
    limits: Limits = UNLIMITED
    dynamics: JointDynamics = NO_DYNAMICS
    coupling: Coupling | None = None
    inputs: TupleOf[str] = EMPTY
    passive: bool = False
    primary: Pose = IDENTITY
    inertia: SpatialInertia | None = None
    frames: TupleOf[Frame] = EMPTY
    visuals: TupleOf[Shape] = EMPTY
    collisions: TupleOf[Shape] = EMPTY

    def __post_init__(self) -> None:
        """Store sequences as tuples, so that links can be compared and hashed.

        It warns of limits of angles that look like degrees.

        Raises:
            ModelError: `joint` is not a `Joint`, `dynamics` no `JointDynamics`,
                `primary` not a rigid pose, or `inertia` not one that a body can have.
        """
        joint: Any = self.joint
        if not isinstance(joint, Joint):
            raise ModelError(
                f"The joint of link {quote(self.name)} is {joint!r}, which is not a "
                "joint; write one such as Revolute(axis=(0, 0, 1))."
            )
        if self.dynamics is not NO_DYNAMICS:
            self._check_dynamics(self.dynamics)
        if self.limits is not UNLIMITED and has_degrees(self):
            self._warn_of_degrees(self.limits)
        if self.primary is not IDENTITY:
            pose = rigid(self.primary, f"the primary frame of {quote(self.name)}")
            msgspec.structs.force_setattr(self, "primary", pose)
        if self.inertia is not None:
            self._check_inertia(self.inertia)
        store_tuples(self, "inputs", "frames", "visuals", "collisions")

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)  # warnings are of who reads it, not of a line of msgspec

    def _warn_of_degrees(self, limits: Limits) -> None:
        warnings.warn(
            f"The limits of joint {quote(self.coordinate)}, {limits.lower:g} to "
            f"{limits.upper:g} rad, are more than two turns. If these are degrees, "
            "convert them: math.radians(180).",
            stacklevel=3,
        )

    def _check_dynamics(self, dynamics: Any) -> None:
        if not isinstance(dynamics, JointDynamics):
            raise ModelError(
                f"The dynamics of joint {quote(self.coordinate)} are {dynamics!r}; "
                "they must be JointDynamics, such as JointDynamics(damping=0.1)."
            )

    def _check_inertia(self, inertia: Any) -> None:
        if not isinstance(inertia, SpatialInertia):
            raise ModelError(
                f"The inertia of link {quote(self.name)} is {inertia!r}; it must be a "
                "SpatialInertia, such as SpatialInertia.from_centre(...)."
            )
        fault = inertia.fault() if inertia.is_float else None
        if fault is not None and fault.is_refused:
            raise ModelError(
                f"The inertia of link {quote(self.name)} is impossible: "
                f"{fault.message}. Correct it, or leave it out."
            )

    def __repr__(self) -> str:
        on = "" if self.parent is None else f" on {quote(self.parent)}"
        name = f" {quote(self.coordinate)}" if self.moves else ""
        joint = "" if self.parent is None else f": {type(self.joint).__name__}{name}"
        return f"<Link {quote(self.name)}{on}{joint}>"

    @property
    def coordinate(self) -> str:
        """Return the name of the joint."""
        return self.joint_name or self.name

    @property
    def moves(self) -> bool:
        """Return whether its joint has a coordinate, its own or a followed one."""
        return not isinstance(self.joint, Fixed)

    @property
    def has_coordinate(self) -> bool:
        """Return whether the joint's coordinate may be followed or taken by others.

        It may but for a fixed joint, which has none, and a mechanism, which has many.
        """
        return self.moves and not self.inputs

    @property
    def collision_shapes(self) -> tuple[Shape, ...]:
        """Return what may touch: `collisions`, or else the `visuals` but for meshes."""
        if self.collisions:
            return self.collisions
        return tuple(s for s in self.visuals if isinstance(s, Primitive | Cloud))

    def replace(self, **fields: Any) -> Self:
        """Return the link with other values of some of its fields.

        Raises:
            UnknownName: There is no such field.
            ModelError: A value is not one that a link can have.
        """
        return replaced(self, fields)

    def scaled(self, factor: float) -> Self:
        """Return the link with all its lengths `factor` times as long.

        Its mass, motor, efforts and properties remain. Limits, the offset of a coupling
        and the rest of a spring are scaled where the coordinate is a length; damping
        and stiffness are then divided by `factor`, so that their efforts remain.

        Raises:
            ModelError: `factor` is not above 0, or the joint cannot be scaled.
        """
        joint = self.joint.scaled(factor)
        coupling, limits, dynamics = self.coupling, self.limits, self.dynamics
        if joint.unit.scales_with_length:
            limits = msgspec.structs.replace(
                limits,
                lower=limits.lower * factor,
                upper=limits.upper * factor,
                velocity=limits.velocity * factor,
                acceleration=limits.acceleration * factor,
            )
            dynamics = dynamics.scaled(factor)
            if coupling is not None:
                offset = coupling.offset * factor
                coupling = msgspec.structs.replace(coupling, offset=offset)
        return msgspec.structs.replace(
            self,
            joint=joint,
            limits=limits,
            dynamics=dynamics,
            coupling=coupling,
            primary=self.primary.scaled(factor),
            inertia=None if self.inertia is None else self.inertia.scaled(factor),
            frames=tuple(
                msgspec.structs.replace(frame, pose=frame.pose.scaled(factor))
                for frame in self.frames
            ),
            visuals=tuple(shape.scaled(factor) for shape in self.visuals),
            collisions=tuple(shape.scaled(factor) for shape in self.collisions),
        )

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` is a link with numbers equal within `tolerance`.

        Names and what else is not a number must be equal.
        """
        return approx_equal(self, other, tolerance)

    def inertia_of_shapes(
        self, density: float, *, meshes: MeshSource | None = None
    ) -> SpatialInertia:
        """Return the inertia of a link that its collision shapes fill evenly.

        It is about the primary frame's origin. Where shapes overlap, all count.

        Args:
            density: [kg/m^3], above 0.
            meshes: What reads meshes, such as `cell.meshes`; they must be closed.

        Raises:
            ModelError: A shape is infinite, a cloud of points, an open mesh, or a mesh
                that cannot be read; or the density is invalid.
            FormatError: The file of a mesh may not be read, or is faulty.
        """
        total = SpatialInertia.zero()
        for shape in self.collision_shapes:
            if isinstance(shape, Primitive | Cloud):
                total += shape.inertia(density)
                continue
            assert isinstance(shape, Mesh)
            triangles = None if meshes is None else meshes.triangles(shape)
            if triangles is None:
                raise ModelError(
                    f"Mesh {quote(shape.name or shape.file)} of link "
                    f"{quote(self.name)} has no inertia without its triangles; pass "
                    "meshes=cell.meshes of a cell that was loaded where its file is."
                )
            total += triangles.inertia(density).transformed(shape.pose)
        return total


def has_degrees(link: Link) -> bool:
    """Return whether the limits of a turn look like degrees, of which links warn."""
    if link.joint.unit is not Unit.RADIAN:
        return False
    ends = link.limits.lower, link.limits.upper
    return any(TWO_TURNS < abs(end) <= DEGREES for end in ends)
