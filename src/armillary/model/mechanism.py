"""A joint of several coordinates: a formula of the positions of other joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.model.closed_form import ClosedForm
from armillary.model.joint import Joint
from armillary.model.motion import TracedMotion, motion_of
from armillary.model.unit import Unit
from armillary.spatial.pose import IDENTITY, Pose


class Mechanism(Joint, ClosedForm, frozen=True, kw_only=True):
    """A joint whose pose is a formula of several other joints' coordinates.

    Write a subclass with `units` and `forward(q)`, the pose of the outer frame M in the
    inner frame F at an array q of coordinates:

        class Scara(Mechanism):
            upper: float
            fore: float
            units = (RADIAN, RADIAN, METRE, RADIAN)

            def forward(self, q):
                elbow = Pose.rotation_z(q[0]) @ Pose.translation(self.upper, 0, 0)
                wrist = Pose.rotation_z(q[1]) @ Pose.translation(self.fore, 0, q[2])
                return elbow @ wrist @ Pose.rotation_z(q[3])

    The link that it carries names in `inputs` the joints whose coordinates it takes.
    They may move links of their own, or be an `AngleCoordinate` or `LengthCoordinate`,
    which only hold a coordinate. With `inverse(pose)` and `branches`, those of
    `ClosedForm`, `Cell.ik` solves it in closed form.

    Attributes:
        units: What each coordinate is measured in (of the class).
        branches: The name of each branch of `inverse` (of the class).
    """

    unit = Unit.OTHER
    units: ClassVar[tuple[Unit, ...]] = ()

    @property
    def input_units(self) -> tuple[Unit, ...]:
        """Return what each coordinate is measured in, by default `units`."""
        return self.units

    @property
    def has_inverse(self) -> bool:
        """Return whether the class gives an `inverse`."""
        return type(self).inverse is not ClosedForm.inverse

    def check(self) -> None:
        """Refuse a class that does not say what its coordinates are.

        Raises:
            JointError: It has no `units`, or no `forward`.
        """
        name = type(self).__name__
        if not self.input_units:
            raise JointError(
                f"{name} has no units; write one for each coordinate in the class, "
                "such as units = (RADIAN, METRE)."
            )
        if type(self).forward is ClosedForm.forward:
            raise JointError(
                f"{name} has no forward(self, q). That method is the mechanism: it "
                "returns the pose at an array of coordinates."
            )

    def pose(self, q: Any) -> Pose:
        """Return `forward(q)`; q has one number for each coordinate.

        The motion of a single coordinate is that of any other joint: q is a number.
        """
        return self.forward(np.array([q]) if np.ndim(q) == 0 else q)

    @property
    def motion(self) -> TracedMotion:
        """Return the traced motion, made once for equal mechanisms."""
        bare: Any = self
        if not self.precursor.is_identity:
            bare = msgspec.structs.replace(self, precursor=IDENTITY)
        count = len(self.input_units)
        return motion_of(bare, count if count > 1 else None)

    def transform(self, q: Sequence[float]) -> Pose:
        """Return X_FM(q), the precursor included.

        q: A coordinate for each of `units` [m or rad]; a single one may be a number.

        Raises:
            JointError: `forward` does not return a pose.
            ShapeError: There is not a number for each coordinate.
        """
        count = len(self.input_units)
        if count == 1 and np.ndim(q) == 0:
            return super().transform(cast(Any, q))
        if np.shape(q) != (count,):
            raise ShapeError(
                f"{type(self).__name__} has {count} coordinates, so q has shape "
                f"({count},), not {np.shape(q)}."
            )
        return self.precursor @ self.motion.pose(*q)

    def speed_bounds(
        self, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> tuple[Any, Any]:
        """Return upper bounds of how fast M moves and turns by each coordinate.

        They hold for every q between `lower` and `upper`, as those of other joints do:
        the speeds in F at unit rate of one coordinate while the others stand still.

        Args:
            lower: A limit for each of `units` [m or rad], shape (n,); that of a single
                coordinate may be a number, as may the results then.
            upper: The other limit, shape (n,).

        Returns:
            Of |v| of M's origin [m per unit] and of |w| [rad per unit], (n,) each.

        Raises:
            JointError: A limit is NaN.
            ShapeError: There is not a limit for each coordinate.
        """
        count = len(self.input_units)
        if count == 1 and np.ndim(lower) == np.ndim(upper) == 0:
            return super().speed_bounds(cast(Any, lower), cast(Any, upper))
        with IMPORT_LOCK:
            from armillary.model.speed_bound import largest_speeds

        limits = [np.asarray(limit, dtype=np.float64) for limit in (lower, upper)]
        for limit in limits:
            if limit.shape != (count,):
                raise ShapeError(
                    f"{type(self).__name__} has {count} coordinates, so its limits "
                    f"have shape ({count},), not {limit.shape}."
                )
        ranges = np.sort(np.stack(limits, axis=1), axis=1)
        if np.isnan(ranges).any():
            raise JointError(f"The range [{lower}, {upper}] has a limit that is NaN.")
        box = tuple((low, high) for low, high in ranges.tolist())
        linear, angular = zip(*largest_speeds(self.motion, box), strict=True)
        return np.array(linear), np.array(angular)
