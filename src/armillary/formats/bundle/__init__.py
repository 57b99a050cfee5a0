"""Bundles, `*.cell.zip`: a cell with its meshes and motions in one file.

- `cell.json` is the cell, in the native format.
- `motions/NAME.json` are its motions.
- All other files are meshes and what these refer to. A relative reference leads to the
  file of that name, `package://NAME/...` and `model://NAME/...` to `packages/NAME/...`.
  So references stay as they are; others are replaced by such to `files/...`.

Unpacked it is the same cell: `load("cell.json", folders=["packages"])`.

Files are read from the archive when they are needed, and nothing is unpacked to disk
but stages of USD, whose library reads only files.
`armillary.zip_archive` has the checks of archives.
"""

from __future__ import annotations

from typing import Final

from armillary.file_start import is_zip
from armillary.formats.format import Format, later
from armillary.limits import BUNDLE_SIZE

__all__ = ["CELL", "FORMAT", "MOTIONS"]

CELL: Final = "cell.json"
MOTIONS: Final = "motions/"

FORMAT: Final = Format(
    name="bundle",
    title="a bundle of a cell and its files",
    holds=later("bundle.write", "held_features"),
    suffixes=(".cell.zip",),
    sniff=lambda data: is_zip(data) and CELL.encode() in data,
    read=later("bundle.read", "read"),
    write=later("bundle.write", "write"),
    write_files=later("bundle.write", "write_files"),
    meshes=later("bundle.read", "meshes"),
    motions=later("bundle.read", "motions"),
    size=BUNDLE_SIZE,
    takes_options=True,
)
