"""Mass properties: given by `<inertial>`, or of geoms as MuJoCo finds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, ModelError
from armillary.formats.inertia import possible_inertia
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mjcf.body import Body, PlacedElement
from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.mjcf.shapes import MeshAsset, Shapes
from armillary.formats.paths import Roots
from armillary.formats.xml import Element
from armillary.model.geometry.hull import convex_hull
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["LEAST_INERTIA", "NO_MASS", "NO_MOMENT", "Inertias"]

Array = npt.NDArray[np.float64]

WATER: Final = 1000.0
LEAST_INERTIA: Final = 1e-15
"""Masses and moments of moving bodies must be above it in MuJoCo."""

NO_MASS: Final = 1e-9
NO_MOMENT: Final = 1e-12
"""Mass and moments that are written for a body that moves and has none."""

LEGACY, EXACT, CONVEX, SHELL = "legacy", "exact", "convex", "shell"


class Inertias:
    """The inertias of all bodies.

    roots: Where meshes are looked up.
    """

    def __init__(self, document: MjcfDocument, shapes: Shapes, roots: Roots) -> None:
        self._document, self._shapes = document, shapes
        self._report = document.report.tolerating("its inertia is left out")
        self._files = MeshFiles(document.base, roots=roots)
        self._known: dict[tuple[int, str], SpatialInertia | None] = {}

    def of_bodies(self, bodies: Sequence[Body]) -> list[SpatialInertia | None]:
        """Return the inertia of each body about its origin, None without one."""
        found: list[SpatialInertia | None] = [None]
        found += [self._of(body) for body in bodies[1:]]
        total = self._document.settings["settotalmass"]
        mass = sum(each.mass for each in found if each is not None)
        if total > 0.0 and mass > LEAST_INERTIA:
            found = [None if i is None else _scaled(i, total / mass) for i in found]
        return found

    def _of(self, body: Body) -> SpatialInertia | None:
        settings = self._document.settings
        inertial = body.of("inertial")
        from_geoms = settings["inertiafromgeom"]
        inertia = None
        if inertial and from_geoms is not True:
            inertia = self._given(inertial[0], body)
            if len(inertial) > 1:
                place = inertial[1].element.place
                message = f"{body.element.label} has more than one <inertial>"
                self._report.error(place, "repeated-element", message)
        elif from_geoms is not False:
            inertia = self._of_geoms(body)
        return self._bounded(inertia, body)

    def _bounded(
        self, inertia: SpatialInertia | None, body: Body
    ) -> SpatialInertia | None:
        """Return an inertia that the compiler has bounded and balanced."""
        settings = body.document.settings
        least, moment = settings["boundmass"], settings["boundinertia"]
        if inertia is None and (least > 0.0 or moment > 0.0):
            inertia = SpatialInertia.zero()
        if inertia is None or (
            least <= 0.0 and moment <= 0.0 and not settings["balanceinertia"]
        ):
            return inertia
        mass = max(inertia.mass, least)
        if mass <= 0.0:
            return inertia
        centre = inertia.centre() if inertia.mass else ZERO
        central = np.array(
            inertia.about_centre() if inertia.mass else inertia.rotational
        )
        low, axes = np.linalg.eigh(central)
        low = np.maximum(low, moment)
        if settings["balanceinertia"] and low[0] + low[1] < low[2]:
            low[:] = low.mean()
        rotational = (axes * low) @ axes.T
        rotational = 0.5 * (rotational + rotational.T)
        return SpatialInertia.from_centre(mass, centre, rotational.tolist())

    def _given(self, inertial: PlacedElement, body: Body) -> SpatialInertia | None:
        element, report = inertial.element, self._report
        faults = report.faults
        mass = element.number("mass", report, required=True)
        diagonal = element.numbers("diaginertia", 3, report)
        full = element.numbers("fullinertia", 6, report)
        if diagonal is not None and full is not None:
            message = f"{element.label} has both 'diaginertia' and 'fullinertia'"
            report.error(element.place, "two-inertias", message, hint="Keep one.")
        pose = inertial.own_pose
        if mass is None or report.faults > faults:
            return None
        if full is not None:
            xx, yy, zz, xy, xz, yz = full
        else:
            xx, yy, zz = diagonal or ZERO
            xy = xz = yz = 0.0
        rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
        if mass == xx == yy == zz == 0.0:
            return None
        if (mass, xx, yy, zz) == (NO_MASS, *[NO_MOMENT] * 3):
            return None  # as `write` has it where none is known
        central = SpatialInertia.from_centre(mass, ZERO, rows)
        possible = possible_inertia(central, element.place, body.element.label, report)
        return None if possible is None else possible.transformed(pose)

    # Of geoms

    def _of_geoms(self, body: Body) -> SpatialInertia | None:
        first, last = body.document.settings["inertiagrouprange"]
        total: SpatialInertia | None = None
        for geom in body.of("geom"):
            group = geom.element.number("group", self._report, default=0.0)
            if first <= group <= last:
                one = self._of_geom(geom)
                if one is not None and one.mass >= LEAST_INERTIA:
                    total = one if total is None else total + one
        return total

    def _of_geom(self, geom: PlacedElement) -> SpatialInertia | None:
        """Return the inertia of a geom in its body, None without mass."""
        element, report = geom.element, self._report
        kind = self._shapes.type_of(element)
        if kind in ("plane", "hfield"):
            return None
        mass = element.number("mass", report)
        density = element.number("density", report, default=WATER)
        if (mass is not None and mass <= 0.0) or (mass is None and density <= 0.0):
            return None
        is_shell = element.attributes.get("shellinertia") == "true"
        try:
            if kind == "mesh":
                asset = self._shapes.asset(element)
                if asset is None:
                    return None
                own = self._of_mesh(asset, element, is_shell)
                pose = geom.own_pose
            else:
                shape = self._shapes.of(geom)
                if shape is None:
                    return None
                bare: Any = msgspec.structs.replace(shape, pose=Pose.identity())
                own = _shell(bare) if is_shell else bare.inertia(1.0)
                pose = shape.pose
                if own is None:
                    report.unsupported.add(
                        f"'shellinertia' of a geom of type {kind}", element.place
                    )
                    return None
        except ModelError as error:
            message = f"{element.label} has no inertia: {error}".removesuffix(".")
            report.error(element.place, "bad-inertia", message)
            return None
        if own is None or own.mass <= 0.0:
            return None
        factor = density if mass is None else mass / own.mass
        return _scaled(own, factor).transformed(pose)

    def _of_mesh(
        self, asset: MeshAsset, geom: Element, is_shell: bool
    ) -> SpatialInertia | None:
        """Return the inertia of a mesh of density 1 in its frame."""
        mode = SHELL if is_shell else asset.inertia or LEGACY
        key = id(asset), mode
        if key not in self._known:
            self._known[key] = None
            surface = self._surface(asset, geom)
            if surface is not None and not np.isfinite(surface[0]).all():
                message = f"{asset.element.label} has a vertex that is too large"
                self._report.error(asset.element.place, "bad-mesh", message)
            elif surface is not None:
                vertices, faces = surface
                if mode == CONVEX or not len(faces):
                    faces = convex_hull(vertices)
                    mode = EXACT if mode == CONVEX else mode
                self._known[key] = _of_surface(vertices[faces], mode)
        return self._known[key]

    def _surface(
        self, asset: MeshAsset, geom: Element
    ) -> tuple[Array, npt.NDArray[np.int64]] | None:
        """Return the vertices, in single precision as in MuJoCo, and the faces."""
        if asset.vertices:
            numbers = asset.element.numbers("vertex", None, self._report) or ()
            faces = asset.element.numbers("face", None, self._report) or ()
            corners = np.array(faces, np.int64)
            count = len(asset.vertices)
            if len(corners) % 3 or (
                len(corners) and not 0 <= corners.min() <= corners.max() < count
            ):
                what = f"'face' of {asset.element.label} names vertices that are not"
                place = asset.element.place
                self._report.error(place, "bad-mesh", f"{what} there")
                return None
            return _placed(np.array(numbers).reshape(-1, 3), asset), (
                corners.reshape(-1, 3)
            )
        try:
            triangles = self._files.triangles(Mesh(file=asset.file), place=geom.place)
        except FormatError as error:
            for each in error.diagnostics:
                self._report.error(each.place, each.code, each.message, hint=each.hint)
            return None
        if triangles is None:
            return None
        faces = triangles.faces
        if np.prod(asset.scale) < 0.0:
            faces = faces[:, ::-1]
        return _placed(triangles.vertices, asset), faces


def _placed(vertices: Array, asset: MeshAsset) -> Array:
    """Return vertices of a file, in single precision, in the frame of the mesh."""
    with np.errstate(all="ignore"):  # what is too large is found after this
        single = vertices.astype(np.float32).astype(np.float64) * np.array(asset.scale)
        return single @ np.array(asset.pose.rotation).T + np.array(asset.pose.position)


def _scaled(inertia: SpatialInertia, factor: float) -> SpatialInertia:
    """Return the inertia of a body of another density."""
    x, y, z = (tuple(factor * each for each in row) for row in inertia.rotational)
    first = tuple(factor * each for each in inertia.first_moment)
    return SpatialInertia(factor * inertia.mass, first, (x, y, z))  # type: ignore[arg-type]


def _of_surface(corners: Array, mode: str) -> SpatialInertia | None:
    """Return the inertia of a surface of triangles, filled or a shell of density 1.

    `legacy` counts each tetrahedron as positive: those from the middle of the surface
    for the centre, those from the centre for mass and moments.
    """
    a, b, c = np.moveaxis(corners, 1, 0)
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    middles = (a + b + c) / 3.0
    if areas.sum() <= 0.0:
        return None
    centre = areas @ middles / areas.sum()
    if mode == SHELL:
        # A triangle has int x x' = A / 12 (a a' + b b' + c c' + s s').
        s = a + b + c
        outer = sum(np.einsum("n,ni,nj->ij", areas, p, p) for p in (a, b, c, s))
        return SpatialInertia.from_second_moment(
            float(areas.sum()),
            (areas @ middles).tolist(),
            (np.asarray(outer) / 12.0)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist(),
        )

    def volumes(from_: Array) -> Array:
        signed = np.einsum("ij,ij->i", a - from_, np.cross(b - from_, c - from_)) / 6.0
        return np.abs(signed) if mode == LEGACY else signed

    parts = volumes(centre)
    volume = float(parts.sum())
    if volume <= 0.0:
        return None
    centre = parts @ (0.75 * middles + 0.25 * centre) / volume
    parts = volumes(centre)
    p, q, r = a - centre, b - centre, c - centre
    s = p + q + r
    second = sum(np.einsum("n,ni,nj->ij", parts, x, x) for x in (p, q, r, s))
    second = np.asarray(second) / 20.0
    rotational = np.trace(second) * np.eye(3) - second
    mass = float(parts.sum())
    return SpatialInertia.from_centre(mass, centre.tolist(), rotational.tolist())


def _shell(shape: Shape) -> SpatialInertia | None:
    """Return the inertia of a thin shell of 1 kg/m^2; None for an ellipsoid."""
    match shape:
        case Sphere(radius=r):
            mass = 4.0 * math.pi * r * r
            x = y = z = 2.0 / 3.0 * mass * r * r
        case Box(size=size):
            # Second moments of the six faces.
            a, b, c = (0.5 * each for each in size)
            xy, xz, yz = 8.0 * a * b, 8.0 * a * c, 8.0 * b * c
            mass = xy + xz + yz
            xx = a * a * (xy / 3.0 + xz / 3.0 + yz)
            yy = b * b * (xy / 3.0 + xz + yz / 3.0)
            zz = c * c * (xy + xz / 3.0 + yz / 3.0)
            x, y, z = yy + zz, xx + zz, xx + yy
        case Cylinder(radius=r, length=length):
            h = 0.5 * length
            side, ends = 4.0 * math.pi * r * h, 2.0 * math.pi * r * r
            mass = side + ends
            z = side * r * r + 0.5 * ends * r * r
            x = y = side * (0.5 * r * r + h * h / 3.0) + ends * (0.25 * r * r + h * h)
        case Capsule(radius=r, length=length):
            h = 0.5 * length
            side, ends = 4.0 * math.pi * r * h, 4.0 * math.pi * r * r
            mass = side + ends
            z = side * r * r + 2.0 / 3.0 * ends * r * r
            # A half sphere has its centre r / 2 beyond the end of the cylinder.
            x = y = side * (0.5 * r * r + h * h / 3.0) + ends * (
                2.0 / 3.0 * r * r + h * h + h * r
            )
        case _:
            return None
    return SpatialInertia(mass, ZERO, ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z)))
