"""MSH, the binary meshes of MuJoCo."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.mesh.read import read_triangles

POINTS = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 3.0)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def msh(*, normals: int = 0, textures: int = 0, tail: bytes = b"") -> bytes:
    return b"".join(
        [
            struct.pack("<4i", len(POINTS), normals, textures, len(FACES)),
            np.array(POINTS, "<f4").tobytes(),
            bytes(12 * normals + 8 * textures),
            np.array(FACES, "<i4").tobytes(),
            tail,
        ]
    )


@pytest.mark.parametrize("extra", [{}, {"normals": 4}, {"normals": 4, "textures": 4}])
def test_triangles(tmp_path: Path, extra: dict[str, int]):
    path = tmp_path / "part.msh"
    path.write_bytes(msh(**extra))
    triangles = read_triangles(path)
    assert triangles.volume == pytest.approx(1.0)
    assert len(triangles.faces) == len(FACES)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "truncated"),
        (msh(tail=b"x"), "wrong-size"),
        (msh()[:-4], "wrong-size"),
        (struct.pack("<4i", -1, 0, 0, 1), "wrong-size"),
        (struct.pack("<4i", 2**30, 0, 0, 1), "mesh-too-large"),
        (msh()[:-4] + struct.pack("<i", 9), ""),
        (msh().replace(struct.pack("<f", 3.0), struct.pack("<f", np.nan)), ""),
    ],
)
def test_faulty_files(tmp_path: Path, data: bytes, code: str):
    path = tmp_path / "part.msh"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_triangles(path)
    assert code in {"", caught.value.diagnostics[0].code}
