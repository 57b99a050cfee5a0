"""USD in and out: robots and scenes as Isaac Sim and Omniverse hold them.

Reading: `child` has the library usd-core compose a stage, in a process that may only
read the folders that are allowed; `process` asks it. `scene` has poses and units of
prims, `shapes` what they look like, `bodies` their masses and frames, `joints` the
joints of UsdPhysics. `trees` makes trees and loops of bodies and joints, `read` a cell
of these and of what stands still, `rules` its rules of collisions.

Writing: `write` makes a stage of a cell, `write_parts` its shapes and joints,
`animation` the poses of links over time.
"""

from __future__ import annotations

from typing import Final

from armillary.file_start import is_zip
from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

STARTS: Final = (b"#usda ", b"PXR-USDC")
"""Of layers; a package is an archive, which only its name tells from others."""

FORMAT: Final = Format(
    name="usd",
    title="USD",
    holds=later("usd.write", "held_features"),
    suffixes=(".usd", ".usda", ".usdc", ".usdz"),
    sniff=lambda data: data.startswith(STARTS) or _is_package(data),
    read=later("usd.read", "read"),
    write=later("usd.write", "write"),
    write_files=later("usd.write", "write_files"),
    takes_arguments=True,
    takes_options=True,
)


def _is_package(data: bytes) -> bool:
    """Return whether this is an archive whose first file is a layer."""
    name = data[30 : 30 + int.from_bytes(data[26:28], "little")]
    return is_zip(data) and name.endswith((b".usd", b".usda", b".usdc"))
