"""The state that a verb is about: at home, in a file, or at a joint vector."""

from __future__ import annotations

import argparse
from typing import Any

from armillary.cell.cell import Cell
from armillary.cli.joints import si_factors
from armillary.cli.vectors import vector_of_text
from armillary.errors import ArmillaryError, FormatError, ShapeError, printable, quote
from armillary.formats.files import read_bytes
from armillary.kinematics.state import State


def add_state(parser: argparse.ArgumentParser) -> Any:
    """Add the options that give a state; return the group of those that give q."""
    parser.add_argument(
        "--state",
        metavar="FILE.json",
        help="a state as `state.to_json()` writes it: q, moved bases, attachments",
    )
    parser.add_argument(
        "--degrees", action="store_true", help="angles of q are in degrees"
    )
    positions = parser.add_mutually_exclusive_group()
    positions.add_argument("--q", metavar="Q1,Q2,...", help="a joint vector")
    return positions


def chosen_state(cell: Cell, options: argparse.Namespace) -> State:
    """Return the state that was asked for; without any, the cell is at home.

    Raises:
        ArmillaryError: The file holds no state of this cell, or q has a wrong length.
    """
    state = cell.home if options.state is None else _in_file(cell, options.state)
    if options.q is None:
        return state
    q = vector_of_text(options.q)
    names = cell.joint_names
    if len(q) != len(names):
        raise ShapeError(
            f"--q has {len(q)} numbers; cell {quote(cell.name)} has {len(names)} "
            f"joints: {', '.join(names)}."
        )
    factors = si_factors(cell, names) if options.degrees else 1.0
    return state.replace(q=q * factors)


def _in_file(cell: Cell, path: str) -> State:
    data = read_bytes(path)
    try:
        return cell.bind(State.from_json(data))
    except ArmillaryError as error:
        raise FormatError(f"{printable(path)}: {error}") from error
