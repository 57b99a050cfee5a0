"""Images on meshes are at the right places, and never lose a triangle."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.diagnostic import Place
from armillary.formats.mesh import MeshFiles, MeshPart, read_parts
from armillary.formats.mesh.images import checked_image
from armillary.limits import IMAGE_SIDE
from armillary.model.shapes import Mesh


def png(width: int = 2, height: int = 2) -> bytes:
    """An image whose rows of pixels are grey."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(min(width, 9)) for _ in range(2)))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", rows)
        + chunk(b"IEND", b"")
    )


def jpeg(width: int, height: int) -> bytes:
    """The head of an image, up to its first frame, with a byte of padding."""
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8\xff\xe0\0\4ab\xff\xff\xc0" + frame + b"\xff\xd9"


CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, 2, 0), (0, 2, 0)], float)
# Where they are from the upper left corner of the image.
UV = np.array([(0, 1), (0.5, 1), (0.5, 0), (0, 0)], float)
OBJ = (
    "mtllib x.mtl\n"
    + "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
    + "".join(f"vt {u} {1 - v}\n" for u, v in UV)
    + "usemtl m\nf 1/1 2/2 3/3\nf -4/-4/1 -2/-2/1 -1/-1/1\n"
)
MTL = "newmtl m\nKd 0 0 0\nd 0.5\nmap_Kd x.png\n"


def gltf(image: dict[str, Any], tail: bytes = b"", **info: Any) -> bytes:
    """A document of two triangles and an image, with its bytes in text."""
    arrays = [
        CORNERS.astype("<f4").tobytes(),
        UV.astype("<f4").tobytes(),
        np.array([0, 1, 2, 0, 2, 3], "<u4").tobytes(),
        tail,
    ]
    starts = np.cumsum([0, *map(len, arrays)]).tolist()
    sizes = [("VEC3", 4), ("VEC2", 4), ("SCALAR", 6)]
    document = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [
            {
                "primitives": [
                    {
                        "attributes": {"POSITION": 0, "TEXCOORD_0": 1},
                        "indices": 2,
                        "material": 0,
                    }
                ]
            }
        ],
        "accessors": [
            {
                "bufferView": k,
                "componentType": 5125 if k == 2 else 5126,
                "type": kind,
                "count": count,
            }
            for k, (kind, count) in enumerate(sizes)
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": start, "byteLength": len(data)}
            for start, data in zip(starts, arrays, strict=False)
        ],
        "buffers": [{"byteLength": starts[-1], "uri": in_text(b"".join(arrays))}],
        "materials": [
            {
                "pbrMetallicRoughness": {
                    "baseColorFactor": [1, 1, 1, 0.5],
                    "baseColorTexture": {"index": 0, **info},
                }
            }
        ],
        "textures": [{"source": 0}],
        "images": [image],
    }
    return json.dumps(document).encode()


def in_text(data: bytes) -> str:
    return "data:;base64," + base64.b64encode(data).decode()


FILES = {
    "x.obj": OBJ.encode(),
    "x.gltf": gltf({"uri": "x.png"}),
    "y.gltf": gltf({"uri": in_text(png())}),
    "z.gltf": gltf({"bufferView": 3, "mimeType": "image/png"}, png()),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a mesh in each format, its material and its image."""
    (tmp_path / "meshes").mkdir()
    for name, data in FILES.items():
        (tmp_path / "meshes" / name).write_bytes(data)
    (tmp_path / "meshes" / "x.mtl").write_text(MTL)
    (tmp_path / "meshes" / "x.png").write_bytes(png())
    return tmp_path / "meshes"


def shown(part: MeshPart) -> set[tuple[float, ...]]:
    """Each corner of each triangle, with its place in the image."""
    assert part.texture is not None
    assert part.texture.uv.shape == (len(part.triangles.faces), 3, 2)
    rows = np.concatenate([part.triangles.corners, part.texture.uv], axis=-1)
    return {tuple(row) for row in rows.reshape(-1, 5).tolist()}


def only_part(folder: Path, mesh: Mesh) -> MeshPart:
    parts = MeshFiles(folder).parts(mesh)
    assert parts is not None
    assert len(parts) == 1
    return parts[0]


EXPECTED = {tuple(row) for row in np.hstack([CORNERS, UV]).tolist()}


@pytest.mark.parametrize("name", FILES)
def test_corners_are_at_their_places_in_the_image(name: str, folder: Path):
    (part,) = read_parts(folder / name)
    assert len(part.triangles.faces) == 2
    assert shown(part) == EXPECTED
    assert part.texture is not None
    assert part.texture.image == png()
    assert part.colour == (1.0, 1.0, 1.0, 0.5)
    assert part.lost == ""


@pytest.mark.parametrize("scale", [(2.0, 1.0, 1.0), (-1.0, 1.0, 1.0)])
def test_scaled_and_mirrored_meshes_keep_places(
    scale: tuple[float, float, float], folder: Path
):
    part = only_part(folder, Mesh(file="x.obj", scale=scale))
    assert shown(part) == {
        tuple(row) for row in np.hstack([CORNERS * scale, UV]).tolist()
    }


def test_a_seam_keeps_both_places_of_a_vertex(folder: Path):
    """Two triangles share an edge, and have other places there."""
    text = OBJ.replace("f -4/-4/1 -2/-2/1 -1/-1/1", "f 1/4 3/1 4/3")
    (folder / "x.obj").write_text(text)
    (part,) = read_parts(folder / "x.obj")
    assert len(part.triangles.vertices) == 4
    uv = UV[[[0, 1, 2], [3, 0, 2]]]
    assert shown(part) == {
        (*corner, *place)
        for corner, place in zip(
            CORNERS[[0, 1, 2, 0, 2, 3]].tolist(),
            uv.reshape(-1, 2).tolist(),
            strict=True,
        )
    }


def test_triangles_that_vanish_take_their_places_along(folder: Path):
    text = OBJ.replace("usemtl m\n", "usemtl m\nf 1/2 1/3 2/4\n")
    (folder / "x.obj").write_text(text)
    (part,) = read_parts(folder / "x.obj")
    assert len(part.triangles.faces) == 2
    assert shown(part) == EXPECTED


def test_parts_with_and_without_images_stay_apart(folder: Path):
    (folder / "x.obj").write_text(OBJ + "usemtl other\nf 1 2 4\n")
    (folder / "x.mtl").write_text(MTL + "newmtl other\nKd 0 1 0\n")
    one, other = read_parts(folder / "x.obj")
    assert one.texture is not None
    assert other.texture is None
    assert other.colour == (0.0, 1.0, 0.0, 1.0)


def test_a_colour_of_the_shape_counts_instead_of_images(folder: Path):
    red = (1.0, 0.0, 0.0, 1.0)
    part = only_part(folder, Mesh(file="x.obj", colour=red))
    assert part.texture is None
    assert part.colour == red


def test_images_are_read_only_when_they_are_shown(folder: Path):
    (folder / "x.png").unlink()
    files = MeshFiles(folder)
    assert files.triangles(Mesh(file="x.obj")) is not None
    assert not list(files.report.diagnostics)


LOST_OBJ = {
    "is not a PNG or JPEG": {"x.png": b"GIF89a" + bytes(100)},
    "an image is not": {"x.png": b""},
    "a side": {"x.png": png(IMAGE_SIDE.most + 1, 2)},
    "missing or not finite": {"x.obj": OBJ.replace("vt 0.5 1", "vt 0.5 nan").encode()},
    "corners in an image": {"x.obj": OBJ.replace("3/3\n", "3/9\n").encode()},
    "places": {"x.obj": OBJ.replace("3/3\n", "3\n").encode()},
    "options": {"x.mtl": MTL.replace("map_Kd", "map_Kd -s 2 2").encode()},
    "outside of the folders": {"x.mtl": MTL.replace("x.png", "../secret.png").encode()},
    "another machine": {"x.mtl": MTL.replace("x.png", "//host/x.png").encode()},
    "http": {"x.mtl": MTL.replace("x.png", "http://host/x.png").encode()},
    "gone": {"x.mtl": MTL.replace("x.png", "gone.png").encode()},
}


@pytest.mark.parametrize("why", LOST_OBJ)
def test_lost_images_of_obj_are_reported_and_lose_no_triangle(why: str, folder: Path):
    (folder.parent / "secret.png").write_bytes(png())
    for name, data in LOST_OBJ[why].items():
        (folder / name).write_bytes(data)
    (part,) = read_parts(folder / "x.obj")
    assert part.texture is None
    assert len(part.triangles.faces) == 2
    assert why in part.lost


LOST_GLTF = {
    "there is no texture 7": gltf({"uri": "x.png"}, index=7),
    "KHR_texture_transform": gltf(
        {"uri": "x.png"}, extensions={"KHR_texture_transform": {}}
    ),
    "places": gltf({"uri": "x.png"}, texCoord=1),
    "base64": gltf({"uri": "data:image/png;base64,%%"}),
    "image 0 has no bytes": gltf({"bufferView": 9}),
    "outside of the folders": gltf({"uri": "../secret.png"}),
    "PNG or JPEG": gltf({"bufferView": 0}),
}


@pytest.mark.parametrize("why", LOST_GLTF)
def test_lost_images_of_gltf_are_reported_and_lose_no_triangle(why: str, folder: Path):
    (folder.parent / "secret.png").write_bytes(png())
    (folder / "x.gltf").write_bytes(LOST_GLTF[why])
    (part,) = read_parts(folder / "x.gltf")
    assert part.texture is None
    assert len(part.triangles.faces) == 2
    assert why in part.lost


def test_sizes_are_those_that_the_file_says():
    assert checked_image(png(3, 5), Place()) == (3, 5)
    assert checked_image(jpeg(640, 480), Place()) == (640, 480)


@pytest.mark.parametrize(
    "data",
    [
        png(0, 3),
        png()[:20],
        jpeg(4, 3)[:12],
        jpeg(0, 0),
        b"\xff\xd8\xff" + bytes(40),
        jpeg(IMAGE_SIDE.most + 1, 1),
        b"<svg/>",
    ],
)
def test_other_files_are_refused(data: bytes):
    with pytest.raises(FormatError, match="image"):
        checked_image(data, Place())
