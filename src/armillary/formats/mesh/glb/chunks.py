"""The two parts of a GLB file: a document, and the bytes that it speaks of."""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from armillary.formats.diagnostic import Place
from armillary.formats.mesh.glb.layout import Document
from armillary.formats.mesh.parts import refusal

__all__ = ["split"]

START: Final = 12
HEAD: Final = 8
LARGEST_DOCUMENT: Final = 16 << 20


def split(data: bytes, path: str) -> tuple[Document, bytes]:
    """Return the document of a GLB file, and its bytes, empty where it has none.

    Raises:
        FormatError: The file is no GLB, is not as long as it says, or the document is
            not what glTF asks for.
    """
    place = Place(path)
    if len(data) < START or data[:4] != b"glTF":
        raise refusal(place, "wrong-content", "a GLB file begins with 'glTF'")
    version, size = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise refusal(place, "wrong-version", f"glTF {version} is not read, only 2")
    if size != len(data):
        raise refusal(
            place,
            "wrong-size",
            f"the file says it has {size} bytes, but has {len(data)}",
        )
    chunks = _chunks(data, place)
    if not chunks or chunks[0][0] != b"JSON":
        raise refusal(place, "wrong-content", "the document does not come first")
    text = chunks[0][1]
    if len(text) > LARGEST_DOCUMENT:
        raise refusal(
            place,
            "mesh-too-large",
            f"the document has more than {LARGEST_DOCUMENT} bytes",
        )
    is_binary = len(chunks) > 1 and chunks[1][0] == b"BIN\0"
    return _document(text, place), chunks[1][1] if is_binary else b""


def _chunks(data: bytes, place: Place) -> list[tuple[bytes, bytes]]:
    """Return the type and the bytes of the first two chunks."""
    found: list[tuple[bytes, bytes]] = []
    at = START
    while at < len(data) and len(found) < 2:
        if at + HEAD > len(data):
            raise refusal(place, "wrong-size", "the file ends inside a chunk's head")
        size = int.from_bytes(data[at : at + 4], "little")
        kind = data[at + 4 : at + HEAD]
        at += HEAD
        if size > len(data) - at:
            raise refusal(
                place,
                "wrong-size",
                f"a chunk says it has {size} bytes, but {len(data) - at} are left",
            )
        found.append((kind, data[at : at + size]))
        at += size
    return found


def _document(text: bytes, place: Place) -> Document:
    try:
        return msgspec.json.decode(text, type=Document)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        message = f"the document is no glTF: {error}".removesuffix(".")
        raise refusal(place, "bad-document", message) from error
