"""Shapes, colours and masses of links as prims of a stage."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import NOWHERE, Report, Severity
from armillary.formats.names import FreeNames
from armillary.model.link import Link
from armillary.model.primitive import Primitive
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Sphere,
)
from armillary.model.shapes.mesh import MeshPart, MeshSource
from armillary.spatial.pose import Pose

__all__ = ["ShapeWriter", "pxr", "set_pose"]

SMALLEST: Final = 1e-12
"""The least moment of inertia that is written [kg m^2]: 0 stands for none."""
FINE: Final = 1e-3
"""How exact a shape is that becomes triangles [m]."""
WIDE: Final = 100.0
"""The sides of a half space as it is drawn [m]."""


def pxr(module: str) -> Any:
    """Return a module of the library, which has no types."""
    return importlib.import_module(f"pxr.{module}")


def set_pose(prim: Any, pose: Pose, scale: Sequence[float] | None = None) -> None:
    """Place a prim in its parent."""
    Gf, UsdGeom = pxr("Gf"), pxr("UsdGeom")
    xform, double = UsdGeom.Xformable(prim), UsdGeom.XformOp.PrecisionDouble
    xform.AddTranslateOp(double).Set(Gf.Vec3d(*map(float, pose.position)))
    w, x, y, z = map(float, pose.quaternion())
    xform.AddOrientOp(double).Set(Gf.Quatd(w, x, y, z))
    if scale is not None:
        xform.AddScaleOp(double).Set(Gf.Vec3d(*scale))


class GeometryKind(NamedTuple):
    """What a shape is in a stage.

    Attributes:
        name: Of the schema.
        values: Of its attributes, by their names.
        scale: Along its axes, if it has one.
    """

    name: str
    values: dict[str, float]
    scale: tuple[float, float, float] | None = None


_FIELDS: Final[dict[type[Shape], tuple[str, dict[str, str]]]] = {
    Sphere: ("Sphere", {"Radius": "radius"}),
    Cylinder: ("Cylinder", {"Radius": "radius", "Height": "length"}),
    Capsule: ("Capsule", {"Radius": "radius", "Height": "length"}),
    Cone: (
        "Cylinder_1",
        {"RadiusBottom": "bottom", "RadiusTop": "top", "Height": "length"},
    ),
}
"""For shapes the schema, and the field of each of its attributes."""

DRAWN: Final = (Box, *_FIELDS)
"""Shapes that stages have, too."""


def _kind_of(shape: Shape, *, is_collider: bool) -> GeometryKind | None:
    """Return what a shape is in a stage, None for what is written as triangles."""
    match shape:
        case Box(size=(x, y, z)) if z == 0.0 and not is_collider:
            return GeometryKind("Plane", {"Width": x, "Length": y})
        case Box(size=size):
            return GeometryKind("Cube", {"Size": 1.0}, size)
        case Ellipsoid(radii=radii) if not is_collider:
            return GeometryKind("Sphere", {"Radius": 1.0}, radii)
        case Cone(bottom=bottom, top=top, length=length) if top == 0.0:
            return GeometryKind("Cone", {"Radius": bottom, "Height": length})
        case HalfSpace():
            return GeometryKind("Plane", {"Width": WIDE, "Length": WIDE})
        case _ if type(shape) in _FIELDS:
            name, fields = _FIELDS[type(shape)]
            values = {each: getattr(shape, field) for each, field in fields.items()}
            return GeometryKind(name, values)
        case _:
            return None


class ShapeWriter:
    """Writes shapes into a stage.

    looks: The path of the prim that holds the materials.
    """

    def __init__(
        self, stage: Any, looks: str, meshes: MeshSource | None, report: Report
    ) -> None:
        self._stage = stage
        self._looks = looks
        self._meshes = meshes
        self._report = report
        self._materials: dict[Colour, Any] = {}
        self._geom = pxr("UsdGeom")
        self._physics = pxr("UsdPhysics")

    def add(self, path: str, link: Link, names: FreeNames) -> None:
        """Add the shapes of a link.

        Args:
            path: Of the prim of the link.
            link: With the shapes.
            names: Of the prims below.
        """
        for shape in link.visuals:
            prim = self._shape(path, shape, names, "visual")
            if prim is not None and isinstance(shape, HalfSpace):
                self._note("half-space", "a half space is drawn as a part of its plane")
        for shape in link.collisions:
            prim = self._shape(path, shape, names, "collision")
            if prim is None:
                continue
            self._geom.Imageable(prim).CreatePurposeAttr("guide")
            self._physics.CollisionAPI.Apply(prim)
            if prim.GetTypeName() == "Mesh":
                api = self._physics.MeshCollisionAPI.Apply(prim)
                api.CreateApproximationAttr("convexHull")

    def add_mass(self, prim: Any, link: Link, name: str) -> None:
        """Add the inertia of a link, whose frame is its primary one."""
        inertia = link.inertia
        if inertia is None:
            return
        if not inertia.mass > 0.0:
            self._report.unsupported.add("an inertia without mass")
            return
        Gf = pxr("Gf")
        about = np.array(inertia.about_centre(), dtype=float)
        moments, axes = np.linalg.eigh((about + about.T) / 2.0)
        if np.allclose(about, np.diag(np.diag(about)), rtol=0.0, atol=SMALLEST):
            moments, axes = np.diag(about), np.eye(3)
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] = -axes[:, 0]
        if float(np.sum(moments) - 2.0 * moments.max()) < -1e-6 * moments.max():
            self._report.warning(
                NOWHERE,
                "bad-inertia",
                f"the moments of {quote(name)} are those of no body; they are written "
                "as they are",
            )
        w, x, y, z = Pose.from_rotation_position(axes).quaternion()
        api = self._physics.MassAPI.Apply(prim)
        api.CreateMassAttr(float(inertia.mass))
        api.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, inertia.centre())))
        largest = np.maximum(moments, SMALLEST).tolist()
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(*largest))
        api.CreatePrincipalAxesAttr(Gf.Quatf(float(w), float(x), float(y), float(z)))

    def _note(self, code: str, message: str) -> None:
        known = (each.message for each in self._report.diagnostics)
        if message not in known:
            self._report.note(NOWHERE, code, message)

    def _shape(
        self, link: str, shape: Shape, names: FreeNames, kind: str
    ) -> Any | None:
        """Return the prim of a shape, None where there can be none."""
        given = shape.name or f"{kind}_{type(shape).__name__.lower()}"
        name = names.derive(pxr("Tf").MakeValidIdentifier(given))
        prim = self._geometry(f"{link}/{name}", shape, kind)
        if prim is None:
            return None
        if shape.name and shape.name != name:
            prim.SetDisplayName(shape.name)
        if shape.colour is not None:
            self._colour(prim, shape.colour)
        boundable = self._geom.Boundable(prim)
        default = pxr("Usd").TimeCode.Default()
        extent = self._geom.Boundable.ComputeExtentFromPlugins(boundable, default)
        if extent:
            boundable.CreateExtentAttr(extent)
        return prim

    def _geometry(self, path: str, shape: Shape, kind: str) -> Any | None:
        """Return the prim of a shape, None where there can be none."""
        found = _kind_of(shape, is_collider=kind == "collision")
        if found is None:
            made = self._triangles(path, shape)
            if made is None:
                return None
            set_pose(made.GetPrim(), shape.pose)
            return made.GetPrim()
        if found.scale is not None and 0.0 in found.scale:
            self._report.unsupported.add(f"a {kind} without volume")
            return None
        made = getattr(self._geom, found.name).Define(self._stage, path)
        for name, value in found.values.items():
            getattr(made, f"Create{name}Attr")(value)
        if found.name not in {"Cube", "Sphere"}:
            made.CreateAxisAttr("Z")
        set_pose(made.GetPrim(), shape.pose, found.scale)
        return made.GetPrim()

    def _triangles(self, path: str, shape: Shape) -> Any | None:
        """Return the mesh of a shape, None without triangles."""
        parts: Sequence[MeshPart] | None = None
        if isinstance(shape, Mesh):
            parts = self._parts(shape)
        elif isinstance(shape, Primitive):
            parts = (MeshPart(shape.triangles(FINE), None),)
            what = type(shape).__name__
            self._note("shape-replaced", f"shapes of type {what} become meshes")
        else:
            self._report.unsupported.add(f"a shape of type {type(shape).__name__}")
        if not parts:
            return None
        counts = np.cumsum([0, *(len(part.triangles.vertices) for part in parts)])
        points = np.vstack([part.triangles.vertices for part in parts])
        faces = np.vstack(
            [
                part.triangles.faces + start
                for part, start in zip(parts, counts, strict=False)
            ]
        )
        Vt = pxr("Vt")
        mesh = self._geom.Mesh.Define(self._stage, path)
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)))
        mesh.CreateFaceVertexIndicesAttr(
            Vt.IntArray.FromNumpy(faces.astype(np.int32).ravel())
        )
        mesh.CreateFaceVertexCountsAttr([3] * len(faces))
        mesh.CreateSubdivisionSchemeAttr("none")
        if shape.colour is None:
            self._colour_parts(mesh, parts)
        return mesh

    def _parts(self, mesh: Mesh) -> Sequence[MeshPart] | None:
        """Return the triangles of a mesh by colours, None if they cannot be read."""
        if self._meshes is None:
            what = "a mesh, which nothing reads: save a cell that was loaded"
            self._report.unsupported.add(what)
            return None
        try:
            parts = self._meshes.parts(mesh)
        except ArmillaryError as error:
            message = f"mesh {quote(mesh.file)} is left out: {error}"
            self._report.warning(NOWHERE, "no-mesh", message.removesuffix("."))
            return None
        if parts is None:
            self._report.unsupported.add("a mesh whose file is missing")
            return None
        for part in parts:
            if part.texture is not None or part.lost:
                what = "an image on a mesh"
                self._report.unsupported.add(what, severity=Severity.NOTE)
            if part.whole is not None:
                self._report.unsupported.add("a part of the triangles of a large mesh")
        return parts

    # Colours

    def _colour_parts(self, mesh: Any, parts: Sequence[MeshPart]) -> None:
        """Colour the triangles of each part."""
        colours = [part.colour for part in parts]
        if len(parts) == 1:
            if colours[0] is not None:
                self._colour(mesh.GetPrim(), colours[0])
            return
        Vt = pxr("Vt")
        family = "materialBind", "nonOverlapping"
        self._geom.Subset.SetFamilyType(mesh, *family)
        start = 0
        for k, part in enumerate(parts):
            end = start + len(part.triangles.faces)
            if part.colour is not None:
                subset = self._geom.Subset.CreateGeomSubset(
                    mesh,
                    f"part_{k}",
                    "face",
                    Vt.IntArray.FromNumpy(np.arange(start, end, dtype=np.int32)),
                    "materialBind",
                )
                self._bind(subset.GetPrim(), part.colour)
            start = end

    def _colour(self, prim: Any, colour: Colour) -> None:
        """Colour a prim: for viewers that know materials, and for others."""
        gprim = self._geom.Gprim(prim)
        gprim.CreateDisplayColorPrimvar("constant").Set([colour[:3]])
        if colour[3] != 1.0:
            gprim.CreateDisplayOpacityPrimvar("constant").Set([colour[3]])
        self._bind(prim, colour)

    def _bind(self, prim: Any, colour: Colour) -> None:
        """Bind the material of a colour to a prim, and make it where it is new."""
        UsdShade, Sdf = pxr("UsdShade"), pxr("Sdf")
        if colour not in self._materials:
            if not self._materials:
                self._geom.Scope.Define(self._stage, self._looks)
            path = f"{self._looks}/colour_{len(self._materials) + 1}"
            material = UsdShade.Material.Define(self._stage, path)
            shader = UsdShade.Shader.Define(self._stage, f"{path}/surface")
            shader.CreateIdAttr("UsdPreviewSurface")
            types = Sdf.ValueTypeNames
            shader.CreateInput("diffuseColor", types.Color3f).Set(tuple(colour[:3]))
            shader.CreateInput("opacity", types.Float).Set(colour[3])
            shader.CreateInput("roughness", types.Float).Set(0.5)
            surface = shader.CreateOutput("surface", types.Token)
            material.CreateSurfaceOutput().ConnectToSource(surface)
            self._materials[colour] = material
        UsdShade.MaterialBindingAPI.Apply(prim).Bind(self._materials[colour])
