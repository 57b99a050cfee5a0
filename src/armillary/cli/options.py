"""Options that several verbs have, each declared once, and what they choose."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.hints import with_options
from armillary.cli.table import comma_separated
from armillary.cli.vectors import chosen_vector, open_joint_file
from armillary.cli.verb import OneOf, Option, option, whole_number
from armillary.errors import ArmillaryError, FormatError, ModelError, printable, quote
from armillary.formats.files import read_bytes
from armillary.kinematics.state import State
from armillary.model.end_effectors import default_frame
from armillary.model.mount import WORLD

if TYPE_CHECKING:  # most verbs neither check, solve nor write rows
    from armillary.cell.device import Device
    from armillary.collision.check import CollisionCheck
    from armillary.ik.inverse_kinematics import InverseKinematics
    from armillary.sweeps.row_files import Append

Array = npt.NDArray[np.float64]

# types of options


def names_of(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def range_of_joint(text: str) -> tuple[str, tuple[float, float]]:
    """Return the joint and the range that an option `JOINT=A:B` gives."""
    name, _, ends = text.partition("=")
    try:
        lower, upper = map(float, ends.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{quote(text)} is not of the form JOINT=A:B"
        ) from None
    return name, (lower, upper)


def _result_path(text: str) -> str:
    from armillary.sweeps.row_files import ENDINGS

    if not text.endswith(ENDINGS):
        raise argparse.ArgumentTypeError(
            f"{quote(text)} does not end in '.npy' or '.csv'"
        )
    return text


# frames

FRAME = option(
    "--frame F", "a frame of the cell; else the first end effector, or the last link"
)
RELATIVE_TO = option("--relative-to G", "in which frame; else world", default=WORLD)
FRAME_PAIR = (
    option("--frame F", "a frame of the cell", required=True),
    RELATIVE_TO,
)
AXES = (
    option("--position XYZ", "which of x, y, z count; none", default="xyz"),
    option(
        "--rotation XYZ",
        "rotations about which axes count: xy leaves the tool free to spin; none",
        default="xyz",
    ),
    option(
        "--axes",
        "whose axes these are",
        choices=["target", "relative_to"],
        default="target",
    ),
)


def chosen_frame(cell: Cell, options: argparse.Namespace) -> str:
    """Return the frame that was named, else that which is meant, see `default_frame`.

    Raises:
        ModelError: None was named and the cell is empty.
    """
    if options.frame is not None:
        name: str = options.frame
        return name
    if not cell.manipulators:
        raise ModelError(f"Cell {quote(cell.name)} is empty; it has no frame.")
    return default_frame(cell.workcell)


def chosen_axes(text: str) -> str:
    """Return the axes that `--position` or `--rotation` name."""
    return "" if text == "none" else text


# states

Q_FILE = option("--q-file FILE", "joint vectors, CSV or NPY", is_input=True)
JOINTS = option("--joints A,B,...", "which joints may move", type=names_of)
_Q = option("--q Q1,Q2,...", "a joint vector", has_numbers=True)
_STATE_FILE = (
    option(
        "--state FILE.json",
        "a state as `state.to_json()` writes it: q, moved bases, attachments",
        is_input=True,
    ),
    option("--degrees", "angles of q are in degrees", action="store_true"),
)
STATE = (*_STATE_FILE, _Q)
STATES = (*_STATE_FILE, OneOf((_Q, Q_FILE)))
MOTION = (
    option("--motion Q.npy", "joint vectors to play, CSV or NPY"),
    option("--rate HZ", "vectors a second; else 30", type=float),
)


def chosen_state(cell: Cell, options: argparse.Namespace) -> State:
    """Return the state that was asked for; by default the cell is at home.

    Raises:
        ArmillaryError: The file has no state of this cell, or q has a wrong length.
    """
    state = cell.home
    if (path := options.state) is not None:
        data = read_bytes(path)
        try:
            state = cell.bind(State.from_json(data))
        except ArmillaryError as error:
            raise FormatError(f"{printable(path)}: {error}") from error
    if options.q is None:
        return state
    return state.replace(q=chosen_vector(cell, options.q, options))


def chosen_motion(
    cell: Cell, state: State, options: argparse.Namespace
) -> Array | None:
    """Return the joint positions of the motion, shape (k, n), None if there is none.

    Raises:
        ModelError: A rate is given without a motion.
        ArmillaryError: The file holds something else.
    """
    if options.motion is None:
        if options.rate is not None:
            raise ModelError("--rate is that of the vectors of --motion.")
        return None
    with open_joint_file(options.motion, cell, state, options) as vectors:
        empty = np.empty((0, len(cell.joint_names)))
        return np.concatenate([empty, *vectors.chunks])


# collisions

MARGIN = option(
    "--margin M",
    "links nearer than this count as touching [m]; else 0",
    type=float,
    default=0.0,
)
EXACT = option(
    "--exact",
    "treat meshes by their triangles, not by their convex hulls; slow, and "
    "needs pip install 'armillary[exact]'",
    action="store_true",
)


def avoid(help: str) -> Option:
    """Return the option `--avoid`."""
    return option("--avoid M", help, type=float)


def collision_check(
    cell: Cell, state: State, margin: float, *, exact: bool = False
) -> CollisionCheck:
    """Return the collision check of a state; warn on stderr if no pair is tested.

    Args:
        cell: The cell.
        state: What is attached to what.
        margin: Links nearer than this count as touching [m].
        exact: Whether meshes are treated by their triangles, not by their hulls.

    Raises:
        ModelError: As for `Cell.collision`.
    """
    check = cell.collision(state, margin=margin, exact=exact)
    if not len(check.pairs):
        from armillary.collision.untested import nothing_text

        print(f"warning: {with_options(nothing_text(check.pairs))}", file=sys.stderr)
    return check


def chosen_avoidance(
    cell: Cell, state: State, options: argparse.Namespace
) -> CollisionCheck | None:
    """Return the check whose margin `--avoid` gives; None without one.

    Raises:
        ModelError: `--exact` is given without `--avoid`, or as `collision_check`.
    """
    if options.avoid is not None:
        return collision_check(cell, state, options.avoid, exact=options.exact)
    if options.exact:
        raise ModelError("--exact is how --avoid treats meshes: add --avoid M.")
    return None


def chosen_solver(
    cell: Cell, state: State, frame: str, options: argparse.Namespace
) -> tuple[Device, InverseKinematics, CollisionCheck | None]:
    """Return the joints that move, their solver, and the check that it avoids."""
    device = cell.device(
        joints=options.joints, base=options.relative_to, ends=frame, state=state
    )
    avoided = chosen_avoidance(cell, state, options)
    solver = device.ik(
        position=chosen_axes(options.position),
        rotation=chosen_axes(options.rotation),
        axes=options.axes,
        avoid=avoided,
    )
    return device, solver, avoided


# samples

SEED = option(
    "--seed S", "another seed gives other --samples; else 0", type=whole_number(0)
)
WITHIN = option(
    "--within JOINT=A:B",
    "where --samples has a joint, in place of its limits; may be repeated",
    type=range_of_joint,
    action="append",
)

# results

JSON = option("--json", "print one JSON object, in SI units", action="store_true")


def out(metavar: str, results: str) -> Option:
    """Return the option `--out`, an NPY or CSV file for the results."""
    return option(
        f"--out {metavar}",
        f"write the {results} to this file, NPY or CSV by its ending",
        type=_result_path,
    )


@contextmanager
def row_output(
    options: argparse.Namespace,
    batch: tuple[int, ...],
    row: tuple[int, ...],
    names: Sequence[str] = (),
) -> Generator[Append, None, None]:
    """Give what takes rows of results: the file of `--out`, or else stdout as CSV.

    A single matrix is printed as such. The arguments are those of `result_file`.
    """
    if options.out is None:
        is_matrix = not batch and len(row) == 2
        yield _print_matrix if is_matrix else _print_rows
        return
    from armillary.sweeps.row_files import result_file

    with result_file(options.out, batch, row, names=names) as append:
        yield append


def _print_matrix(array: Array) -> None:
    for row in array.reshape(-1, array.shape[-1]) + 0.0:
        print(" ".join(f"{entry:16.12f}" for entry in row))


def _print_rows(array: Array) -> None:
    for row in (array + 0.0).reshape(len(array), -1).tolist():
        print(comma_separated(row))


def written_answers(
    ask: Callable[[Array], Array],
    cell: Cell,
    state: State,
    options: argparse.Namespace,
    row: tuple[int, ...],
    names: Sequence[str] = (),
) -> Iterator[Array]:
    """Write the answers to the joint vectors of `--q-file`, and yield them, in chunks.

    Args:
        ask: Returns the answers, shape (k, *row), to joint positions, shape (k, n).
        cell: The cell that has the joints.
        state: The positions of the joints that the file does not name.
        options: The options of the command line.
        row: The shape of an answer.
        names: The names of the numbers of an answer.
    """
    with (
        open_joint_file(options.q_file, cell, state, options) as vectors,
        row_output(options, vectors.file.result_batch, row, names) as write,
    ):
        for q in vectors.chunks:
            answers = ask(q)
            write(answers)
            yield answers


def print_summary(lines: Iterable[Any], options: argparse.Namespace) -> None:
    """Print what was found over many rows.

    Without a file the rows go to stdout, and it must hold nothing else.
    """
    for line in lines:
        print(line, file=sys.stderr if options.out is None else sys.stdout)
