"""What is drawn of a cell is where the cell says it is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.formats.mesh import MeshFiles
from armillary.model.geometry.triangles import Triangles
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.model.mechanism import Mechanism
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import (
    SHAPES,
    Box,
    Capsule,
    HalfSpace,
    Mesh,
    Points,
    Sphere,
    Voxels,
)
from armillary.model.shapes.mesh import MeshPart, MeshTexture
from armillary.spatial.pose import Pose
from armillary.testing.samples import random_joint
from armillary.view.drawing import COLOURS, drawings
from armillary.view.joint_symbols import joint_symbol
from armillary.view.kinds import Axes, Drawing, Drawings, DrawnSurface, Layer, Lines
from armillary.view.scene import glb_of
from armillary.view.surfaces import MOST_TRIANGLES, decimated
from solids import SOLIDS

POSE = Pose.from_rpy(0.3, -0.5, 1.1, (0.4, 0.2, -0.7))
TETRAHEDRON = Triangles(
    [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)],
    [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)],
)


class Circle(Joint):
    """A user's joint that carries its frame around a circle, q being the way."""

    radius: float
    unit = arm.METRE

    def pose(self, q: Any) -> Pose:
        return Pose.rotation_z(q / self.radius) @ Pose.translation(self.radius, 0, 0)


class Plane(Mechanism):
    """A user's joint of two coordinates."""

    units = (arm.METRE, arm.METRE)

    def forward(self, q: Any) -> Pose:
        return Pose.translation(q[0], q[1], 0.0)


CLOUDS = Points, Voxels


def one_link(*shapes: Shape) -> arm.Cell:
    """A cell of one link that has these shapes, in a turned primary frame."""
    link = arm.Link(name="body", primary=POSE, visuals=shapes, collisions=shapes)
    return arm.Cell(manipulators=[arm.Manipulator(name="m", links=[link])])


def drawn(cell: arm.Cell) -> Drawings:
    return drawings(cell.workcell, cell.meshes)


def of(layer: Layer, found: Drawings) -> list[Drawing]:
    return [item for item in found.items if item.layer is layer]


def points(item: Drawing) -> np.ndarray:
    """The points of a drawing in the frame of its link."""
    match item.what:
        case DrawnSurface(vertices=own):
            own = own.astype(float)
        case Lines(points=ends):
            own = ends.reshape(-1, 3).astype(float)
        case _:
            raise AssertionError(item)
    X = item.pose.matrix()
    return own @ X[:3, :3].T + X[:3, 3]


def test_every_kind_of_shape_is_tested():
    kinds = {type(shape) for shape in SOLIDS.values()}
    assert kinds | {HalfSpace, Mesh, *CLOUDS} == set(SHAPES)


@pytest.mark.parametrize("kind", CLOUDS)
def test_clouds_fill_their_bounds(kind: type[Shape]):
    own = np.random.default_rng(4).uniform(-1.0, 1.0, (60, 3))
    cloud = Points(own, 0.05) if kind is Points else Voxels.around(own, size=0.2)
    turned = msgspec.structs.replace(cloud, pose=Pose.from_rpy(0.2, 0.1, -0.6))
    found = drawn(one_link(turned))
    lower, upper = turned.bounding_box(POSE @ turned.pose)
    for layer in (Layer.VISUALS, Layer.COLLISIONS):
        (item,) = of(layer, found)
        assert points(item).min(axis=0) == pytest.approx(lower, abs=0.05)
        assert points(item).max(axis=0) == pytest.approx(upper, abs=0.05)
    assert found.notes == ()


def test_notes_say_of_which_clouds_a_part_is_drawn():
    own = np.random.default_rng(4).uniform(-1.0, 1.0, (30_000, 3))
    found = drawn(one_link(Points(own, 0.01, name="scan")))
    assert found.notes == ("Points 'scan' is drawn with 15000 of its 30000 bodies.",)


@pytest.mark.parametrize("name", SOLIDS)
def test_surfaces_fill_the_bounds_of_their_shape(name: str):
    shape = placed(SOLIDS[name])
    found = drawn(one_link(shape))
    lower, upper = shape.bounding_box(POSE @ shape.pose)
    within = 0.01 * shape.bounding_sphere.radius
    for layer in (Layer.VISUALS, Layer.COLLISIONS):
        (item,) = of(layer, found)
        assert isinstance(item.what, DrawnSurface)
        assert points(item).min(axis=0) == pytest.approx(lower, abs=within)
        assert points(item).max(axis=0) == pytest.approx(upper, abs=within)
    assert found.notes == ()


def placed(shape: Primitive) -> Primitive:
    """The shape at a pose in its link."""
    pose = Pose.from_rpy(0.2, 0.1, -0.6, (0.1, 0.5, 0.0))
    return msgspec.structs.replace(shape, pose=pose)


@pytest.mark.parametrize("name", SOLIDS)
def test_bounding_volumes_hold_their_shapes_tightly(name: str):
    shape = placed(SOLIDS[name])
    for shapes in ([shape], [shape, Sphere(radius=0.3)]):
        found = drawn(one_link(*shapes))
        (box,), (sphere,) = of(Layer.BOXES, found), of(Layer.SPHERES, found)
        boxes = [each.bounding_box(each.pose) for each in shapes]
        edges = np.asarray(box.what.points).reshape(-1, 3)  # pyright: ignore
        lower = np.min([b.lower for b in boxes], axis=0)
        upper = np.max([b.upper for b in boxes], axis=0)
        assert edges.min(axis=0) == pytest.approx(lower, abs=1e-6)
        assert edges.max(axis=0) == pytest.approx(upper, abs=1e-6)
        surfaces = [points(item) for item in of(Layer.COLLISIONS, found)]
        centre = np.array(sphere.pose.position)
        radius = np.linalg.norm(points(sphere) - centre, axis=1).max()
        reach = np.linalg.norm(np.vstack(surfaces) - centre, axis=1).max()
        assert reach <= radius * (1.0 + 1e-6)
        assert radius <= 1.01 * reach


@pytest.mark.parametrize(
    "shape",
    [
        Sphere(radius=0.0),
        Box(size=(0.0, 0.0, 0.0)),
        Box(size=(0.0, 0.3, 0.0)),
        Capsule(radius=0.0, length=0.4),
        HalfSpace(),
    ],
)
def test_bodies_without_area_and_infinite_ones_are_seen(shape: Primitive):
    found = drawn(one_link(shape))
    visible = of(Layer.VISUALS, found)
    assert any(isinstance(item.what, Lines) for item in visible)
    assert all(np.isfinite(points(item)).all() for item in visible)
    assert found.notes == ()


@pytest.mark.parametrize("other", [Sphere(radius=0.0), Box(size=(0.2, 0.0, 0.0))])
@pytest.mark.parametrize("solid", [[], [Sphere(radius=0.1)]])
def test_bodies_without_area_count_for_bounding_volumes(
    other: Primitive, solid: list[Shape]
):
    away = msgspec.structs.replace(other, pose=Pose.translation(1.0, 0.0, 0.0))
    found = drawn(one_link(Sphere(radius=0.0), HalfSpace(), away, *solid))
    (box,), (sphere,) = of(Layer.BOXES, found), of(Layer.SPHERES, found)
    X = np.linalg.inv(POSE.matrix())
    lower = -0.1 if solid else 0.0
    reach = 1.1 if isinstance(other, Box) else 1.0
    edges = np.asarray(box.what.points)  # pyright: ignore
    assert edges[..., 0].min() == pytest.approx(lower, abs=1e-6)
    assert edges[..., 0].max() == pytest.approx(reach, abs=1e-6)
    centre = X[:3, :3] @ np.array(sphere.pose.position) + X[:3, 3]
    assert centre == pytest.approx([(lower + reach) / 2, 0, 0], abs=1e-3)


def test_equal_shapes_share_their_arrays():
    one = Sphere(radius=0.2, name="a")
    other = Sphere(radius=0.2, name="b", pose=POSE)
    first, second = of(Layer.VISUALS, drawn(one_link(one, other)))
    assert first.what.vertices is second.what.vertices  # pyright: ignore


def test_colours_are_those_of_shapes():
    red = (1.0, 0.0, 0.0, 0.5)
    items = of(Layer.VISUALS, drawn(one_link(Sphere(radius=1, colour=red))))
    assert [item.what.colour for item in items] == [red]  # pyright: ignore


def test_colours_of_meshes_are_those_of_visuals_only():
    red = (1.0, 0.0, 0.0, 0.5)
    cell = one_link(Mesh(file="t.stl", colour=red))
    found = drawings(cell.workcell, OneMesh(TETRAHEDRON))
    (visual,), (collision,) = of(Layer.VISUALS, found), of(Layer.COLLISIONS, found)
    assert visual.what.colour == red  # pyright: ignore
    assert collision.what.colour == COLOURS[Layer.COLLISIONS]  # pyright: ignore


@pytest.mark.parametrize("size", [0.01, 30.0])
@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_axes_are_as_large_as_shapes_need(size: float, kind: str):
    shapes = {
        "box": Box(size=(size, size, size)),
        "mesh": Mesh(file="t.stl", scale=(size, size, size)),
    }
    cell = one_link(shapes[kind], HalfSpace())
    axes = of(Layer.FRAMES, drawings(cell.workcell, Scaled(TETRAHEDRON)))[0].what
    assert isinstance(axes, Axes)
    assert 0.02 * size < axes.length < 0.2 * size


def test_a_large_floor_leaves_symbols_small():
    floor = Box(size=(50.0, 50.0, 0.1))
    robot = arm.example("irb2400").manipulators[0]
    ground = arm.Manipulator(
        name="floor", links=[arm.Link(name="slab", visuals=[floor])]
    )
    cell = arm.Cell(manipulators=[robot, ground])
    axes = of(Layer.FRAMES, drawn(cell))[0].what
    assert isinstance(axes, Axes)
    assert axes.length < 0.2


HOSTILE_NAMES = ["<b>x</b>", "a\u202eb\u2066c", "n" * 10_000, "a\nb\x1b[31m"]


def test_labels_are_names_in_their_manipulator():
    frame = arm.Frame(name="tool/tip")
    link = arm.Link(name="<b>x</b>", frames=[frame])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=[link])])
    texts = [item.what.text for item in of(Layer.NAMES, drawn(cell))]  # pyright: ignore
    assert texts == ["world", "<b>x</b>", "tool/tip"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_labels_and_notes_are_one_line_of_bounded_length(name: str, tmp_path: Path):
    meshes = [Mesh(file="gone.stl", name=name), Mesh(file=f"{name}.stl")]
    link = arm.Link(name=name, visuals=meshes, frames=[arm.Frame(name="f")])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=[link])])
    found = drawings(cell.workcell, MeshFiles(tmp_path))
    texts = [item.what.text for item in of(Layer.NAMES, found)]  # pyright: ignore
    assert len(texts) == 3
    assert all(len(text) <= 100 and text.isprintable() for text in texts)
    assert len(found.notes) == 2
    assert all(len(note) < 500 and note.isprintable() for note in found.notes)


def test_frames_are_where_the_cell_says(random_cell: Any):
    cell = random_cell(3)
    found = drawn(cell)
    poses = cell.poses(cell.home)
    names = [cell.workcell.frame_names[0], *poses]
    axes = of(Layer.FRAMES, found)
    assert len(axes) == len(names)
    for name, item in zip(names, axes, strict=True):
        assert isinstance(item.what, Axes)
        link = owner(cell, item.link)
        X = poses[link] @ item.pose.matrix()
        assert pytest.approx(poses[name], abs=1e-12) == X


def owner(cell: arm.Cell, link: int) -> str:
    """The name of a link, by its number."""
    if link < 0:
        return "world"
    names = [f"{m.name}/{each.name}" for m in cell.manipulators for each in m.links]
    return names[link]


@pytest.mark.parametrize("kind", sorted(set(JOINT_TYPES) - {"Fixed"}))
def test_every_joint_has_a_symbol(kind: str):
    joint = random_joint(np.random.default_rng(5), kind)
    symbol = joint_symbol(joint, [(-0.2, 0.2)], [0.0], 0.1)
    free = joint_symbol(joint, [(-np.inf, np.inf)], [0.0], 0.1)
    is_still = kind.endswith("Coordinate")
    for each in (symbol, free):
        assert (each is None) == is_still
        assert each is None or np.isfinite(each.points).all()


@pytest.mark.parametrize("precursor", [Pose.identity(), POSE])
def test_tracks_pass_through_where_the_joint_goes(precursor: Pose):
    joint = Circle(radius=0.7, precursor=precursor)
    symbol = joint_symbol(joint, [(0.0, 1.0)], [0.0], 0.1)
    assert symbol is not None
    assert symbol.points[0, 0] == pytest.approx(joint.transform(0.0).position)
    assert symbol.points[-1, 1] == pytest.approx(joint.transform(1.0).position)


@pytest.mark.parametrize(
    "joint",
    [
        arm.joints.PaulRevolute(d=0.3, a=0.5, alpha=0.7),
        arm.joints.CraigRevolute(d=0.3, a=0.5, alpha=0.7),
        arm.joints.Revolute(axis=(0.6, 0.0, 0.8)),
    ],
    ids=lambda joint: type(joint).__name__,
)
@pytest.mark.parametrize("precursor", [Pose.identity(), POSE])
def test_what_turns_has_a_small_arc_around_its_axis(joint: Joint, precursor: Pose):
    """However far from the axis the outer frame is."""
    joint = joint.prepend(precursor)
    symbol = joint_symbol(joint, [(-1.0, 2.0)], [0.0], 0.1)
    assert symbol is not None
    (start, end), arc = symbol.points[0].astype(float), symbol.points[1:].astype(float)
    axis = (end - start) / 0.2
    assert np.linalg.norm(axis) == pytest.approx(1.0, rel=1e-5)
    hub = 0.5 * (start + end)
    assert np.linalg.norm(arc - hub, axis=-1).max() == pytest.approx(0.06, rel=1e-5)
    turn = joint.transform(0.7) @ joint.transform(-0.4).inverse()
    assert turn @ hub == pytest.approx(hub, abs=1e-6)
    assert np.array(turn.rotate(axis.tolist())) == pytest.approx(axis, abs=1e-6)


def test_mechanisms_have_a_track_for_each_coordinate():
    symbol = joint_symbol(Plane(), [(-1, 1), (-2, 3)], [0.0, 0.0], 0.1)
    assert symbol is not None
    assert symbol.points[..., 1].max() == pytest.approx(3.0)
    assert symbol.points[..., 0].min() == pytest.approx(-1.0)


@pytest.mark.parametrize("name", arm.example_names())
def test_example_cells_are_drawn(name: str):
    cell = arm.example(name)
    found = drawn(cell)
    assert len({item.name for item in found.items}) == len(found.items)
    assert of(Layer.JOINTS, found)
    assert bool(of(Layer.COLLISIONS, found)) == found.has_shapes
    frames = {*cell.workcell.frame_names}
    assert {end for rod in found.rods for end in rod} <= frames
    assert found.notes == ()


def test_sticks_meet_the_joints_of_the_next_link():
    """Of an arm of two links, one stick ends where the next joint starts."""
    upper = arm.Link(name="upper", parent="base", joint=arm.joints.Revolute())
    elbow = arm.joints.Revolute(precursor=Pose.translation(0.6, 0, 0.1))
    lower = arm.Link(name="lower", parent="upper", joint=elbow)
    links = [arm.Link(name="base"), upper, lower]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    (stick,) = (item for item in drawn(cell).items if item.name == "m/upper/sticks")
    assert points(stick) == pytest.approx(np.array([(0, 0, 0), (0.6, 0, 0.1)]))


def missing_meshes(cell: arm.Cell) -> arm.Cell:
    """The same cell with a mesh, which no file has, as the visual of each link."""
    gone = [Mesh(file="gone.stl")]
    for each in cell.manipulators:
        links = [link.replace(visuals=gone, collisions=[]) for link in each.links]
        cell = cell.exchange(each.replace(links=links))
    return cell


def test_sticks_stand_for_missing_meshes():
    """As they do where there are no shapes, and beside the shapes of others."""
    bare = arm.example("ur5e_on_oval")
    sticks = {item.name for item in drawn(bare).items if "sticks" in item.name}
    assert "ur5e/upper_arm/sticks" in sticks
    cell = missing_meshes(bare)
    box = arm.Link(name="box", visuals=[Box(size=(0.1, 0.1, 0.1))])
    beside = cell.add(arm.Manipulator(name="table", links=[box]), on="world")
    for each, has_shapes in ((cell, False), (beside, True)):
        found = drawn(each)
        visuals = {item.name for item in of(Layer.VISUALS, found)}
        assert {name for name in visuals if "sticks" in name} == sticks
        assert found.has_shapes is has_shapes


def test_sticks_are_shown_with_the_collision_shapes_of_others():
    ball = arm.Link(name="ball", collisions=[Sphere(radius=0.1)])
    bare = missing_meshes(arm.example("ur5e_on_oval"))
    cell = bare.add(arm.Manipulator(name="part", links=[ball]), on="world")
    found = drawn(cell)
    assert of(Layer.VISUALS, found) == []
    assert any("sticks" in item.name for item in of(Layer.COLLISIONS, found))


def test_sticks_stand_for_links_without_shapes_beside_others_of_an_arm():
    """But not for what is fixed to a shape, such as the frame of a sensor."""
    box, turn = [Box(size=(0.1, 0.1, 0.1))], arm.joints.Revolute

    def at(x, kind=turn):
        return kind(precursor=Pose.translation(x, 0, 0))

    links = [
        arm.Link(name="base", visuals=box),
        arm.Link(name="a", parent="base", joint=at(0.2)),
        arm.Link(name="b", parent="a", joint=at(0.5), visuals=box),
        arm.Link(name="c", parent="b", joint=at(0.3)),
        arm.Link(name="tip", parent="c", joint=at(0.4, arm.joints.Fixed)),
        arm.Link(name="lens", parent="b", joint=at(0.1, arm.joints.Fixed)),
        arm.Link(name="focus", parent="lens", joint=at(0.7, arm.joints.Fixed)),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    found = {x.name: points(x) for x in drawn(cell).items if "sticks" in x.name}
    assert set(found) == {"m/a/sticks", "m/c/sticks"}
    assert found["m/a/sticks"] == pytest.approx(np.array([(0, 0, 0), (0.5, 0, 0)]))
    ends = np.unique(found["m/c/sticks"], axis=0)
    assert ends == pytest.approx(np.array([(0, 0, 0), (0.4, 0, 0)]))


def test_without_joints_there_are_no_sticks_beside_shapes():
    tag = arm.Frame(name="tag", pose=Pose.translation(1, 0, 0))
    marker = arm.Manipulator(name="marker", links=[arm.Link(name="m", frames=[tag])])
    alone = arm.Cell(manipulators=[marker])
    beside = one_link(Sphere(radius=0.1)).add(marker, on="world")
    for cell, expected in ((alone, True), (beside, False)):
        assert any("sticks" in each.name for each in drawn(cell).items) == expected


def test_rods_are_listed():
    found = drawn(arm.example("stewart"))
    assert len(found.rods) == 6


def ascii_stl(path: Path, triangles: Triangles) -> Path:
    corners = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in triangle)
        + "endloop\nendfacet\n"
        for triangle in triangles.corners.tolist()
    )
    path.write_text(f"solid s\n{corners}endsolid s\n")
    return path


def test_meshes_are_drawn_at_their_scale(tmp_path: Path):
    ascii_stl(tmp_path / "t.stl", TETRAHEDRON)
    cell = one_link(Mesh(file="t.stl", scale=(2.0, 1.0, 0.5)))
    found = drawings(cell.workcell, MeshFiles(tmp_path))
    (item,) = of(Layer.VISUALS, found)
    assert isinstance(item.what, DrawnSurface)
    assert item.what.vertices.max(axis=0) == pytest.approx((2.0, 1.0, 0.5))
    (box,) = of(Layer.BOXES, found)
    assert np.asarray(box.what.points).max(axis=(0, 1)) == pytest.approx(  # pyright: ignore
        (2.0, 1.0, 0.5)
    )


def test_missing_and_forbidden_meshes_have_one_note_each(tmp_path: Path):
    shapes = [Mesh(file="gone.stl"), Mesh(file="gone.stl"), Mesh(file="../out.stl")]
    cell = one_link(*shapes)
    found = drawings(cell.workcell, MeshFiles(tmp_path, missing="warn"))
    assert of(Layer.VISUALS, found) == []
    assert len(found.notes) == 2
    assert len(drawings(cell.workcell, None).notes) == 2


class OneMesh:
    """Reads the same triangles from each file."""

    def __init__(self, found: Triangles) -> None:
        self.found = found

    def triangles(self, mesh: Mesh) -> Triangles:
        return self.found

    def parts(self, mesh: Mesh) -> list[MeshPart]:
        return [MeshPart(self.found, None)]

    def hull(self, mesh: Mesh) -> None:
        raise NotImplementedError


class Scaled(OneMesh):
    """Reads the same triangles from each file, at the scale of the shape."""

    def parts(self, mesh: Mesh) -> list[MeshPart]:
        return [MeshPart(self.found.scaled(mesh.scale), None)]


class Pictured(OneMesh):
    """Reads the same triangles from each file, with an image."""

    image = b"\x89PNG of a test"

    def parts(self, mesh: Mesh) -> list[MeshPart]:
        uv = np.random.default_rng(3).uniform(size=(len(self.found.faces), 3, 2))
        if mesh.colour is not None:
            return [MeshPart(self.found, mesh.colour)]
        texture = MeshTexture(uv, self.image)
        return [MeshPart(self.found, None, texture), MeshPart(self.found, None)]


def test_images_are_on_visuals_with_their_places():
    source = Pictured(TETRAHEDRON)
    found = drawings(one_link(Mesh(file="t.obj")).workcell, source)
    textured, plain = of(Layer.VISUALS, found)
    what = textured.what
    assert isinstance(what, DrawnSurface)
    assert what.texture is not None
    assert what.texture.image == source.image
    texture = source.parts(Mesh(file="t.obj"))[0].texture
    assert texture is not None
    assert what.vertices[what.faces] == pytest.approx(TETRAHEDRON.corners)
    assert what.texture.uv[what.faces] == pytest.approx(texture.uv, abs=1e-6)
    assert plain.what.texture is None  # pyright: ignore
    (collision,) = of(Layer.COLLISIONS, found)
    assert collision.what.texture is None  # pyright: ignore


def test_a_surface_with_an_image_is_a_glb_of_both():
    trimesh = pytest.importorskip("trimesh")
    source = Pictured(TETRAHEDRON)
    found = drawings(one_link(Mesh(file="t.obj")).workcell, source)
    surface = of(Layer.VISUALS, found)[0].what
    assert isinstance(surface, DrawnSurface)
    data = glb_of(surface)
    assert source.image in data
    scene: Any = trimesh.load_scene(
        io.BytesIO(data), file_type="glb", process=False, skip_materials=True
    )
    (mesh,) = scene.geometry.values()
    assert np.asarray(mesh.vertices) == pytest.approx(surface.vertices)
    assert np.array_equal(mesh.faces, surface.faces)


def test_lost_images_are_noted():
    class Lost(OneMesh):
        def parts(self, mesh: Mesh) -> list[MeshPart]:
            return [MeshPart(self.found, None, lost="it is gone")]

    found = drawings(one_link(Mesh(file="t.obj")).workcell, Lost(TETRAHEDRON))
    note = "The texture of Mesh 't.obj' is not shown: it is gone."
    assert found.notes == (note,)


def test_large_meshes_are_decimated_with_a_note():
    ball = Sphere(radius=1.0).triangles(5e-6)
    count = len(ball.faces)
    assert count > MOST_TRIANGLES
    cell = one_link(Mesh(file="ball.stl"))
    found = drawings(cell.workcell, OneMesh(ball))
    (item,) = of(Layer.VISUALS, found)
    assert isinstance(item.what, DrawnSurface)
    left = len(item.what.faces)
    assert 0.2 * MOST_TRIANGLES < left <= MOST_TRIANGLES
    assert np.linalg.norm(item.what.vertices, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert found.notes == (
        f"Mesh 'ball.stl' is drawn with {left} of its {count} triangles.",
    )
    (box,), (sphere,) = of(Layer.BOXES, found), of(Layer.SPHERES, found)
    edges = np.asarray(box.what.points)  # pyright: ignore
    assert np.ptp(edges, axis=(0, 1)) == pytest.approx(np.ptp(ball.vertices, axis=0))
    reach = np.linalg.norm(points(sphere) - sphere.pose.position, axis=1).max()
    assert reach == pytest.approx(1.0, abs=1e-6)


def test_decimating_leaves_few_triangles_where_few_are_asked_for():
    assert len(decimated(TETRAHEDRON, 4).faces) == 4
    assert 0 < len(decimated(Sphere(radius=1.0).triangles(1e-3), 100).faces) <= 100


def test_long_chains_are_drawn_with_some_of_their_frames():
    joint = arm.joints.Revolute(precursor=Pose.translation(0, 0, 0.1))
    box = (Box(size=(0.1, 0.1, 0.1)),)
    links = [arm.Link(name="0")]
    for k in range(1, 3000):
        link = arm.Link(name=str(k), parent=str(k // 2), joint=joint, visuals=box)
        links.append(link)
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    found = drawn(cell)
    boxes = [x for x in of(Layer.VISUALS, found) if "sticks" not in x.name]
    assert len(boxes) == 2999
    assert len(of(Layer.FRAMES, found)) == 2000
    assert any("frames" in note for note in found.notes)
