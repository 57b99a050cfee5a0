"""Stages of USD for tests, and the library that judges them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["HEAD", "arm_text", "pxr", "stage_poses"]

HEAD = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = {metres}
    kilogramsPerUnit = 1
    upAxis = "{up}"
)
"""


def pxr(module: str) -> Any:
    """A module of the library."""
    return importlib.import_module(f"pxr.{module}")


def stage_poses(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    """The poses of prims in the world [m], z up, by the library's own cache."""
    stage = pxr("Usd").Stage.Open(str(path))
    geom, usd = pxr("UsdGeom"), pxr("Usd")
    cache = geom.XformCache(usd.TimeCode.EarliestTime())
    metres = geom.GetStageMetersPerUnit(stage)
    turn = np.eye(4)
    if geom.GetStageUpAxis(stage) == "Y":
        turn[1:3, 1:3] = [[0.0, -1.0], [1.0, 0.0]]
    found: dict[str, npt.NDArray[np.float64]] = {}
    for prim in usd.PrimRange.Stage(stage, usd.TraverseInstanceProxies()):
        if prim.IsA(geom.Xformable):
            matrix = cache.GetLocalToWorldTransform(prim).RemoveScaleShear()
            X = turn @ np.array(matrix).T
            X[:3, 3] *= metres
            found[str(prim.GetPath())] = X
    return found


def arm_text(*, metres: float = 1.0, up: str = "Z", joint: str = "") -> str:
    """An arm of two links on a base, as Isaac writes one, in some units.

    joint: What the second joint says besides.
    """
    m = 1.0 / metres
    half = 0.7071067811865476
    tilt = "(1, 0, 0, 0)" if up == "Z" else f"({half}, -{half}, 0, 0)"
    moments = ", ".join(str(each * m * m) for each in (0.01, 0.02, 0.02))
    return (
        HEAD.format(metres=metres, up=up)
        + f"""
def Xform "World"
{{
    def Xform "arm" (
        prepend apiSchemas = ["PhysicsArticulationRootAPI"]
        kind = "component"
    )
    {{
        quatd xformOp:orient = {tilt}
        uniform token[] xformOpOrder = ["xformOp:orient"]
        def Xform "base" (
            prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
        )
        {{
            float physics:mass = 3
            def Cube "foot" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {{
                double size = {0.2 * m}
                color3f[] primvars:displayColor = [(1, 0.5, 0)]
            }}
        }}
        def Xform "upper" (
            prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
        )
        {{
            double3 xformOp:translate = (0, 0, {0.5 * m})
            uniform token[] xformOpOrder = ["xformOp:translate"]
            float physics:mass = 2
            point3f physics:centerOfMass = ({0.1 * m}, 0, 0)
            float3 physics:diagonalInertia = ({moments})
            quatf physics:principalAxes = (1, 0, 0, 0)
            def Capsule "bone" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {{
                double radius = {0.05 * m}
                double height = {0.3 * m}
                uniform token axis = "X"
            }}
        }}
        def Xform "lower" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
        {{
            double3 xformOp:translate = ({0.3 * m}, {0.05 * m}, {0.6 * m})
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Xform "tool"
            {{
                double3 xformOp:translate = ({0.1 * m}, 0, 0)
                uniform token[] xformOpOrder = ["xformOp:translate"]
            }}
        }}
        def PhysicsFixedJoint "root_joint"
        {{
            rel physics:body1 = </World/arm/base>
        }}
        def PhysicsRevoluteJoint "shoulder" (
            prepend apiSchemas = ["PhysicsDriveAPI:angular"]
        )
        {{
            rel physics:body0 = </World/arm/base>
            rel physics:body1 = </World/arm/upper>
            uniform token physics:axis = "Z"
            point3f physics:localPos0 = (0, 0, {0.5 * m})
            float physics:lowerLimit = -90
            float physics:upperLimit = 180
            float drive:angular:physics:maxForce = {40 * m * m}
            float drive:angular:physics:stiffness = {100 * m * m}
            float physxJoint:maxJointVelocity = 45
            float physxJoint:armature = {0.25 * m * m}
        }}
        def PhysicsPrismaticJoint "slide"
        {{
            rel physics:body0 = </World/arm/upper>
            rel physics:body1 = </World/arm/lower>
            uniform token physics:axis = "X"
            point3f physics:localPos0 = ({0.3 * m}, 0, {0.1 * m})
            point3f physics:localPos1 = (0, {-0.05 * m}, 0)
            float physics:lowerLimit = {-0.1 * m}
            float physics:upperLimit = {0.2 * m}
            {joint}
        }}
    }}
}}
"""
    )
