"""`armillary convert`: a file of one format to a file of another."""

from __future__ import annotations

import argparse

from armillary.cli.input import file_to_read, open_cell, warn
from armillary.cli.verb import option, verb
from armillary.collision.with_collisions import KINDS
from armillary.errors import printable
from armillary.formats import registry
from armillary.formats.diagnostic import Severity
from armillary.model.display import plural


@verb(
    "convert",
    (
        *file_to_read("IN"),
        option("out OUT", "the file to write or replace"),
        option("--to NAME", "format of OUT; by default found from its ending"),
        option(
            "--lossless",
            "write nothing where the format cannot hold everything",
            action="store_true",
        ),
        option(
            "--collisions KIND",
            "put other collision shapes around those of the links: "
            "hulls or convex parts around meshes, or spheres around everything",
            choices=KINDS,
        ),
        option(
            "--spheres N",
            "the most spheres of a link, with --collisions spheres (default: 10)",
            type=int,
            default=10,
        ),
    ),
    description="Read IN, write OUT. Lost content is reported on stderr.",
)
def run(options: argparse.Namespace) -> int:
    """Read the one file and write the other."""
    cell = open_cell(options)
    if options.collisions is not None:
        cell = cell.with_collisions(options.collisions, count=options.spheres)
    report = registry.save(
        cell.workcell,
        options.out,
        format=options.to,
        lossless=options.lossless,
        meshes=cell.meshes,
        own_motions=cell.motions,
    )
    warn(report)
    losses = report.count(Severity.WARNING)
    lost = f", {plural(losses, 'warning')}" if losses else ""
    print(f"{printable(options.out)}: written{lost}")
    return 0
