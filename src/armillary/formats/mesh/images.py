"""Images that meshes name, read only when they are shown."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from armillary.errors import FormatError
from armillary.formats.diagnostic import Budget, Place, fault
from armillary.limits import IMAGE_SIDE, IMAGE_SIZE

__all__ = ["Image", "checked_image", "no_image", "reason"]

PNG: Final = b"\x89PNG\r\n\x1a\n"
JPEG: Final = b"\xff\xd8\xff"
# Baseline, extended and progressive frames, which is what browsers decode.
FRAMES: Final = (0xC0, 0xC1, 0xC2)
WITHOUT_LENGTH: Final = (0x01, *range(0xD0, 0xD8))


class Image(msgspec.Struct, frozen=True, eq=False):
    """An image that a material names.

    Attributes:
        read: Returns the bytes of the file, or raises FormatError.
        place: Where the material names it.
    """

    read: Callable[[], bytes]
    place: Place

    def data(self) -> bytes:
        """Return the bytes of a PNG or JPEG file of moderate size.

        Raises:
            FormatError: It is not there, not where it may be, or not such a file.
        """
        data = self.read()
        checked_image(data, self.place)
        return data


def checked_image(data: bytes, place: Place) -> tuple[int, int]:
    """Return the width and height of a PNG or JPEG file [pixels]; decode nothing.

    Raises:
        FormatError: It is of another kind, or too large to be shown.
    """
    budget = Budget()
    budget.check(IMAGE_SIZE, len(data), place)
    size = None
    if data.startswith(PNG) and data[12:16] == b"IHDR" and len(data) >= 24:
        size = struct.unpack_from(">II", data, 16)
    elif data.startswith(JPEG):
        size = _size_of_jpeg(data)
    if size is None or not all(size):
        message = "an image is not a PNG or JPEG file"
        raise fault(place, "unsupported-image", message)
    width, height = size
    budget.check(IMAGE_SIDE, max(size), place)
    return width, height


def _size_of_jpeg(data: bytes) -> tuple[int, int] | None:
    """Return what the first frame of a JPEG file says, None without one."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:  # a byte of padding
            at += 1
        elif marker in WITHOUT_LENGTH:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def no_image(message: str, place: Place) -> Image:
    """Return an image that cannot be shown, for a reason."""

    def refuse() -> bytes:
        raise fault(place, "unsupported-image", message)

    return Image(refuse, place)


def reason(error: FormatError) -> str:
    """Return why an image cannot be shown."""
    return "; ".join(str(each.message) for each in error.diagnostics)
