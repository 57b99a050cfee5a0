"""Masses of bodies by MassAPI."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from armillary.errors import ModelError
from armillary.formats.diagnostic import Severity
from armillary.formats.inertia import possible_inertia
from armillary.formats.usd.process import PrimRecord
from armillary.formats.usd.scene import StagePrims
from armillary.model.link import Link
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO

__all__ = ["inertia_of"]

MASS: Final = "PhysicsMassAPI"


def inertia_of(scene: StagePrims, path: str, link: Link) -> SpatialInertia | None:
    """Return the inertia of a body about its origin, None where it is not known.

    What the file leaves out follows from the shapes of the body, as in simulators, but
    for meshes.

    Args:
        scene: The prims.
        path: Of the body.
        link: With its collision shapes.
    """
    prim = scene.prims[path]
    if MASS not in prim.schemas:
        return None
    mass = scene.number(prim, "physics:mass", 0.0) * scene.kilograms
    density = scene.number(prim, "physics:density", 0.0)
    density *= scene.kilograms / scene.metres**3
    tolerant = scene.report.tolerating("it is left out")
    if not (0.0 <= mass < math.inf and 0.0 <= density < math.inf):
        message = f"the mass or density of {prim.label} is negative or infinite"
        tolerant.error(scene.at(prim.path), "bad-inertia", message)
        return None
    moments = _moments(scene, prim)
    centre = _centre(scene, prim)
    if mass == 0.0 and density == 0.0:
        return None
    if mass > 0.0 and moments is not None:
        turn = scene.turn(prim, "physics:principalAxes")
        # I = R diag(I) R' about the centre of mass
        R = np.array(turn.rotation)
        about = R @ np.diag(moments) @ R.T
        central = SpatialInertia.from_centre(mass, ZERO, (about + about.T) / 2.0)
        possible = possible_inertia(
            central, scene.at(prim.path), prim.label, scene.report
        )
        if possible is None:
            return None
        moved = possible.transformed(Pose.translation(*(centre or ZERO)))
        return possible_inertia(moved, scene.at(prim.path), prim.label, scene.report)
    return _of_shapes(scene, prim, link, mass, density, centre)


def _moments(scene: StagePrims, prim: PrimRecord) -> tuple[float, ...] | None:
    """Return the principal moments [kg m^2], None where they follow from shapes."""
    given = scene.numbers(prim, "physics:diagonalInertia", 3)
    if given is None or given == (0.0, 0.0, 0.0):
        return None
    return tuple(each * scene.kilograms * scene.metres**2 for each in given)


def _centre(scene: StagePrims, prim: PrimRecord) -> tuple[float, float, float] | None:
    """Return the centre of mass in the rigid frame of a body [m]."""
    given = prim.values.get("physics:centerOfMass")
    if given is None or given == [-math.inf] * 3:  # the default: from shapes
        return None
    numbers = scene.numbers(prim, "physics:centerOfMass", 3)
    if numbers is None:
        return None
    sizes = scene.placed(prim.path).scale
    x, y, z = (n * size for n, size in zip(numbers, sizes, strict=True))
    return x, y, z


def _of_shapes(
    scene: StagePrims,
    prim: PrimRecord,
    link: Link,
    mass: float,
    density: float,
    centre: tuple[float, float, float] | None,
) -> SpatialInertia | None:
    """Return the inertia of a body that its shapes fill evenly."""
    filled: SpatialInertia | None = None
    try:
        if link.collision_shapes:
            filled = link.inertia_of_shapes(1.0)
    except ModelError:
        filled = None  # a mesh, or something infinite
    if filled is None or not filled.mass > 0.0:
        what = "a density" if mass == 0.0 else "a mass without moments of inertia"
        scene.report.unsupported.add(
            f"{what} of a body whose shapes are not all simple ones",
            scene.at(prim.path),
            Severity.WARNING,
        )
        return None
    factor = mass / filled.mass if mass > 0.0 else density
    about = np.array(filled.about_centre()) * factor
    return SpatialInertia.from_centre(
        filled.mass * factor, centre or filled.centre(), about
    )
