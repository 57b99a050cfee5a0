"""Volumes around bodies for faster tests: spheres, and convex parts."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.disk_cache import cached_arrays
from armillary.errors import ModelError
from armillary.model.geometry.body_pieces import BodyPieces
from armillary.model.geometry.hull import check_spans_body, convex_hull
from armillary.model.geometry.sphere_cover import sphere_cover
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import Primitive
from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron
from armillary.model.shapes.sphere import Sphere
from armillary.spatial.pose import Pose

__all__ = ["BoundingSpheres", "bounding_spheres", "convex_parts"]

ROUND: Final = 2e-4
"""How far triangles may be inside a round primitive, as a part of its size."""

MOST_SPHERES: Final = 200
CONCAVITY: Final = 0.02
"""By default, how concave a part may be, as a part of the longest side of the box."""

CUBES: Final = 8000
"""Cubes that a body is divided into, so that parts contain its inside, too."""

MAKERS: Final = (
    "armillary.model.bounding_volumes",
    "armillary.model.geometry.body_pieces",
    "armillary.model.geometry.hull",
    "armillary.model.geometry.sphere_cover",
    "armillary.model.geometry.triangles",
    "scipy",
)
"""Modules on which spheres and parts depend."""

LONGEST: Final = 600.0
"""Seconds that the library CoACD may take."""

# CoACD ends its process on bodies that it cannot cut, and prints: it gets one of its
# own.
PROGRAM: Final = """
import sys
import coacd
import numpy as np

given = np.load(sys.argv[1])
coacd.set_log_level("off")
mesh = coacd.Mesh(given["vertices"], given["faces"])
parts = coacd.run_coacd(
    mesh, threshold=float(given["concavity"]), real_metric=True, seed=0
)
np.savez(sys.argv[2], *[part[0] for part in parts])
"""


# volumes around bodies for faster tests: spheres, and convex parts


class BoundingSpheres(NamedTuple):
    """Spheres that contain bodies.

    Attributes:
        spheres: In the frame of the bodies.
        excess: How far the spheres reach beyond the bodies at most [m].
    """

    spheres: tuple[Sphere, ...]
    excess: float


def bounding_spheres(
    bodies: Primitive | Triangles | Sequence[Primitive | Triangles],
    *,
    count: int = 10,
    **looks: Any,
) -> BoundingSpheres:
    """Return spheres that together contain bodies, and how far they reach beyond them.

    Every point of the bodies is in a sphere, also those inside: meshes count with all
    that they enclose, whichever side their triangles face, and holes narrower than
    about a twentieth of the body's size are closed. The same bodies always give the
    same spheres.

    Args:
        bodies: Primitives, at their poses in the link's primary frame, and triangles in
            that frame, such as `cell.meshes.triangles(mesh).transformed(mesh.pose)`.
        count: The most spheres, 1 to 200.
        looks: Name and colour of the spheres.

    Raises:
        ModelError: A body is infinite, there are no triangles, the count is invalid, or
            SciPy is not installed.
    """
    if not 1 <= count <= MOST_SPHERES:
        raise ModelError(f"There are 1 to {MOST_SPHERES} spheres, not {count!r}.")
    given = [bodies] if isinstance(bodies, (Primitive, Triangles)) else bodies
    # Triangles of round bodies are inside of them by up to `beyond`.
    surfaces, beyond = list[Triangles](), 0.0
    for body in given:
        if isinstance(body, Triangles):
            surfaces.append(body)
            continue
        tolerance = ROUND * max(body.bounding_sphere.radius, 1e-12)
        surfaces.append(body.triangles(tolerance).transformed(body.pose))
        beyond = max(beyond, tolerance)
    arrays = [array for each in surfaces for array in (each.vertices, each.faces)]
    # Spheres take seconds; the same bodies have the same ones in later processes.
    centres, radii, excess = cached_arrays(
        "spheres",
        [*arrays, count, beyond],
        lambda: sphere_cover(surfaces, count, beyond=beyond),
        made_by=MAKERS,
    )
    spheres = tuple(
        Sphere(radius=radius, pose=Pose.translation(*centre), **looks)
        for centre, radius in zip(centres.tolist(), radii.tolist(), strict=True)
    )
    return BoundingSpheres(spheres, float(excess))


def convex_parts(
    triangles: Triangles, *, tolerance: float | None = None, **looks: Any
) -> tuple[ConvexPolyhedron, ...]:
    """Return convex polyhedra that together contain a body.

    The library CoACD cuts it where it is concave (Wei et al., "Approximate convex
    decomposition for 3D meshes with collision-aware concavity and tree search", 2022);
    then each part grows until no point of the body is left out. The same body always
    gives the same parts.

    Args:
        triangles: The body, with all that it encloses.
        tolerance: How concave a part may be [m], at least 1/1000 of the body's size: by
            about how much the parts reach beyond the body. By default 1/50 of the
            longest side of the body's box.
        looks: Pose, name and colour of the parts.

    Raises:
        ModelError: There are no triangles, the tolerance is invalid, CoACD cannot cut
            the body, or CoACD or SciPy is not installed.
    """
    if not len(triangles.faces):
        raise ModelError("There are no triangles to put convex parts around.")
    size = float(np.ptp(triangles.vertices, axis=0).max())
    allowed = CONCAVITY * size if tolerance is None else tolerance
    if not 1e-3 * size <= allowed < np.inf:
        raise ModelError(
            f"The tolerance of convex parts is at least {1e-3 * size:g} m for this "
            f"body, not {tolerance!r}."
        )

    def made() -> Sequence[npt.NDArray[np.float64]]:
        pieces = BodyPieces([triangles], CUBES)
        try:
            check_spans_body(pieces.points)
        except ModelError:  # a flat body is not cut
            return [pieces.points]
        return _grown(_cut(triangles, allowed), pieces)

    parts = [triangles.vertices, triangles.faces, float(allowed), _coacd_version()]
    grown = cached_arrays("convex parts", parts, made, made_by=MAKERS)
    return tuple(
        ConvexPolyhedron.around(points, tolerance=0.25 * allowed, **looks)
        for points in grown
    )


def _coacd_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 40 ms

    try:
        return version("coacd")
    except PackageNotFoundError:
        return ""


def _cut(body: Triangles, concavity: float) -> list[npt.NDArray[np.float64]]:
    """Return the corners of convex parts that are nearly a body, shapes (n, 3).

    concavity: How concave a part may be [m].

    Raises:
        ModelError: CoACD is not installed, or cannot cut the body.
    """
    try:
        has_coacd = importlib.util.find_spec("coacd") is not None
    except ValueError:  # a stand-in without a specification is in its place
        has_coacd = False
    if not has_coacd:
        raise ModelError("Convex parts need CoACD: pip install 'armillary[parts]'.")
    with tempfile.TemporaryDirectory() as folder:
        body_file, parts_file = Path(folder, "given.npz"), Path(folder, "parts.npz")
        numbers: dict[str, Any] = {
            "vertices": body.vertices,
            "faces": body.faces.astype(np.int32),
            "concavity": concavity,
        }
        np.savez(body_file, **numbers)
        command = [sys.executable, "-c", PROGRAM, str(body_file), str(parts_file)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise ModelError(
                f"CoACD cannot cut the body of {len(body.faces)} triangles: {error}. "
                "Take its hull, or repair it."
            ) from error
        with np.load(parts_file) as arrays:
            return [np.asarray(arrays[name], np.float64) for name in arrays.files]


def _grown(
    parts: list[npt.NDArray[np.float64]], pieces: BodyPieces
) -> list[npt.NDArray[np.float64]]:
    """Return points of parts that contain all pieces: each grows least for its own."""
    # By how much each part would have to grow for each piece: the height of the piece's
    # farthest point above the part's faces. A piece belongs to the part that grows
    # least.
    heights = np.empty((len(parts), len(pieces.starts)))
    for k, part in enumerate(parts):
        try:
            faces = convex_hull(part)
        except ModelError:  # a flat part has nothing to contain
            heights[k] = np.inf
            continue
        a, b, c = np.moveaxis(part[faces], 1, 0)
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        above = pieces.points @ normals.T - np.einsum("ij,ij->i", normals, a)
        heights[k] = np.maximum.reduceat(above.max(axis=1), pieces.starts)
    if not np.isfinite(heights).any():
        return [pieces.points]
    owner = np.argmin(heights, axis=0)
    counts = np.diff(np.append(pieces.starts, len(pieces.points)))
    owners = np.repeat(owner, counts)
    return [
        np.concatenate([part, pieces.points[owners == k]])
        for k, part in enumerate(parts)
        if np.isfinite(heights[k, 0])
    ]
