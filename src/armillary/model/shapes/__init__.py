"""The kinds of shapes that come with armillary, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from armillary.late_names import LateNames

if TYPE_CHECKING:
    from armillary.model.shape import Shape
    from armillary.model.shapes.box import Box
    from armillary.model.shapes.capsule import Capsule
    from armillary.model.shapes.circular_lozenge import CircularLozenge
    from armillary.model.shapes.cone import Cone
    from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron
    from armillary.model.shapes.cylinder import Cylinder
    from armillary.model.shapes.ellipsoid import Ellipsoid
    from armillary.model.shapes.half_space import HalfSpace
    from armillary.model.shapes.lozenge import Lozenge
    from armillary.model.shapes.mesh import Mesh
    from armillary.model.shapes.points import Points
    from armillary.model.shapes.sphere import Sphere
    from armillary.model.shapes.tetrahedron import Tetrahedron
    from armillary.model.shapes.triangular_lozenge import TriangularLozenge
    from armillary.model.shapes.voxels import Voxels

    SHAPES: tuple[type[Shape], ...]
    """Every kind of shape."""

__all__ = [
    "SHAPES",
    "Box",
    "Capsule",
    "CircularLozenge",
    "Cone",
    "ConvexPolyhedron",
    "Cylinder",
    "Ellipsoid",
    "HalfSpace",
    "Lozenge",
    "Mesh",
    "Points",
    "Sphere",
    "Tetrahedron",
    "TriangularLozenge",
    "Voxels",
]

_CLASSES: Final = LateNames(
    __name__,
    {
        "Box": "box",
        "Sphere": "sphere",
        "Cylinder": "cylinder",
        "Capsule": "capsule",
        "Lozenge": "lozenge",
        "CircularLozenge": "circular_lozenge",
        "TriangularLozenge": "triangular_lozenge",
        "HalfSpace": "half_space",
        "Ellipsoid": "ellipsoid",
        "Cone": "cone",
        "Tetrahedron": "tetrahedron",
        "ConvexPolyhedron": "convex_polyhedron",
        "Mesh": "mesh",
        "Points": "points",
        "Voxels": "voxels",
    },
)

_class = _CLASSES.getter()


if not TYPE_CHECKING:  # checkers know the names, and that there are no others

    def __getattr__(name: str) -> Any:
        return tuple(_CLASSES.values()) if name == "SHAPES" else _class(name)


def __dir__() -> list[str]:
    return __all__
