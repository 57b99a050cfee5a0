"""Surfaces with an image as glTF, which browsers decode."""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import numpy as np

from armillary.view.kinds import Surface

__all__ = ["glb_of"]

FLOAT, UINT32, VERTICES, CORNERS = 5126, 5125, 34962, 34963
PNG: Final = b"\x89PNG"


def glb_of(surface: Surface) -> bytes:
    """Return a surface with its texture as a GLB file, its image as it is.

    Nothing is decoded here, so that an image cannot cost more memory than its file.
    """
    texture = surface.texture
    assert texture is not None
    arrays = (
        np.ascontiguousarray(surface.vertices, "<f4").tobytes(),
        np.ascontiguousarray(texture.uv, "<f4").tobytes(),
        np.ascontiguousarray(surface.faces, "<u4").tobytes(),
        texture.image,
    )
    binary, views = b"", list[dict[str, int]]()
    for data in arrays:
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(data)})
        binary += data + bytes(-len(data) % 4)
    for view, target in zip(views, (VERTICES, VERTICES, CORNERS), strict=False):
        view["target"] = target
    return _glb(_document(surface, views, len(binary)), binary)


def _document(
    surface: Surface, views: list[dict[str, int]], size: int
) -> dict[str, Any]:
    points = surface.vertices
    texture = surface.texture
    assert texture is not None
    is_png = texture.image.startswith(PNG)
    kinds = ((FLOAT, "VEC3"), (FLOAT, "VEC2"), (UINT32, "SCALAR"))
    counts = (len(points), len(points), 3 * len(surface.faces))
    accessors: list[dict[str, Any]] = [
        {"bufferView": k, "componentType": kind, "type": shape, "count": count}
        for k, ((kind, shape), count) in enumerate(zip(kinds, counts, strict=True))
    ]
    accessors[0] |= {
        "min": points.min(axis=0).tolist(),
        "max": points.max(axis=0).tolist(),
    }
    material = {
        "pbrMetallicRoughness": {
            "baseColorFactor": surface.colour,
            "baseColorTexture": {"index": 0},
            "metallicFactor": 0.0,
        },
        "doubleSided": True,
        "alphaMode": "BLEND" if surface.colour[3] < 1.0 else "OPAQUE",
    }
    primitive = {
        "attributes": {"POSITION": 0, "TEXCOORD_0": 1},
        "indices": 2,
        "material": 0,
    }
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "materials": [material],
        "textures": [{"source": 0}],
        "images": [
            {"bufferView": 3, "mimeType": "image/png" if is_png else "image/jpeg"}
        ],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": size}],
    }


def _glb(document: dict[str, Any], binary: bytes) -> bytes:
    """Return the chunks of a GLB file; `binary` has a multiple of four bytes."""
    text = msgspec.json.encode(document)
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
