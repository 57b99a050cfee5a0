"""Clouds of points and voxels as values."""

from __future__ import annotations

import math
import pickle

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError
from armillary.limits import CLOUD_ELEMENTS

Points, Voxels = arm.shapes.Points, arm.shapes.Voxels
RNG = np.random.default_rng(2)
SOME = RNG.normal(size=(50, 3))
FILLED = RNG.random((3, 5, 4)) < 0.4


def some_pose() -> arm.Pose:
    return arm.Pose.from_rpy(0.3, -0.2, 1.1, (0.1, 0.2, 0.3))


@pytest.mark.parametrize("cloud", [Points(SOME, 0.1), Voxels(FILLED, 0.2)])
def test_clouds_are_values(cloud):
    placed = msgspec.structs.replace(cloud, pose=some_pose(), name="scan")
    again = pickle.loads(pickle.dumps(placed))
    assert again == placed != cloud
    assert hash(again) == hash(placed)
    assert len(repr(placed)) < 500
    assert f"of {len(cloud.centres)} bodies" in repr(placed)
    assert "name='scan'" in repr(placed)
    assert np.array_equal(again.centres, cloud.centres)
    with pytest.raises(ValueError, match="read-only"):
        cloud.centres[0, 0] = 1.0


def test_points_are_stored_in_32_bits():
    cloud = Points(SOME)
    assert np.array_equal(cloud.centres, SOME.astype(np.float32))
    assert cloud.radius == 0.01
    assert Points(SOME.astype(np.float32).tolist()) == cloud


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (np.zeros((0, 3)), ModelError, "has no points"),
        (np.zeros((4, 2)), ShapeError, r"shape \(n, 3\), not \(4, 2\)"),
        ([[0, 0, 0], [0, 0]], ShapeError, r"shape \(n, 3\)"),
        ([["a", "b", "c"]], ModelError, "must be numbers"),
        (b"12345", ModelError, "5 bytes; .* multiple of 12"),
        (b"", ModelError, "has no points"),
        ([[0, 0, 1e16]], ModelError, "larger than"),
    ],
)
def test_faulty_points_are_refused(points, error, message):
    with pytest.raises(error, match=message):
        Points(points)


def test_points_that_are_not_finite_are_counted():
    points = SOME.copy()
    points[[7, 30], [1, 2]] = np.nan, np.inf
    with pytest.raises(ModelError, match=r"2 of its 50 points .* first row 7: .*nan"):
        Points(points)
    data = points.astype("<f4").tobytes()
    with pytest.raises(ModelError, match="2 of its 50 points"):
        Points(data)


def test_too_many_points_are_refused():
    many = np.broadcast_to(np.float32(0.0), (CLOUD_ELEMENTS.most + 1, 3))
    with pytest.raises(ModelError, match="more than 10000000; leave out"):
        Points(many)


def test_sizes_are_checked():
    with pytest.raises(ModelError, match="radius is -1"):
        Points(SOME, -1.0)
    with pytest.raises(ModelError, match="cells have no size"):
        Voxels(FILLED, 0.0)
    with pytest.raises(ModelError, match="has no occupied cells"):
        Voxels(np.zeros((2, 2, 2), bool), 0.1)
    with pytest.raises(ShapeError, match=r"truths of shape \(x, y, z\), not float64"):
        Voxels(np.ones((2, 2, 2)), 0.1)
    with pytest.raises(ModelError, match=r"counts are \(1, 1, 1\), not \(3, 5, 4\)"):
        Voxels(FILLED, 0.1, (1, 1, 1))
    with pytest.raises(ModelError, match=r"data has 1 bytes; .* cells have 2"):
        Voxels(b"1", 0.1, (3, 3, 1))
    with pytest.raises(ModelError, match="each must be at least 1"):
        Voxels(b"1", 0.1)
    with pytest.raises(ModelError, match="more than 2147483648 cells"):
        Voxels.around([(0, 0, 0), (1e6, 1e6, 1e6)], size=1e-3)
    for size in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ModelError, match="above 0"):
            Voxels.around(SOME, size=size)
        with pytest.raises(ModelError, match="above 0"):
            Points(SOME).thinned(size)


def test_voxels_are_around_points():
    grid = Voxels.around(SOME, size=0.3)
    own = np.linalg.inv(grid.pose.matrix())[:3]
    local = SOME @ own[:, :3].T + own[:, 3]
    places = np.floor(local / 0.3 + 1e-12).astype(int)
    assert grid.occupied[tuple(places.T)].all()
    assert grid.occupied.sum() == len(np.unique(places, axis=0)) == len(grid.centres)
    away = np.abs(local[:, np.newaxis] - grid.centres).max(axis=2).min(axis=1)
    assert (away <= 0.15 + 1e-9).all()
    placed = Voxels.around(SOME, size=0.3, pose=some_pose())
    assert np.allclose(placed.pose.matrix(), (some_pose() @ grid.pose).matrix())
    with pytest.raises(ModelError, match="here is none"):
        Voxels.around(np.zeros((0, 3)), size=1.0)
    with pytest.raises(ModelError, match="1 of 2 points are not finite, first row 1"):
        Voxels.around([(0, 0, 0), (0, 0, math.nan)], size=1.0)


def test_thinned_points_are_around_all_balls():
    cloud = Points(SOME, 0.1)
    thin = cloud.thinned(0.8)
    assert len(thin.centres) < len(SOME)
    away = np.linalg.norm(cloud.centres[:, np.newaxis] - thin.centres, axis=2)
    assert (away.min(axis=1) + 0.1 <= thin.radius + 1e-9).all()


def test_volume_and_inertia_of_voxels_are_those_of_boxes():
    grid = Voxels(FILLED, 0.2, pose=some_pose())
    total = arm.SpatialInertia.zero()
    for centre in grid.centres.tolist():
        pose = some_pose() @ arm.Pose.translation(*centre)
        total += arm.shapes.Box(size=(0.2,) * 3, pose=pose).inertia(100.0)
    assert grid.volume == pytest.approx(FILLED.sum() * 0.008)
    found = grid.inertia(100.0)
    assert np.allclose(found.matrix(), total.matrix())
    with pytest.raises(ModelError, match="balls may overlap"):
        _ = Points(SOME).volume
    link = arm.Link(name="scan", collisions=[Points(SOME)])
    with pytest.raises(ModelError, match="balls may overlap"):
        link.inertia_of_shapes(1.0)


@pytest.mark.parametrize("cloud", [Points(SOME, 0.1), Voxels(FILLED, 0.2)])
def test_bounds_are_around_all_elements(cloud):
    X = some_pose()
    lower, upper = cloud.bounding_box(X)
    R = np.array(X.rotation)
    element = cloud.element
    low, high = [], []
    for centre in cloud.centres:
        box = element.bounding_box(arm.Pose(X.rotation, tuple(X @ centre)))
        low.append(box.lower)
        high.append(box.upper)
    assert np.allclose(lower, np.min(low, axis=0))
    assert np.allclose(upper, np.max(high, axis=0))
    middle, radius = cloud.bounding_sphere
    reach = np.linalg.norm(cloud.centres - middle, axis=1)
    assert (reach + element.bounding_sphere.radius <= radius + 1e-12).all()
    assert R.shape == (3, 3)


@pytest.mark.parametrize("cloud", [Points(SOME, 0.1), Voxels(FILLED, 0.2)])
def test_scaled_clouds_are_larger(cloud):
    placed = msgspec.structs.replace(cloud, pose=some_pose())
    large = placed.scaled(2.0)
    assert np.allclose(large.centres, 2.0 * cloud.centres, rtol=1e-6)
    assert np.allclose(large.pose.position, 2.0 * np.array(some_pose().position))
    size = cloud.element.bounding_sphere.radius
    assert large.element.bounding_sphere.radius == pytest.approx(2.0 * size)
    with pytest.raises(ModelError, match="above 0"):
        cloud.scaled(0.0)


def test_points_are_read_from_files(tmp_path):
    path = tmp_path / "scan.npy"
    np.save(path, SOME)
    assert Points.read(path, 0.02, name="scan") == Points(SOME, 0.02, name="scan")
    path.write_bytes(b"ply")
    with pytest.raises(ModelError, match="not a file of NPY, PCD or PLY"):
        Points.read(path)
    with pytest.raises(FileNotFoundError):
        Points.read(tmp_path / "none.npy")


PCD = """# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS {fields}
SIZE {sizes}
TYPE {types}
COUNT {counts}
WIDTH {count}
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS {count}
DATA {kind}
"""
SCAN = np.array([[0.5, -1.25, 2.0], [np.nan] * 3, [3.0, 0.125, -0.5]], "<f4")
FIELDS = [("x", "<f4"), ("_", "<u1", 3), ("y", "<f4"), ("z", "<f4"), ("ring", "<u2")]


def pcd(kind: str, body: bytes, count: int = 3, **lines: str) -> bytes:
    said = {
        "fields": "x _ y z ring",
        "sizes": "4 1 4 4 2",
        "types": "F U F F U",
        "counts": "1 3 1 1 1",
        **lines,
    }
    return PCD.format(kind=kind, count=count, **said).encode() + body


def records() -> np.ndarray:
    rows = np.zeros(3, FIELDS)
    for k, axis in enumerate("xyz"):
        rows[axis] = SCAN[:, k]
    rows["ring"] = 7
    rows["_"] = 65
    return rows


def packed(whole: bytes, source: bytes) -> bytes:
    return np.array([len(source), len(whole)], "<u4").tobytes() + source


def literal(data: bytes) -> bytes:
    parts = [data[k : k + 32] for k in range(0, len(data), 32)]
    return b"".join(bytes([len(part) - 1]) + part for part in parts)


def test_points_are_read_from_pcd_files(tmp_path):
    path = tmp_path / "scan.pcd"
    kept = Points(SCAN[[0, 2]], 0.02)
    words = "\n".join(
        f"{x} 65 65 65 {y} {z} 7" for x, y, z in SCAN.astype(str).tolist()
    )
    rows = records()
    columns = b"".join(np.ascontiguousarray(rows[name[0]]).tobytes() for name in FIELDS)
    # Nine bytes of 65: one as it is, then eight copied from one byte back.
    first, after = columns[:12], columns[21:]
    assert columns[12:21] == b"A" * 9
    copied = literal(first + b"A") + bytes([6 << 5, 0]) + literal(after)
    long = bytes([7 << 5, 20, 0])  # 7 + 20 + 2 bytes
    assert len(columns) == 51
    for data in (
        pcd("ascii", words.encode()),
        pcd("binary", rows.tobytes()),
        pcd("binary_compressed", packed(columns, literal(columns))),
        pcd("binary_compressed", packed(columns, copied)),
    ):
        path.write_bytes(data)
        assert Points.read(path, 0.02) == kept
    zeros = {"fields": "x y z", "sizes": "4 4 4", "types": "F F F", "counts": "1 1 1"}
    whole = bytes(12 * 5)
    source = literal(bytes(2)) + long + literal(bytes(len(whole) - 31))
    path.write_bytes(pcd("binary_compressed", packed(whole, source), 5, **zeros))
    assert np.array_equal(Points.read(path).centres, np.zeros((5, 3)))


FAULTY = [
    (pcd("text", b""), "stored as 'text'"),
    (pcd("binary", b"123"), "ends after 3 of"),
    (pcd("binary", b"", fields="a b c d e"), "no x, y and z"),
    (pcd("binary", b"", fields="x _ y y ring"), "one twice"),
    (pcd("binary", b"", sizes="4 1 4 4"), "differ in length"),
    (pcd("binary", b"", sizes="3 1 4 4 2"), "3 bytes each"),
    (pcd("binary", b"", sizes="4 1 4 4 -2"), "not of whole numbers"),
    (pcd("binary", b"", counts="2 3 1 1 1"), "'x' has 2 numbers"),
    (pcd("ascii", b"1 2 3"), "3 words"),
    (pcd("ascii", b"a 1 1 1 b c 7", 1), "a coordinate is not a number"),
    (pcd("binary_compressed", b"123"), "ends before its points"),
    (pcd("binary_compressed", packed(b"1", b"")), "its header says 51"),
    (pcd("binary_compressed", packed(bytes(51), b"\x40\x07")), "bytes are faulty"),
    (pcd("binary_compressed", packed(bytes(51), b"\x00\x00\xe0")), "end early"),
    (pcd("binary_compressed", packed(bytes(51), b"\x00\x00")), "ends after 1 of"),
    (pcd("binary", b"", 4_000_000_000), "ends after 0 of"),
    (b"# .PCD v0.7\nFIELDS x y z\n", "has no line SIZE"),
]


@pytest.mark.parametrize(("data", "message"), FAULTY)
def test_faulty_pcd_files_are_refused(tmp_path, data: bytes, message: str):
    path = tmp_path / "scan.pcd"
    path.write_bytes(data)
    with pytest.raises(ModelError, match="is a faulty PCD file") as error:
        Points.read(path)
    assert message in str(error.value)


PLY = """ply
format {kind} 1.0
comment as scanners write it
element camera 1
property double view
element vertex {count}
property uchar red
property float x
property float y
property float32 z
element face 1
property list uchar int vertex_indices
end_header
"""


def ply(kind: str, body: bytes, count: object = 3, **said: str) -> bytes:
    header = PLY.format(kind=kind, count=count)
    for before, after in said.items():
        header = header.replace(before, after)
    return header.encode() + body


def vertices(order: str) -> bytes:
    rows = np.zeros(3, [(name, order + "f4") for name in "xyz"])
    for k, axis in enumerate("xyz"):
        rows[axis] = SCAN[:, k]
    with_red = b"".join(b"\x07" + row.tobytes() for row in rows)
    return bytes(8) + with_red + b"\x03" + bytes(12)


def test_points_are_read_from_ply_files(tmp_path):
    path = tmp_path / "scan.ply"
    words = "\n".join(f"7 {x} {y} {z}" for x, y, z in SCAN.astype(str).tolist())
    for data in (
        ply("ascii", f"0.5\n{words}\n3 0 1 2\n".encode()),
        ply("ascii", f"0.5\n{words}\n3 0 1 2\n".encode()).replace(b"\n", b"\r\n"),
        ply("binary_little_endian", vertices("<")),
        ply("binary_big_endian", vertices(">")),
    ):
        path.write_bytes(data)
        assert Points.read(path, 0.02) == Points(SCAN[[0, 2]], 0.02)


FAULTY_PLY = [
    (ply("text", b""), "its format is 'text 1.0'"),
    (ply("binary_little_endian", b"123"), "ends after 0 of 39"),
    (ply("binary_big_endian", bytes(20)), "ends after 12 of 39"),
    (ply("binary_little_endian", b"", 4_000_000_000), "ends after 0 of"),
    (ply("ascii", b"0 1 2 3"), "3 words are there for 3 vertices of 4"),
    (ply("ascii", b"0 7 1 b 3", 1), "a coordinate is not a number"),
    (ply("ascii", b"", -1), "'-1' rows of 'vertex'"),
    (ply("ascii", b"", vertex="point"), "no element vertex"),
    (ply("ascii", b"", **{"float x": "float y"}), "one twice"),
    (ply("ascii", b"", **{"float x": "real x"}), "has the type 'real'"),
    (ply("ascii", b"", **{"float x": "float x y"}), "is not a property"),
    (ply("ascii", b"", **{"double view": "list uchar int of"}), "has lists"),
    (
        ply("ascii", b"", **{"uchar red": "uchar r\nproperty " * 256 + "uchar r"}),
        "more than 256",
    ),
    (ply("ascii", b"", end_header=""), "does not end"),
    (b"ply\nelement vertex 1\nend_header\n", "no line format"),
]


@pytest.mark.parametrize(("data", "message"), FAULTY_PLY, ids=lambda each: None)
def test_faulty_ply_files_are_refused(tmp_path, data: bytes, message: str):
    path = tmp_path / "scan.ply"
    path.write_bytes(data)
    with pytest.raises(ModelError, match="is a faulty PLY file") as error:
        Points.read(path)
    assert message in str(error.value)


def test_clouds_are_drawn():
    cloud = Points(SOME, 0.1)
    drawn = cloud.triangles()
    away = np.linalg.norm(drawn.vertices[:, np.newaxis] - cloud.centres, axis=2)
    assert np.allclose(away.min(axis=1), 0.1, atol=0.1)
    assert len(drawn.faces) == 8 * len(SOME)
    assert Voxels(FILLED, 0.2).triangles().volume == pytest.approx(FILLED.sum() * 0.008)
    many = Points(RNG.normal(size=(50_001, 3)), 0.1)
    assert many.drawn_count == 16667 == len(many.triangles().faces) // 8
