"""Options that several verbs share: the frame, the state, where results go."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from armillary.cell.cell import Cell
from armillary.cli.joints import si_factors
from armillary.cli.result_file import ENDINGS
from armillary.cli.vectors import vector_of_text
from armillary.errors import (
    ArmillaryError,
    FormatError,
    ModelError,
    ShapeError,
    printable,
    quote,
)
from armillary.formats.files import read_bytes
from armillary.kinematics.state import State
from armillary.model.end_effectors import end_effectors, last_link
from armillary.model.mount import WORLD


def add_frame(parser: argparse.ArgumentParser) -> None:
    """Add the option `--frame`, which `chosen_frame` reads."""
    parser.add_argument(
        "--frame",
        metavar="F",
        help="a frame of the cell; else the first end effector, or the last link",
    )


def add_frame_pair(parser: argparse.ArgumentParser) -> None:
    """Add the options `--frame`, which is required, and `--relative-to`."""
    parser.add_argument(
        "--frame", metavar="F", required=True, help="a frame of the cell"
    )
    add_relative_to(parser)


def add_relative_to(parser: argparse.ArgumentParser) -> None:
    """Add the option `--relative-to`."""
    parser.add_argument(
        "--relative-to", metavar="G", default=WORLD, help="in which frame; else world"
    )


def chosen_frame(cell: Cell, options: argparse.Namespace) -> str:
    """Return the frame that was named, else the first end effector, else the last link.

    Raises:
        ModelError: None was named and the cell is empty.
    """
    if options.frame is not None:
        name: str = options.frame
        return name
    for manipulator in cell.manipulators:
        for name in end_effectors(manipulator):
            return name
    if not cell.manipulators:
        raise ModelError(f"Cell {quote(cell.name)} is empty; it has no frame.")
    return last_link(cell.manipulators[-1])


def add_axes(parser: argparse.ArgumentParser) -> None:
    """Add `--position`, `--rotation`, `--axes`: which coordinates of a pose count."""
    parser.add_argument(
        "--position", metavar="XYZ", default="xyz", help="which of x, y, z count; none"
    )
    parser.add_argument(
        "--rotation",
        metavar="XYZ",
        default="xyz",
        help="rotations about which axes count: xy leaves the tool free to spin; none",
    )
    parser.add_argument(
        "--axes",
        choices=["target", "relative_to"],
        default="target",
        help="whose axes these are",
    )


def chosen_axes(text: str) -> str:
    """Return the axes that `--position` or `--rotation` name."""
    return "" if text == "none" else text


def chosen_names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


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
    """Return the state that was asked for; by default the cell is at home.

    Raises:
        ArmillaryError: The file has no state of this cell, or q has a wrong length.
    """
    state = cell.home if options.state is None else _in_file(cell, options.state)
    if options.q is None:
        return state
    return state.replace(q=chosen_vector(cell, options.q, options))


def chosen_vector(
    cell: Cell, text: str, options: argparse.Namespace, name: str = "--q"
) -> Any:
    """Return the numbers of an option, one for each joint, in SI units, shape (n,).

    Raises:
        ShapeError: There are more or fewer of them.
    """
    numbers = vector_of_text(text, name)
    names = cell.joint_names
    if len(numbers) != len(names):
        raise ShapeError(
            f"{name} has {len(numbers)} numbers; cell {quote(cell.name)} has "
            f"{len(names)} joints: {', '.join(names)}."
        )
    return numbers * (si_factors(cell.workcell, names) if options.degrees else 1.0)


def _in_file(cell: Cell, path: str) -> State:
    data = read_bytes(path)
    try:
        return cell.bind(State.from_json(data))
    except ArmillaryError as error:
        raise FormatError(f"{printable(path)}: {error}") from error


def add_margin(parser: argparse.ArgumentParser) -> None:
    """Add the option `--margin` of collision checks."""
    parser.add_argument(
        "--margin",
        metavar="M",
        type=float,
        default=0.0,
        help="links nearer than this count as touching [m]; else 0",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json`."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, in SI units"
    )


def add_out(parser: argparse.ArgumentParser, metavar: str, results: str) -> None:
    """Add the option `--out`, an NPY or CSV file for the results."""
    parser.add_argument(
        "--out",
        metavar=metavar,
        type=_result_file,
        help=f"write the {results} to this file, NPY or CSV by its ending",
    )


def _result_file(text: str) -> str:
    if not text.endswith(ENDINGS):
        raise argparse.ArgumentTypeError(
            f"{quote(text)} does not end in '.npy' or '.csv'"
        )
    return text


def whole_number(least: int) -> Callable[[str], int]:
    """Return the type of an option that takes an integer from `least` on."""

    def number(text: str) -> int:
        if not (text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(
                f"{quote(text)} is not an integer of at least {least}"
            )
        return int(text)

    return number
