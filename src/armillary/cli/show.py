"""`armillary show`: a cell at each stage of its way to machine code."""

from __future__ import annotations

import argparse

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import FRAME, chosen_frame
from armillary.cli.verb import option, verb
from armillary.formats import registry
from armillary.trace import Program, listing

STAGES = ("model", "program", "llvm", "asm")
BITS = 64


@verb(
    "show",
    (
        *FILE,
        option("--stage", "by default the program", choices=STAGES, default="program"),
        FRAME,
    ),
    description="Print the model as it was understood, in the native format, or "
    "the kernel of a frame's pose: the traced program, its LLVM code, or its "
    "assembly for this machine.",
)
def run(options: argparse.Namespace) -> int:
    """Print the cell at a stage."""
    cell = open_cell(options)
    if options.stage == "model":
        print(_model(cell), end="")
        return 0
    program: Program = cell.fk(chosen_frame(cell, options)).program
    print(listing(program) if options.stage == "program" else _code(program, options))
    return 0


def _model(cell: Cell) -> str:
    data, _ = registry.write(cell.workcell, format="cell")
    return data.decode()


def _code(program: Program, options: argparse.Namespace) -> str:
    from armillary.kernel.compiler import assembly_text, kernel_text, native_reals

    text = kernel_text if options.stage == "llvm" else assembly_text
    return text(program, native_reals(BITS)).rstrip("\n")
