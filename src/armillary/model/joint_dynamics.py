"""The efforts of a joint's own drive and spring."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from armillary.errors import ModelError
from armillary.spatial.vector import Number
from armillary.trace.functions import sign

__all__ = ["NO_DYNAMICS", "JointDynamics"]

AT_LEAST_ZERO: Final = ("motor_inertia", "damping", "friction", "stiffness")


class JointDynamics(msgspec.Struct, frozen=True, kw_only=True):
    """What a joint's motor, friction and spring add to the effort that moves it.

    All are about the joint's own coordinate q, and zero where nothing is known. The
    motor turns `gear_ratio` times as far as q, and its inertia about its own axis is
    all that it adds: its mass, and that its axis turns with a link, are not counted.

    Attributes:
        motor_inertia: Inertia of the rotor about its axis [kg m^2].
        gear_ratio: Motor angle per coordinate [rad/rad or rad/m], not zero; negative
            where they turn opposite ways.
        damping: Viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N], against the motion at any rate.
        stiffness: Of a spring [N m/rad or N/m].
        rest: Coordinate where the spring has no effort [rad or m].
    """

    motor_inertia: float = 0.0
    gear_ratio: float = 1.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0

    def __post_init__(self) -> None:
        """Store plain numbers and check them.

        Raises:
            ModelError: One is not a finite number; the inertia, a friction or the
                stiffness is negative; the gear ratio is zero, or the armature infinite.
        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is not float:
                value = _number(name, value)
                msgspec.structs.force_setattr(self, name, value)
            if not math.isfinite(value):
                raise ModelError(f"'{name}' of a joint is {value}; it must be finite.")
        for name in AT_LEAST_ZERO:
            value = getattr(self, name)
            if value < 0.0:
                raise ModelError(f"'{name}' of a joint is {value}; it cannot be < 0.")
        if self.gear_ratio == 0.0:
            raise ModelError(
                "'gear_ratio' of a joint is 0; it is the angle that the motor turns "
                "per unit of the coordinate, 1 for a direct drive."
            )
        if not math.isfinite(self.armature):
            raise ModelError(
                f"'motor_inertia' {self.motor_inertia:g} times the square of "
                f"'gear_ratio' {self.gear_ratio:g} is too large for a number."
            )

    @property
    def armature(self) -> float:
        """Return the motor's inertia behind its gear, I n^2 [kg m^2 or kg]."""
        return self.motor_inertia * self.gear_ratio * self.gear_ratio

    def effort(self, q: Number, qd: Number, qdd: Number) -> Number:
        """Return the effort that the motor, friction and spring need for a motion.

        tau = I n^2 qdd + d qd + f sign(qd) + k (q - rest), added to that for moving
        the links. The friction of a joint at rest is 0.

        Args:
            q: Joint position [rad or m], a float or traced.
            qd: Its rate.
            qdd: Its acceleration.

        Returns:
            The effort [N m or N].
        """
        spring = self.stiffness * (q - self.rest)
        drag = self.damping * qd + self.friction * sign(qd)
        return self.armature * qdd + drag + spring

    def scaled(self, factor: float) -> JointDynamics:
        """Return those of a coordinate that is a length, `factor` times as long.

        The motor inertia and the gear ratio remain, as masses do, and efforts: those of
        damping, friction and spring at the scaled position and rate are the same.
        """
        return msgspec.structs.replace(
            self,
            damping=self.damping / factor,
            stiffness=self.stiffness / factor,
            rest=self.rest * factor,
        )


NO_DYNAMICS: Final = JointDynamics()


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(
            f"'{name}' of a joint is {value!r}; it takes a number."
        ) from error
