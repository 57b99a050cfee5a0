"""What the numbers of results mean: their units, and names along each dimension."""

from __future__ import annotations

from types import MethodType
from typing import Any, Final, NamedTuple

from armillary.collision.check import CollisionCheck
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from armillary.kernel import Kernel
from armillary.sweeps.fields import Axis, Field, NamedJoints

__all__ = ["POSITIONS", "Meaning", "labelled", "meaning_of"]


class Meaning(NamedTuple):
    """What a result is.

    Attributes:
        units: Of its numbers.
        axes: Those of its last dimensions.
        of_joint: Where each number belongs to a joint, its unit by the unit of the
            position of the joint.
    """

    units: str
    axes: tuple[Axis, ...] = ()
    of_joint: dict[str, str] | None = None


JOINT: Final = Axis("joint")
TWIST: Final = Axis("twist", ("vx", "vy", "vz", "wx", "wy", "wz"))
MATRIX: Final = (
    Axis("pose_row", ("x", "y", "z", "1")),
    Axis("pose_column", ("x_axis", "y_axis", "z_axis", "origin")),
)
QUATERNION: Final = Axis("pose_part", ("qw", "qx", "qy", "qz", "x", "y", "z"))
DUAL: Final = Axis("pose_part", ("rw", "rx", "ry", "rz", "dw", "dx", "dy", "dz"))
POSE_UNITS: Final = "m; rotations have no unit"

POSITIONS: Final = Meaning(
    "m or rad", (JOINT,), {"m": "m", "rad": "rad", "": "unknown"}
)
"""Of joint positions."""

OF_SOLVERS: Final = {
    "q": POSITIONS,
    "success": Meaning(""),
    "residual": Meaning("m, rad", (Axis("residual_part", ("distance", "angle")),)),
    "reason": Meaning(""),
}
OF_CHECKS: Final = {
    "": Meaning(""),
    "clearance": Meaning("m"),
    "distances": Meaning("m", (Axis("pair"),)),
    "gradients": Meaning("m per unit of q", (Axis("pair"), JOINT)),
}
# By the name of the question, or by the name of an output that several questions have.
OF_KERNELS: Final = {
    "jacobian": Meaning("m/s, rad/s; per unit of joint rates", (TWIST, JOINT)),
    "velocity": Meaning("m/s, rad/s", (TWIST,)),
    "acceleration": Meaning("m/s^2, rad/s^2", (TWIST,)),
    "bias_acceleration": Meaning("m/s^2, rad/s^2", (TWIST,)),
    "pose_error": Meaning("m, rad", (TWIST,)),
    "mass_matrix": Meaning("kg m^2, kg m or kg", (Axis("force_of_joint"), JOINT)),
    "torque": Meaning("N m or N", (JOINT,), {"m": "N", "rad": "N m"}),
    "qdd": Meaning("rad/s^2 or m/s^2", (JOINT,), {"m": "m/s^2", "rad": "rad/s^2"}),
}


def meaning_of(core: Any, function: Any, name: str, field: Field) -> Meaning | None:
    """Return what a result of a solver, check or kernel is; None if that is unknown.

    Args:
        core: What computes.
        function: What is called of it.
        name: Of the result among those of the question.
        field: Its shape and type.
    """
    if isinstance(core, InverseKinematics):
        return OF_SOLVERS.get(name)
    if isinstance(core, CollisionCheck):
        is_method = isinstance(function, MethodType)
        return OF_CHECKS.get(function.__name__ if is_method else "")
    if not isinstance(core, Kernel):
        return None
    question = core.computation.name.partition(" ")[0]
    if question == "fk":
        return Meaning(POSE_UNITS, _pose_axes(field.shape))
    return OF_KERNELS.get(question) or OF_KERNELS.get(name)


def _pose_axes(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    if shape[-2:] == (4, 4):
        return MATRIX
    return (QUATERNION if shape[-1] == len(QUATERNION.names) else DUAL,)


def labelled(field: Field, meaning: Meaning, core: Any, joints: NamedJoints) -> Field:
    """Return a field with its units, axes and attributes.

    Args:
        field: Its shape and type.
        meaning: What it is.
        core: What computes it.
        joints: Of the samples; solvers and checks have their own.
    """
    attributes: dict[str, Any] = {}
    before: tuple[Axis, ...] = ()
    if isinstance(core, InverseKinematics):
        joints = NamedJoints.of(core.cell, core.joints)
        before = (Axis("branch"),)  # of ik.all
        if meaning is OF_SOLVERS["reason"]:
            # As the CF conventions state flags, which xarray decodes.
            attributes["flag_values"] = [int(each) for each in Reason]
            attributes["flag_meanings"] = " ".join(each.name for each in Reason)
    elif isinstance(core, CollisionCheck):
        joints = NamedJoints.of(core.cell, core.cell.joint_names)
    if isinstance(core, Kernel):
        before = (Axis("frame"),)  # of a list of frames
    # A result may have a further dimension in front, of branches or frames.
    axes = (*before, *meaning.axes)[-len(field.shape) :] if field.shape else ()
    if len(axes) < len(field.shape):
        return field._replace(units=meaning.units)
    units, found = meaning.units, list[Axis]()
    for axis, size in zip(axes, field.shape, strict=True):
        names = axis.names
        if axis.name == "pair" and isinstance(core, CollisionCheck):
            names = tuple(f"{a} {b}" for a, b in core.pairs)
        elif axis.name in {"joint", "force_of_joint"}:
            names = joints.names
        found.append(axis._replace(names=names if len(names) == size else ()))
    if meaning.of_joint and found[-1].names:
        each = [meaning.of_joint.get(unit, "unknown") for unit in joints.units]
        attributes["joint_units"] = each
        units = each[0] if len({*each}) == 1 else units
    return field._replace(units=units, axes=tuple(found), attributes=attributes)
