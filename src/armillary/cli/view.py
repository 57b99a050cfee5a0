"""`armillary view`: the cell in a browser."""

from __future__ import annotations

import argparse
import sys

from armillary.cli.hints import with_options
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import MOTION, STATE, chosen_motion, chosen_state
from armillary.cli.verb import option, verb
from armillary.errors import printable
from armillary.view.server import LOOPBACK

DONE = 0
DESCRIPTION = """\
Show the cell in the browser, with a slider for each joint, a gizmo that solves inverse
kinematics, distances, attachments and motions. The address is printed; only this
machine can open it. Ctrl-C ends the viewer.
"""


@verb(
    "view",
    (
        *FILE,
        *STATE,
        *MOTION,
        option("--port N", "else a free one", type=int),
        option("--no-open", "only print the address", action="store_true"),
        option("--host ADDRESS", f"else {LOOPBACK}", default=LOOPBACK),
        option(
            "--insecure-remote",
            "allow a --host that other machines reach: all of them can move the "
            "cell, without password or encryption",
            action="store_true",
        ),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Show the cell until Ctrl-C is pressed; return an exit code."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    motion = chosen_motion(cell, state, options)
    viewer = cell.view(
        state,
        host=options.host,
        port=options.port,
        insecure_remote=options.insecure_remote,
    )
    with viewer:
        if motion is not None:
            viewer.play(motion, rate=options.rate)
        for note in viewer.notes:
            print(f"note: {printable(with_options(note))}", file=sys.stderr)
        print(f"{printable(cell.name)}: {viewer.address}  (Ctrl-C ends it)", flush=True)
        if not options.no_open:
            viewer.open()
        viewer.wait()
    return DONE
