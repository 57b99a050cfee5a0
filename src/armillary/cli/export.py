"""`armillary export`: a cell as one HTML file."""

from __future__ import annotations

import argparse
from typing import Final

from armillary.cli.hints import with_options
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import MOTION, STATE, chosen_motion, chosen_state
from armillary.cli.verb import option, verb
from armillary.errors import printable, quote

DONE = 0
MEGABYTE = 1e6
ENDINGS: Final = (".html", ".htm")
DESCRIPTION = """\
Write the cell as one HTML file that a browser opens from disk, without Python and
without a network, with a motion to play if --motion names one. The size of the file is
printed, and that of the meshes in it before compression.
"""


def _page_path(text: str) -> str:
    if not text.endswith(ENDINGS):
        raise argparse.ArgumentTypeError(
            f"{quote(text)} does not end in '.html': a page is written. 'armillary "
            "convert' writes a cell as a file of another format"
        )
    return text


@verb(
    "export",
    (
        *FILE,
        option("out OUT.html", "the file to write", type=_page_path),
        *STATE,
        *MOTION,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Write the page and print its size; return an exit code."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    motion = chosen_motion(cell, state, options)
    size = cell.export(options.out, state=state, motion=motion, rate=options.rate)
    for note in size.notes:
        print(printable(with_options(note)))
    print(
        f"{printable(options.out)}: {size.total / MEGABYTE:.2f} MB; meshes "
        f"{size.meshes / MEGABYTE:.2f} MB before compression"
    )
    return DONE
