"""Stages of USD as cells, judged by the library itself and by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.model.shapes import (
    Box,
    Capsule,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    Sphere,
)
from usd_stages import HEAD, arm_text, pxr, stage_poses

pytest.importorskip("pxr")


def save(folder: Path, text: str, name: str = "stage.usda") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def pairs_of(cell: arm.Cell) -> list[tuple[str, str]]:
    return list(cell.pairs(cell.home))


def codes(report: Report) -> list[str]:
    return [each.code for each in report.diagnostics]


@pytest.mark.parametrize(("metres", "up"), [(1.0, "Z"), (0.01, "Y")])
def test_an_arm_of_isaac_moves_as_its_chain(
    tmp_path: Path, metres: float, up: str
) -> None:
    """Units of centimetres and Y up make the same arm."""
    path = save(tmp_path, arm_text(metres=metres, up=up))
    cell = arm.load(path)
    made = cell.workcell.manipulators[0]
    assert made.name == "arm" and cell.joint_names == ("shoulder", "slide")
    assert cell.workcell.mounts == ()  # fixed at the origin
    known = stage_poses(path)
    for link in ("base", "upper", "lower", "tool"):
        at = f"/World/arm/{link}" if link != "tool" else "/World/arm/lower/tool"
        assert np.allclose(cell.fk(link)([0.0, 0.0]), known[at], atol=2e-7)
    # Rz(q) at (0, 0, 0.5), then a slide along x.
    q = np.array([0.7, 0.1])
    c, s = math.cos(0.7), math.sin(0.7)
    x, y = 0.3 + 0.1 + 0.1, 0.05
    expected = [c * x - s * y, s * x + c * y, 0.6]
    assert np.allclose(cell.fk("tool")(q)[:3, 3], expected, atol=2e-7)


def test_numbers_of_joints_and_bodies_are_in_si_units(tmp_path: Path) -> None:
    cells = [
        registry.read(save(tmp_path, arm_text(metres=metres)))[0]
        for metres in (1.0, 0.01)
    ]
    for cell in cells:
        base, upper, pivot, lower = cell.manipulators[0].links
        limits = upper.limits
        assert np.allclose([limits.lower, limits.upper], [-math.pi / 2, math.pi])
        assert limits.velocity == pytest.approx(math.pi / 4)
        assert limits.effort == pytest.approx(40.0)
        assert upper.dynamics.armature == pytest.approx(0.25)
        assert np.allclose([pivot.limits.lower, pivot.limits.upper], [-0.1, 0.2])
        assert lower.joint.precursor.position == pytest.approx((0.0, 0.05, 0.0))
        (drive,) = cell.manipulators[0].properties
        assert drive.numbers == pytest.approx((100.0 * 180.0 / math.pi, 0.0, 0.0))
        assert upper.inertia is not None and base.inertia is not None
        assert upper.inertia.centre() == pytest.approx((0.1, 0.0, 0.0))
        assert np.allclose(np.diag(upper.inertia.about_centre()), [0.01, 0.02, 0.02])
        # A mass alone is spread over the shapes: m (a^2 + a^2) / 12.
        assert np.allclose(np.diag(base.inertia.about_centre()), 3 * 2 * 0.04 / 12)
        (foot,), (bone,) = base.collisions, upper.collisions
        assert foot.colour == (1.0, 0.5, 0.0, 1.0)
        assert isinstance(foot, Box) and foot.size == pytest.approx((0.2, 0.2, 0.2))
        assert isinstance(bone, Capsule) and bone.length == pytest.approx(0.3)
        assert bone.pose.rotate((0.0, 0.0, 1.0)) == pytest.approx((1.0, 0.0, 0.0))


def test_joints_follow_by_the_schemas_of_physx_and_newton(tmp_path: Path) -> None:
    """PhysX: q + gearing q_of + offset = 0, Newton: q = coef0 + coef1 q_of."""
    newton = """rel newton:mimicJoint = </World/arm/shoulder>
            float newton:mimicCoef1 = 0.02
            float newton:mimicCoef0 = 0.5"""
    cell, _ = registry.read(save(tmp_path, arm_text(joint=newton)))
    coupling = cell.manipulators[0].links[2].coupling
    assert coupling is not None and coupling.of == "shoulder"
    # Of degrees to metres.
    assert coupling.multiplier == pytest.approx(0.02 * 180.0 / math.pi)
    assert coupling.offset == pytest.approx(0.5)
    text = arm_text().replace(
        'def PhysicsPrismaticJoint "slide"',
        'def PhysicsPrismaticJoint "slide" (\n'
        'prepend apiSchemas = ["PhysxMimicJointAPI:rotX"]\n)',
    )
    text = text.replace(
        'uniform token physics:axis = "X"',
        """uniform token physics:axis = "X"
            float physxMimicJoint:rotX:gearing = -0.02
            float physxMimicJoint:rotX:offset = -0.5
            rel physxMimicJoint:rotX:referenceJoint = </World/arm/shoulder>""",
    )
    cell, _ = registry.read(save(tmp_path, text))
    assert cell.manipulators[0].links[2].coupling == coupling


SHAPES = """
def Xform "World"
{
    def Xform "part"
    {
        def Sphere "egg" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double radius = 0.5
            double3 xformOp:scale = (1, 2, -3)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }
        def Cone "cone" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double radius = 0.2
            double height = 0.6
            uniform token axis = "Y"
            double3 xformOp:scale = (1, -1, 1)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }
        def Cylinder "oval" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double radius = 0.5
            double height = 1
            double3 xformOp:scale = (1, 2, 1)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }
        def Cylinder "can" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double radius = 0.5
            double height = 1
            double3 xformOp:scale = (2, 2, 3)
            uniform token[] xformOpOrder = ["xformOp:scale"]
            token visibility = "invisible"
        }
        def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            uniform token purpose = "guide"
        }
        def Xform "leaning"
        {
            double3 xformOp:scale = (1, 3, 1)
            uniform token[] xformOpOrder = ["xformOp:scale"]
            def Cube "sheared" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {
                float xformOp:rotateZ = 45
                uniform token[] xformOpOrder = ["xformOp:rotateZ"]
            }
            def Mesh "wedge" (
                prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]
            )
            {
                int[] faceVertexCounts = [3, 3, 3, 3]
                int[] faceVertexIndices = [0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2]
                point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
                uniform token orientation = "leftHanded"
                double3 xformOp:translate = (1, 0, 0)
                float xformOp:rotateZ = 45
                uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]
            }
            def Mesh "boxed" (
                prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]
            )
            {
                int[] faceVertexCounts = [3]
                int[] faceVertexIndices = [0, 1, 2]
                point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0.5)]
                uniform token physics:approximation = "boundingCube"
            }
        }
    }
}
"""


def test_shapes_take_their_scales(tmp_path: Path) -> None:
    path = save(tmp_path, HEAD.format(metres=1, up="Z") + SHAPES)
    cell = arm.load(path)
    links = cell.workcell.manipulators[0].links
    assert cell.workcell.manipulators[0].name == "environment"
    shapes = {s.name: s for link in links for s in link.collisions}
    drawn = {s.name for link in links for s in link.visuals}
    assert "can" not in drawn and "ground" not in drawn and "egg" in drawn
    egg, cone, can = shapes["egg"], shapes["cone"], shapes["can"]
    assert isinstance(egg, Ellipsoid)
    assert sorted(egg.radii) == pytest.approx([0.5, 1.0, 1.5])
    assert isinstance(can, Cylinder) and (can.radius, can.length) == (1.0, 3.0)
    # Mirrored along its axis, the tip of the cone points to -y.
    assert isinstance(cone, Cone)
    tip = 1.0 if cone.top == 0.0 else -1.0
    assert tip * np.array(cone.pose.rotate((0.0, 0.0, 1.0))) @ [0, 1, 0] < -0.99
    assert isinstance(shapes["ground"], HalfSpace)
    oval, sheared = shapes["oval"], shapes["sheared"]
    assert isinstance(oval, ConvexPolyhedron) and isinstance(sheared, ConvexPolyhedron)
    assert oval.volume == pytest.approx(math.pi * 0.5 * 1.0, rel=0.03)
    assert sheared.volume == pytest.approx(8.0 * 3.0)
    boxed = shapes["boxed"]
    assert isinstance(boxed, Box) and boxed.size == pytest.approx((1.0, 3.0, 0.5))
    wedge = shapes["wedge"]
    assert isinstance(wedge, Mesh) and "|" in wedge.file  # sheared: baked
    assert cell.meshes is not None
    triangles = cell.meshes.triangles(wedge)
    assert triangles is not None and triangles.is_watertight
    assert triangles.moments.volume == pytest.approx(0.5)  # 1/6 times 3, outwards
    root = math.sqrt(0.5)
    corners = {tuple(np.round(v, 6)) for v in triangles.vertices.tolist()}
    assert (round(1 + root, 6), round(3 * root, 6), 0.0) in corners


def test_references_instances_and_variants_are_composed(tmp_path: Path) -> None:
    save(
        tmp_path,
        HEAD.format(metres=1, up="Z")
        + """
def Xform "World" (
    variants = { string size = "small" }
    prepend variantSets = "size"
)
{
    def Mesh "leaf" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
        color3f[] primvars:displayColor = [(0, 0, 1)]
    }
    variantSet "size" = {
        "small" {
            over "leaf"
            {
                double3 xformOp:scale = (1, 1, 1)
                uniform token[] xformOpOrder = ["xformOp:scale"]
            }
        }
        "large" {
            over "leaf"
            {
                double3 xformOp:scale = (2, 2, 2)
                uniform token[] xformOpOrder = ["xformOp:scale"]
            }
        }
    }
}
""",
        "part.usda",
    )
    path = save(
        tmp_path,
        HEAD.format(metres=1, up="Z")
        + """
def Xform "World"
{
    def Xform "one" (
        instanceable = true
        prepend references = @./part.usda@
    )
    {
    }
    def Xform "two" (
        instanceable = true
        prepend payload = @./part.usda@
    )
    {
        double3 xformOp:translate = (5, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
}
""",
    )
    cell = arm.load(path)
    environment = cell.workcell.manipulators[0]
    assert [link.name for link in environment.links] == ["world", "one", "two"]
    assert cell.fk("two")([])[0, 3] == 5.0
    (leaf,) = environment.links[2].collisions
    assert isinstance(leaf, Mesh) and leaf.colour == (0.0, 0.0, 1.0, 1.0)
    assert cell.meshes is not None
    triangles = cell.meshes.triangles(leaf)
    assert triangles is not None and len(triangles.faces) == 2
    large = arm.load(path, arguments={"size": "large"}).workcell.manipulators[0]
    (leaf,) = large.links[1].collisions
    assert isinstance(leaf, Mesh) and leaf.scale == (2.0, 2.0, 2.0)
    with pytest.raises(FormatError, match="has no variant 'huge'"):
        registry.read(path, arguments={"size": "huge"})


FOUR_BAR = """
def Xform "World"
{{
{bodies}
{joints}
}}
"""


def test_a_loop_is_closed_and_hinges_lie_one_behind_the_other(tmp_path: Path) -> None:
    """A parallelogram: its coupler never turns, whatever the crank does."""
    places = {"ground": (0, 0), "crank": (0, 0), "bar": (0, 1), "rocker": (2, 0)}
    bodies = "".join(
        f'def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])\n'
        f"{{\ndouble3 xformOp:translate = ({x}, {y}, 0)\n"
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
        for name, (x, y) in places.items()
    )
    pairs = {
        "a": ("ground", "crank", (0, 0), (0, 0)),
        "b": ("crank", "bar", (0, 1), (0, 0)),
        "c": ("ground", "rocker", (2, 0), (0, 0)),
        "d": ("bar", "rocker", (2, 0), (0, 1)),
    }
    joints = 'def PhysicsFixedJoint "f" {\nrel physics:body1 = </World/ground>\n}\n'
    for name, (one, other, at, to) in pairs.items():
        loop = "bool physics:excludeFromArticulation = true" if name == "d" else ""
        schema = '(prepend apiSchemas = ["PhysicsDriveAPI:angular"])'
        joints += (
            f'def PhysicsRevoluteJoint "{name}" {schema if name == "a" else ""}\n'
            f"{{\nrel physics:body0 = </World/{one}>\n"
            f"rel physics:body1 = </World/{other}>\n"
            f'uniform token physics:axis = "Z"\n{loop}\n'
            f"point3f physics:localPos0 = ({at[0]}, {at[1]}, 0)\n"
            f"point3f physics:localPos1 = ({to[0]}, {to[1]}, 0)\n}}\n"
        )
    text = FOUR_BAR.format(bodies=bodies, joints=joints)
    cell = arm.load(save(tmp_path, HEAD.format(metres=1, up="Z") + text))
    assert cell.joint_names == ("a",)
    assert set(cell.workcell.passive_names) == {"b", "c"}
    X = cell.fk("bar")([0.4])
    assert np.allclose(X[:3, :3], np.eye(3), atol=1e-9)
    assert np.allclose(X[:2, 3], [-math.sin(0.4), math.cos(0.4)])


def test_a_ball_and_a_joint_with_free_directions_become_several(tmp_path: Path) -> None:
    text = arm_text().replace("PhysicsPrismaticJoint", "PhysicsSphericalJoint")
    cell, report = registry.read(save(tmp_path, text))
    assert "split-joint" in codes(report)
    names = ("shoulder", "slide_turn_x", "slide_turn_y", "slide_turn_z")
    assert cell.joint_names == names
    generic = arm_text().replace(
        'def PhysicsPrismaticJoint "slide"',
        'def PhysicsJoint "slide" (prepend apiSchemas = ['
        + ", ".join(
            f'"PhysicsLimitAPI:{name}"'
            for name in ("transX", "transY", "rotX", "rotY", "rotZ")
        )
        + "])",
    )
    limits = "\n".join(
        f"float limit:{name}:physics:low = 1\nfloat limit:{name}:physics:high = -1"
        for name in ("transX", "transY", "rotX", "rotY")
    )
    limits += "\nfloat limit:rotZ:physics:low = -90\nfloat limit:rotZ:physics:high = 9"
    generic = generic.replace('uniform token physics:axis = "X"', limits)
    cell, _ = registry.read(save(tmp_path, generic))
    assert cell.joint_names == ("shoulder", "slide_slide_z", "slide_turn_z")
    turn = cell.manipulators[0].links[-2]
    assert turn.limits.lower == pytest.approx(-math.pi / 2)


def test_a_stage_starts_where_it_is_placed(tmp_path: Path) -> None:
    text = arm_text().replace(
        f"double3 xformOp:translate = ({0.3}, {0.05}, {0.6})",
        f"double3 xformOp:translate = ({0.4}, {0.05}, {0.6})",
    )
    cell = arm.load(save(tmp_path, text))
    assert cell.home.q == pytest.approx([0.0, 0.1], abs=1e-7)
    assert np.allclose(cell.fk("lower")([0.0, 0.0])[:3, 3], [0.3, 0.05, 0.6])


def test_rules_are_those_of_filters_groups_and_articulations(tmp_path: Path) -> None:
    more = """
    def Cube "box" (
        prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsFilteredPairsAPI"]
    )
    {
        double size = 0.1
        rel physics:filteredPairs = </World/arm/base>
    }
    def PhysicsCollisionGroup "group"
    {
        rel collection:colliders:includes = </World/arm/upper>
        rel physics:filteredGroups = </World/other>
    }
    def PhysicsCollisionGroup "other"
    {
        rel collection:colliders:includes = </World/box>
    }
}
"""
    text = arm_text().rstrip().removesuffix("}") + more
    cell = arm.load(save(tmp_path, text))
    assert len(pairs_of(cell)) == 0  # base and upper are adjacent, the box is filtered
    free = arm.load(save(tmp_path, text.replace("</World/other>", "</World/group>")))
    assert pairs_of(free) == [("arm/upper", "environment/box")]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("</World/arm/upper>", "</World/arm/uper>", "unknown-body"),
        ("</World/arm/upper>", "</World/arm/base>", "same-body"),
        ("localPos0 = (0, 0, 0.5)", "localPos0 = (0, 0, nan)", "bad-number"),
        ("translate = (0, 0, 0.5)", "translate = (0, 0, inf)", "bad-number"),
        ("translate = (0, 0, 0.5)", "translate = (0, 0, 1e300)", "bad-number"),
        ("lowerLimit = -90", "lowerLimit = 270", "swapped-limits"),
        ("physics:mass = 2", "physics:mass = -2", "bad-inertia"),
        ("double radius = 0.05", "double radius = -1", "bad-shape"),
        ('upAxis = "Z"', 'upAxis = "X"', "bad-unit"),
        ("metersPerUnit = 1.0", "metersPerUnit = 0", "bad-unit"),
        ("translate = (0, 0, 0.5)", "translate = (0, 0, 0.9)", "loose-joint"),
    ],
)
def test_faults_are_named(tmp_path: Path, old: str, new: str, code: str) -> None:
    text = arm_text()
    assert old in text
    path = save(tmp_path, text.replace(old, new))
    try:
        _, report = registry.read(path)
        found = codes(report)
    except FormatError as error:
        found = [each.code for each in error.diagnostics]
    assert code in found, found


def test_joints_that_mimic_each_other_are_an_error(tmp_path: Path) -> None:
    text = arm_text(joint="rel newton:mimicJoint = </World/arm/slide>")
    with pytest.raises(FormatError) as caught:
        registry.read(save(tmp_path, text))
    assert "mimic-cycle" in [each.code for each in caught.value.diagnostics]
    _, report = registry.read(save(tmp_path, text), lenient=True)
    assert "mimic-cycle" in codes(report)


def test_a_scene_without_physics_is_an_obstacle(tmp_path: Path) -> None:
    text = """
def Xform "World"
{
    def Sphere "ball"
    {
        double radius = 0.5
    }
    def Points "dots"
    {
        point3f[] points = [(0, 0, 0)]
    }
}
"""
    cell, report = registry.read(save(tmp_path, HEAD.format(metres=2, up="Y") + text))
    (ball,) = cell.manipulators[0].links[1].collisions
    assert isinstance(ball, Sphere) and ball.radius == 1.0
    kept = {each.code: each.severity for each in report.diagnostics}
    assert kept == {"no-colliders": Severity.NOTE, "not-kept": Severity.WARNING}


def test_the_stage_is_as_the_library_parses_it(tmp_path: Path) -> None:
    """Scaled bodies: the library's own parser of joints agrees."""
    text = arm_text().replace(
        f"double3 xformOp:translate = (0, 0, {0.5})\n            uniform token[] "
        'xformOpOrder = ["xformOp:translate"]',
        f"double3 xformOp:translate = (0, 0, {0.5})\n            double3 xformOp:scale"
        " = (2, 1, 3)\n            uniform token[] xformOpOrder = "
        '["xformOp:translate", "xformOp:scale"]',
    )
    path = save(tmp_path, text)
    stage = pxr("Usd").Stage.Open(str(path))
    parsed = pxr("UsdPhysics").UsdPhysicsLoadStageFromPrimRange(stage, ["/"])
    kinds = {str(kind): descs for kind, (_, descs) in parsed.items()}
    (slide,) = next(v for k, v in kinds.items() if k.endswith("PrismaticJoint"))
    from armillary.formats.format import ReadOptions
    from armillary.formats.usd.joints import read_joints
    from armillary.formats.usd.process import stage_record
    from armillary.formats.usd.scene import StagePrims

    report = Report()
    data = path.read_bytes()
    record = stage_record(data, str(path), ReadOptions().roots, {}, report)
    joints = {j.name: j for j in read_joints(StagePrims(record, str(path), report))}
    ours = joints["slide"].points[0].position
    assert ours == pytest.approx(tuple(slide.localPose0Position), abs=1e-6)
    assert ours == pytest.approx((0.6, 0.0, 0.3), abs=1e-6)


def test_attributes_of_physics_that_are_not_read_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.usda"
    more = (
        "custom float mjc:armature = 0.5\n            custom float newton:unheard = 2"
    )
    text = arm_text()
    assert "float physics:mass = 3" in text
    path.write_text(
        text.replace("float physics:mass = 3", f"float physics:mass = 3\n{more}")
    )
    _, before = registry.read(path)
    said = [str(d) for d in before.diagnostics if d.severity is Severity.NOTE]
    assert any("'mjc:armature' of a" in each for each in said)
    assert any("'newton:unheard' of a" in each for each in said)
    path.write_text(text)
    _, after = registry.read(path)
    names = ("physics:mass", "physics:axis", "physics:lowerLimit", "physics:body0")
    assert not [
        d for d in after.diagnostics if any(name in d.message for name in names)
    ]
