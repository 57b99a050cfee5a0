"""Distance of two shapes: the public functions and their result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape

if TYPE_CHECKING:
    from armillary.collision.distance.pair_kernel import Asked
    from armillary.kernel.kernel import Kernel

__all__ = ["Distance", "distance", "distance_kernel"]

Array = npt.NDArray[np.float64]

ASKED: Final[Mapping[tuple[bool, bool], Asked]] = {
    (True, True): "value",
    (False, True): "free",
    (True, False): "gap",
    (False, False): "touch",
}
"""By whether depths, and distances, are measured."""


@final
@dataclass(frozen=True, slots=True)
class Distance:
    """How far apart two shapes are; `points[1] - points[0] = value normal`.

    Attributes:
        value: Distance [m], shape (...); below 0 where they overlap: minus the length
            of a translation of b along `normal` that separates them.
        points: The nearest points of a and b [m], or the deepest, shape (..., 2, 3).
        normal: Unit vector from a to b, shape (..., 3). Of shapes that are apart its
            angle to the exact one is at most arccos(1 - gap / value), and rounding,
            about 1e-15 times their size / value.
        gap: The exact value differs from `value` by at most this [m] and rounding,
            shape (...). It is 0 for closed forms.
    """

    value: Array
    points: Array
    normal: Array
    gap: Array


def distance(a: Shape, X_A: Any, b: Shape, X_B: Any) -> Distance:
    """Return the distance of two shapes.

    The depth of overlapping shapes is the length of a translation that separates them,
    and at most `gap` longer than the least one.

    Args:
        a: A primitive, or a cloud.
        X_A: Poses of the frame that `a.pose` is in, a link's primary frame, in some
            frame: shape (..., 4, 4), or a `Pose`.
        b: Another primitive, or a cloud.
        X_B: The same for `b`; batches broadcast.

    Returns:
        Arrays in the frame that the poses are in; NaN where a pose has NaN.

    Raises:
        ModelError: Both are half spaces, or clouds, or one is a mesh.
        ShapeError: A pose has another shape.
    """
    # One kernel for all results; `gap` is what an iteration has not proven.
    kernel = _kernel(a, b, "all", np.float64)
    value, gap, points, normal = kernel(np.asarray(X_A), np.asarray(X_B))
    return Distance(value, points, normal, gap)


def distance_kernel(
    a: Shape,
    b: Shape,
    *,
    depth: bool = True,
    apart: bool = True,
    dtype: npt.DTypeLike = np.float64,
) -> Kernel:
    """Return the kernel from the pose of b in a to their distance.

    It takes X_AB, shape (..., 4, 4), between the frames that `a.pose` and `b.pose` are
    in, and returns `distance(...).value` [m], shape (...). It is compiled once for two
    kinds of shapes, and for closed forms once more for shapes whose poses are both the
    identity; other sizes compile nothing. The result is NaN where numbers of the pose
    are that it depends on.

    Args:
        a: A primitive, or a cloud.
        b: Another primitive, or a cloud.
        depth: Whether overlaps are measured. If not, the result is a number not above 0
            where the shapes overlap, for pairs without a closed form in less time.
        apart: Whether distances of shapes that are apart are measured. If not, the
            result is a number above 0 that is not above their distance, for boxes and
            pairs without a closed form in less time.
        dtype: float64 or float32, the type that it computes in.

    Raises:
        ModelError: Both are half spaces, or clouds, or one is a mesh.
        KernelError: `dtype` is not float64 or float32.
    """
    return _kernel(a, b, ASKED[bool(depth), bool(apart)], dtype)


def _kernel(a: Shape, b: Shape, asked: Asked, dtype: npt.DTypeLike) -> Kernel:
    # Imported when it is needed: it brings the compiler of pipelines.
    with IMPORT_LOCK:
        from armillary.collision.distance.pair_kernel import pair_kernel

    if isinstance(a, Cloud) and isinstance(b, Cloud):
        raise ModelError(
            "Two clouds have no distance. Take shapes in place of one: boxes, or "
            "ConvexPolyhedron.around(points) of its parts."
        )
    return pair_kernel(_primitive(a), _primitive(b), asked, np.dtype(dtype))


def _primitive(shape: Any) -> Primitive | Cloud:
    if isinstance(shape, Primitive | Cloud):
        return shape
    # A mesh need not be convex: which convex body is meant, the caller decides.
    kind = type(shape).__name__
    if isinstance(shape, Shape):
        raise ModelError(
            f"A {kind} has no distance; take its hull, "
            "ConvexPolyhedron.around(vertices), or primitives around it."
        )
    raise ModelError(f"The distance is of two shapes, such as a Box, not of {kind}.")
