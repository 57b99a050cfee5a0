"""The lever of a four-bar linkage that a slider turns."""

from __future__ import annotations

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace.functions import acos, atan2, sqrt


class FourBarSlider(Joint, frozen=True):
    """Turn a lever about z by a slider of length s = nominal + q.

    The lever is pivoted at the origin of F and points along x of M. With the tip of
    the lever at T, in the xy-plane of F:

    - a pivoted slider, such as a hydraulic cylinder, ends at T and at the fixed point
      (opposite, offset): |T - (opposite, offset)| = s;
    - a guided slider carries the pin (s, offset), and a rod of length `opposite` joins
      the pin and T: |T - (s, offset)| = opposite. This is a slider-crank.

    Of the two positions of T the one is taken that lies to the left of the line from
    the pivot to the point or pin. Where s is out of range the pose is NaN; at the ends
    of the range the lever is at a dead point, where its rate is not finite. It is
    Actin's link of quadrilateral type, without the offsets along z.

    Attributes:
        nominal: Length of the slider at q = 0 [m], above 0.
        lever: Length of the lever [m], above 0.
        opposite: Length of the side opposite to the slider [m], above 0.
        offset: Distance of the fixed point or the guide from the x-axis of F [m].
        pivoted: Whether the slider is pivoted at both ends, rather than guided along
            the x-axis.
    """

    nominal: float
    lever: float
    opposite: float
    offset: float = 0.0
    pivoted: bool = True
    unit = Unit.METRE
    lengths = ("nominal", "lever", "opposite", "offset")

    def check(self) -> None:
        """Check the lengths.

        Raises:
            JointError: A length is not above zero, or the linkage does not close at
                q = 0.
        """
        lengths = self.nominal, self.lever, self.opposite
        if min(lengths) <= 0.0:
            raise JointError(
                "FourBarSlider needs nominal, lever and opposite > 0, not "
                f"{self.nominal}, {self.lever} and {self.opposite}."
            )
        x, side = self._sides(self.nominal)
        ground = (x * x + self.offset**2) ** 0.5
        if not abs(ground - self.lever) < side < ground + self.lever:
            foot, spoke = ("foot", "slider") if self.pivoted else ("pin", "rod")
            raise JointError(
                f"A FourBarSlider must close at q = 0: its {foot} is {ground:.6g} m "
                f"from the pivot, the lever {self.lever:.6g} m long and the {spoke} "
                f"{side:.6g} m; none of the three may be as long as the other two "
                "together."
            )

    def pose(self, q: Number) -> Pose:
        """Return the rotation of the lever, by the law of cosines.

        With the point or pin at (x, offset) = r (cos p, sin p) and the distance c from
        it to T, the angle is p + acos((r^2 + lever^2 - c^2) / (2 r lever)).
        """
        x, side = self._sides(self.nominal + q)
        square = x * x + self.offset**2
        cosine = (square + self.lever**2 - side * side) / (2.0 * self.lever)
        turned = atan2(self.offset, x) + acos(cosine / sqrt(square))
        return Pose.rotation_z(turned)

    def _sides(self, slider: Number) -> tuple[Number, Number]:
        """Return x of the point or pin, and its distance from the tip of the lever."""
        return (self.opposite, slider) if self.pivoted else (slider, self.opposite)
