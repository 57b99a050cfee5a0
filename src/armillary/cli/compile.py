"""`armillary compile`: a cell as a library for C, for this machine or others."""

from __future__ import annotations

import argparse

from armillary.cli.input import FILE, open_cell
from armillary.cli.options import STATE, chosen_state, names_of
from armillary.cli.verb import option, verb
from armillary.errors import printable

DONE = 0
DESCRIPTION = """\
Compile questions about the cell to a folder: a header, a static library and its object,
or C99 source, a program that tests them, a CMakeLists.txt and a script that calls them
from Python. The code needs no Python and no other library; it is yours, without a
licence. A question is fk:FRAME, jacobian:FRAME, ik:FRAME, differential_ik:FRAME,
inverse_dynamics, forward_dynamics, mass_matrix, gravity_torque, bias_torque, check or
clearance; NAME= in front names its function.
"""
TARGETS = """\
host, x86-64-v2, x86-64-v3, x86-64-v4, x86-64 for all three, \
x86-64-windows, aarch64, armv7em (float32), armv7em-dp, wasm32, c99 for source, or \
ptx for GPUs"""


@verb(
    "compile",
    (
        *FILE,
        option("--ask A,B", "the questions", required=True, type=names_of),
        option("--to FOLDER", "where to write", required=True),
        option("--target T", f"{TARGETS}; else host", default="host"),
        option("--name N", "what names begin with; else the name of the cell"),
        option("--float32", "compute in float32", action="store_true"),
        option("--overwrite", "replace files", action="store_true"),
        *STATE,
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Write the folder and print what is in it; return an exit code."""
    cell = open_cell(options)
    made = cell.compile_to(
        options.to,
        ask=options.ask,
        target=options.target,
        state=chosen_state(cell, options),
        dtype="float32" if options.float32 else "float64",
        name=options.name or "",
        overwrite=options.overwrite,
    )
    for name, size in made.sizes.items():
        print(f"{printable(str(made.path / name))}: {size} bytes")
    print(f"functions: {', '.join(made.functions)}")
    return DONE
