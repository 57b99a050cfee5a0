"""Meshes in files: every format gives the same body, hostile files a clear error."""

from __future__ import annotations

import base64
import importlib.metadata
import io
import itertools
import json
import os
import pickle
import re
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import ArmillaryError, FormatError
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.mesh import MeshFiles, read_parts, read_triangles
from armillary.formats.mesh.read import KINDS, read_surface
from armillary.formats.paths import Roots
from armillary.model.geometry.hull import convex_hull
from armillary.model.geometry.triangles import Triangles
from armillary.model.shapes import Mesh
from armillary.spatial.pose import Pose
from work import counted

CLOUD = np.random.default_rng(2).normal(size=(30, 3)).astype(np.float32).astype(float)
BLOB = Triangles(CLOUD, convex_hull(CLOUD)).welded()
CUBE = np.array(np.meshgrid(*[[0.0, 1.0]] * 3, indexing="ij")).reshape(3, -1).T
SQUARES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4)]
# Five squares and two triangles: a cube of polygons of two kinds.
MIXED = [*SQUARES, (1, 5, 7), (1, 7, 3)]


def triangles_in(data: bytes, path: str) -> Triangles:
    return read_surface(path, data=data).triangles()


def faults(data: bytes, ending: str) -> str:
    with pytest.raises(FormatError) as caught:
        triangles_in(data, f"part{ending}")
    (found,) = caught.value.diagnostics
    assert isinstance(found, Diagnostic)
    return str(found)


def same_body(a: Triangles, b: Triangles, tolerance: float = 0.0) -> bool:
    """Return whether the triangles are the same, in any order, from any corner on."""

    def canonical(mesh: Triangles) -> np.ndarray:
        corners = mesh.corners.reshape(-1, 9).round(6) + 0.0
        turns = [np.roll(corners, 3 * k, axis=1) for k in range(3)]
        rows = [min(tuple(turn[k]) for turn in turns) for k in range(len(corners))]
        return np.array(sorted(rows))

    left, right = canonical(a), canonical(b)
    return left.shape == right.shape and np.allclose(left, right, atol=tolerance + 2e-6)


# What writes a mesh in each format, in a few lines; the readers must not need more.


def stl(mesh: Triangles, header: bytes = b"made by hand") -> bytes:
    rows = b"".join(
        struct.pack("<12fH", 0, 0, 0, *corners.ravel(), 0) for corners in mesh.corners
    )
    return header.ljust(80) + struct.pack("<I", len(mesh.faces)) + rows


def stl_text(mesh: Triangles) -> bytes:
    facets = [
        "facet normal 0 0 0\n outer loop\n"
        + "".join(f"  vertex {x!r} {y!r} {z!r}\n" for x, y, z in corners.tolist())
        + " endloop\nendfacet\n"
        for corners in mesh.corners
    ]
    return f"solid part of mine\n{''.join(facets)}endsolid\n".encode()


def obj(vertices: Any, polygons: Any, *, start: int = 1) -> bytes:
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices).tolist()]
    lines += ["f " + " ".join(str(k + start) for k in each) for each in polygons]
    return "\n".join(lines).encode()


def ply(vertices: Any, polygons: Any, order: str = "ascii") -> bytes:
    head = (
        f"ply\nformat {order} 1.0\ncomment by hand\nelement vertex {len(vertices)}\n"
        "property double x\nproperty uchar red\nproperty double y\nproperty double z\n"
        f"element face {len(polygons)}\nproperty float quality\n"
        "property list uchar int vertex_indices\nelement edge 1\nproperty int vertex1\n"
        "end_header\n"
    ).encode()
    if order == "ascii":
        rows = [f"{x!r} 9 {y!r} {z!r}" for x, y, z in np.asarray(vertices).tolist()]
        rows += [f"0.5 {len(p)} {' '.join(map(str, p))}" for p in polygons]
        return head + "\n".join([*rows, "7"]).encode()
    sign = "<" if "little" in order else ">"
    rows = [struct.pack(f"{sign}dBdd", x, 9, y, z) for x, y, z in np.asarray(vertices)]
    rows += [
        struct.pack(f"{sign}fB{len(p)}i", 0.5, len(p), *map(int, p)) for p in polygons
    ]
    return head + b"".join(rows) + struct.pack(f"{sign}i", 7)


def glb(document: dict[str, Any], binary: bytes) -> bytes:
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def gltf(mesh: Triangles, **changes: Any) -> tuple[dict[str, Any], bytes]:
    points = mesh.vertices.astype("<f4").tobytes()
    corners = mesh.faces.astype("<u2").tobytes()
    document: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {
                "bufferView": 0,
                "componentType": 5126,
                "count": len(mesh.vertices),
                "type": "VEC3",
            },
            {
                "bufferView": 1,
                "componentType": 5123,
                "count": 3 * len(mesh.faces),
                "type": "SCALAR",
            },
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": len(points)},
            {"buffer": 0, "byteLength": len(corners), "byteOffset": len(points)},
        ],
        "buffers": [{"byteLength": len(points) + len(corners)}],
    }
    return {**document, **changes}, points + corners


def gltf_text(mesh: Triangles) -> bytes:
    document, binary = gltf(mesh)
    text = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    document["buffers"][0]["uri"] = text
    return json.dumps(document).encode()


def ac(mesh: Triangles) -> bytes:
    lines = ["AC3Db", "OBJECT world", "kids 1", "OBJECT poly", "rot 1 0 0 0 1 0 0 0 1"]
    lines += [f"numvert {len(mesh.vertices)}"]
    lines += [f"{x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"numsurf {len(mesh.faces)}"]
    for face in mesh.faces.tolist():
        lines += ["SURF 0x20", "mat 0", "refs 3", *(f"{k} 0 0" for k in face)]
    return "\n".join([*lines, "kids 0"]).encode()


def dae(
    vertices: Any,
    polygons: str,
    *,
    nodes: str = '<node><instance_geometry url="#g"/></node>',
    asset: str = "",
    library: str = "",
    scene: str = '<scene><instance_visual_scene url="#s"/></scene>',
) -> bytes:
    numbers = " ".join(map(repr, np.asarray(vertices).ravel().tolist()))
    count = np.asarray(vertices).size
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset>{asset}<up_axis>Y_UP</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="p">
      <float_array id="a" count="{count}">{numbers}</float_array>
      <technique_common><accessor source="#a" count="{count // 3}" stride="3"/>
      </technique_common>
    </source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    {polygons}
  </mesh></geometry></library_geometries>
  {library}
  <library_visual_scenes><visual_scene id="s">{nodes}</visual_scene>
  </library_visual_scenes>{scene}
</COLLADA>""".encode()


INPUT = '<input semantic="VERTEX" source="#v" offset="0"/>'


def p(corners: Any) -> str:
    return f"<p>{' '.join(map(str, np.asarray(corners).ravel().tolist()))}</p>"


def dae_triangles(faces: Any) -> str:
    return f'<triangles count="{len(faces)}">{INPUT}{p(faces)}</triangles>'


SAMPLES: dict[str, tuple[str, bytes]] = {
    "binary STL": (".stl", stl(BLOB)),
    "binary STL that says solid": (".stl", stl(BLOB, b"solid part")),
    "STL in text": (".stl", stl_text(BLOB)),
    "STL in capitals": (".stl", stl_text(BLOB).upper().replace(b"E-", b"e-")),
    "OBJ": (".obj", obj(BLOB.vertices, BLOB.faces)),
    "PLY in text": (".ply", ply(BLOB.vertices, BLOB.faces)),
    "PLY, little end first": (
        ".ply",
        ply(BLOB.vertices, BLOB.faces, "binary_little_endian"),
    ),
    "PLY, big end first": (".ply", ply(BLOB.vertices, BLOB.faces, "binary_big_endian")),
    "GLB": (".glb", glb(*gltf(BLOB))),
    "glTF": (".gltf", gltf_text(BLOB)),
    "DAE": (".dae", dae(BLOB.vertices, dae_triangles(BLOB.faces))),
    "AC3D": (".ac", ac(BLOB)),
}
each_sample = pytest.mark.parametrize("name", SAMPLES)


def read(name: str) -> Triangles:
    ending, data = SAMPLES[name]
    return triangles_in(data, f"part{ending}")


@each_sample
def test_every_format_gives_the_same_body(name: str):
    mesh = read(name)
    assert same_body(mesh, BLOB)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(BLOB.volume, rel=1e-6)
    assert not mesh.vertices.flags.writeable


@each_sample
def test_endings_and_capitals_name_the_format(name: str, tmp_path: Path):
    ending, data = SAMPLES[name]
    for text in (ending, ending.upper()):
        path = tmp_path / f"part{text}"
        path.write_bytes(data)
        assert read_triangles(path) == read(name)


# What else a format can say.

CUBES = {
    "OBJ": (".obj", obj(CUBE, MIXED)),
    "OBJ, counted backwards": (".obj", obj(CUBE, MIXED, start=-8)),
    "OBJ with everything": (
        ".obj",
        b"# by hand\nmtllib /etc/passwd\no part\ng a b\n"
        + obj(CUBE, []).replace(b"\n", b" 0.5 0.5 0.5\n")
        + b"\nvn 0 0 1\nvt 0 0\nusemtl red\ns off\nl 1 2\n"
        + b"\n".join(
            b"f " + b" ".join(b"%d/1/1" % (k + 1) for k in each) for each in MIXED
        ).replace(b" 8/1/1", b" \\\n  8//1"),
    ),
    "PLY in text": (".ply", ply(CUBE, MIXED)),
    "PLY": (".ply", ply(CUBE, MIXED, "binary_little_endian")),
    "DAE of polygons in a list": (
        ".dae",
        dae(
            CUBE,
            f"<polylist>{INPUT}<vcount>{' '.join(str(len(each)) for each in MIXED)}"
            f"</vcount>{p(np.concatenate(MIXED))}</polylist>",
        ),
    ),
    "DAE of polygons": (
        ".dae",
        dae(CUBE, f"<polygons>{INPUT}{''.join(map(p, MIXED))}</polygons>"),
    ),
    "DAE of fans": (
        ".dae",
        dae(CUBE, f"<trifans>{INPUT}{''.join(map(p, MIXED))}</trifans>"),
    ),
    "DAE of strips": (
        ".dae",
        dae(
            CUBE,
            f"<tristrips>{INPUT}"
            + "".join(p([e[0], e[1], e[3], e[2]]) for e in SQUARES)
            + "".join(map(p, MIXED[5:]))
            + "</tristrips>",
        ),
    ),
    "DAE with normals between": (
        ".dae",
        dae(
            CUBE,
            '<triangles><input semantic="NORMAL" source="#n" offset="0"/>'
            '<input semantic="VERTEX" source="#v" offset="1"/>'
            + p(
                [
                    (9, k)
                    for each in MIXED
                    for second, third in itertools.pairwise(each[1:])
                    for k in (each[0], second, third)
                ]
            )
            + "</triangles>",
        ),
    ),
    "DAE that shows no scene": (
        ".dae",
        dae(
            CUBE,
            f"<polygons>{INPUT}{''.join(map(p, MIXED))}</polygons>",
            scene="",
        ),
    ),
}


@pytest.mark.parametrize("name", CUBES)
def test_polygons_of_every_kind_make_the_cube(name: str):
    ending, data = CUBES[name]
    mesh = triangles_in(data, f"cube{ending}")
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(1.0)
    assert mesh.area == pytest.approx(6.0)
    assert len(mesh.faces) == 12


def test_relative_numbers_count_from_where_they_stand():
    """The second triangle is one of its own, not the first or the last again."""
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n"
    moved = text.replace("v 0", "v 5").replace("v 1", "v 6")
    mesh = triangles_in((text + moved).encode(), "two.obj")
    assert mesh.bounding_box.upper == (6.0, 1.0, 0.0)
    assert mesh.area == pytest.approx(1.0)


def test_strips_of_glb():
    expected = Triangles(CUBE, [(0, 1, 2), (3, 2, 1)]).welded()
    document, binary = gltf(Triangles(CUBE, [(0, 1, 2)]))
    primitive = document["meshes"][0]["primitives"][0]
    primitive["mode"] = 5
    document["accessors"][1]["count"] = 4
    binary = binary[: CUBE.size * 4] + np.array([0, 1, 2, 3], "<u2").tobytes()
    document["bufferViews"][1]["byteLength"] = 8
    assert same_body(triangles_in(glb(document, binary), "x.glb"), expected)
    primitive["mode"] = 6  # others leave fans out without a word
    assert "primitives of mode 6 are not read" in faults(glb(document, binary), ".glb")


def test_triangles_of_glb_without_indices_and_with_strides():
    mesh = Triangles([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    padded = np.zeros((3, 5), "<f4")
    padded[:, 1:4] = mesh.vertices
    document, _ = gltf(mesh)
    del document["meshes"][0]["primitives"][0]["indices"]
    document["accessors"][0]["byteOffset"] = 4
    document["bufferViews"] = [{"buffer": 0, "byteLength": 60, "byteStride": 20}]
    assert same_body(triangles_in(glb(document, padded.tobytes()), "x.glb"), mesh)


TURN = Pose.from_rpy(0.3, -0.4, 0.5, (1.0, 2.0, 3.0))


def test_nodes_of_glb_move_turn_stretch_and_mirror():
    w, x, y, z = TURN.quaternion()
    place = {
        "translation": TURN.position,
        "rotation": [x, y, z, w],
        "scale": [1.0, 2.0, -3.0],
    }
    columns = np.diag([1.0, 2.0, -3.0, 1.0])
    expected = BLOB.scaled((1.0, 2.0, -3.0)).transformed(TURN)
    for node in (
        {"mesh": 0, **place},
        {"mesh": 0, "matrix": (TURN.matrix() @ columns).T.ravel().tolist()},
    ):
        document, binary = gltf(BLOB, nodes=[node])
        mesh = triangles_in(glb(document, binary), "x.glb")
        assert mesh.volume == pytest.approx(6.0 * BLOB.volume, rel=1e-6)
        assert mesh.bounding_box.upper == pytest.approx(
            expected.bounding_box.upper, rel=1e-5
        )
    nested = [{"children": [1], **place}, {"children": [2]}, {"mesh": 0}]
    document, binary = gltf(BLOB, nodes=nested, scenes=[], scene=0)
    mesh = triangles_in(glb(document, binary), "x.glb")
    assert mesh.bounding_box.upper == pytest.approx(
        expected.bounding_box.upper, rel=1e-5
    )


def test_nodes_of_dae_move_turn_stretch_and_mirror():
    rows = " ".join(map(repr, TURN.matrix().ravel().tolist()))
    there = '<instance_geometry url="#g"/>'
    nodes = (
        f"<node><matrix>{rows}</matrix><node><scale>1 2 -3</scale>"
        f'<instance_node url="#n"/></node></node>'
    )
    library = f'<library_nodes><node id="n">{there}</node></library_nodes>'
    mesh = triangles_in(
        dae(BLOB.vertices, dae_triangles(BLOB.faces), nodes=nodes, library=library),
        "x.dae",
    )
    assert same_body(mesh, BLOB.scaled((1.0, 2.0, -3.0)).transformed(TURN), 1e-5)
    nodes = (
        "<node><translate>1 0 0</translate><rotate>0 0 2 90</rotate>"
        f"<rotate>0 0 0 0</rotate>{there}{there}</node>"
    )
    mesh = triangles_in(
        dae(
            BLOB.vertices,
            dae_triangles(BLOB.faces),
            nodes=nodes,
            asset='<unit name="inch" meter="0.0254"/>',
        ),
        "x.dae",
    )
    turned = Pose.translation(1, 0, 0) @ Pose.rotation_z(np.pi / 2)
    expected = BLOB.transformed(turned).scaled(0.0254)
    assert len(mesh.faces) == 2 * len(BLOB.faces)  # it is shown twice
    assert mesh.bounding_box.lower == pytest.approx(expected.bounding_box.lower)
    assert mesh.bounding_box.upper == pytest.approx(expected.bounding_box.upper)


def test_an_open_mesh_is_read_but_has_no_volume():
    mesh = triangles_in(obj(CUBE, MIXED[:-1]), "open.obj")
    assert not mesh.is_watertight
    assert mesh.area == pytest.approx(5.5)
    with pytest.raises(Exception, match="not closed: 3 of its edges"):
        _ = mesh.volume


# Concave polygons.

NOTCHED = np.array([(0, 0), (2, 0), (2, 2), (1, 0.5), (0, 2)], dtype=float)


def prism(outline: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """A body between two copies of an outline, each one polygon."""
    count = len(outline)
    low, high = (np.c_[outline, np.full(count, z)] for z in (0.0, 1.0))
    sides = [
        (k, (k + 1) % count, (k + 1) % count + count, k + count) for k in range(count)
    ]
    ends = [tuple(range(count))[::-1], tuple(range(count, 2 * count))]
    return np.vstack([low, high]), [*sides, *ends]


def star(seed: int) -> np.ndarray:
    """A concave outline with points in the middle of its edges, counter-clockwise."""
    random = np.random.default_rng(seed)
    count = int(random.integers(5, 12))
    angles = 2.0 * np.pi * (np.arange(count) + random.uniform(-0.3, 0.3, count)) / count
    radii = random.uniform(0.2, 1.0, count)
    points = np.c_[radii * np.cos(angles), radii * np.sin(angles)]
    at = int(random.integers(1, count))
    points = np.insert(points, at, 0.5 * (points[at - 1] + points[at]), axis=0)
    return np.roll(points, int(random.integers(count)), axis=0)


def area(outline: np.ndarray) -> float:
    x, y = outline.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


@pytest.mark.parametrize("seed", range(30))
def test_concave_polygons_keep_area_and_volume(seed: int):
    """A fan of such faces would overlap."""
    outline = star(seed) if seed else NOTCHED
    vertices, polygons = prism(outline)
    vertices = vertices @ TURN.matrix()[:3, :3].T
    lengths = np.linalg.norm(outline - np.roll(outline, -1, axis=0), axis=1)
    for name, data in (
        ("x.obj", obj(vertices, polygons)),
        ("x.ply", ply(vertices, polygons, "binary_little_endian")),
        (
            "x.dae",
            dae(
                vertices,
                "<polygons>" + INPUT + "".join(map(p, polygons)) + "</polygons>",
            ),
        ),
    ):
        mesh = triangles_in(data, name)
        assert mesh.is_watertight
        assert mesh.volume == pytest.approx(area(outline), rel=1e-5)
        assert mesh.area == pytest.approx(2.0 * area(outline) + lengths.sum(), rel=1e-5)


def test_the_area_of_a_concave_pentagon():
    mesh = triangles_in(obj(np.c_[NOTCHED, np.zeros(5)], [range(5)]), "x.obj")
    assert mesh.area == pytest.approx(2.5)
    assert (mesh.normals[:, 2] > 0.0).all()


def test_a_polygon_that_crosses_itself_is_reported():
    report = Report()
    bow = np.array([(0, 0, 0), (1, 1, 0), (2, 0, 0), (2, 3, 0), (0, 1, 0), (2, 1, 0)])
    read_surface("x.obj", data=obj(bow.astype(float), [range(6)]), report=report)
    assert [str(found) for found in report.diagnostics] == [
        "x.obj: warning[crossing-polygon]: 1 polygons cross themselves; their "
        "triangles may overlap. Export triangles."
    ]


@pytest.mark.parametrize(
    ("name", "library", "data"),
    [
        ("x.obj", "mapbox_earcut", obj(np.c_[NOTCHED, np.zeros(5)], [range(5)])),
    ],
)
def test_a_missing_library_is_named(monkeypatch, name, library, data):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FormatError, match=rf"{library}.*pip install armillary\[mesh\]"):
        triangles_in(data, name)
    assert triangles_in(SAMPLES["OBJ"][1], "x.obj").is_watertight  # needs none


# Colours.

RED, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.5)
TWO = Triangles(CUBE, [(0, 1, 2), (4, 5, 6)])


def coloured_dae() -> bytes:
    triangles = "".join(
        f'<triangles material="{name}">{INPUT}{p(face)}</triangles>'
        for name, face in zip(("red", "blue"), TWO.faces, strict=True)
    )
    library = "".join(
        f'<library_materials><material id="m{name}"><instance_effect url="#e{name}"/>'
        f'</material></library_materials><library_effects><effect id="e{name}">'
        f"<profile_COMMON><technique><phong><diffuse><color>{' '.join(map(str, rgba))}"
        "</color></diffuse></phong></technique></profile_COMMON></effect>"
        "</library_effects>"
        for name, rgba in (("red", RED), ("blue", BLUE))
    )
    bound = "".join(
        f'<instance_material symbol="{name}" target="#m{name}"/>'
        for name in ("red", "blue")
    )
    nodes = (
        '<node><instance_geometry url="#g"><bind_material><technique_common>'
        f"{bound}</technique_common></bind_material></instance_geometry></node>"
    )
    return dae(CUBE, triangles, nodes=nodes, library=library)


def coloured_glb() -> bytes:
    document, binary = gltf(TWO)
    indices = document["accessors"][1]
    document["accessors"][1:] = [
        {**indices, "count": 3},
        {**indices, "count": 3, "byteOffset": 6},
    ]
    document["materials"] = [
        {"pbrMetallicRoughness": {"baseColorFactor": rgba}} for rgba in (RED, BLUE)
    ]
    document["meshes"][0]["primitives"] = [
        {"attributes": {"POSITION": 0}, "indices": 1 + k, "material": k}
        for k in range(2)
    ]
    return glb(document, binary)


MTL = b"newmtl red\nKd 1 0 0\nnewmtl blue\nd 0.5\nKd 0 0 1\n"
COLOURED = {
    "x.obj": b"mtllib x.mtl\n"
    + obj(CUBE, [])
    + b"\nusemtl red\nf 1 2 3\nusemtl blue\nf 5 6 7",
    "x.dae": coloured_dae(),
    "x.glb": coloured_glb(),
    "x.ac": b"AC3Db\n"
    + b"".join(
        b'MATERIAL "a b" rgb %s amb 0 0 0 emis 0 0 0 spec 0 0 0 shi 1 trans %s\n' % each
        for each in ((b"1 0 0", b"0"), (b"0 0 1", b"0.5"))
    )
    + b"OBJECT world\nkids 1\nOBJECT poly\nloc 1 0 0\ndata 3\nnum\nnumvert 8\n"
    + b"\n".join(b"%d %d %d" % tuple(corner) for corner in CUBE - (1, 0, 0))
    + b"\nnumsurf 3\nSURF 0x10\nmat 0\nrefs 3\n0 0 0\n1 0 0\n2 0 0\n"
    b"SURF 0x20\nmat 1\nrefs 3\n4 0 0\n5 0 0\n6 0 0\n"
    b"SURF 0x12\nmat 1\nrefs 2\n4 0 0\n5 0 0\nkids 0\n",
}


@pytest.mark.parametrize("name", COLOURED)
def test_each_colour_is_a_part(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(COLOURED[name])
    (tmp_path / "x.mtl").write_bytes(MTL)
    parts = read_parts(tmp_path / name)
    assert [part.colour for part in parts] == [RED, BLUE]
    for part, face in zip(parts, TWO.faces, strict=True):
        assert same_body(part.triangles, Triangles(CUBE, [face]).welded())
    assert same_body(read_triangles(tmp_path / name), TWO.welded())


def test_images_of_dae_are_reported_as_lost(tmp_path: Path):
    data = COLOURED["x.dae"].replace(
        b"<color>1.0 0.0 0.0 1.0</color>", b'<texture texture="t" texcoord="u"/>'
    )
    (tmp_path / "x.dae").write_bytes(data)
    pictured, plain = read_parts(tmp_path / "x.dae")
    assert pictured.lost == "images of COLLADA are not read"
    assert (plain.colour, plain.lost) == (BLUE, "")


def test_a_colour_of_the_shape_counts_first(tmp_path: Path):
    (tmp_path / "x.glb").write_bytes(COLOURED["x.glb"])
    files = MeshFiles(tmp_path)
    green = (0.0, 1.0, 0.0, 1.0)
    (part,) = files.parts(Mesh(file="x.glb", colour=green, scale=(2, 2, 2))) or ()
    assert part.colour == green
    assert part.triangles.area == pytest.approx(4.0 * TWO.area)
    assert len(files.parts(Mesh(file="x.glb")) or ()) == 2


def test_a_missing_mtl_file_loses_only_colours(tmp_path: Path):
    (tmp_path / "x.obj").write_bytes(COLOURED["x.obj"])
    files = MeshFiles(tmp_path)
    (part,) = files.parts(Mesh(file="x.obj")) or ()
    assert part.colour is None
    (found,) = files.report.diagnostics
    assert "x.obj:1: note[reference-missing]" in str(found)


# Files beside a mesh, and bytes behind it.


def test_gltf_with_a_buffer_beside_it_or_in_text(tmp_path: Path):
    document, binary = gltf(BLOB)
    (tmp_path / "some blob.bin").write_bytes(binary)
    text = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    for uri in ("some%20blob.bin", text):
        document["buffers"][0]["uri"] = uri
        (tmp_path / "x.gltf").write_text(json.dumps(document))
        assert same_body(read_triangles(tmp_path / "x.gltf"), BLOB)


def test_buffers_are_read_from_allowed_folders_only(tmp_path: Path):
    document, binary = gltf(BLOB)
    document["buffers"][0]["uri"] = "../outside/x.bin"
    (tmp_path / "model").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.bin").write_bytes(binary)
    (tmp_path / "model" / "x.gltf").write_text(json.dumps(document))
    mesh = Mesh(file="x.gltf")
    with pytest.raises(FormatError, match="reference-outside"):
        MeshFiles(tmp_path / "model").triangles(mesh)
    roots = Roots(folders=[tmp_path / "outside"])
    found = MeshFiles(tmp_path / "model", roots=roots).triangles(mesh)
    assert found is not None
    assert same_body(found, BLOB)


def test_bytes_behind_binary_stl_are_reported():
    report = Report()
    data = stl(BLOB) + b"some tool was here"
    assert same_body(read_surface("x.stl", data=data, report=report).triangles(), BLOB)
    (found,) = report.diagnostics
    assert "warning[trailing-bytes]: the file announces 28 triangles; the 18" in (
        str(found).replace(str(len(BLOB.faces)), "28")
    )


def test_endings_of_robwork_are_read():
    for ending in (".stla", ".stlb"):
        assert same_body(triangles_in(SAMPLES["binary STL"][1], f"x{ending}"), BLOB)


# Files with one bad part.


def tolerated(data: bytes, ending: str) -> tuple[Triangles, list[str]]:
    """Return the triangles of a file, and what was said about it."""
    report = Report()
    surface = read_surface(f"x{ending}", data=data, report=report)
    return surface.triangles(), [str(each) for each in report.diagnostics]


AC = ac(BLOB)
LINE = b"SURF 0x20\nmat 0\nrefs 2\n0 0 0\n1 0 0\n"
WITH_LINES = {
    "AC3D": (".ac", AC.replace(b"numsurf 28", b"numsurf 29\n" + LINE.strip())),
    "OBJ": (".obj", SAMPLES["OBJ"][1] + b"\nf 1 2\n"),
    "PLY": (".ply", ply(BLOB.vertices, [*BLOB.faces.tolist(), (0, 1)])),
}


@pytest.mark.parametrize("name", WITH_LINES)
def test_polygons_of_two_corners_are_left_out(name: str):
    ending, data = WITH_LINES[name]
    assert len(BLOB.faces) == 28
    found, (said,) = tolerated(data, ending)
    assert same_body(found, BLOB)
    assert "warning[bad-polygon]: 1 polygons have fewer than 3 corners" in said


@pytest.mark.parametrize("name", ["OBJ", "PLY in text", "AC3D", "glTF"])
def test_a_byte_order_mark_changes_nothing(name: str):
    ending, data = SAMPLES[name]
    marked, said = tolerated(b"\xef\xbb\xbf" + data, ending)
    plain, same = tolerated(data, ending)
    assert np.array_equal(marked.vertices, plain.vertices)
    assert np.array_equal(marked.faces, plain.faces)
    assert said == same


def test_a_line_of_a_ply_header_without_comment_is_read_as_one():
    text = SAMPLES["PLY in text"][1]
    found, (said,) = tolerated(text.replace(b"comment by", b"Made by"), ".ply")
    assert same_body(found, BLOB)
    assert "x.ply:3: warning[bad-header]: 'Made by hand' is not part of" in said


def test_obj_lines_that_are_alike_mean_what_they_mean_alone():
    """Runs of lines are read at once; a line that is continued interrupts a run."""
    random = np.random.default_rng(4)
    points, uv = random.normal(size=(9, 3)), random.uniform(size=(9, 2))
    lines = ["mtllib x.mtl", *(f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist())]
    lines += [f"vt {u!r} {v!r}" for u, v in uv.tolist()]
    for form in ("{0}", "{0}//{1}", "{0}/{1}", "{0}/{1}/{0}"):
        for corners in random.permuted(np.tile(np.arange(1, 10), (6, 1)), axis=1):
            size = int(random.integers(3, 5))
            words = [form.format(k, 10 - k) for k in corners[:size].tolist()]
            lines.append(f"f {' '.join(words)}")
    whole = "\n".join([*lines, ""]).encode()
    broken = whole.replace(b" ", b" \\\n")
    (a, said), (b, same) = tolerated(whole, ".obj"), tolerated(broken, ".obj")
    assert np.array_equal(a.vertices, b.vertices)
    assert np.array_equal(a.faces, b.faces)
    assert len(said) == len(same)


# Hostile files.


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("part.stl", data)
    return buffer.getvalue()


BOMB = zipped(b"\0" * 10_000_000)
NAN = struct.pack("<f", float("nan"))
HUGE = "9" * 17
TEXT = stl_text(BLOB)
OBJ, PLY, DAE = SAMPLES["OBJ"][1], SAMPLES["PLY in text"][1], SAMPLES["DAE"][1]
LITTLE = SAMPLES["PLY, little end first"][1]
TINY = Triangles(CUBE, [(0, 1, 2)])


def changed(*steps: Any, to: Any, binary: bytes | None = None) -> bytes:
    """Return a GLB with one entry of its document changed."""
    document, original = gltf(TINY)
    at: Any = document
    for step in steps[:-1]:
        at = at[step]
    at[steps[-1]] = to
    return glb(document, original if binary is None else binary)


def one_accessor_in_many_meshes() -> bytes:
    """Primitives that show the same 3000 points, 18 million in all."""
    points = np.random.default_rng(1).normal(size=(3000, 3))
    primitives = [{"attributes": {"POSITION": 0}}] * 6000
    mesh = Triangles(points, [(0, 1, 2)])
    return glb(*gltf(mesh, meshes=[{"primitives": primitives}]))


def one_mesh_in_many_nodes(nodes: int, primitives: int) -> bytes:
    document, binary = gltf(TINY)
    document["meshes"][0]["primitives"] *= primitives
    document["nodes"] = [{"mesh": 0}] * nodes
    document["scenes"] = [{"nodes": list(range(nodes))}]
    return glb(document, binary)


def billion_laughs() -> bytes:
    """Nodes that hold the one before ten times, twelve deep."""
    nodes = '<node id="n0"><instance_geometry url="#g"/></node>' + "".join(
        f'<node id="n{k}">' + f'<instance_node url="#n{k - 1}"/>' * 10 + "</node>"
        for k in range(1, 13)
    )
    return dae(CUBE, dae_triangles(MIXED[5:]), nodes=nodes)


HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "stl: empty file": (".stl", b"", "wrong-size]: the file has 0 bytes"),
    "stl: no triangles": (".stl", stl(Triangles([], [])), "empty-mesh"),
    "stl: count lies up": (
        ".stl",
        stl(BLOB)[:80] + b"\xff\xff\xff\xff" + stl(BLOB)[84:],
        "the 4294967295 triangles that it announces take 2147483648",
    ),
    "stl: count lies down": (
        ".stl",
        stl(BLOB)[:80] + b"\1\0\0\0" + stl(BLOB)[84:],
        "wrong-size]: the file has 1484 bytes, but the 1 triangles that it announces",
    ),
    "stl: cut off": (".stl", stl(BLOB)[:-1], "wrong-size"),
    "stl: NaN": (".stl", stl(BLOB)[:100] + NAN + stl(BLOB)[104:], "bad-number"),
    "stl: all in one point": (
        ".stl",
        stl(Triangles(np.ones((3, 3)), [(0, 1, 2)])),
        "empty-mesh",
    ),
    "stl: a zip bomb": (".stl", BOMB, "wrong-size"),
    "stl: only solid": (".stl", b"solid\nendsolid\n", "empty-mesh"),
    "stl: only the word": (".stl", b"solid", "empty-mesh"),
    "stl: text cut off": (".stl", TEXT[:300], "part.stl:"),
    "stl: text with NaN": (
        ".stl",
        TEXT.replace(b"vertex ", b"vertex nan ", 1),
        "part.stl:4: error[unexpected-word]: expected vertex, found ",
    ),
    "stl: text with no number": (
        ".stl",
        re.sub(rb"vertex \S+", b"vertex inf", TEXT, count=1),
        "part.stl:4: error[bad-number]: 'inf' is not a finite number",
    ),
    "stl: text with four corners": (
        ".stl",
        TEXT.replace(b" endloop", b"vertex 1 2 3\n endloop", 1),
        "error[unexpected-word]: expected endloop, found 'vertex'",
    ),
    "stl: web page": (".stl", b"<html>404</html>" * 9, "this is a web page"),
    "obj: empty": (".obj", b"", "empty-mesh"),
    "obj: points only": (".obj", obj(CUBE, []), "empty-mesh"),
    "obj: NaN": (
        ".obj",
        b"v 0 0 nan\n",
        ":1: error[bad-number]: 'nan' is not a finite",
    ),
    "obj: underscore": (".obj", b"v 0 0 1_0\n", "'1_0' is not a finite number"),
    "obj: too large": (".obj", b"v 0 0 1e400\n", "'1e400' is not a finite number"),
    "obj: far away": (
        ".obj",
        b"v 0 0 1e300\nv 0 0 0\nv 0 1 0\nf 1 2 3",
        "bad-number]: vertex 1 is",
    ),
    "obj: two coordinates": (".obj", b"v 0 0\n", "a vertex has 3 coordinates, not 2"),
    "obj: index 0": (".obj", OBJ + b"\nf 0 1 2", "bad-index]: there is no vertex 0"),
    "obj: index too high": (
        ".obj",
        obj(CUBE, [(0, 1, 8)]),
        "part.obj:9: error[bad-index]: there is no vertex 9; there are 8",
    ),
    "obj: index too low": (".obj", obj(CUBE, [(0, 1, -10)]), "there is no vertex -9"),
    "obj: endless index": (
        ".obj",
        OBJ + b"\nf 1 2 " + b"9" * 5000,
        "is not a whole number",
    ),
    "obj: no index": (".obj", OBJ + b"\nf 1 2 x", "'x' is not a whole number"),
    "obj: endless line": (".obj", b"# " + b"x" * 2_000_000, "empty-mesh"),
    "obj: endless continuation": (".obj", b"v \\\n" * 1_100_000, "empty-mesh"),
    "obj: a zip bomb": (".obj", BOMB, "not-text"),
    "obj: concave polygons that take hours": (
        ".obj",
        obj(np.random.default_rng(1).normal(size=(40_000, 3)), [range(40_000)]),
        "cutting polygons takes 1600000000 steps, more than 1000000000",
    ),
    "obj: a curve": (".obj", b"cstype bezier\n", "curved-surface"),
    "obj: a command": (".obj", b"csh rm\n", "'csh' is not a statement of OBJ"),
    "obj: a web page": (".obj", b"<html>\n", "this is a web page"),
    "ply: empty": (".ply", b"", "begins with 'ply'"),
    "ply: a zip bomb": (".ply", BOMB, "begins with 'ply'"),
    "ply: header only": (".ply", b"ply\n", "the header does not end"),
    "ply: endless header": (".ply", b"ply\n" + b"comment x\n" * 9000, "bad-header"),
    "ply: no format": (".ply", b"ply\nend_header\n", "is not part of a header"),
    "ply: a list of more entries than integers can count": (
        ".ply",
        b"ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int index\n"
        b"end_header\n1e154 0 0\n",
        "the file is too short",
    ),
    "ply: property of nothing": (
        ".ply",
        b"ply\nformat ascii 1.0\nproperty float x\n",
        ":3: error[bad-header]",
    ),
    "ply: unknown type": (
        ".ply",
        PLY.replace(b"double x", b"duble x"),
        "no type named 'duble'. Did you mean 'double'?",
    ),
    "ply: no z": (".ply", PLY.replace(b"double z", b"double w"), "no property 'z'"),
    "ply: no corners": (
        ".ply",
        PLY.replace(b"vertex_indices", b"corner_indices"),
        "no property 'vertex_indices'",
    ),
    "ply: float length": (
        ".ply",
        PLY.replace(b"list uchar", b"list float"),
        "the length of a list cannot be a float",
    ),
    "ply: count lies": (
        ".ply",
        LITTLE.replace(b"element vertex ", b"element vertex 9"),
        "wrong-size]: the file is too short for the 9",
    ),
    "ply: count lies in text": (
        ".ply",
        PLY.replace(b"element edge 1", b"element edge 2"),
        "too short for the 2 rows of 'edge'",
    ),
    "ply: huge count": (
        ".ply",
        LITTLE.replace(b"element vertex ", b"element vertex " + HUGE[2:].encode()),
        "mesh-too-large",
    ),
    "ply: huge count of others": (
        ".ply",
        LITTLE.replace(b"element edge 1", b"element edge " + HUGE.encode()),
        "wrong-size",
    ),
    "ply: negative count": (
        ".ply",
        PLY.replace(b"element edge 1", b"element edge -1"),
        "an element cannot have -1 rows",
    ),
    "ply: index too high": (
        ".ply",
        ply(CUBE, [(0, 1, 8)], "binary_little_endian"),
        "bad-index]: there is no vertex 8; there are 8, counted from 0",
    ),
    "ply: index below 0": (".ply", ply(CUBE, [(0, 1, -1)]), "bad-index"),
    "ply: NaN": (
        ".ply",
        ply(CUBE * np.nan, MIXED, "binary_big_endian"),
        "bad-number]: vertex 1 is [nan, nan, nan]",
    ),
    "ply: NaN in text": (".ply", ply(CUBE * np.nan, MIXED), "'nan' is not a finite"),
    "ply: one row is short": (
        ".ply",
        PLY.replace(b"0.5 3", b"0.5 200", 1),
        "the file is too short for the 28 rows of 'face'",
    ),
    "ply: one row is long": (
        ".ply",
        PLY.replace(b"0.5 3", b"0.5 2", 1),
        "a list cannot have 0.5 entries",
    ),
    "ply: rows without columns": (
        ".ply",
        b"ply\nformat binary_little_endian 1.0\nelement x "
        + HUGE.encode()
        + b"\nend_header\n",
        "empty-mesh",
    ),
    "glb: empty": (".glb", b"", "begins with 'glTF'"),
    "glb: a zip bomb": (".glb", BOMB, "begins with 'glTF'"),
    "glb: version 1": (
        ".glb",
        b"glTF" + struct.pack("<II", 1, 12),
        "glTF 1 is not read",
    ),
    "glb: many nodes show one mesh of many parts": (
        ".glb",
        one_mesh_in_many_nodes(400, 3000),
        "mesh-too-large]: the mesh has 12000 parts, more than 10000",
    ),
    "glb: length lies": (
        ".glb",
        b"glTF" + struct.pack("<II", 2, 99),
        "says it has 99 bytes, but has 12",
    ),
    "glb: no chunks": (
        ".glb",
        b"glTF" + struct.pack("<II", 2, 12),
        "the document does not come first",
    ),
    "glb: chunk lies": (
        ".glb",
        b"glTF" + struct.pack("<III4s", 2, 20, 2**31, b"JSON"),
        "a chunk says it has 2147483648 bytes, but 0 are left",
    ),
    "glb: no JSON": (
        ".glb",
        b"glTF" + struct.pack("<III4s4s", 2, 24, 4, b"JSON", b"{]  "),
        "bad-document",
    ),
    "glb: deep JSON": (
        ".glb",
        b"glTF" + struct.pack("<III4s", 2, 200_020, 200_000, b"JSON") + b"[" * 200_000,
        "bad-document",
    ),
    "glb: not one mesh": (".glb", glb({"asset": {}}, b""), "empty-mesh"),
    "glb: an accessor too long": (
        ".glb",
        changed("accessors", 0, "count", to=2**40),
        "mesh-too-large",
    ),
    "glb: an accessor longer than its view": (
        ".glb",
        changed("accessors", 0, "count", to=30_000),
        "wrong-size]: 30000 rows do not fit into view 0",
    ),
    "glb: one accessor in many meshes": (
        ".glb",
        one_accessor_in_many_meshes(),
        "has 18000000 vertices, more than 12000000",
    ),
    "glb: an accessor of nothing": (
        ".glb",
        changed("accessors", 1, "count", to=0),
        "at `$.accessors[1].count`",
    ),
    "glb: an accessor before its view": (
        ".glb",
        changed("accessors", 0, "byteOffset", to=-12),
        "at `$.accessors[0].byteOffset`",
    ),
    "glb: an accessor without a view": (
        ".glb",
        changed("accessors", 0, "bufferView", to=None),
        "unsupported-accessor",
    ),
    "glb: a sparse accessor": (
        ".glb",
        changed("accessors", 0, "sparse", to={"count": 1}),
        "unsupported-accessor",
    ),
    "glb: points of bytes": (
        ".glb",
        changed("accessors", 0, "componentType", to=5121),
        "bad-accessor]: accessor 0 does not hold points",
    ),
    "glb: indices of floats": (
        ".glb",
        changed("accessors", 1, "componentType", to=5126),
        "bad-accessor]: accessor 1 does not hold indices",
    ),
    "glb: no such accessor": (
        ".glb",
        changed("meshes", 0, "primitives", 0, "indices", to=7),
        "bad-index]: there is no accessor 7; there are 2",
    ),
    "glb: accessor -1": (
        ".glb",
        changed("meshes", 0, "primitives", 0, "indices", to=-1),
        "at `$.meshes[0].primitives[0].indices`",
    ),
    "glb: no such view": (
        ".glb",
        changed("accessors", 0, "bufferView", to=7),
        "bad-index]: there is no view 7; there are 2",
    ),
    "glb: a view too long": (
        ".glb",
        changed("bufferViews", 0, "byteLength", to=10**9),
        "wrong-size]: 8 rows do not fit into view 0",
    ),
    "glb: a stride of 0": (
        ".glb",
        changed("bufferViews", 0, "byteStride", to=0),
        "at `$.bufferViews[0].byteStride`",
    ),
    "glb: a stride beyond memory": (
        ".glb",
        changed("bufferViews", 0, "byteStride", to=2**63),
        "bad-document]",
    ),
    "glb: another file": (
        ".glb",
        changed("buffers", 0, "uri", to="../../../etc/passwd"),
        "reference-outside",
    ),
    "glb: another buffer": (
        ".glb",
        changed("bufferViews", 0, "buffer", to=1),
        "bad-index]: there is no buffer 1; there are 1",
    ),
    "glb: no buffers": (".glb", changed("buffers", to=[]), "there is no buffer 0"),
    "glb: compressed": (
        ".glb",
        changed("extensionsRequired", to=["KHR_draco_mesh_compression"]),
        "cannot be read without KHR_draco_mesh_compression",
    ),
    "glb: a cycle of nodes": (
        ".glb",
        changed("nodes", to=[{"children": [0]}]),
        "not-a-tree]: node 0 has two parents",
    ),
    "glb: no such node": (".glb", changed("scenes", 0, "nodes", to=[5]), "no node 5"),
    "glb: no such scene": (".glb", changed("scene", to=3), "there is no scene 3"),
    "glb: no such mesh": (
        ".glb",
        changed("nodes", 0, "mesh", to=-1),
        "at `$.nodes[0].mesh`",
    ),
    "glb: a short matrix": (
        ".glb",
        changed("nodes", 0, "matrix", to=[1.0] * 12),
        "at `$.nodes[0].matrix`",
    ),
    "glb: no rotation": (
        ".glb",
        changed("nodes", 0, "rotation", to=[0.0] * 4),
        "the rotation of node 0 has no length",
    ),
    "glb: two corners": (
        ".glb",
        changed("accessors", 1, "count", to=2),
        "wrong-count]: 2 corners do not make triangles",
    ),
    "glb: index too high": (
        ".glb",
        changed("accessors", 0, "count", to=2),
        "bad-index]: there is no vertex 2; there are 2",
    ),
    "glb: NaN": (
        ".glb",
        changed("asset", to={}, binary=NAN * 24 + b"\0\0\1\0\2\0"),
        "bad-number",
    ),
    "gltf: another file": (
        ".gltf",
        json.dumps(
            gltf(TINY, buffers=[{"byteLength": 9, "uri": "/etc/passwd"}])[0]
        ).encode(),
        "reference-outside",
    ),
    "gltf: a short buffer": (
        ".gltf",
        json.dumps(
            gltf(TINY, buffers=[{"byteLength": 99, "uri": "data:;base64,AAAA"}])[0]
        ).encode(),
        "buffer 0 says it has 99 bytes, but has 3",
    ),
    "gltf: no base64": (
        ".gltf",
        json.dumps(
            gltf(TINY, buffers=[{"byteLength": 3, "uri": "data:;base64,A!!!"}])[0]
        ).encode(),
        "the text of buffer 0 cannot be read",
    ),
    "ac: empty": (".ac", b"", "begins with 'AC3D'"),
    "ac: a long chain": (
        ".ac",
        b"AC3Db\n" + b"OBJECT world\nkids 1\n" * 100_000,
        "nested 257 deep, more than 256",
    ),
    "obj: many libraries": (
        ".obj",
        b"v 0 0 0\n" + b"".join(b"mtllib m%d.mtl\n" % k for k in range(20_000)),
        "more than 100 files of colours",
    ),
    "obj: many materials": (
        ".obj",
        b"v 0 0 0\n" + b"".join(b"usemtl m%d\n" % k for k in range(200_000)),
        "has 10001 materials, more than 10000",
    ),
    "ac: cut off": (".ac", COLOURED["x.ac"][:-8], "error["),
    "ac: NaN": (".ac", COLOURED["x.ac"].replace(b"loc 1", b"loc nan"), "bad-number"),
    "ac: index too high": (
        ".ac",
        COLOURED["x.ac"].replace(b"0 0 0\n1 0 0\n2 0 0", b"0 0 0\n1 0 0\n8 0 0"),
        "bad-index",
    ),
    "ac: endless kids": (
        ".ac",
        b"AC3Db\n" + b"OBJECT group\nkids 2\n" * 300,
        "mesh-too-large",
    ),
    "ac: huge count": (
        ".ac",
        COLOURED["x.ac"].replace(b"numvert 8", b"numvert 99999999999"),
        "mesh-too-large",
    ),
    "ac: a word": (".ac", b"AC3Db\nrm -rf\n", "'rm' is not a keyword"),
    "dae: two lists": (
        ".dae",
        dae(CUBE, f"<triangles>{INPUT}{p([0, 1, 2])}{p([1, 2, 3])}</triangles>"),
        "has more than one <p>",
    ),
    "dae: empty": (".dae", b"", "error["),
    "dae: a zip bomb": (".dae", BOMB, "error["),
    "dae: another root": (".dae", b"<robot/>", "is not the root of COLLADA"),
    "dae: entities": (
        ".dae",
        b'<!DOCTYPE x [<!ENTITY a "b">]><COLLADA/>',
        "doctype",
    ),
    "dae: no geometry": (".dae", b"<COLLADA/>", "empty-mesh"),
    "dae: billion laughs": (".dae", billion_laughs(), "mesh-too-large"),
    "dae: a node in itself": (
        ".dae",
        dae(CUBE, "", nodes='<node id="n"><instance_node url="#n"/></node>'),
        "mesh-too-large",
    ),
    "dae: deep nodes": (
        ".dae",
        dae(CUBE, "", nodes="<node>" * 5000 + "</node>" * 5000),
        "error[",
    ),
    "dae: another file": (
        ".dae",
        DAE.replace(b'url="#g"', b'url="other.dae#g"'),
        "reference-outside",
    ),
    "dae: no such geometry": (
        ".dae",
        DAE.replace(b'url="#g"', b'url="#h"'),
        "unknown-reference",
    ),
    "dae: a node as geometry": (
        ".dae",
        DAE.replace(b'url="#g"', b'url="#s"'),
        "there is no <geometry> of that id",
    ),
    "dae: NaN": (
        ".dae",
        dae(np.full((3, 3), np.nan), dae_triangles([(0, 1, 2)])),
        "holds a word that is not a finite number",
    ),
    "dae: no number": (".dae", DAE.replace(b"<p>", b"<p>x "), "not a whole number"),
    "dae: negative index": (
        ".dae",
        DAE.replace(b"<p>", b"<p>-1 "),
        "not a whole number",
    ),
    "dae: count lies": (
        ".dae",
        DAE.replace(b'id="a" count="', b'id="a" count="9'),
        "wrong-count",
    ),
    "dae: accessor lies": (
        ".dae",
        DAE.replace(b'stride="3"', b'stride="4"'),
        "points of 4 numbers do not fit",
    ),
    "dae: endless count": (
        ".dae",
        DAE.replace(b'stride="3"', b'stride="' + b"9" * 5000 + b'"'),
        "not a count",
    ),
    "dae: index too high": (
        ".dae",
        dae(CUBE, dae_triangles([(0, 1, 8)])),
        "bad-index]: there is no vertex 8; there are 8",
    ),
    "dae: huge index": (
        ".dae",
        dae(CUBE, dae_triangles([(0, 1, int(HUGE))])),
        "not a whole number",
    ),
    "dae: endless index": (
        ".dae",
        dae(CUBE, dae_triangles([(0, 1, 10**30)])),
        "not a whole number",
    ),
    "dae: polygons lie": (
        ".dae",
        dae(CUBE, f"<polylist>{INPUT}<vcount>4</vcount>{p([0, 1, 2])}</polylist>"),
        "3 corners do not make 1 polygons",
    ),
    "dae: counts overflow": (
        ".dae",
        dae(
            CUBE,
            f"<polylist>{INPUT}<vcount>{HUGE} {HUGE}</vcount>{p([0, 1, 2])}</polylist>",
        ),
        "not a whole number",
    ),
    "dae: no vertices": (
        ".dae",
        dae(CUBE, f"<triangles>{p([0, 1, 2])}</triangles>"),
        "has no input 'VERTEX'",
    ),
    "dae: holes": (
        ".dae",
        dae(CUBE, f"<polygons>{INPUT}<ph>{p([0, 1, 2])}</ph></polygons>"),
        "<ph> is not read",
    ),
    "dae: a skin": (
        ".dae",
        dae(CUBE, "", nodes='<node><instance_controller url="#c"/></node>'),
        "<instance_controller> is not read",
    ),
    "dae: no unit": (
        ".dae",
        DAE.replace(b"<asset>", b'<asset><unit meter="0"/>'),
        "'0' is not a number of metres",
    ),
    "dae: turns about nothing": (
        ".dae",
        dae(CUBE, "", nodes="<node><rotate>0 0 0 90</rotate></node>"),
        "zero-axis",
    ),
    "dae: short matrix": (
        ".dae",
        dae(CUBE, "", nodes="<node><matrix>1 0 0</matrix></node>"),
        "holds 3 numbers, not 16",
    ),
}


@pytest.mark.sampled(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_a_clear_error_after_little_work(name: str):
    ending, data, why = HOSTILE[name]
    with counted() as work:
        found = faults(data, ending)
    assert work.lines < 10_000_000
    assert why in found
    assert found.startswith(f"part{ending}")


@each_sample
def test_damaged_files_give_a_mesh_or_an_error(name: str):
    """Bytes changed, cut out, doubled: nothing else may come of it."""
    ending, data = SAMPLES[name]
    random = np.random.default_rng(5)
    outcomes = set()
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(random.integers(1, 4)):
            at = int(random.integers(len(broken)))
            match random.integers(4):
                case 0:
                    broken[at] = int(random.integers(256))
                case 1:
                    del broken[at : at + int(random.integers(1, 40))]
                case 2:
                    broken[at:at] = broken[at // 2 : at // 2 + 30]
                case _:
                    broken[at : at + 4] = b"\xff\xff\xff\x7f"
        try:
            mesh = triangles_in(bytes(broken), f"x{ending}")
        except FormatError as error:
            assert str(error).startswith("x")
            outcomes.add("error")
        else:
            assert np.isfinite(mesh.vertices).all()
            outcomes.add("mesh")
    assert "error" in outcomes


# Files on disk.


def test_size_is_capped_before_reading(tmp_path: Path):
    path = tmp_path / "big.stl"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a sparse terabyte
    with pytest.raises(FormatError, match=r"error\[file-too-large\]"):
        read_triangles(path)
    path.write_bytes(stl(BLOB))
    with pytest.raises(FormatError, match="more than 100"):
        read_triangles(path, size_cap=100)


def test_only_plain_files_are_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    for name, what in (("pipe", "a pipe"), ("folder", "a folder")):
        with pytest.raises(FormatError, match=rf"not-a-file\]: this is {what}"):
            read_triangles(tmp_path / f"{name}.stl")
    (tmp_path / "device.stl").symlink_to("/dev/zero")
    with pytest.raises(FormatError, match="this is a device"):
        read_triangles(tmp_path / "device.stl")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("part.zip", "Save it as one of .stl, "),
        ("part.3dxml", "'.3dxml' is not a kind of mesh file"),
        ("part", "'' is not a kind of mesh file"),
    ],
)
def test_other_endings_are_refused_unopened(name: str, hint: str):
    with pytest.raises(FormatError) as caught:
        read_triangles(f"/nowhere/{name}")
    assert "unknown-mesh-format" in str(caught.value)
    assert hint in str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("model/part.stl", "pkg/meshes/part.stl", "secret/part.stl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(stl(BLOB))
    return tmp_path


def test_references_are_followed_and_scaled(folder: Path):
    files = MeshFiles(folder / "model", roots=Roots(packages={"robot": folder / "pkg"}))
    found = files.triangles(Mesh(file="part.stl", scale=(2.0, 2.0, -2.0)))
    assert found is not None
    assert found.volume == pytest.approx(8.0 * BLOB.volume, rel=1e-6)
    again = files.triangles(Mesh(file="package://robot/meshes/part.stl"))
    assert again is not None
    assert same_body(again, BLOB)
    assert files.report.diagnostics == ()


def test_the_hull_of_a_mesh_has_its_looks_and_is_made_once(folder: Path):
    files = MeshFiles(folder / "model")
    mesh = Mesh(
        file="part.stl",
        scale=(2.0, 1.0, -1.0),
        name="part",
        pose=Pose.translation(1, 2, 3),
        colour=(1, 0, 0, 1),
    )
    hull = files.hull(mesh)
    assert hull is not None
    assert (hull.name, hull.pose, hull.colour) == (mesh.name, mesh.pose, mesh.colour)
    directions = np.random.default_rng(0).normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points = BLOB.vertices * mesh.scale
    reach = (points @ directions.T).max(axis=0)
    slack = (np.array(hull.vertices) @ directions.T).max(axis=0) - reach
    assert slack.min() >= -1e-6  # numbers of STL are float32
    assert slack.max() <= 0.005 * np.ptp(points, axis=0).max()
    exact = files.hull(mesh, tolerance=0.0)
    assert exact is not None
    assert exact.volume == pytest.approx(2.0 * BLOB.volume, rel=1e-5)
    (folder / "model/part.stl").unlink()
    (folder / "model/part.stl").write_bytes(b"other")
    assert files.hull(mesh) == hull
    other = files.hull(Mesh(file="part.stl", scale=mesh.scale))
    assert other is not None
    assert other.vertices == hull.vertices
    again = pickle.loads(pickle.dumps(files))
    with pytest.raises(FormatError):  # in another process, files are read again
        again.hull(mesh)


def test_open_flat_and_reversed_meshes_have_hulls(tmp_path: Path):
    flat = Triangles(CUBE * (1, 1, 0), [(0, 2, 6), (0, 6, 4)])
    line = Triangles([(0, 0, 0), (1, 0, 0), (2, 0, 0)], [(0, 1, 2)])
    bodies = {
        "flat": flat,
        "line": line,
        "reversed": BLOB.reversed(),
        "open": Triangles(BLOB.vertices, BLOB.faces[3:]),
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.stl").write_bytes(stl(body))
        hull = MeshFiles(tmp_path).hull(Mesh(file=f"{name}.stl"))
        assert hull is not None
        for direction in np.random.default_rng(0).normal(size=(50, 3)):
            reach = (body.vertices[np.unique(body.faces)] @ direction).max()
            assert hull.support(direction) @ direction >= reach - 1e-6
    point = Triangles(np.ones((3, 3)), [(0, 1, 2)])
    (tmp_path / "point.stl").write_bytes(stl(point))
    with pytest.raises(ArmillaryError):
        MeshFiles(tmp_path).hull(Mesh(file="point.stl"))


@pytest.mark.thorough
def test_the_hull_of_many_corners_has_few(tmp_path: Path):
    cloud = np.random.default_rng(0).normal(size=(20_000, 3))
    cloud /= np.linalg.norm(cloud, axis=1, keepdims=True)
    corners = np.arange(19_998).reshape(-1, 3)
    (tmp_path / "ball.stl").write_bytes(stl(Triangles(cloud, corners)))
    with counted() as work:
        hull = MeshFiles(tmp_path).hull(Mesh(file="ball.stl"))
    assert work.lines < 200 * len(cloud)
    assert hull is not None
    assert len(hull.vertices) <= 1000
    assert hull.volume > 4.18


def test_a_file_is_read_once(folder: Path):
    files = MeshFiles(folder / "model")
    first = files.triangles(Mesh(file="part.stl"))
    (folder / "model" / "part.stl").write_bytes(b"no more")
    assert files.triangles(Mesh(file="part.stl")) == first


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("../secret/part.stl", "reference-outside"),
        ("/etc/passwd", "reference-outside"),
        ("link.stl", "reference-outside"),
        ("file:///etc/passwd", "reference-outside"),
        ("https://example.com/part.stl", "reference-network"),
        ("//host/share/part.stl", "reference-network"),
        ("..\\secret\\part.stl", "reference-syntax"),
        ("sub", "reference-missing"),
        ("missing.stl", "reference-missing"),
        ("package://unknown/part.stl", "reference-package"),
    ],
)
def test_references_out_of_the_roots_are_never_opened(
    folder: Path, reference: str, code: str
):
    (folder / "model" / "link.stl").symlink_to(folder / "secret" / "part.stl")
    (folder / "model" / "sub").mkdir()
    place = Place("arm.urdf", 12, 7)
    with pytest.raises(FormatError, match=rf"^arm\.urdf:12:7: error\[{code}\]"):
        MeshFiles(folder / "model").triangles(Mesh(file=reference), place=place)
    relaxed = MeshFiles(folder / "model", missing="warn")
    if code in {"reference-missing", "reference-package"}:
        assert relaxed.triangles(Mesh(file=reference), place=place) is None
        assert relaxed.triangles(Mesh(file=reference), place=place) is None
        (found,) = relaxed.report.diagnostics
        assert str(found).startswith(f"arm.urdf:12:7: warning[{code}]")
    else:
        with pytest.raises(FormatError, match=code):
            relaxed.triangles(Mesh(file=reference), place=place)


def test_a_faulty_file_is_an_error_even_where_missing_ones_are_not(folder: Path):
    (folder / "model" / "part.stl").write_bytes(b"solid\nfacet oops")
    files = MeshFiles(folder / "model", missing="warn")
    with pytest.raises(FormatError, match=r"part\.stl:2: error\[unexpected-word\]"):
        files.triangles(Mesh(file="part.stl"))


# Another library's files, and its answers.


@pytest.mark.parametrize("ending", [".stl", ".obj", ".ply", ".glb", ".dae"])
def test_files_of_trimesh_are_read(ending: str):
    trimesh = pytest.importorskip("trimesh", reason="trimesh (extra mesh) is absent")
    if ending == ".dae":
        pytest.importorskip("collada", reason="pycollada (extra mesh) is absent")
    theirs = trimesh.Trimesh(BLOB.vertices, BLOB.faces, process=False)
    data = theirs.export(file_type=ending[1:])
    data = data.encode() if isinstance(data, str) else data
    assert same_body(triangles_in(data, f"x{ending}"), BLOB)


def robot_meshes() -> list[Path]:
    """Return some of the meshes of example-robot-data."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    found = [Path(str(f.locate())) for f in files if f.suffix.lower() in KINDS]
    return sorted(path for path in found if path.is_file())[::12]


@pytest.mark.peers
def test_meshes_of_real_robots_are_those_of_trimesh():
    trimesh = pytest.importorskip("trimesh", reason="trimesh (extra mesh) is absent")
    pytest.importorskip("collada", reason="pycollada (extra mesh) is absent")
    paths = robot_meshes()
    assert len(paths) > 20
    for path in paths:
        ours = read_triangles(path)
        area, volume = 0.0, 0.0
        with path.open("rb") as file:
            scene = trimesh.load_scene(
                file, file_type=path.suffix[1:].lower(), process=False
            )
        for node in scene.graph.nodes_geometry:
            matrix, name = scene.graph[node]
            corners = scene.geometry[name].triangles @ matrix[:3, :3].T + matrix[:3, 3]
            a, b, c = np.moveaxis(corners, 1, 0)
            area += 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())
            volume += float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0
        if area == 0.0:  # it reads nothing of some that we read
            continue
        if path.suffix == ".obj" and ours.area < area:  # it makes fans of the concave
            continue
        scale = np.sqrt(ours.area / area)  # it leaves <unit> out
        assert scale == pytest.approx(1.0, rel=1e-6) or path.suffix == ".dae"
        a, b, c = np.moveaxis(ours.corners, 1, 0)
        found = float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0
        assert found == pytest.approx(volume * scale**3, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("shift", ["1e300", "1e17"])
def test_nodes_of_dae_are_not_too_far_away(shift: str):
    nodes = f"""<node><translate>{shift} 0 0</translate>
        <instance_geometry url="#g"/></node>"""
    with pytest.raises(FormatError, match=r"bad-number.*too far away"):
        triangles_in(
            dae(BLOB.vertices, dae_triangles(BLOB.faces), nodes=nodes), "x.dae"
        )
