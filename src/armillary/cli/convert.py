"""`armillary convert`: a file of one format to a file of another."""

from __future__ import annotations

import argparse
from typing import Any

from armillary.cli.input import add_file, open_cell, warn
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
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the one file and write the other."""
    cell = open_cell(options)
    report = registry.save(
        cell.workcell, options.out, format=options.to, lossless=options.lossless
    )
    warn(report)
    losses = report.count(Severity.WARNING)
    lost = f", {plural(losses, 'warning')}" if losses else ""
    print(f"{printable(options.out)}: written{lost}")
    return 0
