"""`armillary convert`: a file of one format to a file of another."""

from __future__ import annotations

import argparse
from typing import Any

from armillary.cli.input import add_file, open_cell, warn
from armillary.collision.with_collisions import KINDS
from armillary.errors import printable
from armillary.formats import registry
from armillary.formats.diagnostic import Severity
from armillary.model.display import plural


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "convert",
        help="a file of one format to a file of another",
        description="Read IN, write OUT. Lost content is reported on stderr.",
    )
    add_file(parser, "IN")
    parser.add_argument("out", metavar="OUT", help="the file to write or replace")
    parser.add_argument(
        "--to", metavar="NAME", help="format of OUT; by default found from its ending"
    )
    parser.add_argument(
        "--lossless",
        action="store_true",
        help="write nothing where the format cannot hold everything",
    )
    parser.add_argument(
        "--collisions",
        metavar="KIND",
        choices=KINDS,
        help="put other collision shapes around those of the links: "
        "hulls or convex parts around meshes, or spheres around everything",
    )
    parser.add_argument(
        "--spheres",
        metavar="N",
        type=int,
        default=10,
        help="the most spheres of a link, with --collisions spheres (default: 10)",
    )
    parser.set_defaults(run=run)


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
    )
    warn(report)
    losses = report.count(Severity.WARNING)
    lost = f", {plural(losses, 'warning')}" if losses else ""
    print(f"{printable(options.out)}: written{lost}")
    return 0
